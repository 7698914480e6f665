--- mse: the range method whose rounding and clipping errors have the smallest mean square together (Choukroun et al. 2019,
-- "Low-bit Quantization of Neural Networks for Efficient Inference"). A rounding error is taken as uniform noise: step^2 / 12.
-- The values are those of a histogram (histogram.lua); each end is tried at STEPS places.
local histogram = require "perigee.quantize.ranges.histogram"

local BINS, edge = histogram.BINS, histogram.edge
local STEPS = 64

-- The squared error if values are clipped at the lower edges of bins a and b, and quantized in steps of `step`.
local function loss(h, a, b, step)
  local lo, hi, n, sum, square = edge(h, a), edge(h, b), h.count, h.sum, h.square
  local above = square[BINS] - square[b] - 2 * hi * (sum[BINS] - sum[b]) + hi * hi * (n[BINS] - n[b])
  local below = square[a] - 2 * lo * sum[a] + lo * lo * n[a]
  return (n[b] - n[a]) * step * step / 12 + above + below
end

-- The bin that holds 0. Neither end passes it.
local function zero_bin(h)
  return math.max(0, math.min(BINS, math.floor(-h.low / h.width)))
end

local function symmetric_range(h, low, high)
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

local function asymmetric_range(h)
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

return {
  text = "the range with the smallest mean square error of rounding and clipping",
  weighted = true,
  choose = function(site, symmetric)
    local h = histogram.of(site)
    if h.total == 0 then
      return site.low, site.high
    elseif symmetric then
      return symmetric_range(h, site.low, site.high)
    end
    return asymmetric_range(h)
  end,
}
