--- smooth: shift and smoothing factors. Every INT8 linear gets
--
--   alpha    SmoothQuant's alpha (Xiao et al. 2023), false if its site is not smoothed
--   factors  F32 [K], by which its input's channels are divided and its weights' columns multiplied; false if nothing is smoothed
--   wmax     F32 [K], the largest |w| of each channel, if anything needs it
--   shift    F32 [K], which is subtracted from its input's channels before they are smoothed (Outlier Suppression+, Wei et al.
--            2023): half of the sum of the smallest and the largest value of the channel. false if the site is not shifted
--
-- The weights of all linears of a site count together. Factors and shift go into the quantizer of the site. The product of the
-- weights and the shift goes into the biases of the linears.
local pgee = require "perigee.ffi"
local quant = require "perigee.quant"
local ranges = require "perigee.quantize.ranges"
local registry = require "perigee.quantize.settings.registry"
local tensor = require "perigee.tensor"

local smooth = {}

--- The weights of a list of parts, as a list of tensors.
function smooth.weights(parts)
  local list = {}
  for i, part in ipairs(parts) do
    list[i] = part.weight.tensor
  end
  return list
end

-- The largest |x - z| of each channel. shift: z; false for 0.
local function input_range(seen, K, shift)
  local out = pgee.doubles(K)
  if shift then
    local low, high, z = seen.low:numbers(K), seen.high:numbers(K), shift:numbers(K)
    for k = 0, K - 1 do
      out[k] = math.max(z[k] - low[k], high[k] - z[k])
    end
  else
    local min, max = seen.min:numbers(K), seen.max:numbers(K)
    for k = 0, K - 1 do
      out[k] = math.max(-min[k], max[k])
    end
  end
  return tensor.new("F32", K):put(out)
end

-- The middle of each channel's range, F32 [K].
local function midpoints(seen, K)
  local low, high, out = seen.low:numbers(K), seen.high:numbers(K), pgee.doubles(K)
  for k = 0, K - 1 do
    out[k] = (low[k] + high[k]) / 2
  end
  return tensor.new("F32", K):put(out)
end

--- All parts of each site's linears, by site.
function smooth.parts(graph)
  local all = {}
  for _, node in ipairs(graph.nodes) do
    if node.site then
      all[node.site] = all[node.site] or {}
      for _, part in ipairs(node.parts) do
        table.insert(all[node.site], part)
      end
    end
  end
  return all
end

--- alpha, factors, wmax and shift of a site whose linears have these parts, as the head of this file says. Without statistics
-- nothing is smoothed. own: the settings of the site, in which shift is true or false. memo keeps the results.
function smooth.values(site, parts, stats, own, memo)
  local alpha = stats and own.alpha or false
  local shift = stats and own.activations == "static" and own.shift and memo:get("shift " .. site.name, function()
    return midpoints(stats:site(site), site.width)
  end) or false
  local clips = own.activations == "static" and ranges.weighted(own.range)
  local wmax = (alpha or clips) and memo:get("absmax " .. site.name, function()
    return quant.absmax(smooth.weights(parts))
  end)
  local factors = alpha and memo:get(("factors %s %s"):format(site.name, registry.key("factors", own, alpha)), function()
    local xmax = input_range(stats:site(site), site.width, shift)
    local s = quant.smooth(xmax, wmax, alpha)
    xmax:release()
    return s
  end)
  return alpha, factors, wmax, shift
end

--- The graph whose INT8 linears have `alpha`, `factors`, `wmax` and `shift`. It runs after settle.
function smooth.pass(graph, stats, memo)
  local all = smooth.parts(graph)
  return graph:rewrite(function(_, node)
    if node.precision == "int8" then
      local site = node.site
      node.alpha, node.factors, node.wmax, node.shift = smooth.values(site, all[site], stats, node.own, memo)
    end
  end)
end

return smooth
