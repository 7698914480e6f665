-- Ranges of static scales. Oracles go through every value of the sample.
local range = require "perigee.quantize.range"
local tensor = require "perigee.tensor"

-- A site that has seen these rows, K channels each, whose weights are all 1 (or `wmax`) at most, and its linear.
local function site(rows, wmax, factors)
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

-- Rows of near-normal values, the same each time; `large` at a few places.
local function rows_of(count, K, large)
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

-- The mean square error of quantizing all rows with this range.
local function error_of(rows, low, high, symmetric)
  local scale = symmetric and math.max(-low, high) / 127 or (high - low) / 255
  local sum = 0
  for _, row in ipairs(rows) do
    for _, v in ipairs(row) do
      local clipped = symmetric and math.max(-127 * scale, math.min(127 * scale, v)) or math.max(low, math.min(high, v))
      sum = sum + (math.floor(clipped / scale + 0.5) * scale - v) ^ 2
    end
  end
  return sum
end

describe("a range", function()
  it("of minmax is all that was seen, divided by the factors", function()
    local seen, node = site { { -2, 6 }, { 1, -3 } }
    assert.are.same({ -3, 6 }, { range.estimate("minmax", seen, node, false) })
    seen, node = site({ { -2, 6 }, { 1, -3 } }, nil, { 0.5, 4 })
    assert.are.same({ -4, 2 }, { range.estimate("minmax", seen, node, false) })
  end)

  for _, symmetric in ipairs { false, true } do
    it(("of mse loses no more than any other, %s"):format(symmetric and "symmetric" or "asymmetric"), function()
      for _, large in ipairs { 4, 12 } do
        local rows = rows_of(64, 64, large)
        local seen, node = site(rows)
        local low, high = range.estimate("mse", seen, node, symmetric)
        local found = error_of(rows, low, high, symmetric)
        local full_low, full_high = range.estimate("minmax", seen, node, symmetric)
        for step = 20, 100 do
          for other = symmetric and step or 20, symmetric and step or 100, 8 do
            local there = error_of(rows, full_low * step / 100, full_high * other / 100, symmetric)
            assert.is_true(found <= 1.05 * there, ("%g to %g loses %g, another %g"):format(low, high, found, there))
          end
        end
      end
    end)
  end

  it("of mse clips a value that is far out, unless the weights make much of its channel", function()
    local rows = rows_of(256, 512, 60)
    local seen, node = site(rows)
    local _, high = range.estimate("mse", seen, node, false)
    assert.is_true(high < 53, high)
    local wmax = {}
    for k = 1, 512 do
      wmax[k] = k == 1 and 30 or 1
    end
    seen, node = site(rows, wmax)
    _, high = range.estimate("mse", seen, node, false)
    assert.is_true(high > 58, high)
  end)

  it("of percentile leaves out a ten-thousandth at either end", function()
    local rows = rows_of(200, 100)
    for t = 1, 3 do
      rows[t][1], rows[t][2] = 50, -40
    end
    local seen, node = site(rows) -- 20000 values: two may be left out at each end, so the third of 50 is in
    local low, high = range.estimate("percentile", seen, node, false)
    assert.is_true(high > 49.9 and low < -39.9, ("%g to %g"):format(low, high))
    rows[3][1], rows[3][2] = 1, -1
    seen, node = site(rows)
    low, high = range.estimate("percentile", seen, node, false)
    assert.is_true(high < 5 and low > -5, ("%g to %g"):format(low, high))
  end)

  it("is whole where there is nothing to go by", function()
    local seen, node = site { { 0, 0 } }
    for _, method in ipairs { "minmax", "percentile", "mse" } do
      assert.are.same({ 0, 0 }, { range.estimate(method, seen, node, false) })
    end
    seen, node = site { { -1, 2 } }
    seen.sample = tensor.new("F32", { 0, 2 })
    for _, method in ipairs { "minmax", "percentile", "mse" } do
      assert.are.same({ -1, 2 }, { range.estimate(method, seen, node, true) })
    end
    seen, node = site({ { -1, 2 } }, { 0, 0 }) -- weights of zero
    assert.are.same({ -1, 2 }, { range.estimate("mse", seen, node, false) })
  end)
end)
