--- plot_site: draws the largest magnitude of each channel of a site, before and after shift and smoothing.
local measure = require "perigee.quantize.measure"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local plot = require "perigee.show.plot"
local settings = require "perigee.quantize.settings"
local settle = require "perigee.graph.passes.settle"
local smooth = require "perigee.graph.passes.smooth"

-- A list of the largest magnitude of each channel, shifted and divided by the smoothing factors if there are any.
local function magnitudes(seen, factors, shift, K)
  local min, max = (shift and seen.low or seen.min):numbers(K), (shift and seen.high or seen.max):numbers(K)
  local s, z, list = factors and factors:numbers(K), shift and shift:numbers(K), {}
  for k = 0, K - 1 do
    local middle = z and z[k] or 0
    list[k + 1] = math.max(middle - min[k], max[k] - middle) / (s and s[k] or 1)
  end
  return list
end

--- The drawing for q:plot(pattern), which has to match exactly one site.
return function(q, pattern)
  options.method(q, "plot")
  if not q.stats then
    error("plot: there are no statistics", 0)
  end
  local found = patterns.find(pattern, measure.sites(q))
  if #found > 1 then
    error(("plot: %q matches %d sites, from %s to %s; one is plotted at a time"):format(pattern, #found, found[1].name,
      found[#found].name), 0)
  end
  local site, memo, graph = found[1], q.memo:aside(), q.model:graph "hidden"
  local seen, own, parts = q.stats:site(site), settings.of(q.settings, site), nil
  for of, list in pairs(smooth.parts(graph)) do
    parts = of.name == site.name and list or parts
  end
  own = own.skip and own or settle.site(graph, site, q.stats, own, memo)
  local alpha, factors, _, shift = smooth.values(site, parts, not own.skip and q.stats, own, memo)
  local before = magnitudes(seen, nil, nil, site.width)
  local after = (factors or shift) and magnitudes(seen, factors, shift, site.width) or nil
  memo:release()
  return plot.ranges(before, after, {
    title = ("%s, %s%s"):format(site.name, alpha and ("alpha %g"):format(alpha) or "not smoothed", shift and ", shifted" or ""),
  })
end
