-- What quantization costs on real tasks: the demo's checkpoint and the fine-tuned ones of ../shared, FP32 and INT8 at defaults.
local cjson = require "cjson"
local evaluate = require "perigee.evaluate"
local models = require "spec.support.models"
local perigee = require "perigee"

local QUIET = { progress = false }

-- Scores of a checkpoint in FP32 and quantized at defaults, static and dynamic, on one labelled set.
local function scores(path, calibration, set)
  local model = perigee.load(path)
  local stats = model:calibrate(calibration, QUIET)
  local result = { fp32 = evaluate.run(model, set) }
  for _, mode in ipairs { "static", "dynamic" } do
    local q = model:quantize { activations = mode, stats = stats }
    result[mode] = evaluate.run(q, set).value
    q:release()
  end
  result.metric, result.fp32 = result.fp32.metric, result.fp32.value
  stats:release()
  model:release()
  if os.getenv "PERIGEE_PRINT" then
    print(("%s: %s FP32 %.5f, static %.5f, dynamic %.5f"):format(path, result.metric, result.fp32, result.static, result.dynamic))
  end
  return result
end

local function check(got, want, fp32_within, int8_within)
  assert.near(want, got.fp32, fp32_within, "FP32")
  assert.near(got.fp32, got.static, int8_within, "INT8, static")
  assert.near(got.fp32, got.dynamic, int8_within, "INT8, dynamic")
end

-- A spec that runs where all of what it needs is there.
local function with(name, needs, f)
  if os.getenv "PERIGEE_HARD" then
    pending(name .. ": too slow under sanitizers")
    return
  end
  for _, need in ipairs(needs) do
    local path, why = need()
    if not path then
      pending(name .. ": " .. why)
      return
    end
  end
  it(name, f)
end

local function data(name)
  return models.shared() .. "/data/" .. name
end

describe("the demo's checkpoint", function()
  local calibration = "recipes/data/calibration.txt"

  with("keeps its scores on the repo's own texts", { models.demo }, function()
    local texts = models.texts(calibration, 256)
    check(scores(models.demo(), texts, evaluate.read "recipes/data/pairs.tsv"), 0.75634, 5e-4, 0.01)
    check(scores(models.demo(), texts, evaluate.read "recipes/data/intents.tsv"), 0.85, 0.004, 0.02)
  end)

  with("keeps its Spearman on STS-B's test set", { models.demo, models.shared }, function()
    local got = scores(models.demo(), models.texts(calibration, 256), evaluate.read(data "stsb/sts-test.csv"))
    check(got, 0.8203, 5e-4, 0.005)
  end)
end)

-- The first `count` texts of a labelled file to calibrate on.
local function texts_of(path, count)
  return { unpack(evaluate.read(path).texts, 1, count) }
end

local function jsonl(path)
  local set = { path = path, kind = "label", texts = {}, labels = {} }
  for line in io.lines(path) do
    local row = cjson.decode(line)
    set.texts[#set.texts + 1], set.labels[#set.labels + 1] = { row.premise, row.hypothesis }, row.label
  end
  return set
end

-- 256 pairs of SNLI: its two texts are in files of their own.
local function snli()
  local first, second = models.texts(data "snli/s1.dev", 256), models.texts(data "snli/s2.dev", 256)
  local list = {}
  for i = 1, #first do
    list[i] = { first[i], second[i] }
  end
  return list
end

-- FP32 scores as ../shared/data/checkpoints/README.md states them, to be met within 0.1 points; INT8 within 1 point of FP32.
describe("a fine-tuned checkpoint keeps its score:", function()
  with("minilm-sst2", { models.shared }, function()
    local set = evaluate.read(data "sst2/sentiment-dev")
    check(scores(models.tuned "minilm-sst2", texts_of(data "sst2/sentiment-train", 256), set), 0.8796, 1e-3, 0.01)
  end)

  with("minilm-stsb", { models.shared }, function()
    local set = evaluate.read(data "stsb/sts-test.csv")
    check(scores(models.tuned "minilm-stsb", texts_of(data "stsb/sts-train.csv", 256), set), 0.8311, 1e-3, 0.01)
  end)

  with("minilm-nli", { models.shared }, function()
    local set = jsonl(data "checkpoints/minilm-nli/eval.jsonl")
    check(scores(models.tuned "minilm-nli", snli(), set), 0.6549, 1e-3, 0.01)
  end)
end)
