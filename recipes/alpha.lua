#!/usr/bin/env luajit
--- Which alpha suits a model? Calibrates once, then quantizes with one alpha after another.
--
--   luajit recipes/alpha.lua [MODEL] [--calibration FILE] [--eval FILE] [--activations dynamic] [--symmetric]
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local evaluate = require "perigee.evaluate"
local judging = require "judging"
local loading = require "loading"

local ALPHAS = { false, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1 }

common.main(function()
  local modes = { "choice", { static = true, dynamic = true }, default = "static", help = "Where the scales come from" }
  local args = judging.arguments("alpha", "Calibrates once, and judges alphas from 0.3 to 1, and none.", {
    { "activations", modes }, "symmetric", "asymmetric", "range",
  })
  if args.activations == "dynamic" then
    common.refuse(args, { "range" }, "with --activations dynamic: the scales come from the values at hand")
  end
  local symmetric = common.symmetric(args)

  local model = loading.load(args.model, args)
  local stats = model:calibrate(judging.calibration(model, args), { samples = args.samples })
  local set, judged = judging.evaluation(model, args)
  local reference = model:hidden(set.some)

  print(("%s, %s, %s activations%s"):format(model.dir, tostring(stats), args.activations,
    symmetric ~= nil and (symmetric and ", symmetric" or ", asymmetric") or ""))
  if judged then
    local fp32 = evaluate.run(model, set)
    print(("FP32: %s on %s (%d) %.4f"):format(fp32.metric, set.path, fp32.n, fp32.value))
  end

  for _, alpha in ipairs(ALPHAS) do
    local q = model:quantize {
      activations = args.activations, symmetric = symmetric, stats = stats, alpha = alpha,
      weights = args.weights, skip = args.skip, range = args.range,
    }
    local hidden = q:hidden(set.some)
    local line = ("alpha %-4s  SQNR of the hidden states %5.2f dB"):format(alpha or "off", reference:sqnr(hidden))
    hidden:release()
    print(line .. (judged and ("   metric %.4f"):format(evaluate.run(q, set).value) or ""))
    q:release()
  end
end)
