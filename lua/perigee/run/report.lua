--- Report: what a model runs, linear by linear: rows to read from Lua, which print as a table.
local cpu = require "perigee.cpu"
local linear = require "perigee.linear"
local measure = require "perigee.quantize.measure"
local packed = require "perigee.packed"
local tasks = require "perigee.tasks"
local text_table = require "perigee.show.table"

local report = {}

local Report = {}
Report.__index = Report

---- Rows --------------------------------------------------------------------------------------------------------------

local TOKENS = 128 -- that a kernel is named for

local function row_of(entry, encoder)
  local node = entry.node
  local linears = {}
  for i, part in ipairs(node.parts) do
    linears[i] = part.name
  end
  local quantizer = entry.quantize
  local sqnr = node.precision == "int8" and measure.site(encoder, node.site, { encoder.settings })[1] or nil
  return {
    name = #linears == 1 and linears[1] or node.site.name, linears = linears, N = node.width, K = node.inputs[1].width,
    precision = node.precision,
    kernel = linear.kernel(entry.args.w, node.rows == "tokens" and TOKENS or 1, entry.args.kernel),
    alpha = node.alpha or nil, shift = node.shift and true or nil, scale = quantizer and quantizer.scale,
    zero = quantizer and quantizer.zero,
    mode = quantizer and quantizer.mode, sqnr = sqnr, bytes = entry.args.w.bytes,
  }
end

-- An attention: its scales are those of queries times keys and of values, least and largest over the heads.
local function attention_row(node)
  local row = {
    name = node.name, heads = node.heads, D = node.width / node.heads, precision = node.precision or "f32", sqnr = node.sqnr,
  }
  for key, t in pairs { qk = node.scales and node.scales.qk, v = node.scales and node.scales.v } do
    local values = t:totable()
    row[key] = { math.min(unpack(values)), math.max(unpack(values)) }
  end
  return row
end

---- Facts about the whole ---------------------------------------------------------------------------------------------

local function notes_of(encoder)
  local onednn, reason = cpu.onednn()
  local notes = {
    ("%s; kernels: %s; threads: %d; oneDNN: %s"):format(cpu.name(), cpu.isa_name(), cpu.threads(),
      onednn or "not used: " .. reason),
  }
  notes[#notes + 1] = cpu.amx_unused()
  local _, choice = next(encoder.choices and encoder.choices.shapes or {})
  if choice and choice.reason then
    notes[#notes + 1] = "oneDNN does not multiply INT8: " .. choice.reason
  end
  if encoder.settings then
    notes[#notes + 1] = "settings: " .. tostring(encoder.settings)
    if encoder.settings.tables ~= "f32" then
      notes[#notes + 1] = ("embedding tables: %s, %.1f MB"):format(encoder.settings.tables, encoder:memory().tables / 1e6)
    end
    if encoder.settings.pages == "huge" and not encoder.file then
      local asked, granted = packed.huge_pages()
      notes[#notes + 1] = ("huge pages: %.1f MB of weights lie in memory that asks for them, %s"):format(asked / 1e6,
        granted and ("the kernel gave %.1f MB"):format(granted / 1e6) or "without /proc the kernel does not say how many it gave")
    end
    if encoder.file then
      notes[#notes + 1] = "an artifact: SQNR of linears is known where the model was made"
    elseif not encoder.stats then
      notes[#notes + 1] = "no statistics: nothing is smoothed, and SQNR is not known"
    elseif encoder.stats.released then
      notes[#notes + 1] = "the statistics were released: SQNR is not known"
    elseif encoder.settings.per == "sequence" then
      notes[#notes + 1] = "SQNR is not known: the calibration sample has rows, not sequences"
    end
  end
  return notes
end

--- encoder:explain(): { rows = { { name, linears, N, K, precision, kernel, alpha, shift, scale, zero, mode, sqnr, bytes }... },
-- notes = { ... }, attention = { { name, heads, D, precision, qk, v, sqnr }... } }. A row is one multiplication; Q, K and V are
-- one. shift: true if the site is shifted. Fields that mean nothing for a row are nil. qk and v: { least, largest } of the heads'
-- scales.
function report.explain(encoder)
  local self = { rows = {}, attention = {}, notes = notes_of(encoder) }
  local lowered = encoder:runner(tasks.head_of(encoder.model.task)).lowered
  for i, entry in ipairs(lowered.linears) do
    self.rows[i] = row_of(entry, encoder)
  end
  for i, node in ipairs(lowered.attentions) do
    self.attention[i] = attention_row(node)
  end
  return setmetatable(self, Report)
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function format(pattern, value)
  return value ~= nil and pattern:format(value) or "-"
end

-- What is done to the channels of a linear's input before they are rounded: "0.75", "off", "0.75, shifted"; "-" in FP32.
local function smoothing(row)
  if row.precision ~= "int8" then
    return "-"
  end
  return (row.alpha and ("%g"):format(row.alpha) or "off") .. (row.shift and ", shifted" or "")
end

-- columns: as show/table.lua takes them.
local function text_of(self, columns)
  local rows = { { "linear ", "N x K", "precision ", "kernel ", "alpha", "scale", "zero", "SQNR dB" } }
  for _, row in ipairs(self.rows) do
    local dynamic = row.mode and row.mode ~= "static" and "per " .. row.mode or nil
    rows[#rows + 1] = {
      row.name, ("%d x %d"):format(row.N, row.K), row.precision, row.kernel,
      smoothing(row), dynamic or format("%.5g", row.scale), format("%d", row.zero), format("%.1f", row.sqnr),
    }
  end
  local attentions = { { "attention ", "heads x D", "precision ", "scale of q k", "of v", "SQNR dB" } }
  for _, row in ipairs(self.attention) do
    attentions[#attentions + 1] = {
      row.name, ("%d x %d"):format(row.heads, row.D), row.precision,
      row.qk and ("%.3g to %.3g"):format(unpack(row.qk)) or "-", row.v and ("%.3g to %.3g"):format(unpack(row.v)) or "-",
      format("%.1f", row.sqnr),
    }
  end
  return table.concat(self.notes, "\n")
    .. "\n\n" .. text_table(rows, columns, { "precision ", "N x K", "zero", "scale", "kernel " })
    .. "\n\n" .. text_table(attentions, columns, { "precision ", "heads x D", "of v", "scale of q k" })
end

function Report:__tostring()
  return text_of(self)
end

--- At a prompt it fits the terminal.
function Report:__show(style)
  return text_of(self, style.columns)
end

return report
