local evaluate = require "perigee.evaluate"
local files = require "spec.support.files"
local tensor = require "perigee.tensor"

describe("metrics", function()
  it("Spearman's are as scipy computes them, ties included", function()
    assert.near(0.8207826816681233, evaluate.spearman({ 1, 2, 3, 4, 5 }, { 5, 6, 7, 8, 7 }), 1e-12)
    assert.near(-1, evaluate.spearman({ 1, 2, 3 }, { 9, 1, 0 }), 1e-12)
    assert.near(0.9486832980505139, evaluate.spearman({ 1, 2, 2, 3 }, { 1, 2, 3, 4 }), 1e-12)
  end)

  it("a constant list, or one with NaN, correlates with nothing", function()
    for _, value in ipairs { evaluate.spearman({ 1, 1 }, { 1, 2 }), evaluate.spearman({ 1, 0 / 0 }, { 1, 2 }) } do
      assert.is_true(value ~= value)
    end
  end)

  it("Pearson's and accuracy", function()
    assert.near(0.9827076298239908, evaluate.pearson({ 1, 2, 3, 4 }, { 1, 2, 3, 5 }), 1e-12)
    assert.are.equal(0.5, evaluate.accuracy({ "a", "b" }, { "a", "c" }))
  end)

  it("lists of two lengths are an error", function()
    assert.error_matches(function() evaluate.accuracy({ 1 }, {}) end, "two lists of one length, at least 1; got 1 and 0")
    assert.error_matches(function() evaluate.spearman({}, {}) end, "got 0 and 0")
  end)

  it("cosines of rows", function()
    local a = tensor.from { { 3, 4 }, { 0, 0 } }
    local b = tensor.from { { 4, 3 }, { -3, -4 }, { 0, 0 } }
    assert.near(0.96, evaluate.cosine(a, 1, b, 1), 1e-12)
    assert.near(-1, evaluate.cosine(a, 1, b, 2), 1e-12)
    assert.are.same({ 0, 1 }, { evaluate.cosine(a, 2, b, 1), evaluate.cosine(a, 2, b, 3) })
  end)

  it("of what they are not for are an error that names it", function()
    local a, b = tensor.from { { 3, 4 } }, tensor.from { { 1, 2, 3 } }
    for said, f in pairs {
      ["got nil and nil"] = function() evaluate.pearson() end,
      ["got a table and 7"] = function() evaluate.accuracy({ 1 }, 7) end,
      ["expected two lists of numbers; entry 2 is the string 'x'"] = function() evaluate.spearman({ 1, "x" }, { 1, 2 }) end,
      ["cosine: a is nil, expected a tensor"] = function() evaluate.cosine() end,
      ["cosine: b has rows 1 to 1, not 2"] = function() evaluate.cosine(a, 1, a, 2) end,
      ["cosine: b is a tensor F32 [2], expected F32 [rows][width]"] = function()
        evaluate.cosine(a, 1, tensor.from { 1, 2 }, 1)
      end,
      ["cosine: rows of 2 and of 3 numbers"] = function() evaluate.cosine(a, 1, b, 1) end,
      ["evaluate.run: the model is nil"] = function() evaluate.run() end,
      ["evaluate.run: the set is the string 'x'"] = function() evaluate.run({ model = {} }, "x") end,
      ["evaluate.distance: the model is 7"] = function() evaluate.distance({ model = {} }, 7) end,
    } do
      local ok, message = pcall(f)
      assert.is_false(ok)
      assert.matches("^[^:]*evaluate_spec.lua:%d+: ", message)
      assert.matches(said, message, 1, true)
    end
  end)
end)

