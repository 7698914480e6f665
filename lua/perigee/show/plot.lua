--- Plot: curves, points and bars as text, in braille characters of 2 by 4 dots, or in ASCII where the locale is not UTF-8.
--
--   local plot = require "perigee.show.plot"
--   print(plot.curve { x = { 0, 0.5, 1 }, y = { 20, 31, 24 }, title = "SQNR", xlabel = "alpha", ylabel = "dB" })
--   print(plot.points { series = { { name = "a", y = { 1, 2 } }, { name = "b", y = { 2, 1 } } } })
--   print(plot.bars { y = stats.sites[name].max })
--   print(plot.ranges(before, after, { title = name }))       -- channels before and after smoothing
--
-- A vector is a list of numbers or a tensor F32 [n]; NaN and infinity in it are left out. Fields of what is plotted:
--   y, x     vectors of one length; x defaults to 1, 2, 3 ...
--   series   several of them instead: a list of { name =, y =, x = }
--   title, xlabel, ylabel
--   width    in columns, 20 to 10000; by default the terminal's, at most 100
--   height   in lines, 2 to 10000, axes excluded; 10
-- A plot prints itself; a prompt adds colours. Series are told apart by dashes, by colours, or by letters in ASCII.
local canvas = require "perigee.show.canvas"
local pgee = require "perigee.ffi"
local options = require "perigee.options"
local tensor = require "perigee.tensor"
local terminal = require "perigee.show.terminal"
local raise = pgee.raise

local plot = {}

local Plot = {}
Plot.__index = Plot

local WIDEST, NARROWEST, HEIGHT = 100, 20, 10
local MOST = 10000 -- columns or lines
local COLOURS = { "cyan", "yellow", "magenta", "green", "red", "blue" } -- one for each series that a canvas can tell apart

---- What is plotted ---------------------------------------------------------------------------------------------------

local function finite(v)
  return v == v and v ~= math.huge and v ~= -math.huge
