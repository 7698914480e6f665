--- Bench of the setting `tables`: scores of dynamic INT8 models, without calibration, with embedding tables in F32, F16 and INT8.
--
--   luajit spec/bench/tables.lua [NUMBER...]        the rows of SETS with these numbers, or all
--
-- Run it from the top folder. The data sets and the fine-tuned checkpoints lie in ../shared.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local evaluate = require "perigee.evaluate"
local models = require "spec.support.models"
local perigee = require "perigee"

-- Each: the checkpoint, the task, the file, and the number of items, nil for all.
local SETS = {
  { "demo", "embed", "stsb/sts-test.csv" },
  { "minilm-stsb", "regression", "stsb/sts-test.csv" },
  { "minilm-sst2", "classify", "sst2/sentiment-dev" },
  { "demo", "retrieval", "cranfield" },
  { "minilm-nli", "pairs", "checkpoints/minilm-nli/eval.jsonl", 1000 },
  { "minilm-ner", "ner", "panx/dev-en.tsv", 1000 },
  { "minilm-qa", "qa", "xquad/xquad.en.json", 200 },
}

local function compare(row)
  local name, task, path, limit = unpack(row, 1, 4)
  local model = perigee.load(assert(name == "demo" and models.demo() or models.tuned(name)))
  local set = evaluate.read(assert(models.shared()) .. "/data/" .. path, { limit = limit })
  local list = {}
  for i, tables in ipairs { "f32", "f16", "int8" } do
    list[i] = { tables, model:quantize { activations = "dynamic", tables = tables } }
  end
  print(("%s, %s (%s)\n%s"):format(name, path, limit and "the first " .. limit or "all",
    tostring(evaluate.compare(list, set, { task = task, progress = false, resamples = 0 }))))
  for _, entry in ipairs(list) do
    entry[2]:release()
  end
  model:release()
end

for i, row in ipairs(SETS) do
  local chosen = #arg == 0
  for _, number in ipairs(arg) do
    chosen = chosen or tonumber(number) == i
  end
  if chosen then
    compare(row)
  end
end
