-- The range method percentile.
local ranges = require "perigee.quantize.ranges"
local sites = require "spec.support.ranges"

describe("the range method percentile", function()
  it("leaves out a ten-thousandth at either end", function()
    local rows = sites.rows(200, 100)
    for t = 1, 3 do
      rows[t][1], rows[t][2] = 50, -40
    end
    local seen, node = sites.of(rows) -- 20000 values: two may be left out at each end, so the third of 50 is in
    local low, high = ranges.choose("percentile", seen, node, false)
    assert.is_true(high > 49.9 and low < -39.9, ("%g to %g"):format(low, high))
    rows[3][1], rows[3][2] = 1, -1
    seen, node = sites.of(rows)
    low, high = ranges.choose("percentile", seen, node, false)
    assert.is_true(high < 5 and low > -5, ("%g to %g"):format(low, high))
  end)
end)
