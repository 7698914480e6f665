--- Report: an analysis (perigee.analyze) as text for a terminal.
local analyze = require "perigee.analyze"
local plot = require "perigee.show.plot"
local text_table = require "perigee.show.table"

local report = {}

--- The modes in the order in which they are shown, and their names.
report.MODES = { "f32", "static", "dynamic" }
report.NAMES = { f32 = "FP32", static = "INT8 static", dynamic = "INT8 dynamic" }

--- "12.3 %" of a share, "-" of nil.
function report.percent(share)
  return share and ("%.1f %%"):format(100 * share) or "-"
end

--- "1 text of 128 tokens, 2 threads": what was measured.
function report.run(r)
  local function counted(n, word)
    return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
  end
  return ("%s of %s, %s"):format(counted(r.batch, "text"), counted(r.tokens, "token"), counted(r.here.cores, "thread"))
end

--- A number of operations a second in GOPS, of bytes a second in GB/s; "-" of nil.
function report.giga(value)
  return value and (value >= 1e11 and "%.0f" or "%.1f"):format(value / 1e9) or "-"
end

local function times(value)
  return value and ("%.2fx"):format(value) or "-"
end

local function milliseconds(value)
  return ("%.3g"):format(value * 1e3)
end

---- Tables: rows of cells, the headings first -------------------------------------------------------------------------------

--- Where the time goes.
function report.hot_spots(r)
  local rows = { { "mode ", "ms a run", "linear blocks", "attention", "the rest" } }
  for _, name in ipairs(report.MODES) do
    local mode = r.modes[name]
    if mode then
      rows[#rows + 1] = {
        report.NAMES[name], milliseconds(mode.classes.all), report.percent(mode.shares.linear),
        report.percent(mode.shares.attention), report.percent(mode.shares.rest),
      }
    end
  end
  return rows
end

--- Peaks and bandwidths of machines. isas: nil, or what measure.isas returns.
function report.machines(machines, isas)
  local rows = { { "machine ", "ISA ", "cores", "INT8 GOPS", "FP32", "BF16", "L2 GB/s", "L3", "memory" } }
  for _, m in ipairs(machines) do
    rows[#rows + 1] = {
      m.name .. (m.measured and ", measured" or ", described"), m.isa, ("%d"):format(m.cores), report.giga(m.peak.int8),
      report.giga(m.peak.f32), report.giga(m.peak.bf16), report.giga(m.bandwidth.l2), report.giga(m.bandwidth.l3),
      report.giga(m.bandwidth.memory),
    }
  end
  for _, one in ipairs(isas or {}) do
    rows[#rows + 1] = {
      "the same machine with " .. one.isa, one.isa, "", report.giga(one.int8), report.giga(one.f32), report.giga(one.bf16), "",
      "", "",
    }
  end
  return rows
end

local WHERE = { compute = "compute", l2 = "L2", l3 = "L3", memory = "memory" }

--- The bound of each linear on one machine. points: of the static mode, if it was measured there.
function report.bounds(bounds, points)
  local rows = { { "linear ", "N x K", "weights in", "ops/byte", "balance", "bound by", "INT8 bound", "reached" } }
  local by_name = {}
  for _, p in ipairs(points or {}) do
    by_name[p.name] = p
  end
  for i, b in ipairs(bounds) do
    local point = by_name[b.name]
    rows[i + 1] = {
      b.name, ("%d x %d"):format(b.N, b.K), WHERE[b.int8.weights], ("%.0f"):format(b.int8.intensity),
      ("%.0f"):format(b.int8.balance), WHERE[b.int8.bound], times(b.speedup.int8), report.percent(point and point.share),
    }
  end
  return rows
end

--- The ceilings of the speed-up end to end, and the speed-up that was measured.
function report.ceilings(r)
  local rows = {
    {
      "mode ", "linear blocks", "reached", "ceiling: INT8 linears", "of it", "attention too", "of it", "rest as measured",
      "of it",
    },
  }
  for _, name in ipairs(analyze.INT8) do
    local c = r.ceilings[name]
    if c then
      rows[#rows + 1] = {
        report.NAMES[name], times(c.linear), times(c.reached), times(c.linears), report.percent(c.reached / c.linears),
        times(c.attention), report.percent(c.reached / c.attention), times(c.rest), report.percent(c.reached / c.rest),
      }
    end
  end
  return rows
