-- What searched alphas and model:tune bring on the checkpoints of ../shared: a table for lua/FIGURES.md.
--
--   PERIGEE_LIB=build/libperigee.so luajit spec/bench/tuned.lua [SAMPLES] [NAME...]
--
-- SAMPLES (400): inputs of each labelled set, taken evenly. Half of them tune. All four INT8 models are judged on the other half.
-- Times are relative to FP32, over the texts that calibration kept, while the models take turns.
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local evaluate = require "perigee.evaluate"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local split = require "perigee.tune.split"

local SETS = {
  ["minilm-sst2"] = { "sst2/sentiment-dev", "sst2/sentiment-train" },
  ["minilm-stsb"] = { "stsb/sts-test.csv", "stsb/sts-train.csv" },
}

local BUDGET, ROUNDS, RESAMPLES = 0.3, 5, 1000

local function least_seconds(list, inputs)
  local least = {}
  for round = 0, ROUNDS do
    for i, encoder in ipairs(list) do
      local began = pgee.C.pgee_seconds()
      encoder:hidden(inputs):release()
      local seconds = pgee.C.pgee_seconds() - began
      least[i] = round > 0 and math.min(least[i] or math.huge, seconds) or nil
    end
  end
  return least
end

local function measure(name, samples)
  local shared = assert(models.shared())
  local model = perigee.load(assert(models.tuned(name)))
  local set = evaluate.read(shared .. "/data/" .. SETS[name][1])
  local from = evaluate.read(shared .. "/data/" .. SETS[name][2])
  local stats = model:calibrate(evaluate.sample(from, 256, set), { progress = false })
  local tuned = model:tune { stats = stats, data = set, max_drop = BUDGET, samples = samples, progress = false }
  local _, judging = split(set, samples)
  local list = {
    { "FP32", model }, { "static", model:quantize { stats = stats } },
    { "dynamic", model:quantize { stats = stats, activations = "dynamic" } },
    { "static, alpha auto", model:quantize { stats = stats, alpha = "auto" } },
    { ("tuned (%s)"):format(tuned.chosen.name), model:quantize(tuned.given) },
  }
  local encoders = {}
  for i, entry in ipairs(list) do
    encoders[i] = entry[2]
  end
  local seconds = least_seconds(encoders, stats.kept.inputs)
  local result = evaluate.compare(list, judging, { resamples = RESAMPLES, progress = false })
  for i, run in ipairs(result.runs) do
    local score = run.scores[1]
    local between = score.interval
    print(("| %s | %s | %.2f | %s | %s | %.2f |"):format(name, run.name, 100 * score.value,
      score.difference and ("%.2f (%.2f to %.2f)"):format(-100 * score.difference, -100 * between[2], -100 * between[1]) or "",
      i == 1 and "0" or i == #list and ("%.0f"):format(100 * tuned.chosen.share) or "100", seconds[i] / seconds[1]))
    io.stdout:flush()
  end
end

print "| checkpoint | model | score | loss in points (interval) | INT8 % | time / FP32 |\n|---|---|---|---|---|---|"
for _, name in ipairs(#arg > 1 and { unpack(arg, 2) } or { "minilm-sst2", "minilm-stsb" }) do
  measure(name, tonumber(arg[1]) or 400)
end
