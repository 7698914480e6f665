-- The range method minmax.
local ranges = require "perigee.quantize.ranges"
local sites = require "spec.support.ranges"

describe("the range method minmax", function()
  it("covers all that was seen, divided by the factors", function()
    local seen, node = sites.of { { -2, 6 }, { 1, -3 } }
    assert.are.same({ -3, 6 }, { ranges.choose("minmax", seen, node, false) })
    seen, node = sites.of({ { -2, 6 }, { 1, -3 } }, nil, { 0.5, 4 })
    assert.are.same({ -4, 2 }, { ranges.choose("minmax", seen, node, false) })
  end)
end)
