--- The options of recipes that are settings of quantization, { name = option } as common.lua describes options.
local ranges = require "perigee.quantize.ranges"
local registry = require "perigee.quantize.settings.registry"

-- The text of a setting's entry, as a sentence begins.
local function text_of(name)
  return (registry.of[name].text:gsub("^%l", string.upper))
end

-- The set of a setting's choices, and of the choices in `more`, without those in `less`.
local function choices_of(name, more, less)
  local set = {}
  for _, choice in ipairs(registry.of[name].choices) do
    set[choice] = true
  end
  for _, choice in ipairs(more or {}) do
    set[choice] = true
  end
  for _, choice in ipairs(less or {}) do
    set[choice] = nil
  end
  return set
end

-- The option of a setting. Its help, its choices and its default derive from the setting's entry in the registry. kind: the kind
-- of the option, if it is no choice. more: further fields, which replace those of the entry.
local function of_setting(name, kind, more)
  local entry = registry.of[name]
  local option = { kind or "choice", not kind and choices_of(name) or nil, help = text_of(name) }
  local default = entry.default_of
  if default then
    option.said = ("%s if static, %s if dynamic"):format(tostring(default.static), tostring(default.dynamic))
  else
    option.said = type(entry.default) == "table" and "none" or entry.default
  end
  for key, value in pairs(more or {}) do
    option[key] = value
  end
  return option
end

local function described_ranges()
  local words = {}
  for i, name in ipairs(ranges.NAMES) do
    words[i] = ("%s covers %s"):format(name, ranges.text(name))
  end
  return table.concat(words, "; ")
end

-- For which kind of activations a value is the default of a setting.
local function default_if(name, value)
  local default, kinds = registry.of[name].default_of, {}
  for _, kind in ipairs(registry.of.activations.choices) do
    kinds[#kinds + 1] = default[kind] == value and kind or nil
  end
  return "The default if " .. table.concat(kinds, " or ")
end

return {
  activations = {
    "choice", choices_of("activations", { "f32" }), help = text_of "activations" .. "; f32: nothing is quantized",
  },
  alpha = of_setting("alpha", "alpha", { help = "SmoothQuant's alpha, 0 to 1; off; or auto: searched for each site" }),
  skip = of_setting("skip", "text", {
    list = true, help = "Linears that stay FP32: names, or patterns such as 'encoder.layer.0.*'",
  }),
  weights = of_setting "weights",
  tables = of_setting "tables",
  range = of_setting("range", nil, { help = "What the scale of static activations covers: " .. described_ranges() }),
  symmetric = { "flag", help = "Activations have the zero point 128. " .. default_if("symmetric", true) },
  asymmetric = { "flag", help = "Activations have a zero point of their own. " .. default_if("symmetric", false) },
  per = {
    "choice", choices_of("per", nil, { "tensor" }), default = registry.of.per.default_of.dynamic,
    help = "What one scale of dynamic activations covers",
  },
}
