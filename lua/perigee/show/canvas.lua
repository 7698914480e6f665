--- Canvas: draws dots as text, 2 by 4 dots in each braille character or one in each ASCII character.
--
-- A cell is a character of `wide` by `high` dots. It keeps the bits of its dots and the number of the series that drew there
-- last. There are up to six series. Lines differ by their dashes, areas by their shades, and in ASCII all differ by their
-- characters.
local bit = require "bit"

local Canvas = {}
Canvas.__index = Canvas

local MARKS = { "*", "o", "+", "x", "#", "@" }
-- For each series: how many dots of a line are drawn, then left out, in turn.
local DASHES = { { 1, 0 }, { 4, 3 }, { 1, 2 }, { 6, 2 }, { 2, 4 }, { 1, 4 } }
-- For each series: which dots of every 2 by 2 are drawn.
local SHADES = { { 1, 1, 1, 1 }, { 1, 0, 0, 1 }, { 1, 0, 0, 0 }, { 1, 1, 0, 0 }, { 1, 0, 1, 0 }, { 0, 1, 1, 1 } }
local BITS = { [0] = { [0] = 0x40, 0x80 }, { [0] = 0x04, 0x20 }, { [0] = 0x02, 0x10 }, { [0] = 0x01, 0x08 } } -- [up][right]

local canvas = {}

--- A canvas of so many cells. Dots have x from 0 (left) to `right`, and y from 0 (bottom) to `top`. Dots outside are not drawn.
function canvas.new(columns, rows, utf8)
  local wide, high = utf8 and 2 or 1, utf8 and 4 or 1
  local self = { columns = columns, rows = rows, wide = wide, high = high, right = columns * wide - 1, top = rows * high - 1,
    utf8 = utf8, bits = {}, owner = {} }
  for r = 0, rows - 1 do
    self.bits[r], self.owner[r] = {}, {}
  end
  return setmetatable(self, Canvas)
end

--- Draws one dot.
function Canvas:dot(x, y, series)
  if x >= 0 and x <= self.right and y >= 0 and y <= self.top then
    local r, c = math.floor(y / self.high), math.floor(x / self.wide)
    self.bits[r][c] = bit.bor(self.bits[r][c] or 0, BITS[y % self.high][x % self.wide])
    self.owner[r][c] = series
  end
end

--- Draws one dot if it is part of the series' shade.
function Canvas:shade(x, y, series)
  if not self.utf8 or SHADES[series][x % 2 + 2 * (y % 2) + 1] == 1 then
    self:dot(x, y, series)
  end
end

--- Draws Bresenham's line. count: how many dots the dashed line has already. Returns the new count.
function Canvas:line(x0, y0, x1, y1, series, count)
  local on, off = DASHES[series][1], DASHES[series][2]
  local dx, dy = math.abs(x1 - x0), -math.abs(y1 - y0)
  local sx, sy, off_by = x0 < x1 and 1 or -1, y0 < y1 and 1 or -1, dx + dy
  while true do
    if not self.utf8 or count % (on + off) < on then
      self:dot(x0, y0, series)
    end
    if x0 == x1 and y0 == y1 then
      return count
    end
    count = count + 1
    local twice = 2 * off_by
    if twice >= dy then
      off_by, x0 = off_by + dy, x0 + sx
    end
    if twice <= dx then
      off_by, y0 = off_by + dx, y0 + sy
    end
  end
end

--- A row of cells as text; row 0 is the lowest. paint(character, series) returns the character, perhaps coloured.
function Canvas:row(r, paint)
  local cells = {}
  for c = 0, self.columns - 1 do
    local bits, series = self.bits[r][c], self.owner[r][c]
    if not bits then
      cells[c + 1] = " "
    elseif self.utf8 then
      cells[c + 1] = paint(string.char(0xE2, 0xA0 + bit.rshift(bits, 6), 0x80 + bit.band(bits, 63)), series)
    else
      cells[c + 1] = paint(MARKS[series], series)
    end
  end
  return (table.concat(cells):gsub(" +$", ""))
end

return canvas
