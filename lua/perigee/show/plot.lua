--- Plot: curves, points and bars as text, in braille characters of 2 by 4 dots, or in ASCII where the locale is not UTF-8.
--
--   local plot = require "perigee.show.plot"
--   print(plot.curve { x = { 0, 0.5, 1 }, y = { 20, 31, 24 }, title = "SQNR", xlabel = "alpha", ylabel = "dB" })
--   print(plot.points { series = { { name = "a", y = { 1, 2 } }, { name = "b", y = { 2, 1 } } } })
--   print(plot.bars { y = stats.sites[name].max })
--   print(plot.ranges(before, after, { title = name }))       -- channels before and after smoothing
--
-- A vector is a list of numbers or a tensor F32 [n]; NaN and infinity in it are left out. Fields:
--   y, x     vectors of one length; x defaults to 1, 2, 3 ...
--   series   in place of y and x: a list of { name =, y =, x = }
--   title, xlabel, ylabel
--   width    in columns, 20 to 10000; by default the terminal's, at most 100
--   height   in lines, 2 to 10000, axes excluded; 10
-- print shows a plot; a prompt adds colours. Series differ by dashes and colours, in ASCII by their characters.
local draw = require "perigee.show.draw"
local pgee = require "perigee.ffi"
local options = require "perigee.options"
local tensor = require "perigee.tensor"
local terminal = require "perigee.show.terminal"
local raise = pgee.raise

local plot = {}

local Plot = {}
Plot.__index = Plot

local MIN_WIDTH, DEFAULT_WIDTH, DEFAULT_HEIGHT = 20, 100, 10
local MAX = 10000 -- columns or lines

---- What is plotted ---------------------------------------------------------------------------------------------------

