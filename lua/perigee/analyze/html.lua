--- Html: an analysis (perigee.analyze) as one HTML page without scripts, fonts or links to other files.
local report = require "perigee.analyze.report"
local escape = require("perigee.show.svg").escape
local svg = require "perigee.analyze.svg"

local html = {}

local STYLE = [[
:root { color-scheme: light dark; --text: #1c1e21; --back: #ffffff; --soft: #5c636b; --grid: #e2e5e9; --int8: #0b6bcb;
  --f32: #c2410c; --bf16: #15803d; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --back: #15181c; --soft: #a0a7b0; --grid: #2d333b; --int8: #6cb2ff; --f32: #ff9f5a;
    --bf16: #67d68c; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 68rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } p { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--grid); text-align: right; white-space: nowrap; }
th.left, td.left { text-align: left; } th { color: var(--soft); font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--text); font: 12px system-ui, sans-serif; }
svg .tick { fill: var(--soft); }
.grid { stroke: var(--grid); } .roof { fill: none; stroke-width: 2; } .level { stroke: var(--soft); stroke-dasharray: 5 4; }
.roof.int8 { stroke: var(--int8); } .roof.f32 { stroke: var(--f32); } .roof.bf16 { stroke: var(--bf16); }
.point { stroke: var(--back); stroke-width: 1.5; } .point.int8 { fill: var(--int8); } .point.f32 { fill: var(--f32); }
.point.dynamic { fill: var(--bf16); } .roof.dynamic { stroke: var(--bf16); }
]]

-- Rows of cells as a table. A column is aligned left if its heading ends in a space.
local function table_of(rows)
  local lines = { '<div class="wide"><table>' }
  for r, row in ipairs(rows) do
    local cells, tag = {}, r == 1 and "th" or "td"
    for i, cell in ipairs(row) do
      local class = rows[1][i]:sub(-1) == " " and ' class="left"' or ""
      cells[i] = ("<%s%s>%s</%s>"):format(tag, class, escape((cell:gsub("%s+$", ""))), tag)
    end
    lines[#lines + 1] = "<tr>" .. table.concat(cells) .. "</tr>"
  end
  lines[#lines + 1] = "</table></div>"
  return table.concat(lines, "\n")
end

-- The measured points of FP32 and of static INT8.
local function points_of(r)
  local points = {}
  for _, name in ipairs { "f32", "static" } do
    for _, p in ipairs(r.modes[name] and r.modes[name].points or {}) do
      points[#points + 1] = p
    end
  end
  return points
end

-- The part of the page about another machine.
local function elsewhere(there, add)
  local name, modes = there.machine.name, {}
  add("h2", "Roofline of the linears on " .. name)
  add(nil, svg.roofline(there.machine, {}))
  add(nil, table_of(report.bounds(there.bounds)))
  add("h2", "Predicted on " .. name)
  for _, mode in ipairs(report.MODES) do
    if there.modes[mode] then
      modes[#modes + 1] = {
        type = mode == "static" and "int8" or mode, name = report.NAMES[mode], rows = there.modes[mode].instances,
      }
    end
  end
  add("p", "Processes side by side, each with an equal part of the cores, against the latency of one run.")
  add(nil, svg.instances(name, modes))
  for _, mode in ipairs(report.MODES) do
    if there.modes[mode] then
      add("h2", report.NAMES[mode])
      add(nil, table_of(report.instances(there, mode)))
    end
  end
end

--- The page. r: as for report.text.
function html.page(r)
  local parts = {}
  local function add(tag, text)
    parts[#parts + 1] = tag and ("<%s>%s</%s>"):format(tag, escape(text), tag) or text
  end
  add("h1", "Analysis of " .. r.model)
  add("p", ("%s, %s, ISA %s"):format(report.run(r), r.here.name, r.here.isa))
  add("h2", "Hot spots")
  add(nil, table_of(report.hot_spots(r)))
  add("h2", "Machine")
  add(nil, table_of(report.machines({ r.here, r.there and r.there.machine }, r.isas)))
  add("h2", "Roofline of the linears here")
  add("p", "Points are measured linears: FP32 and static INT8. Lines are the peaks and what the levels of memory deliver.")
  add(nil, svg.roofline(r.here, points_of(r)))
  add(nil, table_of(report.bounds(r.bounds, r.modes.static and r.modes.static.points)))
  add("h2", "Ceilings of the speed-up over FP32 (Amdahl's law)")
  add(nil, table_of(report.ceilings(r)))
  if r.there then
    elsewhere(r.there, add)
  end
  if r.checks then
    add("h2", "Predictions of other ISAs, checked here")
    add(nil, table_of(report.checks(r.checks)))
  end
  return ('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    .. '<meta name="viewport" content="width=device-width">\n'
    .. '<link rel="icon" href="data:,">\n<title>%s</title>\n<style>\n%s</style>\n'
    .. '</head>\n<body>\n%s\n</body>\n</html>\n'):format(
      escape("Analysis of " .. r.model), STYLE, table.concat(parts, "\n"))
end

return html
