#!/usr/bin/env luajit
--- Quantizes a model of any architecture to INT8, compares it with FP32, and writes it to one file, an artifact.
--
--   luajit recipes/quantize.lua MODEL --activations dynamic --calibration FILE --save FILE [--eval FILE]     (--help says all)
--
-- bert_static.lua and bert_dynamic.lua are the same in fewer lines, to copy from.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local judging = require "judging"
local loading = require "loading"

local function check(args)
  if args.activations == "dynamic" then
    common.refuse(args, { "range" }, "with --activations dynamic: the scales come from the values at hand")
  else
    common.refuse(args, { "per", "no_calibration" }, "with --activations static: the scales come from calibration")
  end
end

common.main(function()
  local args = judging.quantizing("quantize", "Quantizes a model to INT8, compares it with FP32, and saves it.", {
    { "activations", {
      "choice", { static = true, dynamic = true }, default = "static",
      help = "Where the scales of activations come from: calibration (static), or the values at hand (dynamic)",
    } },
    "symmetric", "asymmetric", "range", "per", "no_calibration",
  })
  check(args)

  local model = loading.load(args.model, args)
  local stats = not args.no_calibration and model:calibrate(judging.calibration(model, args), { samples = args.samples }) or nil
  local q = model:quantize {
    activations = args.activations, stats = stats, per = args.given.per and args.per, symmetric = common.symmetric(args),
    alpha = args.alpha, weights = args.weights, tables = args.tables, skip = args.skip, range = args.range,
  }

  local result = judging.judge(model, q, args)
  result.statistics = stats and tostring(stats)
  judging.print_result(result, args, args.explain and q:explain())
end)
