#!/usr/bin/env luajit
--- A DistilBERT in INT8 with dynamic scales: every token (or sequence) gets its own, from the values at hand. No
-- calibration is needed; with it, activations are smoothed too.
-- Without --model it is the demo's checkpoint rewritten as a DistilBERT (as_distilbert.lua).
--
--   luajit recipes/distilbert_dynamic.lua [--model FOLDER] [--per sequence] [--eval FILE] ...           (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("@/?.lua;@/../lua/?.lua;@/../lua/?/init.lua;@/../../lua/5.1/?.lua;@/../../lua/5.1/?/init.lua;"):gsub("@",
  { ["@"] = here }) .. package.path -- the modules of the source tree, or of the prefix that this was installed under
local common = require "common"

common.main(function()
  local what = "Quantizes a DistilBERT to INT8 with dynamic activation scales."
  local args = common.arguments("distilbert_dynamic", what, function(parser)
    parser:option("--per", "What one activation scale covers", "token"):choices { "token", "sequence" }
    parser:flag("--asymmetric", "Activations with a zero point")
    parser:flag("--no-calibration", "Use no statistics: nothing is smoothed")
  end, common.distilbert)

  -- config.json says that it is one: its definition is lua/perigee/models/distilbert.lua.
  local model = common.load(args.model, args)
  local stats = not args.no_calibration and model:calibrate(common.calibration(args), { samples = args.samples }) or nil
  local q = model:quantize {
    activations = "dynamic", stats = stats, per = args.per, symmetric = not args.asymmetric, alpha = args.alpha,
    weights = args.weights, skip = args.skip,
  }

  local result = common.judge(model, q, args)
  result.statistics = stats and tostring(stats)
  common.print_result(result, args, args.explain and q:explain())
end)
