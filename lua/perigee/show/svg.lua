--- Svg: plots as inline SVG for reports in HTML. A plot has a title and a description for screen readers. Its classes take their
-- colours from the page.
--
--   svg.lines { title = "SQNR over alpha", description = "...", x = { 0, 0.5, 1 }, xlabel = "alpha", ylabel = "dB",
--     series = { { name = "output", y = { 16, 21, 19 } } } }
--   svg.bars { title =, description =, labels = { "layer 0", ... }, unit = "dB",
--     series = { { name = "before", values = { 3, ... } } } }
local svg = {}

local WIDTH, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 720, 56, 16, 12, 44, 300

--- The text with HTML's own characters escaped.
function svg.escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

--- About `count` round values that cover a range, for the marks of a scale: multiples of 1, 2 or 5 times a power of ten.
function svg.ticks(low, high, count)
  if high <= low then
    high = low + 1
  end
  local rough = (high - low) / count
  local power = 10 ^ math.floor(math.log10(rough))
  local step = power
  for _, factor in ipairs { 1, 2, 5, 10 } do
    step = factor * power
    if step >= rough * 0.999 then
      break
    end
  end
  local list = {}
  for i = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) do
    list[#list + 1] = i * step
  end
  return list
end

-- A function from a value to its place between two places.
local function scale(low, high, from, to)
  return function(value) return from + (value - low) / (high - low) * (to - from) end
end

local function line(x1, y1, x2, y2)
  return ('<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>'):format(x1, y1, x2, y2)
end

local function words(x, y, anchor, text, class)
  return ('<text class="%s" x="%.1f" y="%.1f" text-anchor="%s">%s</text>'):format(class or "mark", x, y, anchor, svg.escape(text))
end

local ids = 0

-- The picture of parts, whose title and description a screen reader says.
local function picture(given, height, parts)
  ids = ids + 1
  local head = ('<svg role="img" viewBox="0 0 %d %d" aria-labelledby="t%d d%d">'):format(WIDTH, height, ids, ids)
  local said = ('<title id="t%d">%s</title><desc id="d%d">%s</desc>'):format(ids, svg.escape(given.title), ids,
    svg.escape(given.description or ""))
  return ('<div class="plot" tabindex="0">%s%s\n%s\n</svg></div>'):format(head, said, table.concat(parts, "\n"))
end

-- The least and the greatest of all values.
local function range_of(lists)
  local low, high = math.huge, -math.huge
  for _, list in ipairs(lists) do
    for _, value in pairs(list) do
      low, high = math.min(low, value), math.max(high, value)
    end
  end
  return low, high
end

--- Curves over common x. Series have up to six colours, and dashes that differ.
function svg.lines(given)
  local all, parts = {}, {}
  for i, series in ipairs(given.series) do
    all[i] = series.y
  end
  local low, high = range_of(all)
  local xs, ys = svg.ticks(given.x[1], given.x[#given.x], 6), svg.ticks(low, high, 6)
  local x = scale(given.x[1], given.x[#given.x], LEFT, WIDTH - RIGHT)
  local y = scale(ys[1], ys[#ys], HEIGHT - BOTTOM, TOP)
  for _, value in ipairs(ys) do
    parts[#parts + 1] = line(LEFT, y(value), WIDTH - RIGHT, y(value))
    parts[#parts + 1] = words(LEFT - 6, y(value) + 4, "end", ("%.6g"):format(value))
  end
  for _, value in ipairs(xs) do
    if value >= given.x[1] - 1e-9 and value <= given.x[#given.x] + 1e-9 then
      parts[#parts + 1] = words(x(value), HEIGHT - BOTTOM + 16, "middle", ("%.6g"):format(value))
    end
  end
  parts[#parts + 1] = words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, "middle", given.xlabel)
  parts[#parts + 1] = words(6, TOP + 2, "start", given.ylabel)
  for i, series in ipairs(given.series) do
    local points = {}
    for k, value in pairs(given.x) do
      if series.y[k] then
        points[#points + 1] = ("%.1f,%.1f"):format(x(value), y(series.y[k]))
      end
    end
    parts[#parts + 1] = ('<polyline class="line s%d" points="%s"><title>%s</title></polyline>'):format(i,
      table.concat(points, " "), svg.escape(series.name))
  end
  return picture(given, HEIGHT, parts)
end

local ROW, NAMES = 16, 220 -- height of a bar's row; width of the labels

--- Horizontal bars from zero, one row for each label, the bars of several series below each other.
function svg.bars(given)
  local all, parts, count = {}, {}, #given.series
  for i, series in ipairs(given.series) do
    all[i] = series.values
  end
  local _, high = range_of(all)
  local xs = svg.ticks(0, math.max(high, 0), 6)
  local x, height = scale(0, xs[#xs], NAMES, WIDTH - RIGHT), TOP + #given.labels * ROW * count + 30
  for _, value in ipairs(xs) do
    parts[#parts + 1] = line(x(value), TOP, x(value), height - 26)
    parts[#parts + 1] = words(x(value), height - 10, "middle", ("%.6g"):format(value))
  end
  parts[#parts + 1] = words(NAMES - 6, height - 10, "end", given.unit)
  for r, label in ipairs(given.labels) do
    local top = TOP + (r - 1) * ROW * count
    parts[#parts + 1] = words(NAMES - 6, top + ROW * count / 2 + 4, "end", #label > 34 and "…" .. label:sub(-33) or label)
    for i, series in ipairs(given.series) do
      local value = series.values[r]
      if value then
        parts[#parts + 1] = ('<rect class="bar s%d" x="%d" y="%.1f" width="%.2f" height="%d"><title>%s</title></rect>'):format(i,
          NAMES, top + (i - 1) * ROW + 2, x(math.max(value, 0)) - NAMES, ROW - 4,
          svg.escape(("%s, %s: %.4g %s"):format(label, series.name, value, given.unit)))
      end
    end
  end
  return picture(given, height, parts)
end

return svg
