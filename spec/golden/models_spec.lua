-- FP32 models have the values of transformers: every layer, pooling and heads of the small checkpoints and of the demo's, on
-- native kernels and, if it is installed, on oneDNN.
local cjson = require "cjson"
local compare = require "spec.support.compare"
local files = require "spec.support.files"
local golden = require "spec.support.golden"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local function read_json(path)
  return cjson.decode(models.read(path))
end

-- Returns all layers of one sequence. Its first row in the batch's tensors is `from`, which counts from 0.
local function check_layers(title, layers, from, s)
  local report, rows = compare.report(title), {}
  for i, row in ipairs(s.rows) do
    rows[i] = from + row
  end
  for i, layer in ipairs(layers) do
    local what = i == 1 and "embedding" or "layer." .. (i - 2)
    report:stage(what, compare.rows(layer, rows), s.get(what))
  end
  assert(report:finish())
end

local function unit(t)
  local sum, values = 0, t:totable()
  for _, v in ipairs(values) do
    sum = sum + v * v
  end
  for i, v in ipairs(values) do
    values[i] = v / math.sqrt(sum)
  end
  return tensor.from(values)
end

local MODES = {
  first = "cls_token", mean = "mean_tokens", max = "max_tokens", mean_sqrt = "mean_sqrt_len_tokens", last = "lasttoken",
}
local KERNELS = { "native", pgee.C.pgee_onednn_version() ~= nil and "onednn" or nil }

