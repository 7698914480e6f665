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
--   observer     what range a static scale covers: "minmax", "percentile" or "mse" (range.lua says what they are)
--   sites        what sites have of their own: { pattern = { activations, symmetric, per, weights, alpha, skip, observer } },
--                where the closest pattern decides, setting by setting. A site with activations of its own has their defaults
--                of symmetric, per, and of an alpha that is at its default
--
-- A pattern is the name of a linear or of a site, or has * (any characters) and ? (one character) in it. A site's name is closer
-- than a linear's, a name closer than a pattern, a long pattern closer than a short one.
local json = require "perigee.json"

local settings = {}

--- The alphas that lose least over the checkpoints they were measured on (lua/README.md has the table).
settings.ALPHA = { static = 0.75, dynamic = 0.6 }

local Settings = {}

---- Patterns ----------------------------------------------------------------------------------------------------------

-- Lua's patterns of what stands between the stars, false for names: made once.
local compiled = {}

local function compile(pattern)
  local parts = compiled[pattern]
  if parts == nil then
    parts = pattern:find "[*?]" and {} or false
    for part in (parts and pattern .. "*" or ""):gmatch "(.-)%*" do
      parts[#parts + 1] = part:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%?", ".")
    end
    if parts then
      parts[1] = "^" .. parts[1]
      parts[#parts] = parts[#parts] .. "$"
    end
    compiled[pattern] = parts
  end
  return parts
end

-- Each part where it first is behind the one before: what a star takes never needs to be taken back.
local function holds(parts, name)
  local from = 1
  for _, part in ipairs(parts) do
    local _, last = name:find(part, from)
    if not last then
      return false
    end
    from = last + 1
  end
  return true
end

--- A function that tells whether a name matches the pattern.
function settings.matcher(pattern)
  local parts = compile(pattern)
  return function(name)
    return name == pattern or parts and holds(parts, name) or false
  end
end

--- Whether the pattern matches a site: its name, or the name of one of its linears.
function settings.matches(pattern, site)
  local match = settings.matcher(pattern)
  if match(site.name) then
    return true
  end
  for _, linear in ipairs(site.linears) do
    if match(linear) then
      return true
    end
  end
  return false
end

-- Whether pattern a is closer to the site than b; both match.
local function closer(a, b, site)
  if (a == site.name) ~= (b == site.name) then
    return a == site.name
  elseif (not compile(a)) ~= (not compile(b)) then
    return not compile(a)
  end
  return #a > #b or #a == #b and a < b
end

-- The value of the closest of the patterns, { pattern = value }, that match the site and for which has(value); nil if none.
local function closest(patterns, site, has)
  local best
  for p, value in pairs(patterns) do
    if has(value) and (best == nil or closer(p, best, site)) and settings.matches(p, site) then
      best = p
    end
  end
  return patterns[best]
end

---- Words that are almost right ---------------------------------------------------------------------------------------

local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      diagonal, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
    end
  end
  return row[#b]
end

--- The word of the list that is nearest to `word`, or nil if none is near.
function settings.nearest(word, list)
  local best, least = nil, math.max(2, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(list) do
    local d = distance(word, candidate)
    if d < least then
      best, least = candidate, d
    end
  end
  return best
end

--- "; did you mean X?" or "".
function settings.hint(word, list)
  local near = type(word) == "string" and type(list[1]) == "string" and settings.nearest(word, list)
  return near and (" (did you mean %q?)"):format(near) or ""
end

---- Values ------------------------------------------------------------------------------------------------------------

local function show(value)
  return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

local function refuse(key, value, expected)
  error(("settings: %s is %s, expected %s"):format(key, show(value), expected), 0)
end

local function choice(key, value, allowed)
  for _, a in ipairs(allowed) do
    if value == a then
      return value
    end
  end
  local words = {}
  for i, a in ipairs(allowed) do
    words[i] = show(a)
  end
  refuse(key, value, table.concat(words, " or ") .. settings.hint(value, allowed))
end

local function alpha_value(key, value)
  if value == false then
    return false
  elseif type(value) == "number" and value >= 0 and value <= 1 then
    return value + 0 -- -0 is 0
  end
  refuse(key, value, "a number from 0 to 1, or false for no smoothing")
end

local function pattern(key, value)
  if type(value) ~= "string" or value == "" then
    refuse(key, value, "the name of a linear or a pattern such as \"encoder.layer.0.*\"")
  end
  return value
end

-- A list's items, or an error: holes and keys that are no index would be lost without a word.
local function list(key, value, what)
  if type(value) == "string" then
    value = { value }
  end
  if type(value) ~= "table" then
    refuse(key, value, "a list of " .. what)
  end
  local count = 0
  for k in pairs(value) do
    count = count + 1
    if type(k) ~= "number" then
      refuse(key .. "." .. tostring(k), value[k], "a list of " .. what .. ", without keys")
    end
  end
  if count ~= #value then
    refuse(key, "a list with holes", "a list of " .. what)
  end
  return value
end

local check = {}

function check.activations(value)
  return choice("activations", value, { "static", "dynamic" })
end

function check.symmetric(value)
  return choice("symmetric", value, { true, false })
end

function check.per(value, given)
  if given.activations == "static" then
    return choice("per", value, { "tensor" })
  end
  return choice("per", value, { "token", "sequence" })
end

function check.weights(value)
  return choice("weights", value, { "row", "tensor" })
end

function check.alpha(value)
  if type(value) ~= "table" then
    return alpha_value("alpha", value)
  end
  local copy = {}
  for k, v in pairs(value) do
    copy[pattern("a key of alpha", k)] = alpha_value("alpha[" .. show(k) .. "]", v)
  end
  return copy
end

function check.skip(value)
  local copy = {}
  for i, v in ipairs(list("skip", value, "names or patterns")) do
    copy[i] = pattern("skip[" .. i .. "]", v)
  end
  return copy
end

function check.attention(value)
  return choice("attention", value, { "auto", "int8", "f32" })
end

function check.pages(value)
  return choice("pages", value, { "normal", "huge" })
end

function check.observer(value)
  return choice("observer", value, { "minmax", "percentile", "mse" })
end

-- What a site may have of its own, activations first.
local OF_SITE = { "activations", "symmetric", "per", "weights", "alpha", "skip", "observer" }

local check_own = {
  activations = check.activations, symmetric = check.symmetric, weights = check.weights, observer = check.observer,
}

function check_own.per(value)
  return choice("per", value, { "tensor", "token", "sequence" }) -- whether it goes with the activations is asked site by site
end

function check_own.alpha(value)
  return alpha_value("alpha", value)
end

function check_own.skip(value)
  return choice("skip", value, { true, false })
end

-- A copy of what a site is given of its own.
local function own_values(given, where)
  if type(given) ~= "table" then
    refuse(where, given, "a table such as { alpha = 0.5 }")
  end
  local copy = {}
  for key, value in pairs(given) do
    if not check_own[key] then
      error(("settings: a site has no %s of its own%s; it can have %s"):format(show(key), settings.hint(key, OF_SITE),
        table.concat(OF_SITE, ", ")), 0)
    end
    copy[key] = check_own[key](value)
  end
  return copy
end

function check.sites(value)
  if type(value) ~= "table" then
    refuse("sites", value, "a table of pattern = { alpha = 0.5, ... }")
  end
  local copy = {}
  for p, given in pairs(value) do
    local own = own_values(given, "sites[" .. show(p) .. "]")
    copy[pattern("a key of sites", p)] = next(own) ~= nil and own or nil
  end
  return copy
end

-- activations first: others depend on it.
local order = { "activations", "symmetric", "per", "weights", "alpha", "skip", "attention", "observer", "pages", "sites" }

local function defaults(activations)
  local static = activations == "static"
  return {
    activations = activations, symmetric = not static, per = static and "tensor" or "token", weights = "row",
    alpha = settings.ALPHA[activations], skip = {}, attention = "auto", observer = "minmax", pages = "normal",
    sites = {},
  }
end

---- The table ---------------------------------------------------------------------------------------------------------

local function build(given)
  if type(given) ~= "table" then
    error("settings: expected a table, got " .. type(given), 0)
  end
  for key in pairs(given) do
    if not check[key] then
      error(("settings: there is no %s%s; there are %s"):format(show(key), settings.hint(key, order),
        table.concat(order, ", ")), 0)
    end
  end
  local values = defaults(check.activations(given.activations == nil and "static" or given.activations))
  for _, key in ipairs(order) do
    if given[key] ~= nil then
      values[key] = check[key](given[key], values)
    end
  end
  return values
end

-- The values of settings; an error blames the caller of the function that calls this, or nobody (level 0).
local function values_of(given, level)
  local ok, result = pcall(build, given)
  if not ok then
    error(result, level == 0 and 0 or (level or 1) + 2)
  end
  return result
end

--- Settings from a table of what differs from the defaults. Errors name the setting, the value and what is allowed. level: for
-- modules, 0 for a message without a place.
function settings.new(given, level)
  return setmetatable({ values = values_of(given or {}, level) }, Settings)
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

-- What follows from activations unless it is said, too.
local FOLLOWING = { "symmetric", "per" }

--- New settings with some values changed; `self` stays as it is. What changes here holds everywhere: no site keeps a value of its
-- own for it. Changing `activations` brings its own defaults of symmetric, per, and of an alpha that was at its default.
function settings.with(self, changes, level)
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

-- A site's own value of a setting, or nil.
local function own_value(values, site, key)
  local exact = values.sites[site.name]
  if exact and exact[key] ~= nil then
    return exact[key]
  end
  local own = closest(values.sites, site, function(candidate)
    return candidate[key] ~= nil
  end)
  return (own or {})[key]
end

local function skipped(values, site)
  for _, p in ipairs(values.skip) do
    if settings.matches(p, site) then
      return true
    end
  end
  return false
end

local function common_alpha(values, site, activations)
  local alpha, default = values.alpha, settings.ALPHA[activations]
  if type(alpha) == "table" then
    local own = closest(alpha, site, function() return true end)
    if own == nil then
      return default
    end
    return own
  end
  return alpha == settings.ALPHA[values.activations] and default or alpha
end

local function resolve(values, site)
  local activations = own_value(values, site, "activations") or values.activations
  local common = activations == values.activations and values or defaults(activations)
  local result = {
    activations = activations, symmetric = common.symmetric, per = common.per, weights = values.weights,
    observer = values.observer, alpha = common_alpha(values, site, activations), skip = skipped(values, site),
  }
  for _, key in ipairs(OF_SITE) do
    local own = own_value(values, site, key)
    if own ~= nil then
      result[key] = own
    end
  end
  if (result.per == "tensor") ~= (activations == "static") then
    error(("settings: per is %s at %s, expected %s, since its activations are %s"):format(show(result.per), site.name,
      activations == "static" and '"tensor"' or '"token" or "sequence"', activations), 0)
  end
  return result
end

local resolved = setmetatable({}, { __mode = "k" }) -- by settings, by site

--- The settings of one site: { activations, symmetric, per, weights, alpha, skip, observer }, not to be changed.
function settings.of(self, site)
  local of = resolved[self]
  if not of then
    of = setmetatable({}, { __mode = "k" })
    resolved[self] = of
  end
  of[site] = of[site] or resolve(self.values, site)
  return of[site]
end

-- Gives a site values of its own, in its entry of values.sites. Its activations bring their defaults only if they change.
local function set_own(values, site, entry, own)
  if own.activations ~= nil and own.activations ~= resolve(values, site).activations then
    for _, key in ipairs(FOLLOWING) do
      entry[key] = nil
    end
  end
  for key, value in pairs(own) do
    entry[key] = value
  end
  local wanted = resolve(values, site)
  for _, key in ipairs(OF_SITE) do -- activations first: others have their defaults
    local value = entry[key]
    entry[key] = nil
    local ok, anyway = pcall(resolve, values, site)
    if not ok or anyway[key] ~= wanted[key] then
      entry[key] = value
    end
  end
end

--- New settings in which each of the sites has values of its own. What is then no different from what the site would have anyway
-- is left out, so that equal settings are written alike. level: as for settings.new.
function settings.at(self, sites, changes, level)
  local ok, result = pcall(function()
    local own, values = own_values(changes, "what is to be set"), copied(self.values)
    values.sites = copied(values.sites)
    for _, site in ipairs(sites) do
      local entry = copied(values.sites[site.name] or {})
      values.sites[site.name] = entry
      set_own(values, site, entry, own)
    end
    return values_of(values, 0)
  end)
  if not ok then
    error(result, level == 0 and 0 or (level or 1) + 1)
  end
  return setmetatable({ values = result }, Settings)
end

--- The sites of a list that a pattern matches; an error that names the nearest if there is none.
function settings.find(p, sites)
  pattern("a pattern", p)
  local found = {}
  for _, site in ipairs(sites) do
    if settings.matches(p, site) then
      found[#found + 1] = site
    end
  end
  if #found == 0 then
    error(("settings: %q matches no linear%s"):format(p, settings.hint(p, settings.names(sites))), 0)
  end
  return found
end

--- The names of sites and of their linears.
function settings.names(sites)
  local names = {}
  for _, site in ipairs(sites) do
    if site.linears[1] ~= site.name then
      names[#names + 1] = site.name
    end
    for _, linear in ipairs(site.linears) do
      names[#names + 1] = linear
    end
  end
  return names
end

--- Errors if a pattern in the settings matches none of the sites, or a site's own values do not go together.
function settings.check_patterns(self, sites)
  local function matched(key, p)
    for _, site in ipairs(sites) do
      if settings.matches(p, site) then
        return
      end
    end
    error(("settings: %s %q matches no linear%s"):format(key, p, settings.hint(p, settings.names(sites))), 0)
  end
  for _, p in ipairs(self.values.skip) do
    matched("skip pattern", p)
  end
  for key, patterns in pairs { alpha = self.values.alpha, sites = self.values.sites } do
    for p in pairs(type(patterns) == "table" and patterns or {}) do
      matched(key .. " pattern", p)
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
  error(("settings are immutable: %s cannot be assigned; make new ones with settings.with"):format(tostring(key)), 2)
end

local function literal(value)
  if type(value) == "number" then
    return json.shortest(value)
  elseif type(value) ~= "table" then
    return show(value)
  end
  local items, keys = {}, {}
  for _, v in ipairs(value) do
    items[#items + 1] = literal(v)
  end
  table.sort(items) -- patterns to skip, whose order means nothing
  for k in pairs(value) do
    if type(k) == "string" then
      keys[#keys + 1] = k
    end
  end
  table.sort(keys)
  for _, k in ipairs(keys) do
    items[#items + 1] = ("[%q] = %s"):format(k, literal(value[k]))
  end
  return #items == 0 and "{}" or "{ " .. table.concat(items, ", ") .. " }"
end

local function sites_literal(sites)
  local items, patterns = {}, {}
  for p in pairs(sites) do
    patterns[#patterns + 1] = p
  end
  table.sort(patterns)
  for i, p in ipairs(patterns) do
    local own = {}
    for _, key in ipairs(OF_SITE) do
      if sites[p][key] ~= nil then
        own[#own + 1] = key .. " = " .. literal(sites[p][key])
      end
    end
    items[i] = ("[%q] = { %s }"):format(p, table.concat(own, ", "))
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

--- One setting's value as Lua text.
function settings.literal(self, key)
  return key == "sites" and sites_literal(self.values.sites) or literal(self.values[key])
end

--- The names of all settings, and of those that a site may have of its own.
settings.KEYS, settings.OF_SITE = order, OF_SITE

--- As the Lua table that makes them again.
function Settings:__tostring()
  local items = {}
  for _, key in ipairs(order) do
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
