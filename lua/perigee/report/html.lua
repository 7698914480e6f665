--- Html: a report as one HTML file without scripts and without links to other files. Each plot has a table with its values.
local svg = require "perigee.show.svg"

local html = {}

local STYLE = [[
:root { color-scheme: light dark; --text: #1c1e21; --back: #ffffff; --soft: #565d65; --grid: #d9dde2;
  --s1: #0b62bd; --s2: #b83a0a; --s3: #157a3a; --s4: #7a3fb0; --s5: #8a6100; --s6: #00757a; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6e8eb; --back: #15181c; --soft: #a8afb8; --grid: #333a43;
    --s1: #6cb2ff; --s2: #ff9f5a; --s3: #67d68c; --s4: #c99cff; --s5: #e3bd4f; --s6: #5fd7dc; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back); max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } p, caption { color: var(--soft); }
caption { text-align: left; padding: .25rem 0; }
.wide { overflow-x: auto; } .wide:focus-visible, summary:focus-visible { outline: 2px solid var(--s1); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--grid); text-align: right; }
th { color: var(--soft); } td:not(:first-child) { white-space: nowrap; } th[scope=row], .left { text-align: left; }
pre { overflow-x: auto; font-size: .8rem; border: 1px solid var(--grid); padding: .75rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--soft); font: 12px system-ui, sans-serif; }
.grid { stroke: var(--grid); } .line { fill: none; stroke-width: 2; }
.line.s1 { stroke: var(--s1); } .line.s2 { stroke: var(--s2); stroke-dasharray: 6 3; }
.line.s3 { stroke: var(--s3); stroke-dasharray: 2 3; } .line.s4 { stroke: var(--s4); stroke-dasharray: 8 3 2 3; }
.line.s5 { stroke: var(--s5); stroke-dasharray: 1 4; } .line.s6 { stroke: var(--s6); stroke-dasharray: 10 4; }
@media (max-width: 40rem) { svg { min-width: 36rem; } } .plot { overflow-x: auto; }
.bar.s1 { fill: var(--s1); } .bar.s2 { fill: var(--s2); }
.key { display: inline-block; width: 1.6em; height: .7em; margin-right: .35em; }
@media print { details { display: block; } .wide { overflow: visible; } h2 { break-after: avoid; } svg { break-inside: avoid; } }
]]

local escape = svg.escape