for _, name in ipairs(models.small) do
  describe("the checkpoint " .. name, function()
    local model, sequences

    setup(function()
      model = perigee.load(models.path(name))
      sequences = golden.read(models.path(name))
    end)

    teardown(function()
      model:release()
    end)

    for _, kernel in ipairs(KERNELS) do
      it("has the hidden states of transformers in every layer, all sequences in one packed batch, by " .. kernel, function()
        local other = perigee.load(models.path(name), { kernel = kernel })
        local layers, batch = other:layers(golden.ids(sequences))
        assert.equal(other.config.num_hidden_layers + 1, #layers)
        for i, s in ipairs(sequences) do
          check_layers(("%s, sequence %d of %d tokens"):format(name, i, #s.ids), layers, batch.starts[i - 1], s)
        end
        other:release()
      end)
    end

    it("has them for each sequence alone", function()
      for i, s in ipairs(sequences) do
        local layers = model:layers { ids = s.ids, types = s.types }
        check_layers(("%s, sequence %d alone"):format(name, i), layers, 0, s)
        assert.same(model:hidden({ ids = s.ids, types = s.types }):totable(), layers[#layers]:totable())
      end
    end)

    -- A value that lies nearly in the middle between two codes may round to either. Then later values differ by a step of the
    -- quantizer. Sequences with such values have 35 to 90 dB, all others more than 100 dB. The piecewise GELU, whose result is
    -- u8 at once, makes more such values: in static gelu-tanh every sequence has some.
    for _, activations in ipairs { "static", "dynamic" } do
      it("is quantized as a simulation of the formulas in PyTorch: " .. activations, function()
        local own = perigee.load(models.path(name), { kernel = "native" })
        local stats = own:calibrate(golden.ids(sequences), { progress = false })
        local q = own:quantize { activations = activations, alpha = 0.5, attention = "f32", stats = stats }
        local hidden, batch = q:hidden(golden.ids(sequences))
        local best = 0
        for i, s in ipairs(sequences) do
          local db = s.get("int8." .. activations):sqnr(golden.rows(hidden, batch, i, s))
          assert.is_true(db > 34, ("sequence %d: %.1f dB"):format(i, db))
          best = math.max(best, db)
        end
        assert.is_true(best > (activations == "static" and 70 or 100), ("the best sequence: %.1f dB"):format(best))
        for _, x in ipairs { q, stats, own } do
          x:release()
        end
      end)
    end

    if models.exists(models.path(name) .. "/texts.json") then
      it("makes the ids of transformers of its texts", function()
        for i, s in ipairs(sequences) do
          local _, batch = model:hidden { s.text }
          local ids, types = {}, {}
          for j = 1, batch.T do
            ids[j], types[j] = batch.ids[j - 1], batch.types[j - 1]
          end
          local report = compare.report(("%s, text %d"):format(name, i))
          report:integers("ids", ids, s.ids)
          report:integers("types", types, s.types)
          assert(report:finish())
        end
      end)
    end
  end)
end

for _, name in ipairs { "pairs", "regression", "distilbert", "xlmr" } do
  describe("the head of " .. name, function()
    it("has the logits of transformers, for texts (if there are any) and for ids", function()
      local model, sequences = perigee.load(models.path(name)), golden.read(models.path(name))
      for _, from in ipairs { "ids", sequences[1].text and "text" } do
        local inputs = {}
        for i, s in ipairs(sequences) do
          inputs[i] = from == "text" and s.text or { ids = s.ids, types = s.types }
        end
        for i, answer in ipairs(model:classify(inputs)) do
          local report = compare.report(("%s from %s, input %d"):format(name, from, i))
          report:stage("logits", tensor.from(answer.logits), sequences[i].get "logits")
          assert(report:finish())
        end
      end
      model:release()
    end)
  end)
end

describe("classification", function()
  it("answers with the label of the largest logit and probabilities that add up to 1", function()
    local model, sequences = perigee.load(models.path "pairs"), golden.read(models.path "pairs")
    for _, s in ipairs(sequences) do
      local answer, logits = model:classify({ s.text })[1], s.get("logits"):totable()
      local best = math.max(unpack(logits))
      local sum = 0
      for i, label in ipairs { "entailment", "neutral", "contradiction" } do
        sum = sum + answer.scores[label]
        if logits[i] == best then
          assert.equal(label, answer.label)
          assert.equal(answer.scores[label], answer.score)
        end
      end
      assert.near(1, sum, 1e-9)
    end
    model:release()
  end)

  it("gives a regression's value as the score", function()
    local model, sequences = perigee.load(models.path "regression"), golden.read(models.path "regression")
    for _, s in ipairs(sequences) do
      local want = s.get("logits")[1]
      assert.near(want, model:classify({ s.text })[1].score, 2e-5 * math.max(1, math.abs(want)))
    end
    model:release()
  end)
end)

describe("embedding", function()
  after_each(files.clean)

  for mode, key in pairs(MODES) do
    for _, normalize in ipairs { true, false } do
      it(("pools as the checkpoint says: %s%s"):format(mode, normalize and ", normalized" or ""), function()
        local pooling, path = { word_embedding_dimension = 32 }, models.path "embedder"
        for _, k in pairs(MODES) do
          pooling["pooling_mode_" .. k] = k == key
        end
        local modules = read_json(path .. "/modules.json")
        local folder = models.variant(path, {
          ["1_Pooling/config.json"] = cjson.encode(pooling),
          ["modules.json"] = cjson.encode(normalize and modules or { modules[1], modules[2] }),
        })
        local model, sequences = perigee.load(folder), golden.read(path)
        local texts = {}
        for i, s in ipairs(sequences) do
          texts[i] = s.text
        end
        local vectors = model:embed(texts)
        for i, s in ipairs(sequences) do
          local want = s.get("pooled." .. mode)
          local report = compare.report(("embedder, %s, text %d"):format(mode, i))
          report:stage("vector", vectors[i], normalize and unit(want) or want)
          report:stage("alone", model:embed({ s.text })[1], normalize and unit(want) or want)
          assert(report:finish())
        end
        model:release()
      end)
    end
  end
end)

describe("the demo's checkpoint", function()
  local path, why = models.demo()
  if not path then
    pending(why)
    return
  end
  local model, sequences

  setup(function()
    model, sequences = perigee.load(path), golden.read "spec/golden/minilm"
  end)

  teardown(function()
    model:release()
  end)

  it("has the ids of transformers, hidden states in every layer, and embeddings", function()
    local texts = {}
    for i, s in ipairs(sequences) do
      texts[i] = s.text
    end
    local layers, batch = model:layers(texts)
    local vectors = model:embed(texts)
    for i, s in ipairs(sequences) do
      local from, ids = batch.starts[i - 1], {}
      for j = 1, batch.starts[i] - from do
        ids[j] = batch.ids[from + j - 1]
      end
      local report = compare.report(("minilm, text %d"):format(i))
      report:integers("ids", ids, s.ids)
      assert(report:finish())
      check_layers(("minilm, text %d of %d tokens"):format(i, #s.ids), layers, from, s)
      report:stage("embed", vectors[i], s.get "embed")
      assert(report:finish())
    end
  end)

  it("truncates the last text at its limit of 256 tokens and says so", function()
    local _, batch = model:embed(sequences[#sequences].text)
    assert.equal(256, batch.T)
    assert.equal(1, #batch.truncated)
    _, batch = model:embed(sequences[#sequences - 1].text)
    assert.equal(0, #batch.truncated)
  end)
end)
