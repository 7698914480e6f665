--- Settings: everything a user can choose about quantization, as one immutable table.
--
--   activations  "static": scales from calibration. "dynamic": scales from the row or sequence at hand
--   symmetric    activations: u8 around 128 (true), or with a zero point of their own (false). Default: false if static, true if
--                dynamic
--   per          what one activation scale covers. static: "tensor". dynamic: "token" (default) or "sequence"
--   weights      what one weight scale covers: "row" (an output channel, default) or "tensor"
--   alpha        SmoothQuant's alpha, 0 to 1; false: no smoothing; "auto": the alpha at which the site's error on calibration's
--                sample is least (tune/search.lua), which then stands here; or a table { pattern = alpha }: the longest pattern
--                that matches a site decides, and sites that no pattern matches have the default
--   shift        true: the middle of each channel's range is subtracted before smoothing (Outlier Suppression+), and the linears'
--                biases make up for it; false (default); "auto": where the calibration sample says that it raises the SQNR of
--                the site's linears. For static activations only
--   skip         a list of patterns: these linears stay FP32 and are not smoothed
--   attention    "int8", "f32" or "auto" (default): INT8 where calibration measured an SQNR of at least 20 dB. INT8 attention
--                needs statistics; without them "auto" means FP32. If the linear of queries, keys and values stays FP32, its
--                attention does, too
--   range        range method: how the range that a static scale covers is chosen (quantize/ranges/init.lua)
--   floats       "f32", or "bf16": linears that are not INT8 (skipped ones, heads, the decoder of fill_mask) round their inputs
--                and weights to BF16 and add up in FP32. Attention that is not INT8, norms and layers after the pooling stay FP32
--   tables       "f32" (default): embedding tables stay as the checkpoint has them. "f16": F16. "int8": INT8 with one scale for
--                each row. A decoder that is tied to a table multiplies by the same values
--   pages        "normal", or "huge": packed weights lie in memory that asks the kernel for huge pages. The bits are the same
--   sites        settings of single sites: { pattern = { alpha = 0.5, ... } }. For each setting the closest pattern that has a
--                value for it decides. A site with activations of its own has their defaults of symmetric, per and shift, and
--                of an alpha that is at its default
--
-- settings/registry.lua has one entry for each setting. base/patterns.lua says what a pattern is and which one is the closest.
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local registry = require "perigee.quantize.settings.registry"
local values = require "perigee.quantize.settings.values"
local error = pgee.error

--- KEYS: the names of all settings. OF_SITE: of those that a site can have a value of its own for. ALPHA: the default alphas of
-- static and dynamic activations.
local settings = { KEYS = registry.KEYS, OF_SITE = registry.OF_SITE, ALPHA = registry.of.alpha.default_of }

local Settings = {}

