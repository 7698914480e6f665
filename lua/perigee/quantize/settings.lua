--- Settings: everything a user can choose about quantization, as one immutable table.
--
--   activations  "static": scales from calibration. "dynamic": scales from the row at hand
--   symmetric    activations: u8 around 128 (true) or with a zero point of their own (false). Default: static false, dynamic true
--   per          what one activation scale covers. static: "tensor". dynamic: "token" (default) or "sequence"
--   weights      what one weight scale covers: "row" (an output channel, default) or "tensor"
--   alpha        SmoothQuant's alpha, 0 to 1; false: no smoothing; or a table of pattern = number or false, where the longest
--                pattern that matches a site decides and the default stands for the rest
--   skip         a list of patterns: these linears stay FP32, and are not smoothed
--   attention    "int8", "f32" or "auto": INT8 where calibration measured that it keeps 20 dB of the signal. INT8 needs
--                statistics; without them "auto" is FP32. Where the linear of queries, keys and values stays FP32, so does its
--                attention
--   pages        "normal", or "huge": packed weights lie in memory that asks the kernel for huge pages. The bits are the same
--   range        range method: how the range that a static scale covers is chosen (see quantize/ranges/init.lua)
--   sites        what sites have of their own: { pattern = { activations, symmetric, per, weights, alpha, skip, range } },
--                where the closest pattern decides, setting by setting. A site with activations of its own has their defaults
--                of symmetric, per, and of an alpha that is at its default
--
-- base/patterns.lua says what a pattern is and which is closest; settings/values.lua what each setting may be.
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local error = pgee.error
local values = require "perigee.quantize.settings.values"

--- The names of all settings, of those that a site may have of its own, and the default alphas.
local settings = { KEYS = values.KEYS, OF_SITE = values.OF_SITE, ALPHA = values.ALPHA }

local Settings = {}

-- The values of settings; an error blames as perigee.ffi's error does, or nobody (level 0).
local function values_of(given, level)
  local ok, result = pcall(values.all, given)
  if not ok then
    error(result, level)
  end
  return result
end

--- Settings from a table of what differs from the defaults. Errors name the setting, the value and what is allowed. level: for
-- modules, 0 for a message without a place.
function settings.new(given, level)
  return setmetatable({ values = values_of(given == nil and {} or given, level) }, Settings)
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

--- New settings with some values changed; `self` stays as it is. What changes here holds everywhere: no site keeps a value of its
-- own for it. Changing `activations` brings its own defaults of symmetric, per, and of an alpha that was at its default.
function settings.with(self, changes, level)
  if not settings.is(self) or type(changes) ~= "table" then
    error(("settings.with: expected settings and a table of changes, got %s and %s"):format(pgee.describe(self),
      pgee.describe(changes)), level)
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
  end
  given.sites = sites_without(given.sites, changed)
  for key, value in pairs(changes) do
    given[key] = value
  end
  return setmetatable({ values = values_of(given, level) }, Settings)
end

---- Sites -------------------------------------------------------------------------------------------------------------

-- A site's own value of a setting, or nil. Its own name is the closest pattern: asked first, since most are given by it.
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

local function resolve(chosen, site)
  local activations = own_value(chosen, site, "activations") or chosen.activations
  local common = activations == chosen.activations and chosen or values.defaults(activations)
  local result = {
    activations = activations, symmetric = common.symmetric, per = common.per, weights = chosen.weights,
    range = chosen.range, alpha = common_alpha(chosen, site, activations), skip = skipped(chosen, site),
  }
  for _, key in ipairs(settings.OF_SITE) do
    local own = own_value(chosen, site, key)
    if own ~= nil then
      result[key] = own
    end
  end
  if (result.per == "tensor") ~= (activations == "static") then
    error(('settings: per is "%s" at %s, expected %s, since its activations are %s'):format(result.per, site.name,
      activations == "static" and '"tensor"' or '"token" or "sequence"', activations), 0)
  end
  return result
end

local resolved = setmetatable({}, { __mode = "k" }) -- by settings, by site

--- For modules: the settings of one site: { activations, symmetric, per, weights, alpha, skip, range }, not to be changed.
function settings.of(self, site)
  local of = resolved[self]
  if not of then
    of = setmetatable({}, { __mode = "k" })
    resolved[self] = of
  end
  of[site] = of[site] or resolve(self.values, site)
  return of[site]
end

-- Gives a site values of its own, in its entry of chosen.sites. Its activations bring their defaults only if they change.
local function set_own(chosen, site, entry, own)
  if own.activations ~= nil and own.activations ~= resolve(chosen, site).activations then
    entry.symmetric, entry.per = nil, nil
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

--- For modules: new settings in which each of the sites has values of its own. What is then no different from what the site would
-- have anyway is left out, so that equal settings are written alike. level: as for settings.new.
function settings.at(self, sites, changes, level)
  local ok, result = pcall(function()
    local own, chosen = values.own(changes), copied(self.values)
    chosen.sites = copied(chosen.sites)
    for _, site in ipairs(sites) do
      local entry = copied(chosen.sites[site.name] or {})
      chosen.sites[site.name] = entry
      set_own(chosen, site, entry, own)
    end
    return values.all(chosen)
  end)
  if not ok then
    error(result, level)
  end
  return setmetatable({ values = result }, Settings)
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
  options.choice(key, values.defaults "static", "literal: the setting")
  return values.literal(key, self.values[key])
end

--- As the Lua table that makes them again.
function Settings:__tostring()
  local items = {}
  for _, key in ipairs(settings.KEYS) do
    if (key ~= "sites" or next(self.values.sites) ~= nil) and (key ~= "pages" or self.values.pages ~= "normal") then
      items[#items + 1] = key .. " = " .. settings.literal(self, key)
    end
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

--- q:settings() is q.settings.
function Settings:__call()
  return self
end

return settings
