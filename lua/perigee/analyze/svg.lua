--- Svg: plots of an analysis as SVG. Colours are CSS variables, which the page that holds the plots defines for light and dark.
local escape = require("perigee.show.svg").escape

local svg = {}

local WIDTH, HEIGHT = 720, 420
local LEFT, RIGHT, TOP, BOTTOM = 64, 150, 16, 48

-- A function from a value of a logarithmic axis to its place, and the powers of ten in it.
local function axis(low, high, from, to)
  local a, b = math.log10(low), math.log10(high)
  local ticks = {}
  for power = math.ceil(a - 1e-9), math.floor(b + 1e-9) do
    ticks[#ticks + 1] = power
  end
  return function(value)
    return from + (math.log10(value) - a) / (b - a) * (to - from)
  end, ticks
end

local function line(x0, y0, x1, y1, class)
  return ('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>'):format(x0, y0, x1, y1, class)
end

local function words(x, y, text, class, anchor)
  return ('<text x="%.1f" y="%.1f" class="%s" text-anchor="%s">%s</text>'):format(x, y, class, anchor or "start",
    escape(text))
end

-- "100", "10k", "1M" of a power of ten.
local function power_of_ten(power)
  local names = { [0] = "", "k", "M", "G" }
  local group = math.max(0, math.min(3, math.floor(power / 3)))
  return power < 0 and ("%g"):format(10 ^ power) or ("%d%s"):format(10 ^ (power - 3 * group), names[group])
end

-- The frame: grid lines with labels, and the names of the axes.
local function frame(x, x_ticks, y, y_ticks, x_name, y_name)
  local parts = {}
  for _, power in ipairs(x_ticks) do
    parts[#parts + 1] = line(x(10 ^ power), TOP, x(10 ^ power), HEIGHT - BOTTOM, "grid")
    parts[#parts + 1] = words(x(10 ^ power), HEIGHT - BOTTOM + 18, power_of_ten(power), "tick", "middle")
  end
  for _, power in ipairs(y_ticks) do
    parts[#parts + 1] = line(LEFT, y(10 ^ power), WIDTH - RIGHT, y(10 ^ power), "grid")
    parts[#parts + 1] = words(LEFT - 8, y(10 ^ power) + 4, power_of_ten(power), "tick", "end")
  end
  parts[#parts + 1] = words((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, x_name, "name", "middle")
  parts[#parts + 1] = ('<text transform="translate(16 %.1f) rotate(-90)" class="name" text-anchor="middle">%s</text>'):format(
    (TOP + HEIGHT - BOTTOM) / 2, escape(y_name))
  return parts
end

local function picture(title, parts)
  local name = escape(title)
  return ('<svg viewBox="0 0 %d %d" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">\n<title>%s</title>\n%s\n'
    .. "</svg>"):format(WIDTH, HEIGHT, name, name, table.concat(parts, "\n"))
end

local TYPES = { { "int8", "INT8" }, { "bf16", "BF16" }, { "f32", "FP32" } }
local LEVELS = { { "l2", "L2" }, { "l3", "L3" }, { "memory", "memory" } }

--- The roofline of a machine with points. points: list of { name =, type =, intensity =, operations_per_second = }.
function svg.roofline(m, points)
  local top, low, high, bottom = 0, 1, 1000, math.huge
  for _, peak in pairs(m.peak) do
    top, bottom = math.max(top, peak), math.min(bottom, peak)
  end
  for _, p in ipairs(points) do
    low, high = math.min(low, p.intensity / 2), math.max(high, p.intensity * 2)
    bottom = math.min(bottom, p.operations_per_second)
  end
  bottom = bottom / 1e9 / 20
  local x, x_ticks = axis(low, high, LEFT, WIDTH - RIGHT)
  local y, y_ticks = axis(bottom, top / 1e9 * 1.6, HEIGHT - BOTTOM, TOP)
  local parts = frame(x, x_ticks, y, y_ticks, "operations per byte", "GOPS")
  for _, type in ipairs(TYPES) do
    local peak = m.peak[type[1]]
    if peak then
      local from = math.max(low, peak / (m.bandwidth.l2 or m.bandwidth.memory))
      parts[#parts + 1] = line(x(math.min(from, high)), y(peak / 1e9), WIDTH - RIGHT, y(peak / 1e9), "roof " .. type[1])
      parts[#parts + 1] = words(WIDTH - RIGHT + 6, y(peak / 1e9) + 4, ("%s %.0f GOPS"):format(type[2], peak / 1e9), "tick")
    end
  end
  for _, level in ipairs(LEVELS) do
    local bandwidth = m.bandwidth[level[1]]
    if bandwidth then
      local from, to = math.max(low, bottom * 1e9 / bandwidth), math.min(high, top / bandwidth)
      parts[#parts + 1] = line(x(from), y(from * bandwidth / 1e9), x(to), y(to * bandwidth / 1e9), "roof level")
      parts[#parts + 1] = words(x(from) + 12, y(from * bandwidth / 1e9) + 4, ("%s %.0f GB/s"):format(level[2], bandwidth / 1e9),
        "tick")
    end
  end
  for _, p in ipairs(points) do
    parts[#parts + 1] = ('<circle cx="%.1f" cy="%.1f" r="5" class="point %s"><title>%s</title></circle>'):format(x(p.intensity),
      y(p.operations_per_second / 1e9), p.type, escape(("%s, %s: %.0f GOPS at %.0f operations per byte"):format(p.name,
        p.type == "int8" and "INT8" or "FP32", p.operations_per_second / 1e9, p.intensity)))
  end
  return picture("Roofline of " .. m.name, parts)
end

--- Instances against latency: texts a second over the milliseconds of a run. modes: list of { type =, rows = predict.instances'
-- }.
function svg.instances(name, modes)
  local low, high, least, most = math.huge, 0, math.huge, 0
  for _, mode in ipairs(modes) do
    for _, row in ipairs(mode.rows) do
      low, high = math.min(low, row.seconds * 1e3), math.max(high, row.seconds * 1e3)
      least, most = math.min(least, row.texts_per_second), math.max(most, row.texts_per_second)
    end
  end
  local x, x_ticks = axis(low / 1.5, high * 1.5, LEFT, WIDTH - RIGHT)
  local y, y_ticks = axis(least / 1.5, most * 1.5, HEIGHT - BOTTOM, TOP)
  local parts = frame(x, x_ticks, y, y_ticks, "milliseconds a run", "texts a second")
  for _, mode in ipairs(modes) do
    local path, last = {}, mode.rows[#mode.rows]
    for i, row in ipairs(mode.rows) do
      local at_x, at_y = x(row.seconds * 1e3), y(row.texts_per_second)
      path[i] = ("%.1f,%.1f"):format(at_x, at_y)
      parts[#parts + 1] = ('<circle cx="%.1f" cy="%.1f" r="4" class="point %s"><title>%s</title></circle>'):format(at_x, at_y,
        mode.type, ("%d instances of %d threads: %.3g ms, %.0f texts a second"):format(row.instances, row.threads,
          row.seconds * 1e3, row.texts_per_second))
    end
    parts[#parts + 1] = ('<polyline points="%s" class="roof %s"/>'):format(table.concat(path, " "), mode.type)
    parts[#parts + 1] = words(x(last.seconds * 1e3) + 8, y(last.texts_per_second) + 4, mode.name, "tick")
  end
  return picture("Instances against latency on " .. name, parts)
end

return svg
