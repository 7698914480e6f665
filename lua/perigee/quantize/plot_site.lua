--- plot_site: draws the largest magnitude of each channel of a site, before and after smoothing.
local measure = require "perigee.quantize.measure"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local plot = require "perigee.show.plot"
local settings = require "perigee.quantize.settings"
local smooth = require "perigee.graph.passes.smooth"

-- A list of the largest magnitude of each channel, divided by the smoothing factors if there are any.
local function magnitudes(seen, factors, K)
  local min, max, s, list = seen.min:numbers(K), seen.max:numbers(K), factors and factors:numbers(K), {}
  for k = 0, K - 1 do
    list[k + 1] = math.max(-min[k], max[k]) / (s and s[k] or 1)
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
  local site, memo = found[1], q.memo:aside()
  local seen, own, parts = q.stats:site(site), settings.of(q.settings, site), nil
  for of, list in pairs(smooth.parts(q.model:graph "hidden")) do
    parts = of.name == site.name and list or parts
  end
  local alpha, factors = smooth.values(site, parts, not own.skip and q.stats, own, memo)
  local before, after = magnitudes(seen, nil, site.width), factors and magnitudes(seen, factors, site.width) or nil
  memo:release()
  return plot.ranges(before, after, {
    title = ("%s, %s"):format(site.name, alpha and ("alpha %g"):format(alpha) or "not smoothed"),
  })
end
