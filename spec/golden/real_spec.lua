-- Trained weights in other architectures than BERT: MiniLM written as a DistilBERT, multilingual-e5-small as a BERT and as an
-- XLM-RoBERTa, MPNet compared with transformers. `make demo` fetches the first, `make models` the others.
local compare = require "spec.support.compare"
local files = require "spec.support.files"
local golden = require "spec.support.golden"
local models = require "spec.support.models"
local perigee = require "perigee"

local HARD = os.getenv "PERIGEE_HARD" and "too slow under sanitizers"

-- Returns a checkpoint that `make models` puts into build/demo, or nil and a reason.
local function fetched(name)
  local path = "build/demo/" .. name
  if HARD or not models.exists(path .. "/config.json") then
    return nil, HARD or name .. " is not here; `make models` fetches it"
  end
  return path
end

-- Returns whether the largest difference of two tensors is at most 1e-5, and a text with it.
local function same(want, got)
  local d = compare.difference(got, want)
  return d.largest <= 1e-5, ("largest difference %.2g"):format(d.largest)
end

describe("MiniLM as a DistilBERT", function()
  local path, why = models.demo()
  if HARD or not path then
    pending(HARD or why)
    return
  end
  local folder, bert, distilbert

  setup(function()
    folder = files.folder {}
    files.recipe "recipes/as_distilbert.lua"(path, folder)
    bert, distilbert = perigee.load(path), perigee.load(folder)
  end)

  teardown(function()
    bert:release()
    distilbert:release()
    files.clean()
  end)

  it("has the same answers to 1e-5, and nothing left over", function()
    local texts = models.texts("recipes/data/calibration.txt", 12)
    assert.equal("distilbert", distilbert.config.model_type)
    assert.is_true(same(bert:embed(texts), distilbert:embed(texts)))
    local report = compare.report "MiniLM as a DistilBERT"
    local want, got = bert:layers(texts), distilbert:layers(texts)
    for i, layer in ipairs(want) do
      report:stage("layer " .. i - 2, got[i], layer)
    end
    assert(report:finish())
    assert.same({ "checksums" }, distilbert:unused()) -- what the writer adds
  end)

  it("keeps as much of them in INT8 as the BERT does", function()
    local texts = models.texts("recipes/data/calibration.txt", 40, 120)
    for _, activations in ipairs { "static", "dynamic" } do
      local db = {}
      for i, model in ipairs { bert, distilbert } do
        local stats = model:calibrate({ unpack(texts, 1, 30) }, { progress = false })
        local q = model:quantize { stats = stats, activations = activations }
        local judged = { unpack(texts, 31, 40) }
        db[i] = model:hidden(judged):sqnr((q:hidden(judged)))
        q:release()
        stats:release()
      end
      assert.is_true(db[1] > 18 and math.abs(db[1] - db[2]) < 1, ("%s: %.1f and %.1f dB"):format(activations, db[1], db[2]))
    end
  end)
end)

describe("multilingual-e5-small", function()
  local path, why = fetched "multilingual-e5-small"
  if not path then
    pending(why)
    return
  end

  it("has the same answers as a BERT and as an XLM-RoBERTa", function()
    local bert, xlmr = perigee.load(path), perigee.load(path .. "-xlmr")
    local inputs = models.random_inputs(9, 90, 250000, 3)
    for _, input in ipairs(inputs) do
      for i, id in ipairs(input.ids) do
        input.ids[i] = math.max(id, 2) -- not the padding token, which has a special position in XLM-RoBERTa
      end
    end
    local texts = { "query: how much protein should a female eat", "query: 南瓜的家常做法", "Grüße aus Zürich" }
    for _, given in ipairs { inputs, texts } do
      assert.is_true(same(bert:embed(given), xlmr:embed(given)))
    end
    local short = { unpack(inputs, 1, 4) }
    for i, model in ipairs { bert, xlmr } do
      local stats = model:calibrate(short, { progress = false })
      local q = model:quantize { stats = stats }
      local db = model:hidden(short):sqnr((q:hidden(short)))
      assert.is_true(db > 14, ("%d: %.1f dB"):format(i, db))
      q:release()
      stats:release()
      model:release()
    end
  end)
end)

describe("all-mpnet-base-v2", function()
  local path, why = fetched "all-mpnet-base-v2"
  if not path then
    pending(why)
    return
  end
  local model, sequences

  setup(function()
    model, sequences = perigee.load(path), golden.read "spec/golden/mpnet"
  end)

  teardown(function()
    model:release()
  end)

  it("has the hidden states of transformers in every layer, and its embeddings, of its own ids", function()
    local given = golden.ids(sequences)
    local layers, batch = model:layers(given)
    local vectors = model:embed(given)
    for i, s in ipairs(sequences) do
      local report = compare.report(("mpnet, text %d of %d tokens"):format(i, #s.ids))
      golden.compare_layers(report, layers, batch, i, s)
      report:stage("embed", vectors[i], s.get "embed")
      assert(report:finish())
    end
  end)

  it("makes the ids of transformers of its texts", function()
    for i, s in ipairs(sequences) do
      local report = compare.report(("mpnet, text %d"):format(i))
      report:integers("ids", model:tokens(s.text).ids, s.ids)
      assert(report:finish())
    end
  end)

  it("keeps most of the signal in INT8, with INT8 attention, too", function()
    local texts = models.texts("recipes/data/calibration.txt", 24, 100)
    local stats = model:calibrate({ unpack(texts, 1, 16) }, { progress = false })
    for _, attention in ipairs { "f32", "int8", "auto" } do
      local q = model:quantize { stats = stats, attention = attention }
      local judged = { unpack(texts, 17, 24) }
      local db = model:embed(judged):sqnr((q:embed(judged)))
      assert.is_true(db > 14, ("attention %s: %.1f dB"):format(attention, db))
      q:release()
    end
    stats:release()
  end)
end)
