--- The options of recipes that are settings of quantization, { name = option } as common.lua describes options.
local ranges = require "perigee.quantize.ranges"
local registry = require "perigee.quantize.settings.registry"

-- The option of a setting. Its help, its choices and its default derive from the setting's entry in the registry. kind: the kind
-- of the option, if it is no choice. more: further fields, which replace those of the entry.
local function of_setting(name, kind, more)
  local entry, choices = registry.of[name], {}
  for _, choice in ipairs(kind == nil and entry.choices or {}) do
    choices[choice] = true
  end
  local option = { kind or "choice", not kind and choices or nil, help = entry.text:gsub("^%l", string.upper) }
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

return {
  activations = {
    "choice", { static = true, dynamic = true, f32 = true },
    help = "Where the scales of activations come from; f32: nothing is quantized",
  },
  alpha = of_setting("alpha", "alpha", { help = "SmoothQuant's alpha, 0 to 1; off; or auto: searched for each site" }),
  skip = of_setting("skip", "text", {
    list = true, help = "Linears that stay FP32: names, or patterns such as 'encoder.layer.0.*'",
  }),
  weights = of_setting "weights",
  range = of_setting("range", nil, { help = "What the scale of static activations covers: " .. described_ranges() }),
  symmetric = { "flag", help = "Activations without a zero point. The default if dynamic" },
  asymmetric = { "flag", help = "Activations with a zero point. The default if static" },
  per = { "choice", { token = true, sequence = true }, default = "token", help = "What one scale of activations covers" },
}
