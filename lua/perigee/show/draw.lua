--- Draw: one panel of a plot as text: the canvas, its axes with ticks and labels, and the legend.
local canvas = require "perigee.show.canvas"
local terminal = require "perigee.show.terminal"

local draw = {}

--- The colours of series, in their order.
draw.COLOURS = { "cyan", "yellow", "magenta", "green", "red", "blue" }
--- How many series a canvas can tell apart.
draw.MAX_SERIES = #draw.COLOURS

function draw.finite(v)
  return v == v and v ~= math.huge and v ~= -math.huge
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

-- The smallest and the largest finite value of one coordinate over all series; 0 and 1 if there is none.
local function extent(series, key)
  local low, high
  for _, s in ipairs(series) do
    for i, v in ipairs(s[key]) do
      if draw.finite(v) and draw.finite(s.y[i]) then
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

local shapes = {} -- by kind of plot: draws the series of a panel

local function round(v)
  return math.floor(v + 0.5)
end

-- A function from a value of an axis to its dot, 0 to last.
local function place(axis_of, last)
  return function(v)
    return round((v - axis_of.low) / (axis_of.high - axis_of.low) * last)
  end
end

-- A point is 2 by 2 dots, because one dot is hard to see.
function shapes.points(area, panel, at_x, at_y)
  local side = area.wide
  for n, s in ipairs(panel.series) do
    for i, y in ipairs(s.y) do
      if draw.finite(y) and draw.finite(s.x[i]) then
        local x, up = math.min(at_x(s.x[i]), area.right - side + 1), math.min(at_y(y), area.top - side + 1)
        for d = 0, side * side - 1 do
          area:shade(x + d % side, up + math.floor(d / side), n)
        end
      end
    end
  end
end

function shapes.curve(area, panel, at_x, at_y)
  for n, s in ipairs(panel.series) do
    local last_x, last_y
    local count = 0
    for i, y in ipairs(s.y) do
      if draw.finite(y) and draw.finite(s.x[i]) then
        local x, up = at_x(s.x[i]), at_y(y)
        count = area:line(last_x or x, last_y or up, x, up, n, count)
        last_x, last_y = x, up
      else
        last_x = nil
      end
    end
  end
end

-- Bars ignore x: value i of n gets an n-th of the dots. With several series, the bars of one value stand side by side there.
function shapes.bars(area, panel, _, at_y)
  local dots, series = area.right + 1, #panel.series
  for n, s in ipairs(panel.series) do
    local slots = #s.y * series
    local zero = math.max(0, math.min(area.top, at_y(0)))
    for x = 0, dots - 1 do
      local first, last = math.floor(x * slots / dots), math.floor((x + 1) * slots / dots - 1e-9)
      local gap = dots / slots >= 4 and math.floor((x + 1) * slots / dots) > first -- between bars that are wide enough
      for slot = first, math.max(first, last) do
        local v = s.y[math.floor(slot / series) + 1]
        if slot % series == n - 1 and draw.finite(v) and not gap and v ~= 0 then
          local up = at_y(v)
          for y = math.min(zero, up), math.max(zero, up) do
            area:shade(x, y, n)
          end
        end
      end
    end
  end
end

-- The line of ticks below the canvas, the line of their labels, and the name of the axis if that line has no room for it.
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

-- The words in lines: a word that does not fit begins a new line.
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

--- A panel as text. panel: what show/plot.lua makes; width: in columns; style: { utf8 =, colours = }.
function draw.panel(panel, width, style)
  local x_axis, y_axis = axes(panel, width)
  local rows, labels, margin = panel.height, {}, 0
  for i, v in ipairs(ticks_of(y_axis.low, y_axis.high, y_axis.step)) do
    labels[i] = { text = label(v, y_axis.step), value = v }
    margin = math.max(margin, #labels[i].text)
  end
  local columns = width - margin - 2
  local area = canvas.new(columns, rows, style.utf8)
  local at_y = place(y_axis, area.top)
  shapes[panel.kind](area, panel, place(x_axis, area.right), at_y)
  local words = {} -- by the row of cells
  for _, tick in ipairs(labels) do
    words[math.floor(at_y(tick.value) / area.high)] = tick.text
  end

  local function paint(text, n)
    return terminal.paint(text, panel.colour or draw.COLOURS[n], style.colours)
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

return draw
