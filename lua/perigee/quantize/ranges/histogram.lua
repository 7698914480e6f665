--- histogram: the shifted and smoothed values of a site in bins, for range methods that clip. It is no range method itself.
--
-- The values are those of the rows that calibration sampled. A value of channel k counts by the square of (largest |w| of the
-- channel * smoothing factor), because an error in this channel is multiplied by a weight of up to that size.
local histogram = {}

--- The number of bins, from the smallest to the largest value of the site.
histogram.BINS = 2048

local BINS = histogram.BINS

-- The smallest and the largest value of a channel are usually not in the sample. They count as one row of all the rows seen.
local function add_extremes(site, add)
  local seen, rows = site.seen, #site.seen.sample
  if seen.count <= rows then
    return -- the sample has all rows
  end
  for k = 0, site.K - 1 do
    local divisor, shift = site.factors and site.factors[k] or 1, site.shift and site.shift[k] or 0
    local w = (site.wmax[k] * divisor) ^ 2 * rows / seen.count
    add((site.min[k] - shift) / divisor, w)
    add((site.max[k] - shift) / divisor, w)
  end
end

local function add_sample(site, add)
  local K, sample = site.K, site.seen.sample
  local x = sample:numbers(nil, K)
  for t = 0, #sample - 1 do
    for k = 0, K - 1 do
      local divisor, shift = site.factors and site.factors[k] or 1, site.shift and site.shift[k] or 0
      add((x[t * K + k] - shift) / divisor, (site.wmax[k] * divisor) ^ 2)
    end
  end
end

--- The histogram of a site (see ranges/init.lua). count[b], sum[b] and square[b], b from 0 to BINS: the weight, the weighted sum
-- and the weighted sum of squares of the values below the lower edge of bin b. low: the lower edge of bin 0; width: of a bin;
-- total: the weight of all values, 0 if the sample is empty or all weights are 0.
function histogram.of(site)
  local count, sum, square = {}, {}, {}
  for b = 0, BINS do
    count[b], sum[b], square[b] = 0, 0, 0
  end
  local low, scale = site.low, BINS / (site.high - site.low)
  local function add(v, w)
    local b = math.max(0, math.min(BINS - 1, math.floor((v - low) * scale))) + 1
    count[b], sum[b], square[b] = count[b] + w, sum[b] + w * v, square[b] + w * v * v
  end
  add_sample(site, add)
  add_extremes(site, add)
  for b = 1, BINS do
    count[b], sum[b], square[b] = count[b] + count[b - 1], sum[b] + sum[b - 1], square[b] + square[b - 1]
  end
  return { count = count, sum = sum, square = square, low = low, width = (site.high - low) / BINS, total = count[BINS] }
end

--- The lower edge of bin b; edge(h, BINS) is the upper edge of the last bin.
function histogram.edge(h, b)
  return h.low + b * h.width
end

return histogram