-- A list of numbers, of the given length unless nil.
local function vector(v, what, length)
  if tensor.is(v) and #v.shape == 1 then
    v = v:totable()
  end
  if type(v) ~= "table" or #v == 0 then
    error(("plot: %s is %s, expected a list of numbers or a tensor [n]"):format(what, pgee.describe(v)), 0)
  elseif length and #v ~= length then
    error(("plot: %s has %d numbers, expected %d"):format(what, #v, length), 0)
  end
  for i = 1, #v do
    if type(v[i]) ~= "number" then
      error(("plot: %s[%d] is %s, expected a number"):format(what, i, pgee.describe(v[i])), 0)
    end
  end
  return v
end

local function counted(n)
  local list = {}
  for i = 1, n do
    list[i] = i
  end
  return list
end

local SERIES = { name = true, y = true, x = true }

local function series_of(given)
  local list, all = {}, given.series
  if all == nil then
    all = { { y = given.y, x = given.x } }
  elseif type(all) ~= "table" then
    error(("plot: series is %s, expected a list of { name =, y =, x = }"):format(pgee.describe(all)), 0)
  end
  options.list(all, "plot: series: expected a list of { name =, y =, x = }")
  for i, s in ipairs(all) do
    local prefix = given.series and ("series[%d]."):format(i) or ""
    options.check(s, SERIES, ("plot: series[%d]"):format(i))
    options.text(s.name, "plot: " .. prefix .. "name")
    local y = vector(s.y, prefix .. "y")
    local x = s.x or given.x
    list[i] = { name = s.name, y = y, x = x and vector(x, prefix .. "x", #y) or counted(#y) }
  end
  if #list == 0 or #list > draw.MAX_SERIES then
    error(("plot: %d series, expected 1 to %d"):format(#list, draw.MAX_SERIES), 0)
  end
  return list
end

local KNOWN = { y = true, x = true, series = true, title = true, xlabel = true, ylabel = true, width = true, height = true }

local function width_of(given)
  return options.integer(given.width, MIN_WIDTH, MAX, "plot: width")
end

local function height_of(given)
  return options.integer(given.height, 2, MAX, "plot: height")
end

local function new(kind, given)
  given = options.check(given, KNOWN, "plot")
  for _, key in ipairs { "title", "xlabel", "ylabel" } do
    options.text(given[key], "plot: " .. key)
  end
  return setmetatable({
    width = width_of(given),
    panels = { {
      kind = kind, series = series_of(given), title = given.title, xlabel = given.xlabel, ylabel = given.ylabel,
      height = height_of(given) or DEFAULT_HEIGHT,
    } },
  }, Plot)
end

--- Points joined by lines, in the order given.
function plot.curve(given)
  return (raise(new, "curve", given))
end

--- Points alone.
function plot.points(given)
  return (raise(new, "points", given))
end

--- One bar for each value. If there are more values than dots, neighbours share a bar, as high as the largest of them.
function plot.bars(given)
  return (raise(new, "bars", given))
end

---- Channels ----------------------------------------------------------------------------------------------------------

local function median(sorted)
  local n = #sorted
  return n % 2 == 1 and sorted[(n + 1) / 2] or (sorted[n / 2] + sorted[n / 2 + 1]) / 2
end

-- "before: largest 57.1 (channel 309), 69.7 times the median 0.82"
local function summary(name, values)
  local sorted, largest = {}, 1
  for i, v in ipairs(values) do
    sorted[i] = v
    largest = v > values[largest] and i or largest
  end
  table.sort(sorted)
  local middle = median(sorted)
  return ("%s: largest %.4g (channel %d), %s"):format(name, values[largest], largest, middle > 0 and
    ("%.1f times the median %.4g"):format(values[largest] / middle, middle) or "the median is 0")
end

local function ranges(before, after, given)
  given = options.check(given, { title = true, width = true, height = true, names = true }, "plot")
  options.text(given.title, "plot: title")
  local panels = {}
  local names = given.names or { "before", "after" }
  if type(names) ~= "table" or type(names[1]) ~= "string" or type(names[2]) ~= "string" then
    error(("plot: names is %s, expected two texts"):format(pgee.describe(names)), 0)
  end
  local all = { vector(before, names[1]) }
  all[2] = after ~= nil and vector(after, names[2], #all[1]) or nil
  for i, values in ipairs(all) do
    local copy = {}
    for k, v in ipairs(values) do
      copy[k] = draw.finite(v) and math.abs(v) or 0
    end
    panels[i] = {
      kind = "bars", series = { { y = copy, x = counted(#copy) } }, title = summary(names[i], copy),
      height = height_of(given) or 6, colour = draw.COLOURS[i],
    }
  end
  panels[#panels].xlabel = "channel"
  return setmetatable({ title = given.title, width = width_of(given), panels = panels }, Plot)
end

--- The absolute range of each channel before smoothing and, unless `after` is nil, after it: two vectors of K numbers, K the
-- number of channels. Each has a panel with its own scale, because the plot shows how far the largest channels stand out.
-- given: title, width, height of a panel, names = { "before", "after" }.
function plot.ranges(before, after, given)
  return (raise(ranges, before, after, given))
end

--- The plot as text. style: { columns =, colours =, utf8 = }. Default: the terminal's columns and characters, no colours.
function Plot:text(style)
  style = style or {}
  local columns = style.columns or terminal.columns()
  local chosen = { colours = style.colours, utf8 = style.utf8 }
  if chosen.utf8 == nil then
    chosen.utf8 = terminal.utf8()
  end
  local width = math.max(MIN_WIDTH, math.min(self.width or DEFAULT_WIDTH, columns))
  local parts = { self.title and terminal.cut(self.title, width) }
  for _, panel in ipairs(self.panels) do
    parts[#parts + 1] = draw.panel(panel, width, chosen)
  end
  return table.concat(parts, "\n")
end

--- How a prompt prints the plot.
function Plot:__show(style)
  return self:text(style)
end

function Plot:__tostring()
  return self:text()
end

return plot
