--- place: the precision of every linear, "int8", "f32" or "bf16". The encoder's linears are INT8 unless the settings skip their
-- site. The others, those of heads among them, are what the setting `floats` says. Without settings everything is FP32.
local settings = require "perigee.quantize.settings"
local sites = require "perigee.graph.passes.sites"

return function(graph, chosen)
  local quantized = 0
  if chosen then
    settings.check_patterns(chosen, sites.list(graph))
  end
  local placed = graph:rewrite(function(_, node)
    if node.op == "linear" then
      local int8 = chosen and node.site and not settings.of(chosen, node.site).skip
      node.precision = int8 and "int8" or chosen and chosen.floats or "f32"
      quantized = quantized + (int8 and 1 or 0)
    end
  end)
  if chosen and quantized == 0 then
    error("quantize matched no linear: the skip patterns keep all of them FP32", 0)
  end
  return placed
end
