-- Plots as text: dots where the numbers are, axes, what fits, what is refused.
local failure = require "spec.support.failure"
local plot = require "perigee.show.plot"
local tensor = require "perigee.tensor"
local terminal = require "perigee.show.terminal"

local ASCII, BRAILLE = { columns = 40, utf8 = false }, { columns = 40, utf8 = true }

local function lines_of(p, style)
  local lines = {}
  for line in (p:text(style) .. "\n"):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  return lines
end

-- The lines between the axes, without the labels to their left.
local function canvas_of(p, style)
  local rows = {}
  for _, line in ipairs(lines_of(p, style)) do
    local row = line:match "^ *[-%d.e+]* [+|](.*)$"
    if row and not row:find "^[+-]+$" then
      rows[#rows + 1] = row
    end
  end
  return rows
end

describe("a plot", function()
  it("has its points where the numbers are, and ticks that say so", function()
    assert.are.same({
      "10 +                                    *",
      "   |",
      " 5 +                  *",
      "   |",
      " 0 +*",
      "   ++-----------------+-----------------+",
      "    0                 1                 2",
    }, lines_of(plot.points { x = { 0, 1, 2 }, y = { 0, 5, 10 }, height = 5 }, { columns = 41, utf8 = false }))
  end)

  it("joins the points of a curve in the order given, and breaks it where a number is missing", function()
    local whole = canvas_of(plot.curve { y = { 0, 4, 0 }, height = 5 }, ASCII)
    assert.equal(5, #whole)
    for r, row in ipairs(whole) do -- up and down: ink on both sides of each row but the top
      assert.matches(r == 1 and "^ +%*+$" or "^ *%*+ +%*+$", row)
    end
    local broken = table.concat(canvas_of(plot.curve { y = { 1, 1, 0 / 0, 1, 1 }, height = 4 }, ASCII), "\n")
    assert.matches("^[^*]*%*+ +%*+[^*]*$", broken)
    assert.equal(plot.curve({ y = { 1, 2 } }):text(ASCII), plot.curve({ y = { 1, 2, 1 / 0 } }):text(ASCII))
  end)

  it("draws bars from 0, the largest of neighbours where there are more than dots", function()
    local values = {}
    for i = 1, 1000 do
      values[i] = i == 500 and 8 or -0.5
    end
    local rows = canvas_of(plot.bars { y = values, height = 6 }, ASCII)
    assert.equal(6, #rows)
    for r = 1, 5 do
      assert.near(18, #rows[r]:match "^ *%*$", 2)
    end
    assert.matches("^%*+$", rows[6])
  end)

  it("packs two by four dots into a braille character", function()
    local p = plot.points { x = { 0, 1 }, y = { 0, 1 }, height = 2, width = 20 }
    local text = p:text(BRAILLE)
    assert.truthy(text:find("⣤", 1, true) or text:find("⣀", 1, true) or text:find("⠤", 1, true), text)
    assert.truthy(text:find("└┬", 1, true), text)
    local none = plot.curve({ y = { 1, 2 }, height = 2 }):text(ASCII)
    assert.is_nil(none:find "[\128-\255]")
  end)

  it("tells series apart, with and without colours", function()
    local p = plot.curve { series = { { name = "one", y = { 0, 1 } }, { name = "two", y = { 1, 0 } } }, height = 4 }
    local ascii = p:text(ASCII)
    assert.matches("%*.*o", ascii)
    assert.matches("%* one   o two$", ascii)
    assert.is_nil(p:text(BRAILLE):find "\27")
    local coloured = p:text { columns = 40, utf8 = true, colours = true }
    assert.matches("\27%[36m", coloured)
    assert.matches("\27%[33m", coloured)
    local lines = lines_of(p, BRAILLE)
    local one, two = lines[#lines]:match "^ *(%S+) one   (.-) two$"
    assert.are_not.equal(one, two)
  end)

  it("fits the width that there is", function()
    local y = { 123456, 0.001, 5 }
    local series = { { name = ("n"):rep(60), y = y }, { name = "short", y = y } }
    for _, columns in ipairs { 20, 33, 80, 300 } do
      for _, utf8 in ipairs { true, false } do
        for _, kind in ipairs { "curve", "points", "bars" } do
          local p = plot[kind] { series = series, title = ("t"):rep(50), xlabel = ("x"):rep(50), ylabel = ("y"):rep(99) }
          for _, line in ipairs(lines_of(p, { columns = columns, utf8 = utf8 })) do
            assert.is_true(terminal.width(line) <= math.min(columns, 100), line)
          end
        end
      end
    end
    assert.equal(30, terminal.width(lines_of(plot.curve { y = y, width = 30, height = 3 }, { columns = 80 })[4]))
  end)

  it("of numbers that are all equal, of one, or of none that is finite, is still a plot", function()
    local odd = { { 5, 5 }, { 5 }, { 0 }, { 0 / 0 }, { 1 / 0, -1 / 0 }, { 1e300, -1e300 }, { 1e-300, 2e-300 }, { 3, 1 / 0 } }
    for _, y in ipairs(odd) do
      for _, kind in ipairs { "curve", "points", "bars" } do
        for _, style in ipairs { ASCII, BRAILLE } do
          assert.equal(12, #lines_of(plot[kind] { y = y }, style), kind)
        end
      end
    end
  end)

  it("takes tensors, and prints itself", function()
    local p = plot.bars { y = tensor.from { 1, 2, 3 } }
    assert.equal(plot.bars({ y = { 1, 2, 3 } }):text(), tostring(p))
  end)

  it("refuses what it cannot plot", function()
    assert.matches("plot_spec.*plot: y is nil, expected a list of numbers or a tensor", failure(function() plot.curve {} end))
    for _, f in ipairs { plot.curve, plot.points, plot.bars } do
      assert.matches("plot_spec.lua:%d+: plot: y is nil, expected a list", failure(function() local p = f() return p end))
    end
    assert.matches("plot_spec.lua:%d+: plot: before is nil", failure(function() local p = plot.ranges() return p end))
    assert.matches("y%[2%] is the string 'a', expected a number", failure(plot.curve, { y = { 1, "a" } }))
    assert.matches("x has 1 numbers, expected 2", failure(plot.curve, { y = { 1, 2 }, x = { 1 } }))
    assert.matches("series%[2%].y is nil", failure(plot.curve, { series = { { y = { 1 } }, {} } }))
    assert.matches("0 series, expected 1 to 6", failure(plot.curve, { series = {} }))
    assert.matches("plot has no option colour", failure(plot.curve, { y = { 1 }, colour = 1 }))
    assert.matches("width is 3, expected an integer from 20 to 10000", failure(plot.curve, { y = { 1 }, width = 3 }))
    assert.matches("plot: y is a tensor F32 %[1%]%[2%]", failure(plot.curve, { y = tensor.from { { 1, 2 } } }))
  end)
end)

describe("ranges", function()
  it("shows how far the largest channel stands out, before and after", function()
    local before, after = {}, {}
    for i = 1, 200 do
      before[i], after[i] = 1, 1
    end
    before[150], after[150] = -40, 3
    local lines = lines_of(plot.ranges(tensor.from(before), after, { title = "site" }), ASCII)
    assert.equal("site", lines[1])
    assert.equal("before: largest 40 (channel 150), 40.0", lines[2]:sub(1, 38))
    local text = plot.ranges(before, after):text { columns = 80, utf8 = false }
    assert.matches("before: largest 40 %(channel 150%), 40%.0 times the median 1\n", text)
    assert.matches("after: largest 3 %(channel 150%), 3%.0 times the median 1\n", text)
    local top = text:match "40 %+( *%*)"
    assert.near(150 / 200 * 76, #top, 2)
  end)

  it("has one panel without an after, and refuses vectors of two lengths", function()
    assert.is_nil(plot.ranges({ 1, 2 }):text(ASCII):find "after")
    assert.matches("after has 1 numbers, expected 2", failure(plot.ranges, { 1, 2 }, { 1 }))
    assert.matches("the median is 0", plot.ranges({ 0, 0, 3 }):text { columns = 80 })
  end)
end)

describe("width of text", function()
  it("counts columns, not bytes", function()
    assert.are.same({ 0, 3, 1, 2, 1, 2, 2 }, { terminal.width "", terminal.width "abc", terminal.width "é", terminal.width "漢",
      terminal.width "e\204\129", terminal.width "\27[31mab\27[0m", terminal.width "\255\128" })
  end)

  it("cuts to columns, with a mark", function()
    local mark = terminal.ellipsis()
    assert.equal("abc", terminal.cut("abc", 3))
    assert.equal(("a"):rep(10 - terminal.width(mark)) .. mark, terminal.cut(("a"):rep(11), 10))
    local wide = terminal.cut(("漢"):rep(10), 10)
    assert.is_true(terminal.width(wide) <= 10 and terminal.width(wide) >= 8)
    assert.equal("abc", terminal.tail("abc", 3))
    assert.equal(mark .. ("b"):rep(8 - terminal.width(mark)), terminal.tail(("a"):rep(9) .. ("b"):rep(8), 8))
    assert.matches("\27%[0m$", terminal.cut("\27[31m" .. ("a"):rep(20) .. "\27[0m", 10))
  end)
end)
