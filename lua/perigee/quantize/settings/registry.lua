--- registry: every setting, one entry each. All that other places know about a setting derives from its entry: its default, the
-- check of its value, whether a site can have a value of its own, what is computed again when it changes, the options of recipes.
--
-- To add a setting, add an entry to LIST, the code that obeys the setting, a line at the head of quantize/settings.lua (which the
-- prompt shows) and a row in lua/API.md's table. A spec compares both with LIST. An entry is a table:
--
--   name     of the setting
--   text     what it is, as one phrase for --help and the documentation
--   choices  the list of its values, if it is a choice. Then it needs no check
--   check    function(name, value, all) -> the value, for the whole model. all: the settings before it in LIST
--   default  the value if nothing is given; or default_of = { static =, dynamic = }, the default for each kind of activations
--   site     true if a site can have a value of its own; or the function(name, value) that checks that value, if it differs
--            from `check`
--   static   true if it has no effect on dynamic activations
--   affects  what has to be computed again when it changes, a set of:
--              factors    the smoothing factors of a site
--              quantizer  how a site's activations are quantized
--              weights    packed weights
--              attention  whether an attention is INT8, and its scales
--              sqnr       the SQNR of a site
--            Which linears and attentions are INT8 is decided anew after every change, so skip and floats affect none of these.
--   brief    true if the default is left out when settings are printed
local checks = require "perigee.quantize.settings.checks"
local json = require "perigee.base.json"
local ranges = require "perigee.quantize.ranges"

local registry = {}

local PER = { static = checks.choice { "tensor" }, dynamic = checks.choice { "token", "sequence" } }

-- In the order in which settings are checked and printed. activations is first, because defaults depend on it.
local LIST = {
  {
    name = "activations", choices = { "static", "dynamic" }, default = "static", site = true,
    text = "where the scales of activations come from: calibration (static) or the values at hand (dynamic)",
    affects = { quantizer = true, sqnr = true },
  },
  {
    name = "symmetric", choices = { true, false }, default_of = { static = false, dynamic = true }, site = true,
    text = "whether activations have the zero point 128 (true) or a zero point of their own (false)",
    affects = { quantizer = true, sqnr = true },
  },
  {
    name = "per", choices = { "tensor", "token", "sequence" }, default_of = { static = "tensor", dynamic = "token" },
    check = function(name, value, all) return PER[all.activations](name, value) end,
    site = checks.choice { "tensor", "token", "sequence" }, -- whether it suits the site's activations is checked in resolve
    text = "what one scale of activations covers: the tensor if static, a token or a sequence if dynamic",
    affects = { quantizer = true, sqnr = true },
  },
  {
    name = "weights", choices = { "row", "tensor" }, default = "row", site = true,
    text = "what one scale of weights covers: an output channel (row) or the whole weight (tensor)",
    affects = { weights = true, sqnr = true },
  },
  {
    -- The default alphas lose least over the checkpoints that they were measured on (spec/bench/ALPHA.md has the table).
    name = "alpha", check = checks.alphas, site = checks.alpha, default_of = { static = 0.75, dynamic = 0.6 },
    text = "SmoothQuant's alpha, a number from 0 to 1; false: no smoothing; auto: searched; or a table of pattern = alpha",
    affects = { factors = true, quantizer = true, weights = true, sqnr = true },
  },
  {
    name = "shift", choices = { true, false, "auto" }, default_of = { static = false, dynamic = false },
    check = checks.static_only(checks.choice { true, false, "auto" }, false),
    site = checks.choice { true, false, "auto" }, -- whether it suits the site's activations is checked in resolve
    text = "whether the middle of each channel's range is subtracted before smoothing; auto: where that raises a site's SQNR",
    affects = { factors = true, quantizer = true, weights = true, sqnr = true },
  },
  {
    name = "skip", check = checks.patterns, site = checks.choice { true, false }, default = {},
    text = "linears that stay FP32 and are not smoothed: a list of names or patterns", affects = {},
  },
  {
    name = "attention", choices = { "auto", "int8", "f32" }, default = "auto",
    text = "the precision of attention; auto: INT8 where calibration measured an SQNR of at least 20 dB",
    affects = { attention = true },
  },
  {
    name = "range", choices = ranges.NAMES, default = ranges.NAMES[1], site = true, static = true,
    text = "range method: how the range that a static scale covers is chosen", affects = { quantizer = true, sqnr = true },
  },
  {
    name = "floats", choices = { "f32", "bf16" }, default = "f32", brief = true, affects = {},
    text = "how linears that are not INT8 multiply: in FP32, or in BF16 with FP32 sums",
  },
  {
    name = "tables", choices = { "f32", "f16", "int8" }, default = "f32", brief = true, affects = {},
    text = "embedding tables: as the checkpoint has them (f32), as F16, or as INT8 with one scale for each row",
  },
  {
    name = "pages", choices = { "normal", "huge" }, default = "normal", brief = true,
    text = "the memory that packed weights lie in; huge: memory that asks the kernel for huge pages",
    affects = { weights = true },
  },
  {
    -- values.lua checks it.
    name = "sites", default = {}, brief = true, affects = {},
    text = "settings of single sites: { pattern = { alpha = 0.5, ... } }",
  },
}

--- The entries in order, and by name.
registry.LIST, registry.of = LIST, {}
--- The names of all settings, and of those that a site can have a value of its own for, in order.
registry.KEYS, registry.OF_SITE = {}, {}

for i, entry in ipairs(LIST) do
  registry.of[entry.name], registry.KEYS[i] = entry, entry.name
  entry.check = entry.check or entry.choices and checks.choice(entry.choices)
  if entry.site then
    entry.check_site = type(entry.site) == "function" and entry.site or entry.check
    table.insert(registry.OF_SITE, entry.name)
  end
end

local function fresh(default)
  return type(default) == "table" and {} or default
end

--- The default of a setting for this kind of activations.
function registry.default(name, activations)
  local entry = registry.of[name]
  if entry.default_of then
    return entry.default_of[activations]
  end
  return fresh(entry.default)
end

--- The settings if only the activations are given.
function registry.defaults(activations)
  local all = {}
  for i, name in ipairs(registry.KEYS) do
    all[name] = i == 1 and activations or registry.default(name, activations)
  end
  return all
end

local function written(value)
  return type(value) == "number" and json.shortest(value) or tostring(value)
end

--- A text for keys of memos: the values of all settings that affect `part` (see `affects`). If the activations are dynamic,
-- settings without effect on them are left out. own: the settings of a site. alpha: replaces own.alpha unless it is nil.
function registry.key(part, own, alpha)
  local words = {}
  for _, entry in ipairs(LIST) do
    if entry.affects[part] and not (entry.static and own.activations ~= "static") then
      local value = own[entry.name]
      if entry.name == "alpha" and alpha ~= nil then
        value = alpha
      end
      words[#words + 1] = written(value)
    end
  end
  return table.concat(words, " ")
end

return registry
