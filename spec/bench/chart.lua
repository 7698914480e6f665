--- Draws the chart of README.md: the time of other libraries' INT8 divided by Perigee's. The first table of kernels/FIGURES.md
-- has the times.
--
--   luajit spec/bench/chart.lua            writes kernels/chart.svg
--
-- spec/readme_spec.lua checks that the file is the chart of the table as it stands.
local chart = {}

local TABLE, FILE = "kernels/FIGURES.md", "kernels/chart.svg"

-- The libraries by their columns in the table, and the class of each bar in the style.
local LIBRARIES = {
  { "torchao", "a" }, { "ONNX Runtime", "b" }, { "CTranslate2", "c" }, { "OpenVINO", "d" }, { "static", "own", "Perigee" },
}

-- Pixels.
local WIDTH, LEFT, RIGHT, TOP, BAR, GAP = 860, 160, 60, 64, 10, 10

local STYLE = [[
  text { font: 13px system-ui, sans-serif; fill: #24292f; }
  .small { font-size: 10px; } .head { font-weight: 600; font-size: 15px; } .grid { stroke: #d0d7de; }
  .a { fill: #b6a5d8; } .b { fill: #8fb8de; } .c { fill: #8cc5b5; } .d { fill: #e3b778; } .own { fill: #cf4a2c; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .grid { stroke: #3d444d; }
    .a { fill: #8d7bb8; } .b { fill: #5b8cba; } .c { fill: #55998a; } .d { fill: #b98a45; } .own { fill: #f0704f; }
  }
]]

-- The cells of a line of a Markdown table; nil for another line.
local function cells(line)
  local list = {}
  for cell in (line:match "^|(.*)|%s*$" or ""):gmatch "[^|]+" do
    list[#list + 1] = cell:match "^%s*(.-)%s*$"
  end
  return #list > 0 and list or nil
end

--- The rows of the table: { name = "MiniLM-L6, 1 x 32", ["ONNX Runtime"] = milliseconds, ... }.
function chart.read(path)
  local heads, rows = nil, {}
  for line in io.lines(path or TABLE) do
    local row = cells(line)
    if not heads then
      heads = row and row[1] == "texts x tokens" and row or nil
    elseif not row then
      break
    elseif not row[1]:find "^%-" then
      local entry = { name = row[1] }
      for i = 2, #row do
        entry[heads[i]] = tonumber(row[i])
      end
      rows[#rows + 1] = entry
    end
  end
  assert(#rows > 0, "kernels/FIGURES.md has no table that begins with 'texts x tokens'")
  return rows
end

local function legend(add)
  local x = LEFT
  for _, library in ipairs(LIBRARIES) do
    add('<rect class="%s" x="%d" y="34" width="12" height="12"/><text x="%d" y="45">%s</text>', library[2], x, x + 17,
      library[3] or library[1])
    x = x + 128
  end
end

--- The chart as SVG.
function chart.draw(rows)
  local lines, largest = {}, 0
  local function add(...)
    lines[#lines + 1] = string.format(...)
  end
  for _, row in ipairs(rows) do
    for _, library in ipairs(LIBRARIES) do
      largest = math.max(largest, row[library[1]] / row.static)
    end
  end
  local group = #LIBRARIES * BAR + GAP
  local height, unit = TOP + #rows * group + 28, (WIDTH - LEFT - RIGHT) / largest
  add('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"', WIDTH, height, WIDTH,
    height)
  add('  aria-label="Time of INT8 encoders, Perigee = 1">')
  add("<style>\n%s</style>", STYLE)
  add('<text class="head" x="%d" y="20">Time of an INT8 encoder, Perigee = 1 (shorter is faster)</text>', LEFT)
  legend(add)
  for tick = 1, math.floor(largest) do
    local x = LEFT + tick * unit
    add('<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>', x, x, TOP - 8, height - 26)
    add('<text class="small" x="%.1f" y="%d" text-anchor="middle">%d</text>', x, height - 12, tick)
  end
  for i, row in ipairs(rows) do
    local y = TOP + (i - 1) * group
    add('<text x="%d" y="%.1f" text-anchor="end">%s</text>', LEFT - 10, y + #LIBRARIES * BAR / 2 + 4, row.name)
    for j, library in ipairs(LIBRARIES) do
      local ratio, top = row[library[1]] / row.static, y + (j - 1) * BAR
      add('<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>', library[2], LEFT, top, ratio * unit, BAR - 2)
      add('<text class="small" x="%.1f" y="%d">%.2f</text>', LEFT + ratio * unit + 5, top + 9, ratio)
    end
  end
  add "</svg>"
  return table.concat(lines, "\n") .. "\n"
end

if arg and arg[0] and arg[0]:find "chart%.lua$" then
  local file = assert(io.open(FILE, "w"))
  file:write(chart.draw(chart.read()))
  file:close()
end

return chart