-- f(...), whose errors blame the line that called these modules.
local function checked(f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    error(result)
  end
  return result
end

local function make(all)
  return setmetatable({ values = all }, Settings)
end

--- Settings from a table of what differs from the defaults. Errors name the setting, the value and what is allowed.
function settings.new(given)
  return make(checked(values.all, given == nil and {} or given))
end

--- Whether `value` was made by settings.new.
function settings.is(value)
  return getmetatable(value) == Settings
end

-- The sites' own values without some settings.
local function sites_without(sites, keys)
  local result = {}
  for p, own in pairs(sites) do
    local rest = {}
    for key, value in pairs(own) do
      if not keys[key] then
        rest[key] = value
      end
    end
    result[p] = next(rest) ~= nil and rest or nil
  end
  return result
end

local function copied(t)
  local copy = {}
  for key, value in pairs(t) do
    copy[key] = value
  end
  return copy
end

--- New settings with some values changed; `self` stays as it is. A change here holds for all sites: no site keeps a value of
-- its own for this setting. Changing `activations` brings its own defaults of symmetric, per, and of an alpha that was at its
-- default. Dynamic activations turn shift off.
function settings.with(self, changes)
  if not settings.is(self) or type(changes) ~= "table" then
    error(("settings.with: expected settings and a table of changes, got %s and %s"):format(pgee.describe(self),
      pgee.describe(changes)))
  end
  local given, changed = copied(self.values), copied(changes)
  if changes.activations ~= nil then
    if changes.activations ~= given.activations then
      given.symmetric, given.per = nil, nil
      if given.alpha == settings.ALPHA[given.activations] then
        given.alpha = nil
      end
    end
    changed.symmetric, changed.per = true, true
    if changes.activations == "dynamic" then
      given.shift, changed.shift = nil, true
    end
  end
  given.sites = sites_without(given.sites, changed)
  for key, value in pairs(changes) do
    given[key] = value
  end
  return make(checked(values.all, given))
end

---- Sites -------------------------------------------------------------------------------------------------------------

-- A site's own value of a setting, or nil. The site's name is the closest pattern. It is looked up first, because most values are
-- under it.
local function own_value(chosen, site, key)
  local exact = chosen.sites[site.name]
  if exact and exact[key] ~= nil then
    return exact[key]
  end
  local own = patterns.closest(chosen.sites, site, function(candidate)
    return candidate[key] ~= nil
  end)
  return (own or {})[key]
end

local function skipped(chosen, site)
  for _, p in ipairs(chosen.skip) do
    if patterns.matches(p, site) then
      return true
    end
  end
  return false
end

local function common_alpha(chosen, site, activations)
  local alpha, default = chosen.alpha, settings.ALPHA[activations]
  if type(alpha) == "table" then
    local own = patterns.closest(alpha, site)
    if own == nil then
      return default
    end
    return own
  end
  return alpha == settings.ALPHA[chosen.activations] and default or alpha
end

-- Settings that are not simply copied to a site: what the whole model's value means for one site.
local FOR_SITE = { skip = skipped, alpha = common_alpha }

local function resolve(chosen, site)
  local activations = own_value(chosen, site, "activations") or chosen.activations
  local defaults = activations ~= chosen.activations and registry.defaults(activations)
  local result = {}
  for _, entry in ipairs(registry.LIST) do
    local key, of_site = entry.name, FOR_SITE[entry.name]
    local value
    if entry.site then
      value = own_value(chosen, site, key)
    end
    if value == nil and of_site then
      value = of_site(chosen, site, activations)
    elseif value == nil then
      value = (defaults and entry.default_of and defaults or chosen)[key]
    end
    result[key] = value
  end
  result.activations, result.sites = activations, nil
  if (result.per == "tensor") ~= (activations == "static") then
    error(('settings: per is "%s" at %s, expected %s, since its activations are %s'):format(result.per, site.name,
      activations == "static" and '"tensor"' or '"token" or "sequence"', activations), 0)
  elseif result.shift and activations ~= "static" then
    error(("settings: shift is %s at %s, expected false, since its activations are %s: it is for static activations"):format(
      tostring(result.shift), site.name, activations), 0)
  end
  return result
end

local resolved = setmetatable({}, { __mode = "k" }) -- by settings, by site

--- For modules: the settings in force at one site, { activations =, alpha =, ... }, without sites. skip is true or false. The
-- table must not be changed.
function settings.of(self, site)
  local of = resolved[self]
  if not of then
    of = setmetatable({}, { __mode = "k" })
    resolved[self] = of
  end
  of[site] = of[site] or resolve(self.values, site)
  return of[site]
end

-- Writes a site's own values into its entry of chosen.sites. New activations bring their defaults only if they differ from
-- before. Values that the site would have without the entry are removed from it.
local function set_own(chosen, site, entry, own)
  if own.activations ~= nil and own.activations ~= resolve(chosen, site).activations then
    entry.symmetric, entry.per, entry.shift = nil, nil, nil
  end
  for key, value in pairs(own) do
    entry[key] = value
  end
  local wanted = resolve(chosen, site)
  for _, key in ipairs(settings.OF_SITE) do -- activations first: others have their defaults
    local value = entry[key]
    entry[key] = nil
    local ok, anyway = pcall(resolve, chosen, site)
    if not ok or anyway[key] ~= wanted[key] then
      entry[key] = value
    end
  end
end

--- For modules: new settings in which each of the sites has these values of its own. A value that the site would have anyway is
-- left out, so that equal settings are written alike.
function settings.at(self, sites, changes)
  return make(checked(function()
    local own, chosen = values.own(changes), copied(self.values)
    chosen.sites = copied(chosen.sites)
    for _, site in ipairs(sites) do
      local entry = copied(chosen.sites[site.name] or {})
      chosen.sites[site.name] = entry
      set_own(chosen, site, entry, own)
    end
    return values.all(chosen)
  end))
end

--- Errors if a pattern in the settings matches none of the sites, or a site's own values do not go together.
function settings.check_patterns(self, sites)
  for _, p in ipairs(self.values.skip) do
    patterns.find(p, sites, "skip pattern")
  end
  for key, map in pairs { alpha = self.values.alpha, sites = self.values.sites } do
    for p in pairs(type(map) == "table" and map or {}) do
      patterns.find(p, sites, key .. " pattern")
    end
  end
  for _, site in ipairs(sites) do
    settings.of(self, site)
  end
end

function Settings:__index(key)
  return self.values[key]
end

function Settings.__newindex(_, key)
  error(("settings are immutable: %s cannot be assigned; make new ones with settings.with"):format(tostring(key)))
end

--- One setting's value as Lua text.
function settings.literal(self, key)
  if not settings.is(self) then
    error(("literal: the settings are %s, expected what settings.new returns"):format(pgee.describe(self)))
  end
  options.choice(key, registry.of, "literal: the setting")
  return values.literal(key, self.values[key])
end

--- As the Lua table that makes them again.
function Settings:__tostring()
  local items = {}
  for _, entry in ipairs(registry.LIST) do
    local text = settings.literal(self, entry.name)
    local default = entry.brief and values.literal(entry.name, registry.default(entry.name, self.values.activations))
    if text ~= default then
      items[#items + 1] = entry.name .. " = " .. text
    end
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

--- q:settings() is q.settings.
function Settings:__call()
  return self
end

return settings
