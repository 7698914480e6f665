--- shown: a quantized model as a prompt prints it: its settings, one a line, with a mark at those that are not at their default,
-- and what is known of the quality.
local settings = require "perigee.quantize.settings"
local text_table = require "perigee.show.table"

return function(q, style)
  local default, rows = settings.new { activations = q.settings.activations }, { { "setting ", "value ", " " } }
  for _, key in ipairs(settings.KEYS) do
    local value = settings.literal(q.settings, key)
    rows[#rows + 1] = { key, value, value ~= settings.literal(default, key) and "not the default" or "" }
  end
  local db = q.measured["output " .. tostring(q.settings)]
  return table.concat({
    ("%s: %s, INT8"):format(q.model.dir, q.model.config.model_type),
    ("calibration: %s"):format(q.stats and tostring(q.stats) or "none, nothing is smoothed"),
    ("SQNR of the output: %s"):format(db and ("%.2f dB"):format(db) or "q:sqnr() measures it"),
    "", (text_table(rows, style and style.columns)),
  }, "\n")
end
