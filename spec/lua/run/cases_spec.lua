-- Cases that users of other engines met, on whole models: broken weights, degenerate data, empty and extreme batches.
local compare = require "spec.support.compare"
local files = require "spec.support.files"
local ffi = require "ffi"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"

local QUIET = { progress = false }
local TINY = models.path "tiny" -- F32, one layer, hidden 15

local function calibrated(path, inputs)
  local model = perigee.load(path)
  inputs = inputs or models.random_inputs(8, 20, model.vocabulary, 3)
  return model, model:calibrate(inputs, QUIET), inputs
end

-- Calls f with an INT8 model of each kind of activations, calibrated on the inputs or on random ones.
local function each_mode(path, f, given)
  local model, stats, inputs = calibrated(path, given)
  for _, activations in ipairs { "static", "dynamic" } do
    local q = model:quantize { activations = activations, stats = stats }
    f(q, activations, model, inputs)
    q:release()
  end
  stats:release()
  model:release()
end

local function finite(t)
  assert.is_nil(t:first_nonfinite())
end

describe("a broken weight", function()
  after_each(files.clean)

  for word, value in pairs { NaN = 0 / 0, infinity = 1 / 0, ["minus infinity"] = -1 / 0 } do
    it(("is an error when the model is loaded, naming the tensor and the place: %s"):format(word), function()
      local folder = models.edited(TINY, function(name, p, count)
        if name == "encoder.layer.0.output.dense.weight" then
          assert.equal(7 * 15, count)
          p[3 * 7 + 5] = value
        end
      end)
      local ok, message = pcall(perigee.load, folder)
      assert.is_false(ok)
      assert.matches("encoder.layer.0.output.dense.weight has NaN or infinity at [4][6]", message, 1, true)
    end)
  end

  it("that makes activations overflow is an error when calibrating, naming the site", function()
    local folder = models.edited(TINY, function(name, p, count)
      if name == "encoder.layer.0.intermediate.dense.weight" then
        for i = 0, count - 1 do
          p[i] = p[i] < 0 and -3e38 or 3e38
        end
      end
    end)
    local model = perigee.load(folder)
    local ok, message = pcall(model.calibrate, model, models.random_inputs(4, 9, model.vocabulary), QUIET)
    assert.is_false(ok)
    assert.matches("encoder.layer.0.output.dense", message, 1, true)
    model:release()
  end)
end)

describe("an optimizer that would do nothing", function()
  local model, stats

  setup(function()
    model, stats = calibrated(TINY)
  end)

  teardown(function()
    stats:release()
    model:release()
  end)

  local function fails(expected, given)
    local ok, message = pcall(model.quantize, model, given)
    assert.is_false(ok)
    assert.matches(expected, message, 1, true)
  end

  it("is an error: every linear skipped, a pattern that matches nothing, no statistics, an alpha outside 0 to 1", function()
    fails("matched no linear", { stats = stats, skip = { "*" } })
    fails("encoder.layer.7", { stats = stats, skip = { "encoder.layer.7.*" } })
    fails("statistics", { activations = "static" })
    fails("alpha is 1.5", { stats = stats, alpha = 1.5 })
    fails("alpha is -0.1", { stats = stats, alpha = -0.1 })
    fails("alpha is", { stats = stats, alpha = 0 / 0 })
    fails("alhpa", { stats = stats, alhpa = 0.5 })
  end)

  it("is an error: statistics of another model", function()
    local other, others = calibrated(models.path "relu")
    fails("another model", { stats = others })
    others:release()
    other:release()
  end)

  it("is an error: calibration without a text", function()
    assert.has_error(function() model:calibrate({}, QUIET) end)
  end)
end)

