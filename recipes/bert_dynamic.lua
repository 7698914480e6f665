#!/usr/bin/env luajit
--- A BERT in INT8 with dynamic scales: every token (or sequence) gets its own, from the values at hand. No calibration is needed;
-- with it, activations are smoothed too.
--
--   luajit recipes/bert_dynamic.lua [--model FOLDER] [--per sequence] [--eval FILE] ...           (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("@/?.lua;@/../lua/?.lua;@/../lua/?/init.lua;@/../../lua/5.1/?.lua;@/../../lua/5.1/?/init.lua;"):gsub("@",
  { ["@"] = here }) .. package.path -- the modules of the source tree, or of the prefix that this was installed under
local common = require "common"

common.main(function()
  local args = common.arguments("bert_dynamic", "Quantizes a BERT to INT8 with dynamic activation scales.", function(parser)
    parser:option("--per", "What one activation scale covers", "token"):choices { "token", "sequence" }
    parser:flag("--asymmetric", "Activations with a zero point")
    parser:flag("--no-calibration", "Use no statistics: nothing is smoothed")
  end)

  local model = common.load(args.model, args)

  -- Statistics are optional here. They tell which channels are large, which is what smoothing needs.
  local stats
  if not args.no_calibration then
    stats = model:calibrate(common.calibration(args), { samples = args.samples })
  end

  local q = model:quantize {
    activations = "dynamic", stats = stats, per = args.per, symmetric = not args.asymmetric, alpha = args.alpha,
    weights = args.weights, skip = args.skip,
  }

  local result = common.judge(model, q, args)
  result.statistics = stats and tostring(stats)
  common.print_result(result, args, args.explain and q:explain())
end)
