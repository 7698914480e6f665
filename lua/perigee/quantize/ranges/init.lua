--- ranges: the registry of range methods. A range method chooses the range of values that a static activation scale covers.
-- Values outside the range are clipped. The setting `range` names the method.
--
-- To add a method, write quantize/ranges/NAME.lua and add its name to NAMES below. A method is a table:
--
--   text      what the method covers, as one phrase for --help and the documentation
--   weighted  true if the method needs `wmax`, the largest |w| of each channel
--   choose    function(site, symmetric) -> low, high
--
-- site: what calibration saw at a site, after shift and smoothing: shift[k] is subtracted from x[k], which is then divided by the
-- smoothing factor of channel k.
--
--   K           number of channels
--   low, high   smallest and largest value seen; low <= 0 <= high
--   seen        the statistics of the site: { min, max, low, high = F32 [K], sample = F32 [rows][K], count = rows seen }, as they
--               are before shift and smoothing
--   min, max    smallest and largest value of each channel, doubles [K] from index 0, before shift and smoothing. They include 0
--               if the site is not shifted
--   shift       doubles [K] from index 0, or nil if the site is not shifted
--   factors     doubles [K] from index 0, or nil if the site is not smoothed
--   wmax        doubles [K] from index 0: the largest |w| of each channel, not smoothed; nil unless the method is weighted
--
-- symmetric: true if the scale will be max(-low, high) / 127, false if it will be (high - low) / 255.
--
-- The result is limited to site.low <= low <= 0 <= high <= site.high. The name of the method is part of the memo key of a static
-- quantizer (graph/passes/quantize.lua), so a method must depend on nothing but its arguments.
local ranges = {}

-- In the order in which they are listed to the user. The first is the default.
local NAMES = { "minmax", "percentile", "mse" }

local methods = {}
for _, name in ipairs(NAMES) do
  methods[name] = require("perigee.quantize.ranges." .. name)
end

--- The names of all range methods, in order. The first is the default.
ranges.NAMES = NAMES

--- What a method covers, in words.
function ranges.text(name)
  return methods[name].text
end

--- Whether a method needs the largest |w| of each channel.
function ranges.weighted(name)
  return methods[name].weighted or false
end

-- The smallest and the largest value that calibration saw, shifted and smoothed; 0 lies between them.
local function extremes(min, max, factors, shift, K)
  local low, high = 0, 0
  for k = 0, K - 1 do
    local divisor, z = factors and factors[k] or 1, shift and shift[k] or 0
    low, high = math.min(low, (min[k] - z) / divisor), math.max(high, (max[k] - z) / divisor)
  end
  return low, high
end

--- The range of a site, low <= 0 <= high, by the method `name`. seen: the statistics of the site. node: one of its linears, with
-- `site`, `factors`, `wmax` and `shift` as smooth.values returns them.
function ranges.choose(name, seen, node, symmetric)
  local method, K = methods[name], node.site.width
  local factors = node.factors and node.factors:numbers(K) or nil
  local shift = node.shift and node.shift:numbers(K) or nil
  local min, max = (shift and seen.low or seen.min):numbers(K), (shift and seen.high or seen.max):numbers(K)
  local low, high = extremes(min, max, factors, shift, K)
  if low == high then
    return low, high
  end
  local lo, hi = method.choose({
    K = K, low = low, high = high, min = min, max = max, seen = seen, factors = factors, shift = shift,
    wmax = method.weighted and node.wmax:numbers(K) or nil,
  }, symmetric)
  return math.max(low, math.min(0, lo)), math.min(high, math.max(0, hi))
end

return ranges
