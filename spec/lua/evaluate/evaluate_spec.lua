local bootstrap = require "perigee.evaluate.bootstrap"
local cjson = require "cjson"
local entities = require "perigee.evaluate.entities"
local evaluate = require "perigee.evaluate"
local files = require "spec.support.files"
local metrics = require "perigee.evaluate.metrics"
local models = require "spec.support.models"
local perigee = require "perigee"
local squad = require "perigee.evaluate.squad"
local tensor = require "perigee.tensor"

-- The scores that public implementations give to the same answers (spec/golden/metrics.py).
local golden = cjson.decode(models.read "spec/golden/metrics.json")
local EXACT = 1e-12 -- doubles added up in another order

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

  it("blame the caller for arguments of another kind", function()
    for _, case in ipairs {
      { "pearson", nil, { 1 }, "evaluate.pearson: expected two lists" }, { "f1", {}, {}, "evaluate.f1: expected two lists" },
      { "average_precision", { 1 }, { 2 }, "label 1 is 2, expected 0 or 1" },
      { "answer", 1, {}, "evaluate.answer: the answer is 1, expected a text" },
      { "answer", "a", "b", "the references are the string 'b', expected a list" },
      { "answer", "a", { 1 }, "evaluate.answer: reference 1 is 1, expected a text" },
      { "ndcg", nil, {}, "evaluate.ndcg: expected a list of documents, best first" },
      { "recall", { "a" }, { a = "x" }, "evaluate.recall: the grade of the string 'a' is the string 'x', expected a number" },
    } do
      local ok, message = pcall(function() evaluate[case[1]](case[2], case[3]) end)
      assert.is_false(ok)
      assert.matches("evaluate_spec.lua:%d+: ", message)
      assert.matches(case[4], message, 1, true)
    end
    assert.are.equal(1, evaluate.average_precision({ 0.9, 0.1 }, { 1, 0 }))
  end)

  it("of numbers are scipy's, of a weighted sample, too", function()
    for _, case in ipairs(golden.numbers) do
      for _, name in ipairs { "pearson", "spearman" } do
        assert.near(case[name], evaluate[name](case.a, case.b), EXACT)
        assert.near(case["weighted_" .. name], metrics[name](case.a, case.b)(case.weights), EXACT)
      end
    end
  end)

  it("average precision is scikit-learn's, ties included, of a weighted sample, too", function()
    for _, case in ipairs(golden.average_precision) do
      local score = metrics.average_precision(case.scores, case.labels)
      assert.near(case.value, score(), EXACT)
      assert.near(case.weighted, score(case.weights), EXACT)
    end
    assert.is_true(metrics.average_precision({ 1, 2 }, { 0, 0 })() ~= metrics.average_precision({ 1, 2 }, { 0, 0 })())
  end)

  it("of classes are scikit-learn's, of a weighted sample, too", function()
    for _, case in ipairs(golden.classes) do
      local scorers = {
        accuracy = metrics.accuracy(case.answers, case.labels), macro_f1 = metrics.macro_f1(case.answers, case.labels),
        f1_of_a = metrics.f1(case.answers, case.labels, "a"), matthews = metrics.matthews(case.answers, case.labels),
      }
      for name, score in pairs(scorers) do
        assert.near(case[name], score(), EXACT, name)
        assert.near(case["weighted_" .. name], score(case.weights), EXACT, name)
      end
    end
    assert.are.equal(0, evaluate.matthews({ "a", "a" }, { "a", "b" }))
    assert.are.equal(0, evaluate.f1({ "a", "a" }, { "a", "a" }, "b"))
  end)

  it("of entities are seqeval's, by CoNLL's rules and strict", function()
    for _, case in ipairs(golden.entities) do
      for _, mode in ipairs { "", case.strict_f1 and "strict_" or nil } do
        local f1, precision, recall = evaluate.entities(case.answers, case.labels, mode ~= "")
        assert.near(case[mode .. "f1"], f1, EXACT)
        assert.near(case[mode .. "precision"], precision, EXACT)
        assert.near(case[mode .. "recall"], recall, EXACT)
      end
    end
    assert.are.same({ { "X", 1, 2 }, { "Y", 3, 3 }, { "X", 5, 5 } }, entities.spans { "I-X", "I-X", "I-Y", "O", "B-X" })
    assert.are.same({ { "X", 5, 5 } }, entities.spans({ "I-X", "I-X", "I-Y", "O", "B-X" }, true))
  end)

  it("of answers are SQuAD's", function()
    assert.is_true(#golden.answers > 40)
    for _, case in ipairs(golden.answers) do
      local exact, f1 = evaluate.answer(case.answer, case.references)
      assert.are.equal(case.exact, exact, case.answer)
      assert.near(case.f1, f1, 1e-6, case.answer) -- torchmetrics computes in single precision
    end
    assert.are.same({ 1, 1 }, { evaluate.answer("", {}) })
    assert.are.same({ 0, 0 }, { evaluate.answer("something", {}) })
    assert.are.same({ 0, 0 }, { evaluate.answer("", { "something" }) })
  end)

  it("of answers know the articles, punctuation and words of languages", function()
    for _, case in ipairs(golden.languages) do
      assert.are.same(case.words, squad.words(case.text, case.language))
    end
  end)

  it("of rankings are trec_eval's", function()
    for _, case in ipairs(golden.rankings) do
      assert.near(case.ndcg_cut_10, evaluate.ndcg(case.order, case.judgements, 10), EXACT)
      assert.near(case.ndcg_cut_5, evaluate.ndcg(case.order, case.judgements, 5), EXACT)
      assert.near(case.recall_5, evaluate.recall(case.order, case.judgements, 5), EXACT)
      assert.near(case.recall_10, evaluate.recall(case.order, case.judgements, 10), EXACT)
      assert.near(case.recip_rank, evaluate.reciprocal_rank(case.order, case.judgements), EXACT)
    end
    assert.are.equal(0, evaluate.ndcg({ "a" }, { a = 0 }, 10))
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
      ["evaluate.compare: got nil, expected a list of { name, model }"] = function()
        evaluate.compare(nil, { texts = {}, labels = {} })
      end,
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

describe("a bootstrap", function()
  it("draws the same samples everywhere", function()
    local random, drawn = bootstrap.generator(1), {}
    for i = 1, 8 do
      drawn[i] = random(1000)
    end
    assert.are.same({ 303, 932, 677, 244, 433, 900, 968, 757 }, drawn)
  end)

  it("finds the interval of a mean", function()
    local values = {}
    for i = 1, 400 do
      values[i] = i % 2
    end
    local mean = metrics.mean(values)
    local interval = bootstrap.intervals(function(weights) return { mean(weights), 0 / 0 } end, #values, { resamples = 2000 })
    assert.near(0.5 - 1.96 * 0.025, interval[1][1], 0.004) -- the deviation of a mean of 400 is 0.025
    assert.near(0.5 + 1.96 * 0.025, interval[1][2], 0.004)
    assert.is_false(interval[2])
  end)

  it("is paired: what all get wrong alike makes no difference", function()
    local a, b = metrics.mean { 0, 1, 0, 1 }, metrics.mean { 0, 1, 0, 1 }
    assert.are.same({ { 0, 0 } }, bootstrap.intervals(function(w) return { b(w) - a(w) } end, 4))
  end)
end)

describe("labelled files", function()
  after_each(files.clean)

  local function read(text, given)
    return evaluate.read(files.write(text), given)
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

  it("with a header have their columns by name, or where options say", function()
    local text = "id\tLabel\tsentence1\tsentence2\tother\n1\tx\ta\tb\tc\n2\ty\td\te\tf\n"
    local set = read(text)
    assert.are.same({ "label", { { "a", "b" }, { "d", "e" } }, { "x", "y" } }, { set.kind, set.texts, set.labels })
    set = read(text, { text = "other", label = "id" })
    assert.are.same({ { "c", "f" }, { "1", "2" } }, { set.texts, set.labels })
    set = read("u\tv\tw\tx\ty\nz\t2\t3\t4\t5\n", { text = 3, label = 1 })
    assert.are.same({ { "w", "3" }, { "u", "z" } }, { set.texts, set.labels })
    assert.are.equal(1, read("premise\thypothesis\tgold_label\na\tb\t-\nc\td\tneutral\n").skipped)
    assert.error_matches(function() read(text, { label = "z" }) end, "line 1: there is no column 'z' %(label%), only 'id', ")
    assert.error_matches(function() read("a\tb\n", { label = 3, called = "--" }) end,
      "%-%-label is 3, expected the number of a column, 1 to 2")
    assert.error_matches(function() read "text\tlabel\na\tb\tc\n" end, "line 2: has 3 fields, expected 2, the header's columns")
  end)

  it("have a header also where columns are given by number", function()
    local by_number = { text = 1, label = 2 }
    for text, labels in pairs {
      ["phrase\tstars\na\t1\nb\t2\n"] = { "1", "2" }, -- the label is a number below
      ["Sentence\tstars\na\tx\nb\ty\n"] = { "x", "y" }, -- a known name in a column that was given
      ["a\tx\nb\ty\n"] = { "x", "y" }, ["a\t1\nb\t2\n"] = { "1", "2" }, -- none
    } do
      local set = read(text, by_number)
      assert.are.same({ { "a", "b" }, labels }, { set.texts, set.labels })
    end
    assert.are.same({ "b" }, read("a\tx\nb\ty\n", { text = 1, label = 2, header = true }).texts)
    assert.are.same({ "b" }, read("a\tx\nb\ty\n", { header = true }).texts)
    assert.error_matches(function() read("phrase\tstars\na\t1\nb\t2\n", { called = "--" }) end,
      "line 1: looks like a header, but none of its names is known: 'phrase', 'stars'; %-%-text, %-%-pair and %-%-label name ")
    assert.error_matches(function() read "one\ttwo\tthree\tfour\tfive\na\tb\tc\td\te\n" end,
      "line 1: has 5 tab%-separated fields: 'one', 'two', 'three', 'four', 'five'; expected text TAB label")
  end)

  it("take no option that has no effect on their form", function()
    for text, option in pairs {
      ["a\tO\nb\tB-X\n\na\tO\n"] = "label", ['{"question":"q","context":"c","answers":["c"]}\n'] = "label",
      ["DESC:def What?\nDESC:def Who?\n"] = "text", ["a\tx\n"] = "part", ['{"text":"a","label":"x"}\n'] = "header",
    } do
      local value = option == "header" or "x"
      assert.error_matches(function() read(text, { [option] = value, called = "--" }) end,
        "%-%-" .. option .. " has no effect on a file of this form")
    end
    assert.error_matches(function() evaluate.read {} end, "no path is given")
  end)

  it("of commas are quoted as RFC 4180 says", function()
    local path = files.write 'text,category\r\n"a ""b"", c",x\n\n"two\nlines",y\nplain,"z"'
    local set = evaluate.read(path, { as = "csv" })
    assert.are.same({ { 'a "b", c', "two\nlines", "plain" }, { "x", "y", "z" } }, { set.texts, set.labels })
    local function fails(text, said)
      assert.error_matches(function() evaluate.read(files.write(text), { as = "csv" }) end, said)
    end
    fails('a,x\n"b,y\n', "line 2: a quote opens a field and is never closed")
    fails('a,x\n"b"c,y\n', "line 2: expected ',' or the end of the line after a closing quote, found 'c'")
    fails('"a\nb",x\nc,\n', "line 3: has 2 fields, expected text, label as in the lines before")
  end)

  it("of tabs are quoted where quotes are doubled and all of it parses", function()
    local set = read 'text\tlabel\n"a ""b"""\tx\n"c"\ty\n'
    assert.are.same({ 'a "b"', "c" }, set.texts)
    set = read 'text\tlabel\n"a ""b"" c\tx\n"d"\ty\n'
    assert.are.same({ '"a ""b"" c', '"d"' }, set.texts)
  end)

  it("of JSON are one object a line, or a list", function()
    local lines = '{"premise": "a", "hypothesis": "b", "label": 1}\n{"premise": "c", "hypothesis": "d", "label": 0}\n'
    local set = read(lines)
    assert.are.same({ { { "a", "b" }, { "c", "d" } }, { 1, 0 } }, { set.texts, set.labels })
    set = read('[{"t": "a", "l": "x"}, {"t": "b", "l": "y"}]', { text = "t", label = "l" })
    assert.are.same({ { "a", "b" }, { "x", "y" } }, { set.texts, set.labels })
    set = read '{"query": "q", "positive": ["a"], "negative": ["b", "c"]}\n'
    assert.are.same({ 3, "score" }, { #set.texts, set.kind })
    assert.error_matches(function() read(lines .. "{\n") end, "line 3: expected a JSON object, found '{'")
    assert.error_matches(function() read '{"text": 1, "label": "x"}\n' end, "line 1: text is 1, expected a text")
    assert.error_matches(function() read '{"label": "x"}\n' end, "line 1: there is no text among 'label'; text names it")
  end)

  it("of questions have contexts and references", function()
    local set = read [[{"data": [{"paragraphs": [{"context": "c", "qas": [
      {"question": "q", "id": "1", "answers": [{"text": "a"}, {"text": "b"}]},
      {"question": "r", "id": "2", "answers": [], "is_impossible": true}]}]}]}]]
    assert.are.same({ "qa", { { question = "q", context = "c" }, { question = "r", context = "c" } }, { { "a", "b" }, {} } },
      { set.kind, set.texts, set.labels })
    assert.are.same({ { "x" } }, read('[{"context": "c", "question": "q", "answer": "x"}]').labels)
    local broken = '{"data": [{"paragraphs": [{"context": "c", "qas": [{"id": "7", "answers": []}]}]}]}'
    assert.error_matches(function() read(broken) end,
      "question 7: question is missing, expected a text")
    assert.error_matches(function() read '[{"context": "c", "question": "q", "answers": [{"text": ""}]}]' end,
      "none of its questions has an answer to judge by")
  end)

  it("of words have a tag each", function()
    local set = read "-DOCSTART- O\n\nJohn\tB-PER\nran\tO\n\n\nx B-LOC\n"
    assert.are.same({ "tags", { { words = { "John", "ran" } }, { words = { "x" } } }, { { "B-PER", "O" }, { "B-LOC" } } },
      { set.kind, set.texts, set.labels })
    assert.are.same({ { words = { "a" } } }, read('{"tokens": ["a"], "ner_tags": ["O"]}\n').texts)
    assert.error_matches(function() read("a\tO\nword\n", { as = "conll" }) end, "line 2: expected a word and its tag")
    assert.error_matches(function() read '{"tokens": ["a"], "tags": ["O", "O"]}\n' end,
      "line 1: expected as many tags as words, found 2 and 1")
  end)

  it("of Cranfield are three, in any order", function()
    local documents = files.write ".I 1\n.T\nthe title\n.A\nx\n.W\nthe title of\nit\n.I 2\n.T\nother\n.W\ntext\n.I 3\n.W\n"
    local queries = files.write ".I 004\n.W\nwhat\nis it\n.I 009\n.W\nwhy\n"
    local set = evaluate.read { files.write "1 0 2 3\n1 0 1 -1\n", documents, queries }
    assert.are.same({ "the title of it", "other text", "" }, set.documents)
    assert.are.same({ { "what is it" }, { { ["2"] = 3, ["1"] = -1 } }, 1 }, { set.texts, set.labels, set.skipped })
    assert.are.same({ { ["2"] = 4, ["1"] = 0 } }, evaluate.read { documents, queries, files.write "1 2 1\n1 1 -1\n" }.labels)
    assert.error_matches(function() evaluate.read { documents, queries, files.write "7 0 1 1\n" } end, "query 7 is not in")
    assert.error_matches(function() evaluate.read { documents, queries, documents } end, "both are documents")
    assert.error_matches(function() evaluate.read { documents, queries, files.write "1 2\n" } end, "expected a judgement")
  end)

  it("may be JSON lines of documents and queries", function()
    local folder = files.folder {
      ["corpus.jsonl"] = '{"_id": "d1", "title": "t", "text": "x"}\n', ["queries.jsonl"] = '{"_id": "q1", "text": "y"}\n',
      ["qrels/test.tsv"] = "query-id\tcorpus-id\tscore\nq1\td1\t2\n",
    }
    local set = evaluate.read(folder)
    assert.are.same({ { "t x" }, { "y" }, { { d1 = 2 } } }, { set.documents, set.texts, set.labels })
    local document, query = '{"_id": "d1", "text": "x"}\n', '{"_id": "q1", "text": "y"}\n'
    for said, contents in pairs {
      ["corpus.jsonl, line 2: d1 is there twice"] = { document .. document, query, "q1\td1\t1\n" },
      ["queries.jsonl, line 2: q1 is there twice"] = { document, query .. query, "q1\td1\t1\n" },
      ["test.tsv: there are no judgements"] = { document, query, "query-id\tcorpus-id\tscore\n" },
    } do
      assert.error_matches(function()
        evaluate.read(files.folder {
          ["corpus.jsonl"] = contents[1], ["queries.jsonl"] = contents[2], ["qrels/test.tsv"] = contents[3],
        })
      end, said)
    end
  end)

  it("may be of several more forms", function()
    assert.are.same({ "NUM", "LOC" }, read "NUM:dist How far ?\nLOC:city Wher\233 ?\n".labels)
    assert.are.same({ "How far ?", "Wher\195\169 ?" }, read "NUM:dist How far ?\nLOC:city Wher\233 ?\n".texts)
    assert.are.same({ "NUM:dist" }, read("NUM:dist How far ?\n", { label = "fine" }).labels)
    assert.are.same({ { "a" }, { "0" } }, { read("x\t0\t*\ta\n").texts, read("x\t0\t*\ta\n").labels })
    local parts = '{"test": [["a", "x"]], "val": [["b", "y"]]}'
    assert.are.same({ { "a" }, { "b" } }, { read(parts).texts, read(parts, { part = "val" }).texts })
    assert.error_matches(function() read(parts, { part = "dev" }) end, "has no part 'dev', only test, val")
    local folder = files.folder { ["s1.dev"] = "a\nb\n", ["s2.dev"] = "c\nd\n", ["labels.dev"] = "x\n-\n", more = "x\n" }
    local set = evaluate.read(folder .. "/s1.dev")
    assert.are.same({ { { "a", "c" } }, { "x" }, 1 }, { set.texts, set.labels, set.skipped })
    assert.error_matches(function() evaluate.read({ folder .. "/s1.dev", folder .. "/more" }, { as = "parallel" }) end,
      "has 2 lines and .* 1, expected as many")
  end)

  it("are cut, joined, and may lack labels where that is said", function()
    assert.are.same({ "b", "c" }, read("a\tx\nb\ty\nc\tz\nd\tw\n", { first = 2, limit = 2 }).texts)
    assert.error_matches(function() read("a\tx\n", { first = 2 }) end, "has 1 items, expected one from 2 on")
    assert.are.same({ "a", "b" }, evaluate.read({ files.write "a\tx\n", files.write "b\ty\n" }).texts)
    assert.error_matches(function() evaluate.read { files.write "a\tx\n", files.write "b\tc\t1\n" } end, "expected the same")
    local set = read("a, b\n\nc\n", { plain = true })
    assert.are.same({ "text", { "a, b", "c" } }, { set.kind, set.texts })
  end)

  it("give inputs for calibration, evenly spaced, without those of the evaluation", function()
    local from, judged = read "a\tx\nb\ty\nc\tz\nd\tw\ne\tv\n", read "c\tx\n"
    assert.are.same({ { { "a", "d" } }, { all = 4, out = 1 } }, { { evaluate.sample(from, 2, judged) },
      evaluate.candidates(from, judged) })
    local model = perigee.load(models.path "embedder")
    assert.are.equal(2, model:calibrate(evaluate.sample(from, 2, judged)).texts)
    assert.are.same({ "a", "b" }, (evaluate.sample(read "a\tb\t1\n", 9, nil, true)))
    assert.are.same({ { question = "r", context = "d" } }, (evaluate.sample({ texts = {
      { question = "q", context = "c" }, { question = "r", context = "d" } }, labels = {} }, 9, { texts = {
      { question = "p", context = "c" } }, labels = {} })))
    assert.error_matches(function() evaluate.sample(judged, 2, judged) end, "all of its inputs are in the set of the evaluation")
  end)

  it("of no known form are an error with file and line", function()
    assert.error_matches(function() read "just text\n" end, "line 1: has 1 tab%-separated fields: 'just text'; expected text TAB")
    assert.error_matches(function() read "a\t\n" end, "has 2 tab%-separated fields, the last one empty: 'a', ''; expected")
    assert.error_matches(function() read "a\tb\t1\nc\td\n" end, "line 2: has 2 fields, expected text, text, label or score")
    assert.error_matches(function() read "a\tb\t1\nc\td\tx\n" end, "line 2: expected a score as in the lines before, found 'x'")
    for text, said in pairs {
      ["\n\n"] = "no lines to evaluate on", ["[]"] = "no lines to evaluate on", ['{"data": []}'] = "no lines to evaluate on",
      ["\255\254t\0"] = "it is UTF%-16, expected UTF%-8", ["a\tx\rb\ty\r"] = "its lines end with CR alone, expected LF or CR LF",
      ["text\tlabel\na\tx\nb\t\n"] = "line 3: the label is empty",
      ["\127ELF\2\1\0\n\0\208\r\n"] = ", line 2: byte 2 of the line is 0xD0, which is not UTF%-8; expected a text file in UTF%-8",
      ["premise\thypothesis\tscore\na\tb\tnan\n"] = "line 2: expected a label or a finite score, found 'nan'",
    } do
      assert.error_matches(function() read(text) end, said)
    end
    assert.error_matches(function() evaluate.read "/nowhere" end, "/nowhere': No such file")
    assert.error_matches(function() evaluate.read "/dev/zero" end, "it is a character device, expected a file or a pipe")
    assert.error_matches(function() read("a\tx\n", { as = "xml" }) end, "as is the string 'xml', expected one of conll, csv")
    for _, score in ipairs { "1e999", "-1e999", "0x1f", "nan" } do
      assert.error_matches(function() read("a\tb\t1\nc\td\t" .. score .. "\n") end, "line 2: expected a score as in the lines")
    end
  end)

  it("are not read with malformed options", function()
    for _, case in ipairs {
      { "limit", 0, "is 0, expected an integer of at least 1" }, { "limit", "x", "is the string 'x', expected an integer" },
      { "limit", 0 / 0, "is nan, expected an integer" }, { "first", -1, "is -1, expected an integer of at least 1" },
      { "first", true, "is true, expected an integer" }, { "plain", 1, "is 1, expected true or false" },
      { "part", 1, "is 1, expected a text" }, { "text", true, "is true, expected a text" },
      { "contents", 1, "is 1, expected { [path] = text }" },
    } do
      local name, value, said = unpack(case)
      local ok, message = pcall(read, "a\tx\n", { [name] = value })
      assert.is_false(ok)
      assert.matches(("evaluate.read: %s %s"):format(name, said), message, 1, true)
    end
  end)

  it("with anything in them are a set, or an error that names the file", function()
    local whole = {
      'text,label\r\n"a ""b""",x\r\nc,y\r\n', "main\ta\tb\tc\t2.5\tone\ttwo\nmain\ta\tb\tc\t3\tone\ttwo\n",
      "John\tB-PER\nran\tO\n\nx\tO\n", "NUM:dist How far ?\n", ".I 1\n.T\nt\n.W\nw\n", "1 0 1 3\n",
      '{"data": [{"paragraphs": [{"context": "c", "qas": [{"question": "q", "answers": [{"text": "a"}]}]}]}]}',
      '{"premise": "a", "hypothesis": "b", "label": 1}\n{"premise": "c", "hypothesis": "d", "label": 0}\n',
      '{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n', '{"test": [["a", "x"]]}',
    }
    local junk = { '"', "\t", "\n", ",", "{", "}", "[", "]", "\0", "\255", ".I 1\n", "null", "1e999", ": 5" }
    local random = files.random(7)
    for _ = 1, 1500 do
      local text = whole[random(#whole) + 1]
      for _ = 1, random(5) do
        local at = random(#text + 1)
        text = text:sub(1, at) .. (random(2) == 0 and junk[random(#junk) + 1] or "") .. text:sub(at + 1 + random(9))
      end
      local paths = random(4) == 0 and { "/f.csv", "/g", "/h" } or { random(2) == 0 and "/f.csv" or "/g" }
      local ok, result = pcall(evaluate.read, paths, {
        contents = { ["/f.csv"] = text, ["/g"] = text, ["/h"] = "1 1 1\n" }, plain = random(4) == 0,
        label = random(4) == 0 and 2 or nil,
      })
      if ok then
        assert.is_true(#result.texts > 0)
      else
        assert.matches("/[fgh]", result)
        assert.is_nil(result:find "attempt to", result)
        assert.is_nil(result:find "bad argument", result)
      end
    end
  end)

  it("of ../shared are all read", function()
    local shared, why = models.shared()
    if not shared then
      pending(why)
      return
    end
    for name, n in pairs {
      ["mnli_dev_taxinli/taxinli10k_MNLIDev.tsv"] = 7727, ["mrpc/msr-para-test.tsv"] = 1725, ["cola/in_domain_dev.tsv"] = 527,
      ["banking77/test.csv"] = 3080, ["stsb_multi_mt/stsb-zh-test.csv"] = 1379, ["xquad/xquad.zh.json"] = 1190, cranfield = 225,
      ["squad_subset/routerlens_squad_dev.json"] = 4330, ["trec/TREC_10.label"] = 500, ["wnut17/emerging.dev.conll"] = 1009,
      ["snli/s1.test"] = 9824, ["clinc150/data_full.json"] = 4500, ["panx/dev-zh.tsv"] = 10000, ["sst2/sentiment-dev"] = 872,
    } do
      assert.are.equal(n, #evaluate.read(shared .. "/data/" .. name).texts, name)
    end
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
    local result = run(model, "a\tyes\nb\tNO\na\t1\nb\t1\n")
    assert.are.same({ "accuracy", 0.75, 4 }, { result.metric, result.value, result.n })
    assert.are.same({ "yes", "no", "yes", "no" }, result.answers)
    assert.are.same({ "accuracy", "F1 of yes", "Matthews" },
      { result.scores[1].metric, result.scores[2].metric, result.scores[3].metric })
    assert.error_matches(function() run(model, "a\tmaybe\n") end, "label maybe is none of the model's: no, yes")
    local pairs_model = fake("classify", "single_label_classification", { ["a|b"] = { label = "yes" } })
    assert.are.equal(0.5, run(pairs_model, "a\tb\t1\na\tb\t0\n").value)
  end)

  it("of a regression is Spearman of its score", function()
    local model = fake("classify", "regression", { ["a|b"] = { score = 1 }, ["c|d"] = { score = 2 }, e = { score = 0 } })
    assert.are.equal(1, run(model, "a\tb\t0.1\nc\td\t0.7\n").value)
    assert.error_matches(function() run(model, "e\tx\n") end, "needs scores, not labels such as \"x\"")
  end)

  it("of an embedder is Spearman of the cosine, or whether the nearest text has the same label", function()
    local model = fake("embed", nil, { a = { 1, 0 }, b = { 1, 0.1 }, c = { 0, 1 }, d = { 0.1, 1 } })
    local result = run(model, "a\tb\t3\na\tc\t1\na\td\t2\n")
    assert.are.same({ "Spearman", 1, 3 }, { result.metric, result.value, result.n })
    assert.are.equal(1, run(model, "a\tx\nb\tx\nc\ty\nd\ty\n").value)
    assert.are.equal(0, run(model, "a\tx\nb\ty\nc\tx\nd\ty\n").value)
    assert.error_matches(function() run(model, "a\tb\tx\n") end, "labels for pairs of texts, which only a classifier answers")
  end)

  it("of rankings, questions, words, candidates and zero-shot labels goes by the task", function()
    local model = fake("embed", nil, { q = { 1, 0 }, r = { 0, 1 }, a = { 1, 0.1 }, b = { 0.2, 1 }, c = { 1, -1 } })
    local set = { path = "p", kind = "retrieval", documents = { "a", "b", "c" }, names = { "A", "B", "C" }, texts = { "q", "r" },
      labels = { { A = 1 }, { A = 2, C = 1 } } }
    local result = evaluate.run(model, set)
    assert.are.same({ "nDCG@10", "recall@10", "recall@100", "MRR" },
      { result.scores[1].metric, result.scores[2].metric, result.scores[3].metric, result.scores[4].metric })
    assert.are.equal((1 + 1 / 2) / 2, result.scores[4].value)
    function model.qa(_, units) return { { answer = "the " .. units[1].context } } end
    set = { path = "p", kind = "qa", texts = { { question = "q", context = "c" } }, labels = { { "c" } } }
    assert.are.same({ "F1", 1 }, { evaluate.run(model, set).metric, evaluate.run(model, set).value })
    function model.ner() return { { { label = "B-X" }, { label = "O" } } } end
    set = { path = "p", kind = "tags", texts = { { words = { "a", "b" } } }, labels = { { "B-X", "B-X" } } }
    assert.are.equal(2 / 3, evaluate.run(model, set).value)
    function model.rerank() return { { index = 2 }, { index = 1 } } end
    set = { path = "p", kind = "score", texts = { { "q", "a" }, { "q", "b" } }, labels = { 1, 0 } }
    assert.are.equal(1 / 2, evaluate.run(model, set, { task = "rerank" }).value)
    function model.zeroshot(_, units, how)
      assert.are.same({ "x", "y" }, how.labels)
      return { unpack({ { labels = { "y", "x" } }, { labels = { "y", "x" } } }, 1, #units) }
    end
    set = { path = "p", kind = "label", texts = { "a", "b" }, labels = { "x", "y" } }
    assert.are.equal(1 / 2, evaluate.run(model, set, { task = "zeroshot" }).value)
    assert.error_matches(function() evaluate.run(model, set, { task = "qa" }) end,
      "has texts with labels, and qa is judged by questions with contexts and answers")
    assert.error_matches(function() evaluate.run(model, set, { task = "of" }) end, "is the string 'of', expected one of classify")
    assert.error_matches(function() evaluate.run(model, set, { task = "pairs" }) end, "single texts, and pairs is judged")
  end)

  it("of an embedder takes no prompt for false, also where the checkpoint has one by default", function()
    local model = perigee.load("spec/golden/tasks/sentence", { kernel = "native" })
    local set = evaluate.read(files.write "the water\tthe day\t3\npeople\tlook\t2\nno\tyes\t1\n")
    local default, none = evaluate.run(model, set), evaluate.run(model, set, { prompt = false })
    local vectors = model:embed({ "the water", "the day" }, { prompt = false })
    assert.near(evaluate.cosine(vectors, 1, vectors, 2), none.answers[1], 1e-6)
    assert.is_true(math.abs(default.answers[1] - none.answers[1]) > 1e-3)
    model:release()
  end)

  it("with unknown options is an error that names them", function()
    local set = evaluate.read(files.write "a\tyes\nb\tno\n")
    local model = fake("classify", "single_label_classification", { a = { label = "yes" }, b = { label = "no" } })
    for _, case in ipairs {
      { "chunk", 0, "is 0, expected an integer of at least 1" }, { "chunk", 0 / 0, "is nan, expected an integer" },
      { "resamples", -1, "is -1, expected an integer from 0 to 1000000" }, { "resamples", "x", "is the string 'x', expected an" },
      { "seed", 1.5, "is 1.5, expected an integer" }, { "level", 1.5, "is 1.5, expected a number from 0 to 1" },
      { "level", 0 / 0, "is nan, expected a number from 0 to 1" }, { "task", "of", "is the string 'of', expected one of" },
      { "language", "de", "has no effect with the task classify, only with qa" },
      { "strict", true, "has no effect with the task classify, only with ner" },
      { "prompt", "x", "has no effect with the task classify, only with embed" },
    } do
      local name, value, said = unpack(case)
      for _, of in ipairs { "compare", "check", "run" } do
        local ok, message = pcall(evaluate[of], of == "compare" and { { "one", model } } or model, set, { [name] = value })
        assert.is_false(ok)
        assert.matches(("evaluate.%s: %s %s"):format(of, name, said), message, 1, true)
      end
    end
  end)

  it("with unknown options of a task is an error that names them", function()
    local model = fake("embed", nil, {})
    for _, case in ipairs {
      { "qa", "language", 1, "is 1, expected a text" }, { "qa", "tokens", 1, "is 1, expected an integer of at least 2" },
      { "ner", "strict", "yes", "is the string 'yes', expected true or false" },
      { "ner", "aggregation", "none", "is the string 'none', expected one of average, first, max" },
      { "zeroshot", "labels", "yes", "is the string 'yes', expected a list" },
    } do
      local task, name, value, said = unpack(case)
      local set = { path = "p", kind = "label", texts = { "a" }, labels = { "x" } }
      local ok, message = pcall(evaluate.run, model, set, { task = task, [name] = value })
      assert.is_false(ok)
      assert.matches(("evaluate.run: %s %s"):format(name, said), message, 1, true)
    end
  end)

  it("of a classifier as a regression is refused", function()
    local set = evaluate.read(files.write "a\tb\t0.5\nc\td\t1\n")
    local model = fake("classify", "single_label_classification", {})
    assert.error_matches(function() evaluate.run(model, set, { task = "regression" }) end,
      "regression: the model is a classifier with 2 labels %(no, yes%), expected one that gives a number")
  end)

  it("of pairs with labels 0 and 1 is average precision", function()
    local model = fake("embed", nil, { a = { 1, 0 }, b = { 1, 0.1 }, c = { 0, 1 }, d = { 0.1, 1 } })
    local result = evaluate.run(model, evaluate.read(files.write "a\tb\t1\na\td\t0\nc\td\t0\na\tc\t1\n"))
    assert.are.same({ "average precision", "Spearman" }, { result.metric, result.scores[2].metric })
    assert.near((1 / 2 + 2 / 4) / 2, result.value, 1e-6) -- "a b" and "c d" have one cosine; then come "a d" and "a c"
    function model.rerank(_, query)
      return query == "q" and { { index = 2, score = 0.9 }, { index = 1, score = 0.5 } } or { { index = 1, score = 1 } }
    end
    local set = { path = "p", kind = "score", texts = { { "q", "a" }, { "q", "b" }, { "r", "c" } }, labels = { 1, 0, 0 } }
    local scores = evaluate.run(model, set, { task = "rerank" }).scores
    assert.are.same({ metric = "mean average precision", value = 1 / 4 }, scores[3])
    set.labels[1] = 2
    assert.is_nil(evaluate.run(model, set, { task = "rerank" }).scores[3])
  end)

  it("of several models has differences, intervals and changed answers", function()
    local yes, no = { label = "yes" }, { label = "no" }
    local one = fake("classify", "single_label_classification", { a = yes, b = no, c = no })
    local two = fake("classify", "single_label_classification", { a = yes, b = yes, c = no })
    local set = evaluate.read(files.write "a\tyes\nb\tno\nc\tno\n")
    local result, answers = evaluate.compare({ { "FP32", one }, { "other", two } }, set, { progress = false, chunk = 2 })
    local own = result.runs[2]
    assert.are.same({ 1, 3, "classify" }, { own.changed, result.n, result.task })
    assert.near(-1 / 3, own.scores[1].difference, EXACT)
    assert.is_true(own.scores[1].interval[1] <= -1 / 3 and own.scores[1].interval[2] == 0)
    assert.are.same({ "yes", "yes", "no" }, answers[2])
    local text = tostring(result)
    for _, said in ipairs {
      "FP32", "other", "difference", "accuracy", "100.00", "66.67", "-33.33 [", "answers changed", "a second",
    } do
      assert.matches(said, text, 1, true)
    end
    local again = evaluate.compare({ { "FP32", one }, { "other", two } }, set, { progress = false })
    assert.are.same(own.scores, again.runs[2].scores)
    local scores = fake("classify", "regression", { a = { score = 1 }, b = { score = 2 } })
    local apart = fake("classify", "regression", { a = { score = 1.5 }, b = { score = 2.25 } })
    set = evaluate.read(files.write "a\t1\nb\t2\n")
    assert.near(0.375, evaluate.compare({ { "x", scores }, { "y", apart } }, set, { progress = false }).runs[2].distance, EXACT)
  end)
end)
