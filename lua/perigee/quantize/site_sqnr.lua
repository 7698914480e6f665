--- site_sqnr: the SQNR of a site's linears in dB, INT8 against FP32, on the rows that calibration sampled at the site.
local linear = require "perigee.linear"
local lower = require "perigee.graph.passes.lower"
local quant = require "perigee.quant"
local quantize = require "perigee.graph.passes.quantize"
local smooth = require "perigee.graph.passes.smooth"

-- FP32's output of a linear over the sample.
local function reference(node, x, fp32)
  local memo = fp32:aside()
  local ok, result = pcall(function()
    return linear(x, lower.packed_f32(memo, node.parts), { bias = lower.bias(memo, node.parts) })
  end)
  memo:release()
  if not ok then
    error(result, 0)
  end
  return result
end

-- dB of a linear by the settings of its site.
local function test(node, parts, own, x, expected, stats, shared)
  local memo = shared:aside()
  local made = {}
  local ok, result = pcall(function()
    local alpha, factors, wmax, shift = smooth.values(node.site, parts, stats, own, memo)
    local quantized = { site = node.site, parts = node.parts, alpha = alpha, factors = factors, wmax = wmax, shift = shift }
    local quantizer, weight = quantize.values(quantized, stats, own, memo)
    made[1] = quant.quantize(x, {
      symmetric = quantizer.symmetric, scale = quantizer.scale, zero = quantizer.zero, smooth = factors or nil,
      shift = shift or nil,
    })
    made[2] = linear(made[1], weight, { bias = lower.bias_of(memo, quantized) })
    return expected:sqnr(made[2])
  end)
  for _, object in ipairs(made) do
    object:release()
  end
  memo:release()
  if not ok then
    error(result, 0)
  end
  return result
end

local function measure_node(node, parts, owns, x, given)
  local expected, shared = reference(node, x, given.fp32), given.memo:aside()
  local ok, result = pcall(function()
    local list = {}
    smooth.values(node.site, parts, given.stats, owns[1], shared) -- what all have in common is made once
    for i, own in ipairs(owns) do
      list[i] = test(node, parts, own, x, expected, given.stats, shared)
    end
    return list
  end)
  expected:release()
  shared:release()
  if not ok then
    error(result, 0)
  end
  return result
end

--- { dB by each of the settings in `owns` }, in which shift is true or false. If the linears of the site are multiplied
-- separately, the lowest dB among them counts. given: stats; memo, from which values are taken; fp32, a memo from which packed
-- FP32 weights are taken.
return function(graph, site, owns, given)
  local parts, lowest = smooth.parts(graph), {}
  for _, node in ipairs(graph.nodes) do
    if node.site and node.site.name == site.name then
      for i, db in ipairs(measure_node(node, parts[node.site], owns, given.stats:site(site).sample, given)) do
        lowest[i] = math.min(lowest[i] or db, db)
      end
    end
  end
  return lowest
end