describe("a model whose weights are all zero", function()
  after_each(files.clean)

  it("answers with what its biases make, in FP32 and INT8 the same bits: a zero input gives the bias", function()
    local folder = models.edited(TINY, function(name, p, count)
      if name:match "%.weight$" and not name:match "LayerNorm" then
        ffi.fill(p, count * 4)
      end
    end)
    each_mode(folder, function(q, _, _, inputs)
      local own = perigee.load(folder, { kernel = "native" })
      local want, got = own:hidden(inputs), q:hidden(inputs)
      finite(want)
      assert.is_true(got:equals(want))
      assert.is_true(got[1]:equals(got[#got])) -- every token the same
      own:release()
    end)
  end)
end)

describe("weights and activations of huge or tiny magnitude", function()
  after_each(files.clean)

  -- The function that the model computes stays nearly the same: LayerNorm undoes the scale of what comes before it.
  for _, factor in ipairs { 1e12, 1e-12 } do
    it(("stay finite and close to FP32: attention output and its bias times %g"):format(factor), function()
      local folder = models.edited(TINY, function(name, p, count)
        if name:match "attention%.output%.dense" or name:match "attention%.self%.value" then
          local f = name:match "value" and factor ^ 0.5 or (name:match "bias" and factor or factor ^ 0.5)
          for i = 0, count - 1 do
            p[i] = p[i] * f
          end
        end
      end)
      each_mode(folder, function(q, _, model, inputs)
        local want, got = model:hidden(inputs), q:hidden(inputs)
        finite(want)
        finite(got)
        assert.is_true(want:sqnr(got) > 20)
      end)
    end)
  end

  it("are quantized with channels that are zero throughout, and rows of weights that are", function()
    local folder = models.edited(TINY, function(name, p, count)
      if name == "embeddings.LayerNorm.weight" or name == "embeddings.LayerNorm.bias" then
        p[4], p[9] = 0, 0
      elseif name:match "query.weight$" or name:match "key.weight$" then
        ffi.fill(p + 15, 15 * 4)
      end
      assert.is_true(count > 0)
    end)
    each_mode(folder, function(q, _, model, inputs)
      local want, got = model:hidden(inputs), q:hidden(inputs)
      finite(got)
      assert.is_true(want:sqnr(got) > 20)
    end)
  end)
end)

describe("batches of every size:", function()
  it("none at all gives nothing", function()
    each_mode(models.path "pairs", function(q, _, model)
      for _, m in ipairs { model, q } do
        assert.same({ 0, 32 }, m:hidden({}).shape)
        assert.same({ 0, 32 }, m:embed({}).shape)
        assert.same({}, m:classify({}))
      end
    end)
  end)

  it("one sequence of 512 tokens, and 512 sequences of one", function()
    local long, single = { ids = {} }, {}
    for i = 1, 512 do
      long.ids[i] = (i * 37) % 97
      single[i] = { ids = { (i * 37) % 97 } }
    end
    each_mode(models.path "long", function(q, _, model)
      local one, many = q:hidden(long), q:hidden(single)
      assert.same({ 512, 16 }, one.shape)
      assert.same({ 512, 16 }, many.shape)
      assert.is_true(model:hidden(long):sqnr(one) > 20)
      assert.is_true(model:hidden(single):sqnr(many) > 20)
      assert.is_true(q:hidden(single[100])[1]:equals(many[100]))
      local all = q:hidden { long, single[1], single[2] }
      assert.is_true(all:rows(1, 512):equals(one))
      assert.is_true(all:rows(513, 514):equals(many:rows(1, 2)))
      -- The first token of both stands at the same place, but attends to different tokens.
      assert.is_false(one[1]:equals(many[1]))
    end, { long, single[1], single[2], single[3] })
  end)

  it("513 tokens, none, and an id that the vocabulary lacks are errors that name the input", function()
    each_mode(models.path "long", function(q)
      local ids = {}
      for i = 1, 513 do
        ids[i] = 1
      end
      for expected, input in pairs {
        ["input 2"] = { ids = ids }, ["input 2: ids has 0"] = { ids = {} }, ["ids[2] is 97"] = { ids = { 1, 97 } },
        ["ids[1] is -1"] = { ids = { -1 } }, ["types"] = { ids = { 1, 2 }, types = { 0, 2 } },
      } do
        local ok, message = pcall(q.hidden, q, { { ids = { 1 } }, input })
        assert.is_false(ok)
        assert.matches(expected, message, 1, true)
      end
    end)
  end)

  it("the same token throughout", function()
    each_mode(models.path "gelu", function(q, _, model)
      local ids = {}
      for i = 1, 60 do
        ids[i] = 5
      end
      finite(q:hidden { ids = ids })
      assert.is_true(model:hidden({ ids = ids }):sqnr(q:hidden { ids = ids }) > 20)
    end)
  end)
end)

describe("padding", function()
  it("is not there: a text among longer ones has its own hidden states, in FP32 closely, in INT8 to the bit", function()
    each_mode(models.path "pairs", function(q, _, model)
      local texts = { "no", "how many people can see the water in this day and time of people?", { "a", "the first word" } }
      local together, batch = q:hidden(texts)
      local fp32 = model:hidden(texts)
      for i, text in ipairs(texts) do
        local first, last = batch.starts[i - 1] + 1, batch.starts[i]
        assert.is_true(q:hidden({ text }):equals(together:rows(first, last)))
        assert(compare.close(model:hidden { text }, fp32:rows(first, last)))
      end
    end)
  end)
end)

describe("memory", function()
  it("is all given back when models, statistics and answers are released", function()
    local function work()
      each_mode(models.path "embedder", function(q, _, model)
        q:embed("the first word"):release()
        model:embed({ "no", "people" }):release()
        q.alpha = 0.3
        q:hidden("the first word"):release()
      end)
    end
    work() -- what is kept for good, such as the team's memory, is there from now on
    local before = live()
    work()
    assert.equal(before, live())
  end)
end)
