#!/usr/bin/env luajit
--- A BERT in INT8 with static scales: calibrate, smooth, quantize, then judge against FP32 and time.
--
--   luajit recipes/bert_static.lua [MODEL] [--calibration FILE] [--eval FILE] ...     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

common.main(function()
  local what = "Quantizes a BERT to INT8 with static activation scales."
  local args = judging.quantizing("bert_static", what, { "symmetric", "asymmetric", "range" })

  local model = loading.load(args.model, args)

  -- One pass over some texts tells the range of what every linear reads.
  local stats = model:calibrate(judging.calibration(model, args), { samples = args.samples })

  -- Everything that is not named has its default; lua/API.md lists the settings.
  local q = model:quantize {
    activations = "static", stats = stats, symmetric = common.symmetric(args), alpha = args.alpha, weights = args.weights,
    tables = args.tables, skip = args.skip, range = args.range,
  }

  local result = judging.judge(model, q, args)
  result.statistics = tostring(stats)
  judging.print_result(result, args, args.explain and q:explain())
end)
