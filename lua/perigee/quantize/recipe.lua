--- Recipe: Lua text that makes a quantized model again, bit for bit, in a process of its own.
--
-- If the texts of calibration came from files through perigee.texts or perigee.lines, the recipe reads these files again.
-- Otherwise, and if perigee.texts left out inputs of another set, the recipe takes the texts as its argument:
-- loadstring(text)(texts). The recipe fails if the number of texts or tokens differs from the original calibration.
local find = require "perigee.find"
local random = require "perigee.checkpoint.random"
local settings = require "perigee.quantize.settings"

local function literal(options)
  local items = {}
  for _, key in ipairs { "max_tokens", "budget", "kernel", "samples", "rows" } do
    if options[key] ~= nil then
      items[#items + 1] = ("%s = %s"):format(key, type(options[key]) == "string" and ("%q"):format(options[key]) or options[key])
    end
  end
  return #items > 0 and (", { %s }"):format(table.concat(items, ", ")) or ""
end

local function model_text(model)
  local shape = random.is(model.checkpoint) and model.dir:match "^random (.*)$"
  local what = shape and ('require("perigee.checkpoint.random").checkpoint %q'):format(shape)
    or ("%q"):format(find.absolute(model.dir))
  return ("local model = perigee.load(%s%s)"):format(what, literal(model.given))
end

-- The call that reads the texts again: of perigee.texts, of perigee.lines, or of nothing.
local function texts_of(stats)
  local path, origin, parts, read = stats.source.path, stats.source.origin, {}, {}
  if path then
    return ("perigee.lines %q"):format(path)
  elseif not origin or origin.out > 0 then
    return ('assert((...), "give the recipe the %d texts to calibrate on")'):format(stats.texts)
  end
  for i, file in ipairs(origin.paths) do
    parts[i] = ("%q"):format(file)
  end
  for _, key in ipairs { "text", "pair", "part", "as", "single" } do
    local value = origin.options[key]
    if value ~= nil then
      read[#read + 1] = ("%s = %s"):format(key, type(value) == "string" and ("%q"):format(value) or tostring(value))
    end
  end
  return ("perigee.texts({ %s }%s)"):format(table.concat(parts, ", "),
    #read > 0 and (", { %s }"):format(table.concat(read, ", ")) or "")
end

local function stats_text(stats)
  local source, texts = stats.source, texts_of(stats)
  return ('local stats = model:calibrate(%s%s)\nassert(stats.texts == %d and stats.tokens == %d, "these are not the texts that '
    .. 'calibration had")'):format(texts, literal(source), stats.texts, stats.tokens)
end

-- One line for each setting that is not at its default.
local function settings_text(chosen, has_stats)
  local default = settings.new { activations = chosen.activations }
  local lines = { has_stats and "  stats = stats," or nil }
  for _, key in ipairs(settings.KEYS) do
    local value = settings.literal(chosen, key)
    if key == "activations" or value ~= settings.literal(default, key) then
      lines[#lines + 1] = ("  %s = %s,"):format(key, value)
    end
  end
  return "local q = model:quantize {\n" .. table.concat(lines, "\n") .. "\n}"
end

return function(q)
  local parts = {
    ("dofile %q"):format(find.path "perigee.find"),
    'local perigee = require "perigee"',
    model_text(q.model),
    q.stats and stats_text(q.stats) or nil,
  }
  parts[#parts + 1] = settings_text(q.settings, q.stats ~= nil)
  parts[#parts + 1] = "return q"
  return table.concat(parts, "\n") .. "\n"
end
