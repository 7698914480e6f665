#!/usr/bin/env luajit
--- A DistilBERT in INT8 with dynamic scales: every token (or sequence) gets its own, from the values at hand. No
-- calibration is needed; with it, activations are smoothed too.
-- Without MODEL it is the demo's checkpoint rewritten as a DistilBERT (as_distilbert.lua).
--
--   luajit recipes/distilbert_dynamic.lua [MODEL] [--per sequence] [--eval FILE] ...     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

common.main(function()
  local what = "Quantizes a DistilBERT to INT8 with dynamic activation scales."
  local args = judging.quantizing("distilbert_dynamic", what, { "per", "symmetric", "asymmetric", "no_calibration" },
    loading.distilbert, "the demo's, rewritten as a DistilBERT")

  -- config.json says that it is one: its definition is lua/perigee/graph/models/distilbert.lua.
  local model = loading.load(args.model, args)
  local stats = not args.no_calibration and model:calibrate(judging.calibration(args), { samples = args.samples }) or nil
  local q = model:quantize {
    activations = "dynamic", stats = stats, per = args.per, symmetric = common.symmetric(args), alpha = args.alpha,
    weights = args.weights, skip = args.skip,
  }

  local result = judging.judge(model, q, args)
  result.statistics = stats and tostring(stats)
  judging.print_result(result, args, args.explain and q:explain())
end)