describe("labelled files", function()
  after_each(files.clean)

  local function read(text)
    return evaluate.read(files.write(text))
  end

  it("are told apart by their fields", function()
    local set = read "good film\tpositive\n\nbad one\tnegative\n"
    assert.are.same({ "label", { "good film", "bad one" }, { "positive", "negative" } }, { set.kind, set.texts, set.labels })
    set = read "a b\tc\t4.5\nd\te\t-1\n"
    assert.are.same({ "score", { { "a b", "c" }, { "d", "e" } }, { 4.5, -1 } }, { set.kind, set.texts, set.labels })
    set = read "a\tb\tentailment\r\nc\t\tneutral\r\n"
    assert.are.same({ "label", { { "a", "b" }, { "c", "" } }, { "entailment", "neutral" } }, { set.kind, set.texts, set.labels })
  end)

  it("of STS-B have no quoting, and sources behind the texts", function()
    local set = read 'main\tMSR\t2012\t0024\t2.500\tA "girl.\tB, too.\nmain\tx\ty\tz\t3\tc\td\tsource\tother\n'
    assert.are.same({ { { 'A "girl.', "B, too." }, { "c", "d" } }, { 2.5, 3 } }, { set.texts, set.labels })
  end)

  it("that are none of these are an error with file and line", function()
    assert.error_matches(function() read "just text\n" end, "line 1: has 1 tab%-separated fields, expected text TAB label")
    assert.error_matches(function() read "a\t\n" end, "line 1: has 2 tab%-separated fields, the last one empty, expected")
    assert.error_matches(function() read "a\tb\t1\nc\td\n" end, "line 2: expected text TAB text TAB score as in the lines before")
    assert.error_matches(function() read "a\tb\t1\nc\td\tx\n" end, "line 2: expected text TAB text TAB score")
    assert.error_matches(function() read "\n\n" end, "no lines to evaluate on")
    assert.error_matches(function() evaluate.read "/nowhere" end, "/nowhere: No such file")
  end)
end)

-- A model that answers from a table.
local function fake(task, problem, answers)
  local model = { task = task, config = { problem = problem, labels = { "no", "yes" } } }
  model.model = model
  function model.classify(_, texts)
    local list = {}
    for i, text in ipairs(texts) do
      list[i] = answers[type(text) == "table" and table.concat(text, "|") or text]
    end
    return list
  end
  function model.embed(_, texts)
    local rows = {}
    for i, text in ipairs(texts) do
      rows[i] = answers[text]
    end
    return tensor.from(rows)
  end
  return model
end

describe("evaluation", function()
  after_each(files.clean)

  local function run(model, text)
    return evaluate.run(model, evaluate.read(files.write(text)))
  end

  it("of a classifier is accuracy; labels are names or numbers", function()
    local model = fake("classify", "single_label_classification", { a = { label = "yes" }, b = { label = "no" } })
    assert.are.same({ metric = "accuracy", value = 0.75, n = 4 }, run(model, "a\tyes\nb\tno\na\t1\nb\t1\n"))
    assert.error_matches(function() run(model, "a\tmaybe\n") end, "label maybe is none of the model's: no, yes")
    local pairs_model = fake("classify", "single_label_classification", { ["a|b"] = { label = "yes" } })
    assert.are.same({ metric = "accuracy", value = 0.5, n = 2 }, run(pairs_model, "a\tb\t1\na\tb\t0\n"))
  end)

  it("of a regression is Spearman of its score", function()
    local model = fake("classify", "regression", { ["a|b"] = { score = 1 }, ["c|d"] = { score = 2 }, e = { score = 0 } })
    assert.are.equal(1, run(model, "a\tb\t0.1\nc\td\t0.7\n").value)
    assert.error_matches(function() run(model, "e\tx\n") end, "needs scores, not labels such as \"x\"")
  end)

  it("of an embedder is Spearman of the cosine, or whether the nearest text has the same label", function()
    local model = fake("embed", nil, { a = { 1, 0 }, b = { 1, 0.1 }, c = { 0, 1 }, d = { 0.1, 1 } })
    assert.are.same({ metric = "Spearman", value = 1, n = 3 }, run(model, "a\tb\t3\na\tc\t1\na\td\t2\n"))
    assert.are.equal(1, run(model, "a\tx\nb\tx\nc\ty\nd\ty\n").value)
    assert.are.equal(0, run(model, "a\tx\nb\ty\nc\tx\nd\ty\n").value)
    assert.error_matches(function() run(model, "a\tb\tx\n") end, "labels for pairs of texts, which only a classifier answers")
  end)
end)
