--- Range: which values of a site, after smoothing, a static scale covers. The rest is clipped.
--
--   minmax      from the least value seen in calibration to the largest: nothing seen is clipped
--   percentile  all but a ten-thousandth of the values at either end (Wu et al. 2020, "Integer Quantization for Deep Learning
--               Inference": 99.99 %)
--   mse         the ends where rounding and clipping together have the least mean square error (Choukroun et al. 2019, "Low-bit
--               Quantization of Neural Networks for Efficient Inference"), a step rounding as uniform noise does
--
-- The last two are estimated from the sample of rows that calibration keeps. A value counts there as much as the weights make of
-- it, by the square of its channel's largest |w|: what is clipped in the one channel that matters costs more than elsewhere.
local range = {}

local BINS = 2048
local STEPS = 64 -- that each end is tried at
local TAIL = 1e-4

local function minmax(seen, s, K)
  local min, max = seen.min:numbers(K), seen.max:numbers(K)
  local low, high = 0, 0
  for k = 0, K - 1 do
    local divisor = s and s[k] or 1
    low, high = math.min(low, min[k] / divisor), math.max(high, max[k] / divisor)
  end
  return low, high
end

-- Of the sample's values, by bins from low to high: how many there are below each bin's lower edge, their sum and their squares'.
-- Each channel's extremes, which most often are not in the sample, count as the one row of all that they are.
local function histogram(seen, s, wmax, K, low, high)
  local count, sum, square = {}, {}, {}
  for b = 0, BINS do
    count[b], sum[b], square[b] = 0, 0, 0
  end
  local scale = BINS / (high - low)
  local function add(v, w)
    local b = math.max(0, math.min(BINS - 1, math.floor((v - low) * scale))) + 1
    count[b], sum[b], square[b] = count[b] + w, sum[b] + w * v, square[b] + w * v * v
  end
  local x, min, max, rows = seen.sample:numbers(nil, K), seen.min:numbers(K), seen.max:numbers(K), #seen.sample
  for t = 0, rows - 1 do
    for k = 0, K - 1 do
      local divisor = s and s[k] or 1
      add(x[t * K + k] / divisor, (wmax[k] * divisor) ^ 2)
    end
  end
  for k = 0, seen.count > rows and K - 1 or -1 do
    local divisor = s and s[k] or 1
    local w = (wmax[k] * divisor) ^ 2 * rows / seen.count
    add(min[k] / divisor, w)
    add(max[k] / divisor, w)
  end
  for b = 1, BINS do
    count[b], sum[b], square[b] = count[b] + count[b - 1], sum[b] + sum[b - 1], square[b] + square[b - 1]
  end
  return { count = count, sum = sum, square = square, low = low, width = (high - low) / BINS, total = count[BINS] }
end

local function edge(h, b)
  return h.low + b * h.width
end

-- Squared error of values clipped at the edges of bins a and b, which are `step` apart when quantized.
local function loss(h, a, b, step)
  local lo, hi, n, sum, square = edge(h, a), edge(h, b), h.count, h.sum, h.square
  local above = square[BINS] - square[b] - 2 * hi * (sum[BINS] - sum[b]) + hi * hi * (n[BINS] - n[b])
  local below = square[a] - 2 * lo * sum[a] + lo * lo * n[a]
  return (n[b] - n[a]) * step * step / 12 + above + below
end

-- The bin in which 0 lies: ends never pass it.
local function zero_bin(h)
  return math.max(0, math.min(BINS, math.floor(-h.low / h.width)))
end

local function mse_symmetric(h, low, high)
  local largest, best, least = math.max(-low, high), nil, math.huge
  for i = STEPS, 1, -1 do
    local c = largest * i / STEPS
    local a = math.max(0, math.ceil((-c - h.low) / h.width))
    local b = math.min(BINS, math.floor((c - h.low) / h.width))
    local found = loss(h, a, b, c / 127)
    if found < least then
      best, least = c, found
    end
  end
  return math.max(low, -best), math.min(high, best)
end

local function mse_asymmetric(h)
  local zero, least, lo, hi = zero_bin(h), math.huge, nil, nil
  for i = 0, STEPS - 1 do
    local a = math.floor(zero * i / STEPS)
    for j = STEPS, 1, -1 do
      local b = zero + math.ceil((BINS - zero) * j / STEPS)
      local found = loss(h, a, b, (edge(h, b) - edge(h, a)) / 255)
      if found < least then
        lo, hi, least = a, b, found
      end
    end
  end
  return edge(h, lo), edge(h, hi)
end

local function percentile(h)
  local a, b = 0, BINS
  while a < BINS and h.count[a + 1] <= TAIL * h.total do
    a = a + 1
  end
  while b > 0 and h.total - h.count[b - 1] <= TAIL * h.total do
    b = b - 1
  end
  return edge(h, a), edge(h, b)
end

--- low <= 0 <= high, by a range method. seen: of a site, from the statistics; node: one of its linears, smoothed.
function range.estimate(method, seen, node, symmetric)
  local K = node.site.width
  local s = node.factors and node.factors:numbers(K)
  local low, high = minmax(seen, s, K)
  if method == "minmax" or low == high then
    return low, high
  end
  local h = histogram(seen, s, node.wmax:numbers(K), K, low, high)
  local lo, hi
  if h.total == 0 then
    return low, high
  elseif method == "percentile" then
    lo, hi = percentile(h)
  elseif symmetric then
    lo, hi = mse_symmetric(h, low, high)
  else
    lo, hi = mse_asymmetric(h)
  end
  return math.max(low, math.min(0, lo)), math.min(high, math.max(0, hi))
end

return range
