--- smooth: SmoothQuant (Xiao et al. 2023). Every INT8 linear gets `alpha`, `factors`, the F32 [K] that its weights' columns are
-- multiplied by and its input's channels divided by, both false where nothing is smoothed, and `wmax` if anything needs it.
--
-- The weights of all linears of a site count together. Dividing costs nothing at run time: it goes into the multiplier of
-- whatever quantizes the site.
local pgee = require "perigee.ffi"
local quant = require "perigee.quant"
local ranges = require "perigee.quantize.ranges"
local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"
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

-- The largest |x| of each channel.
local function input_range(seen, K)
  local min, max, out = seen.min:numbers(K), seen.max:numbers(K), pgee.doubles(K)
  for k = 0, K - 1 do
    out[k] = math.max(-min[k], max[k])
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

--- By the settings of a site whose linears have these parts, without statistics nothing being smoothed: alpha or false, the
-- factors or false, and wmax, the largest |w| of each channel, where something depends on it. memo keeps them.
function smooth.values(site, parts, stats, own, memo)
  local alpha = stats and own.alpha or false
  local clips = own.activations == "static" and ranges.weighted(own.range)
  local wmax = (alpha or clips) and memo:get("absmax " .. site.name, function()
    return quant.absmax(smooth.weights(parts))
  end)
  local factors = alpha and memo:get(("factors %s %s"):format(site.name, registry.key("factors", own, alpha)), function()
    local xmax = input_range(stats:site(site), site.width)
    local s = quant.smooth(xmax, wmax, alpha)
    xmax:release()
    return s
  end)
  return alpha, factors, wmax
end

--- The graph whose INT8 linears have `alpha`, `factors` and `wmax`, as values returns them. chosen: the settings.
function smooth.pass(graph, stats, chosen, memo)
  local all = smooth.parts(graph)
  return graph:rewrite(function(_, node)
    if node.precision == "int8" then
      local site = node.site
      node.alpha, node.factors, node.wmax = smooth.values(site, all[site], stats, settings.of(chosen, site), memo)
    end
  end)
end

return smooth