-- A table of rows of cells, rows[1] the headings. The first column names the row.
local function table_of(caption, rows)
  local lines = { ('<div class="wide" tabindex="0" role="region" aria-label="%s"><table><caption>%s</caption>'):format(
    escape(caption), escape(caption)) }
  for r, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      local tag = (r == 1 or i == 1) and "th" or "td"
      local scope = r == 1 and ' scope="col"' or i == 1 and ' scope="row"' or ""
      cells[i] = ("<%s%s>%s</%s>"):format(tag, scope .. (r == 1 and i == 1 and ' class="left"' or ""), escape(cell), tag)
    end
    lines[#lines + 1] = "<tr>" .. table.concat(cells) .. "</tr>"
  end
  lines[#lines + 1] = "</table></div>"
  return table.concat(lines, "\n")
end

local function decimals(value, form)
  return value and (form or "%.2f"):format(value) or "-"
end

local function megabytes(bytes)
  return bytes and ("%.1f MB"):format(bytes / 1e6) or "-"
end

---- Parts -------------------------------------------------------------------------------------------------------------

local function settings_part(r)
  local rows = { { "setting", "value", "" } }
  for _, entry in ipairs(r.settings) do
    rows[#rows + 1] = { entry.name, entry.value, entry.default and "" or "not the default" }
  end
  return table_of("Settings of the INT8 model", rows)
end

-- The scores with intervals, if the model was evaluated on labelled texts.
local function scores(comparison)
  local runs, rows = comparison.runs, { { "metric", "FP32", "INT8", "difference", "95 % interval" } }
  for m, score in ipairs(runs[2].scores) do
    local interval = score.interval and ("%+.2f to %+.2f"):format(100 * score.interval[1], 100 * score.interval[2]) or "-"
    rows[#rows + 1] = {
      score.metric, decimals(100 * runs[1].scores[m].value), decimals(100 * score.value),
      decimals(score.difference and 100 * score.difference, "%+.2f"), interval,
    }
  end
  local files = table.concat(comparison.files, ", ")
  return table_of(("Scores times 100 on %d labelled items of %s"):format(comparison.n, files), rows)
end

local function quality_part(r)
  local parts, d = {}, r.distance
  parts[1] = r.comparison and scores(r.comparison) or nil
  local rows = { { "against FP32", "" } }
  rows[#rows + 1] = { "SQNR of the output on texts of calibration", r.output and decimals(r.output) .. " dB" or "-" }
  if d then
    rows[#rows + 1] = { ("SQNR of the hidden states, %d inputs"):format(d.n), decimals(d.sqnr) .. " dB" }
    rows[#rows + 1] = {
      "cosine of a token's hidden states, mean and min", ("%.5f, %.5f"):format(d.tokens.mean, d.tokens.min),
    }
    if d.vectors then
      rows[#rows + 1] = { "cosine of a text's vector, mean and min", ("%.5f, %.5f"):format(d.vectors.mean, d.vectors.min) }
    end
    if d.agreement then
      rows[#rows + 1] = { "inputs with the same label", ("%.2f %%"):format(100 * d.agreement) }
    end
  end
  parts[#parts + 1] = table_of("Distance from FP32", rows)
  return table.concat(parts, "\n")
end

local function sites_part(r)
  local labels, values, rows = {}, {}, { { "site", "precision", "alpha", "SQNR dB", "clipped" } }
  for i, site in ipairs(r.sites) do
    labels[i], values[i] = site.name, site.sqnr or nil
    rows[#rows + 1] = {
      site.name, site.precision, site.alpha and ("%g"):format(site.alpha) or "off", decimals(site.sqnr or nil),
      site.clipped and ("%.4f %%"):format(100 * site.clipped) or "-",
    }
  end
  local plot = next(values) and svg.bars {
    title = "SQNR of each site", description = "Bars of the SQNR in dB. The table below has the values.", labels = labels,
    series = { { name = "SQNR", values = values } }, unit = "dB",
  } or ""
  return plot .. "\n" .. table_of("Each site: INT8 against FP32 on the rows that calibration kept, and the share of values that "
    .. "the static scale clips", rows)
end

local function ratio(spread)
  return spread and spread.median > 0 and spread.largest / spread.median or nil
end

local function outliers_part(r)
  local labels, before, after = {}, {}, {}
  local rows = {
    { "site", "largest before", "times the median", "largest after", "times the median", "largest channels before" },
  }
  for i, site in ipairs(r.sites) do
    labels[i], before[i], after[i] = site.name, ratio(site.before), ratio(site.after)
    rows[#rows + 1] = {
      site.name, decimals(site.before.largest, "%.4g"), decimals(before[i], "%.1f"),
      decimals(site.after and site.after.largest, "%.4g"), decimals(after[i], "%.1f"), table.concat(site.before.channels, ", "),
    }
  end
  return '<p><span class="key" style="background:var(--s1)"></span>before smoothing <span class="key" '
    .. 'style="background:var(--s2)"></span>after smoothing</p>\n' .. svg.bars {
      title = "The largest channel of each site, before and after smoothing", labels = labels, unit = "times the median",
      description = "Bars of the largest magnitude of a channel over the median of all channels. The table below has the values.",
      series = { { name = "before", values = before }, { name = "after", values = after } },
    } .. "\n" .. table_of("Outlier channels: the largest magnitude, and how many times the median channel it is", rows)
end

local COLOURS = 6

local function sweep_part(s)
  local series, keys, head, rows = {}, {}, { "alpha" }, {}
  if s.output then
    series[1] = { name = "output", y = s.output }
  end
  local order = { unpack(s.sites) }
  table.sort(order, function(a, b) return math.min(unpack(a.sqnr)) < math.min(unpack(b.sqnr)) end)
  for i = 1, math.min(#order, COLOURS - #series) do
    series[#series + 1] = { name = order[i].name, y = order[i].sqnr }
  end
  for i, one in ipairs(series) do
    keys[i] = ('<span class="key" style="background:var(--s%d)"></span>%s'):format(i, escape(one.name))
    head[i + 1] = one.name
  end
  rows[1] = head
  for k, alpha in ipairs(s.alpha) do
    local row = { ("%g"):format(alpha) }
    for i, one in ipairs(series) do
      row[i + 1] = decimals(one.y[k])
    end
    rows[#rows + 1] = row
  end
  return "<p>" .. table.concat(keys, "<br>") .. "</p>\n" .. svg.lines {
    title = "SQNR over alpha", description = "Curves of the output and of the sites that lose most. The table has the values.",
    x = s.alpha, xlabel = "alpha", ylabel = "dB", series = series,
  } .. "\n" .. table_of("dB over alpha: the output, and the sites whose least SQNR is lowest", rows)
end

local function steps_part(r)
  local labels, values, rows, sum = {}, {}, { { "steps", "count", "precision", "ms", "share" } }, 0
  for _, step in ipairs(r.steps) do
    sum = sum + step.seconds
  end
  for i, step in ipairs(r.steps) do
    labels[i], values[i] = step.name, step.seconds * 1e3
    rows[#rows + 1] = {
      step.name, tostring(step.steps), step.precision or "-", decimals(step.seconds * 1e3, "%.3f"),
      ("%.1f %%"):format(100 * step.seconds / sum),
    }
  end
  return svg.bars {
    title = "Time of each kind of step", description = "Bars in milliseconds. The table below has the values.", labels = labels,
    series = { { name = "INT8", values = values } }, unit = "ms",
  } .. "\n" .. table_of("Time per step of one text of up to 128 tokens; least of five runs", rows)
end

local function speed_part(list)
  local rows = { { "texts x tokens", "FP32 ms", "INT8 ms", "times faster" } }
  for _, s in ipairs(list) do
    rows[#rows + 1] = {
      ("%d x %d"):format(s.batch, s.tokens), decimals(s.fp32.median * 1e3), decimals(s.int8.median * 1e3),
      decimals(s.fp32.median / s.int8.median),
    }
  end
  return table_of("Median time of a run", rows)
end

local function memory_part(r)
  local rows, m = { { "", "FP32", "INT8" } }, r.memory
  for _, row in ipairs { { "weights", "packed weights" }, { "tables", "embedding tables" }, { "workspace", "runs" } } do
    rows[#rows + 1] = { row[2], megabytes(m.fp32[row[1]]), megabytes(m.int8[row[1]]) }
  end
  if r.files then
    rows[#rows + 1] = { "file", megabytes(r.files.fp32), megabytes(r.files.int8 or nil) }
  end
  return table_of("Memory, and sizes of files", rows)
end

local function environment_part(r)
  local rows = { { "", "" } }
  for _, entry in ipairs(r.environment) do
    rows[#rows + 1] = { entry.name, entry.value }
  end
  return table_of("Where this was measured", rows)
end

local function reproduce_part(r)
  local command = r.command and ('<pre tabindex="0">%s</pre>\n'):format(escape(r.command)) or ""
  return command .. "<p>This Lua text makes the same model again, bit for bit.</p>\n"
    .. ('<pre tabindex="0">%s</pre>'):format(escape(r.recipe))
end

--- The page of figures that report/collect.lua returned.
function html.page(r)
  local title = "INT8 model of " .. r.model
  local parts = {
    ("<h1>%s</h1>"):format(escape(title)),
    ("<p>%s, %s. Calibration: %s.</p>"):format(escape(r.architecture or "-"), escape(r.task or "-"), escape(r.statistics)),
  }
  local function section(name, text)
    parts[#parts + 1] = ("<section>\n<h2>%s</h2>\n%s\n</section>"):format(name, text)
  end
  section("Settings", settings_part(r))
  section("Quality", quality_part(r))
  if #r.sites > 0 then
    section("Sites", sites_part(r))
    section("Outliers", outliers_part(r))
  end
  if r.sweep then
    section("Alpha", sweep_part(r.sweep))
  end
  if r.speed then
    section("Speed", speed_part(r.speed))
  end
  section("Time per step", steps_part(r))
  section("Memory", memory_part(r))
  section("Environment", environment_part(r))
  section("How to reproduce", reproduce_part(r))
  return ([[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<link rel="icon" href="data:,">
<title>%s</title>
<style>
%s</style>
</head>
<body>
<main>
%s
</main>
</body>
</html>
]]):format(escape(title), STYLE, table.concat(parts, "\n"))
end

return html