end

--- Instances against latency on the predicted machine, of one mode.
function report.instances(there, name)
  local rows = { { "instances", "threads", "ms a run", "texts a second", "weights in", "best " } }
  for _, one in ipairs(there.modes[name].instances) do
    rows[#rows + 1] = {
      ("%d"):format(one.instances), ("%d"):format(one.threads), milliseconds(one.seconds), ("%.0f"):format(one.texts_per_second),
      WHERE[one.level], one.best and "*" or "",
    }
  end
  return rows
end

--- Predictions that were checked on this machine (measure.check).
function report.checks(checks)
  local rows = { { "from ", "to ", "predicted ms", "measured ms", "error" } }
  for _, one in ipairs(checks) do
    rows[#rows + 1] = {
      one.from, one.to, milliseconds(one.predicted), milliseconds(one.measured), ("%+.1f %%"):format(100 * one.error),
    }
  end
  return rows
end

---- The plot ----------------------------------------------------------------------------------------------------------------

local ROOF_POINTS = 120

-- The roofline of a type as points of a plot with logarithmic axes.
local function roof(m, type, level, low, high)
  local x, y = {}, {}
  for i = 0, ROOF_POINTS do
    x[#x + 1] = low + (high - low) * i / ROOF_POINTS
    y[#y + 1] = math.log10(math.min(m.peak[type], 10 ^ x[#x] * m.bandwidth[level]) / 1e9)
  end
  return { name = type == "int8" and "INT8 roof" or "FP32 roof", x = x, y = y }
end

--- The roofline plot of this machine with the measured linears.
function report.plot(r)
  local series, low, high, measured = {}, math.huge, -math.huge, {}
  for _, name in ipairs { "f32", "static" } do
    local points = { name = report.NAMES[name], x = {}, y = {} }
    for _, p in ipairs(r.modes[name] and r.modes[name].points or {}) do
      points.x[#points.x + 1], points.y[#points.y + 1] = math.log10(p.intensity), math.log10(p.operations_per_second / 1e9)
      low, high = math.min(low, math.log10(p.intensity)), math.max(high, math.log10(p.intensity))
    end
    measured[#measured + 1] = #points.x > 0 and points or nil
  end
  low, high = math.floor(low - 0.7), math.ceil(high + 0.3)
  series[1] = roof(r.here, "int8", r.bounds[1].int8.level, low, high)
  series[2] = roof(r.here, "f32", r.bounds[1].f32.level, low, high)
  for _, points in ipairs(measured) do
    series[#series + 1] = points
  end
  return plot.points {
    series = series, title = "Roofline: speed over arithmetic intensity", xlabel = "log10 of operations a byte",
    ylabel = "log10 of GOPS", height = 14,
  }
end

---- The text ----------------------------------------------------------------------------------------------------------------

--- The whole report. r: what analyze.of returns, with model = its name, isas = measure.isas' list or nil, checks =
-- measure.check's or nil. columns: the width of the terminal, nil: any.
function report.text(r, columns)
  local parts = {}
  local function add(title, body)
    parts[#parts + 1] = title .. "\n" .. (type(body) == "table" and body[1] and text_table(body, columns) or tostring(body))
  end
  parts[1] = ("%s: %s, ISA %s"):format(r.model, report.run(r), r.here.isa)
  add("Hot spots", report.hot_spots(r))
  add("Machine", report.machines({ r.here, r.there and r.there.machine }, r.isas))
  add("Roofline of the linears here, and the most that INT8 can gain on each", report.bounds(r.bounds, r.modes.static and
    r.modes.static.points))
  parts[#parts + 1] = tostring(report.plot(r))
  add("Ceilings of the speed-up over FP32 (Amdahl's law)", report.ceilings(r))
  if r.there then
    add("Roofline of the linears on " .. r.there.machine.name, report.bounds(r.there.bounds))
    for _, name in ipairs(report.MODES) do
      if r.there.modes[name] then
        add(("Predicted on %s, %s"):format(r.there.machine.name, report.NAMES[name]), report.instances(r.there, name))
      end
    end
  end
  if r.checks then
    add("Predictions of other ISAs from the ISA in force, checked here (INT8 static)", report.checks(r.checks))
  end
  return table.concat(parts, "\n\n")
end

return report
