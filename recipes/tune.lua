#!/usr/bin/env luajit
--- Finds the fastest settings of a model whose loss stays within a budget, and writes the INT8 model to an artifact.
--
--   luajit recipes/tune.lua MODEL --eval FILE --max-drop 0.5 --save model.safetensors     (--help says all)
--
-- Half of the labelled file chooses the settings. The other half judges them.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

common.main(function()
  local args = judging.arguments("tune", "Finds the fastest settings whose loss stays within a budget.", {
    { "max_drop", { "number", 0, 100, default = 0.5, help = "The loss that is allowed, in points of the metric" } },
    { "metric", { "text", help = "The metric that counts", said = "the task's main metric" } },
    { "save", { "text", argname = "file", help = "Write the quantized model to a file, an artifact", said = "it is not kept" } },
  })
  common.refuse(args, { "skip", "weights" }, "because the search chooses the settings: edit the recipe that it prints")
  local model = loading.load(args.model, args)
  local set = judging.evaluation(model, args)
  local stats = model:calibrate(judging.calibration(model, args), { samples = args.samples })
  local tuned = model:tune { stats = stats, data = set, max_drop = args.max_drop, metric = args.metric }
  print(tuned)
  if args.save then
    local q = model:quantize(tuned.given)
    q:save(args.save)
    print(("\nwritten to %s"):format(args.save))
  end
end)
