-- What all range methods have in common. A method that is added to the registry is checked here without a change.
local ranges = require "perigee.quantize.ranges"
local sites = require "spec.support.ranges"
local settings = require "perigee.quantize.settings"
local tensor = require "perigee.tensor"

describe("range methods", function()
  it("are listed in the error of the setting, and described", function()
    for _, name in ipairs(ranges.NAMES) do
      assert.equal(name, settings.new({ range = name }).range)
      assert.is_true(#ranges.text(name) > 10)
    end
    assert.equal(ranges.NAMES[1], settings.new().range)
    assert.error_matches(function() settings.new { range = "?" } end,
      'range is "?", expected "' .. table.concat(ranges.NAMES, '" or "') .. '"', 1, true)
  end)

  for _, name in ipairs(ranges.NAMES) do
    it(name .. " stays within what was seen and includes 0", function()
      for _, symmetric in ipairs { false, true } do
        for _, rows in ipairs { sites.rows(64, 16), sites.rows(64, 16, 40), { { 3, 5 } }, { { -3, -5 } } } do
          local seen, node = sites.of(rows)
          local least, most = ranges.choose("minmax", seen, node, symmetric)
          local low, high = ranges.choose(name, seen, node, symmetric)
          assert.is_true(least <= low and low <= 0 and 0 <= high and high <= most and low < high,
            ("%g to %g of %g to %g"):format(low, high, least, most))
        end
      end
    end)

    it(name .. " covers all that was seen if there is nothing to choose by", function()
      local seen, node = sites.of { { 0, 0 } }
      assert.are.same({ 0, 0 }, { ranges.choose(name, seen, node, false) })
      seen, node = sites.of { { -1, 2 } }
      seen.sample = tensor.new("F32", { 0, 2 })
      assert.are.same({ -1, 2 }, { ranges.choose(name, seen, node, true) })
      seen, node = sites.of({ { -1, 2 } }, { 0, 0 }) -- weights of zero
      assert.are.same({ -1, 2 }, { ranges.choose(name, seen, node, false) })
    end)
  end
end)
