#!/usr/bin/env luajit
--- A BERT in INT8 with dynamic scales: every token (or sequence) gets its own, from the values at hand. No calibration is needed;
-- with it, activations are smoothed too.
--
--   luajit recipes/bert_dynamic.lua [MODEL] [--per sequence] [--eval FILE] ...     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

common.main(function()
  local what = "Quantizes a BERT to INT8 with dynamic activation scales."
  local args = judging.quantizing("bert_dynamic", what, { "per", "symmetric", "asymmetric", "no_calibration" })

  local model = loading.load(args.model, args)

  -- Statistics are optional here. They tell which channels are large, which is what smoothing needs.
  local stats
  if not args.no_calibration then
    stats = model:calibrate(judging.calibration(model, args), { samples = args.samples })
  end

  local q = model:quantize {
    activations = "dynamic", stats = stats, per = args.per, symmetric = common.symmetric(args), alpha = args.alpha,
    weights = args.weights, tables = args.tables, skip = args.skip,
  }

  local result = judging.judge(model, q, args)
  result.statistics = stats and tostring(stats)
  judging.print_result(result, args, args.explain and q:explain())
end)
