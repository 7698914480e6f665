--- Sites for the specs of range methods.
local tensor = require "perigee.tensor"

local sites = {}

--- A site that has seen these rows, K channels each, whose weights are all 1 (or `wmax`) at most, and its linear.
function sites.of(rows, wmax, factors)
  local K = #rows[1]
  local min, max = {}, {}
  for k = 1, K do
    min[k], max[k] = 0, 0
    for _, row in ipairs(rows) do
      min[k], max[k] = math.min(min[k], row[k]), math.max(max[k], row[k])
    end
  end
  for k = 1, wmax and 0 or K do
    wmax = wmax or {}
    wmax[k] = 1
  end
  local seen = { min = tensor.from(min), max = tensor.from(max), sample = tensor.from(rows), count = #rows }
  return seen, { site = { width = K }, wmax = tensor.from(wmax), factors = factors and tensor.from(factors) }
end

--- Rows of near-normal values, the same each time; `large` at a few places.
function sites.rows(count, K, large)
  local rows, x = {}, 12345
  for t = 1, count do
    rows[t] = {}
    for k = 1, K do
      local sum = 0
      for _ = 1, 12 do
        x = (x * 1103515245 + 12345) % 2 ^ 31
        sum = sum + x / 2 ^ 31
      end
      rows[t][k] = sum - 6
    end
  end
  if large then
    rows[1][1] = large
  end
  return rows
end

return sites
