#!/usr/bin/env luajit
--- An XLM-RoBERTa in INT8 with static scales: calibrate, smooth, quantize, then judge against FP32 and time.
-- Without MODEL it is multilingual-e5-small, which `make models` fetches, as an XLM-RoBERTa.
--
--   luajit recipes/xlmr_static.lua [MODEL] [--calibration FILE] [--eval FILE] ...     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

common.main(function()
  local what = "Quantizes an XLM-RoBERTa to INT8 with static activation scales."
  local args = judging.quantizing("xlmr_static", what, { "symmetric", "asymmetric", "range" }, loading.xlmr,
    "multilingual-e5-small, which `make models` fetches")

  -- config.json says that it is one: its definition is lua/perigee/graph/models/roberta.lua.
  local model = loading.load(args.model, args)
  local stats = model:calibrate(judging.calibration(args), { samples = args.samples })
  local q = model:quantize {
    activations = "static", stats = stats, symmetric = common.symmetric(args), alpha = args.alpha, weights = args.weights,
    skip = args.skip, range = args.range,
  }

  local result = judging.judge(model, q, args)
  result.statistics = tostring(stats)
  judging.print_result(result, args, args.explain and q:explain())
end)