end

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
  if #list == 0 or #list > #COLOURS then
    error(("plot: %d series, expected 1 to %d"):format(#list, #COLOURS), 0)
  end
  return list
end

local KNOWN = { y = true, x = true, series = true, title = true, xlabel = true, ylabel = true, width = true, height = true }

local function width_of(given)
  return options.integer(given.width, NARROWEST, MOST, "plot: width")
end

local function height_of(given)
  return options.integer(given.height, 2, MOST, "plot: height")
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
      height = height_of(given) or HEIGHT,
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

--- One bar for each value; where there are more values than dots, one for the largest of several neighbours.
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
      copy[k] = finite(v) and math.abs(v) or 0
    end
    panels[i] = {
      kind = "bars", series = { { y = copy, x = counted(#copy) } }, title = summary(names[i], copy),
      height = height_of(given) or 6, colour = COLOURS[i],
    }
  end
  panels[#panels].xlabel = "channel"
  return setmetatable({ title = given.title, width = width_of(given), panels = panels }, Plot)
end

--- The absolute range of each channel before smoothing and, unless `after` is nil, after it: two vectors of K numbers, one panel
-- each with its own scale, since what matters is how far the largest channels stand out. given: title, width, height of a panel,
-- names = { "before", "after" }.
function plot.ranges(before, after, given)
  return (raise(ranges, before, after, given))
end

---- Axes --------------------------------------------------------------------------------------------------------------

-- The step of 1, 2 or 5 times a power of ten that divides a span into at most `count` parts.
local function step_of(span, count)
  local power = 10 ^ math.floor(math.log10(span / count))
  for _, factor in ipairs { 1, 2, 5 } do
    if span / (factor * power) <= count + 1e-9 then
      return factor * power
    end
  end
  return 10 * power
end

-- Multiples of the step from low to high.
local function ticks_of(low, high, step)
  local list = {}
  for i = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) do
    list[#list + 1] = i * step
  end
  return list
end

local function label(value, step)
  if math.abs(value) < step / 2 then
    return "0"
  elseif math.abs(value) >= 1e6 or step < 1e-4 then
    return ("%.3g"):format(value)
  end
  return ("%%.%df"):format(math.max(0, math.ceil(-math.log10(step) - 1e-9))):format(value)
end

-- The least and largest finite value of one coordinate over all series; 0 to 1 if there is none.
local function extent(series, key)
  local low, high
  for _, s in ipairs(series) do
    for i, v in ipairs(s[key]) do
      if finite(v) and finite(s.y[i]) then
        low, high = math.min(low or v, v), math.max(high or v, v)
      end
    end
  end
  return low or 0, high or 1
end

-- { low, high, step }: a range for about `count` ticks, never empty.
local function axis(low, high, count)
  if high - low <= 1e-12 * math.max(math.abs(low), math.abs(high)) then
    local around = low == 0 and 1 or math.abs(low) / 2
    low, high = low - around, high + around
  end
  return { low = low, high = high, step = step_of(high - low, count) }
end

---- Drawing -----------------------------------------------------------------------------------------------------------

local draw = {}

local function round(v)
  return math.floor(v + 0.5)
end

-- Where values of an axis lie among dots 0 to last.
local function place(axis_of, last)
  return function(v)
    return round((v - axis_of.low) / (axis_of.high - axis_of.low) * last)
  end
end

-- 2 by 2 dots are seen better than one.
function draw.points(area, panel, at_x, at_y)
  local side = area.wide
  for n, s in ipairs(panel.series) do
    for i, y in ipairs(s.y) do
      if finite(y) and finite(s.x[i]) then
        local x, up = math.min(at_x(s.x[i]), area.right - side + 1), math.min(at_y(y), area.top - side + 1)
        for d = 0, side * side - 1 do
          area:shade(x + d % side, up + math.floor(d / side), n)
        end
      end
    end
  end
end

function draw.curve(area, panel, at_x, at_y)
  for n, s in ipairs(panel.series) do
    local last_x, last_y
    local count = 0
    for i, y in ipairs(s.y) do
      if finite(y) and finite(s.x[i]) then
        local x, up = at_x(s.x[i]), at_y(y)
        count = area:line(last_x or x, last_y or up, x, up, n, count)
        last_x, last_y = x, up
      else
        last_x = nil
      end
    end
  end
end

-- Bars have no x: value i of n stands over its share of the dots. Several series share one value's place.
function draw.bars(area, panel, _, at_y)
  local dots, series = area.right + 1, #panel.series
  for n, s in ipairs(panel.series) do
    local slots = #s.y * series
    local zero = math.max(0, math.min(area.top, at_y(0)))
    for x = 0, dots - 1 do
      local first, last = math.floor(x * slots / dots), math.floor((x + 1) * slots / dots - 1e-9)
      local gap = dots / slots >= 4 and math.floor((x + 1) * slots / dots) > first -- between bars that are wide enough
      for slot = first, math.max(first, last) do
        local v = s.y[math.floor(slot / series) + 1]
        if slot % series == n - 1 and finite(v) and not gap and v ~= 0 then
          local up = at_y(v)
          for y = math.min(zero, up), math.max(zero, up) do
            area:shade(x, y, n)
          end
        end
      end
    end
  end
end

-- Cells of the line of ticks below the canvas, and of their labels below that.
local function bottom(panel, x_axis, columns, at, style)
  local line, taken = {}, -1
  for c = 1, columns do
    line[c] = style.utf8 and "─" or "-"
  end
  local text = ""
  for _, v in ipairs(ticks_of(x_axis.low, x_axis.high, x_axis.step)) do
    local c, word = math.floor(at(v)), label(v, x_axis.step)
    local from = math.max(0, math.min(c - math.floor(#word / 2), columns - #word))
    line[c + 1] = style.utf8 and "┬" or "+"
    if from > taken then
      text = text .. (" "):rep(from - #text) .. word
      taken = from + #word
    end
  end
  local x_label = panel.xlabel
  if x_label and #text + 2 + terminal.width(x_label) <= columns then
    text = text .. (" "):rep(columns - #text - terminal.width(x_label)) .. x_label
    x_label = nil
  end
  return table.concat(line), text, x_label
end

local function legend(panel, style, paint)
  local words = {}
  for n, s in ipairs(panel.series) do
    local area = canvas.new(style.utf8 and 4 or 1, 1, style.utf8)
    if panel.kind == "curve" then
      area:line(0, 0, area.right, 0, n, 0)
    else
      for x = 0, area.right do
        area:shade(x, 0, n)
        area:shade(x, 1, n)
      end
    end
    words[n] = area:row(0, paint) .. " " .. (s.name or "series " .. n)
  end
  return words
end

-- Words side by side as long as they fit, then on a new line.
local function fill(words, indent, width)
  local lines = {}
  for _, word in ipairs(words) do
    local last = lines[#lines]
    if last and terminal.width(last) + 3 + terminal.width(word) <= width then
      lines[#lines] = last .. "   " .. word
    else
      lines[#lines + 1] = terminal.cut((" "):rep(indent) .. word, width)
    end
  end
  return lines
end

local function axes(panel, width)
  local bars = panel.kind == "bars"
  local low, high = extent(panel.series, "y")
  if bars then
    low, high = math.min(low, 0), math.max(high, 0)
  end
  local y_axis = axis(low, high, math.max(2, math.floor(panel.height / 2)))
  local left, right = extent(panel.series, "x")
  local x_axis = axis(left, right, math.max(2, math.floor(width / 12)))
  if bars then
    x_axis.low, x_axis.high = left - 0.5, right + 0.5
    x_axis.step = math.max(1, x_axis.step)
  end
  return x_axis, y_axis
end

local function render(panel, width, style)
  local x_axis, y_axis = axes(panel, width)
  local rows, labels, margin = panel.height, {}, 0
  for i, v in ipairs(ticks_of(y_axis.low, y_axis.high, y_axis.step)) do
    labels[i] = { text = label(v, y_axis.step), value = v }
    margin = math.max(margin, #labels[i].text)
  end
  local columns = width - margin - 2
  local area = canvas.new(columns, rows, style.utf8)
  local at_y = place(y_axis, area.top)
  draw[panel.kind](area, panel, place(x_axis, area.right), at_y)
  local words = {} -- by the row of cells
  for _, tick in ipairs(labels) do
    words[math.floor(at_y(tick.value) / area.high)] = tick.text
  end

  local function paint(text, n)
    return terminal.paint(text, panel.colour or COLOURS[n], style.colours)
  end
  local lines = {}
  local function add(text)
    lines[#lines + 1] = text
  end
  if panel.title then
    add(terminal.cut(panel.title, width))
  end
  if panel.ylabel then
    add(terminal.cut((" "):rep(math.max(0, margin + 1 - terminal.width(panel.ylabel))) .. panel.ylabel, width))
  end
  local plain, ticked, corner = style.utf8 and "│" or "|", style.utf8 and "┤" or "+", style.utf8 and "└" or "+"
  for r = rows - 1, 0, -1 do
    local word = words[r] or ""
    add((" "):rep(margin - #word) .. word .. " " .. (words[r] and ticked or plain) .. area:row(r, paint))
  end
  local line, text, x_label = bottom(panel, x_axis, columns, function(v)
    return math.max(0, math.min(columns - 1, (v - x_axis.low) / (x_axis.high - x_axis.low) * (columns - 1) + 0.5))
  end, style)
  add((" "):rep(margin + 1) .. corner .. line)
  add((" "):rep(margin + 2) .. text)
  if x_label then
    add(terminal.cut((" "):rep(margin + 2) .. x_label, width))
  end
  if #panel.series > 1 or panel.series[1].name then
    for _, words_line in ipairs(fill(legend(panel, style, paint), margin + 2, width)) do
      add(words_line)
    end
  end
  return table.concat(lines, "\n")
end

--- The plot as text. style: columns that there are, colours, utf8; each is the terminal's by default, but colours are off.
function Plot:text(style)
  style = style or {}
  local columns = style.columns or terminal.columns()
  local chosen = { colours = style.colours, utf8 = style.utf8 }
  if chosen.utf8 == nil then
    chosen.utf8 = terminal.utf8()
  end
  local width = math.max(NARROWEST, math.min(self.width or WIDEST, columns))
  local parts = { self.title and terminal.cut(self.title, width) }
  for _, panel in ipairs(self.panels) do
    parts[#parts + 1] = render(panel, width, chosen)
  end
  return table.concat(parts, "\n")
end

--- How a prompt prints it.
function Plot:__show(style)
  return self:text(style)
end

function Plot:__tostring()
  return self:text()
end

return plot
