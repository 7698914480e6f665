--- percentile: the range method that covers all values except the ten-thousandth at either end: the 99.99 % of Wu et al. 2020,
-- "Integer Quantization for Deep Learning Inference". The values are those of a histogram (histogram.lua).
local histogram = require "perigee.quantize.ranges.histogram"

local TAIL = 1e-4 -- share of the weight of all values that may be clipped at either end

return {
  text = "all values but a ten-thousandth at either end",
  weighted = true,
  choose = function(site)
    local h = histogram.of(site)
    if h.total == 0 then
      return site.low, site.high
    end
    local a, b = 0, histogram.BINS
    while a < histogram.BINS and h.count[a + 1] <= TAIL * h.total do
      a = a + 1
    end
    while b > 0 and h.total - h.count[b - 1] <= TAIL * h.total do
      b = b - 1
    end
    return histogram.edge(h, a), histogram.edge(h, b)
  end,
}
