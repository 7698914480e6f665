-- The range method mse. The oracle goes through every value of the sample.
local ranges = require "perigee.quantize.ranges"
local sites = require "spec.support.ranges"

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

describe("the range method mse", function()
  for _, symmetric in ipairs { false, true } do
    it(("loses no more than any other, %s"):format(symmetric and "symmetric" or "asymmetric"), function()
      for _, large in ipairs { 4, 12 } do
        local rows = sites.rows(64, 64, large)
        local seen, node = sites.of(rows)
        local low, high = ranges.choose("mse", seen, node, symmetric)
        local found = error_of(rows, low, high, symmetric)
        local full_low, full_high = ranges.choose("minmax", seen, node, symmetric)
        for step = 20, 100 do
          for other = symmetric and step or 20, symmetric and step or 100, 8 do
            local there = error_of(rows, full_low * step / 100, full_high * other / 100, symmetric)
            assert.is_true(found <= 1.05 * there, ("%g to %g loses %g, another %g"):format(low, high, found, there))
          end
        end
      end
    end)
  end

  it("clips a value that is far out, unless the weights make much of its channel", function()
    local rows = sites.rows(256, 512, 60)
    local seen, node = sites.of(rows)
    local _, high = ranges.choose("mse", seen, node, false)
    assert.is_true(high < 53, high)
    local wmax = {}
    for k = 1, 512 do
      wmax[k] = k == 1 and 30 or 1
    end
    seen, node = sites.of(rows, wmax)
    _, high = ranges.choose("mse", seen, node, false)
    assert.is_true(high > 58, high)
  end)
end)
