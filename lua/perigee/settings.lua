--- Settings: everything a user can choose about quantization, as one immutable table.
--
--   activations  "static": scales from calibration. "dynamic": scales from the row at hand
--   symmetric    activations: u8 around 128 (true) or with a zero point of their own (false). Default: static false, dynamic true
--   per          what one activation scale covers. static: "tensor". dynamic: "token" (default) or "sequence"
--   weights      what one weight scale covers: "row" (an output channel, default) or "tensor"
--   alpha        SmoothQuant's alpha, 0 to 1; false: no smoothing; or a table of pattern = number or false, where the longest
--                pattern that matches a site decides and the default stands for the rest
--   skip         a list of patterns: these linears stay FP32, and are not smoothed
--   attention    "f32"
--   observer     "minmax": a static range is the least and the largest value seen
--
-- A pattern is the name of a linear or of a site, or has * (any characters) and ? (one character) in it.
local settings = {}

--- The alphas that lose least over the checkpoints they were measured on (lua/README.md has the table).
settings.ALPHA = { static = 0.75, dynamic = 0.6 }

local Settings = {}

---- Patterns ----------------------------------------------------------------------------------------------------------

--- A function that tells whether a name matches the pattern.
function settings.matcher(pattern)
  local lua = "^" .. pattern:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%*", ".*"):gsub("%?", ".") .. "$"
  return function(name)
    return name:match(lua) ~= nil
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
  local near = type(word) == "string" and settings.nearest(word, list)
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
  if value == false or (type(value) == "number" and value >= 0 and value <= 1) then
    return value
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
  if value == "int8" or value == "auto" then
    refuse("attention", value, "\"f32\": there is no INT8 attention kernel yet")
  end
  return choice("attention", value, { "f32" })
end

function check.observer(value)
  return choice("observer", value, { "minmax" })
end

-- activations first: others depend on it.
local order = { "activations", "symmetric", "per", "weights", "alpha", "skip", "attention", "observer" }

local function defaults(activations)
  local static = activations == "static"
  return {
    activations = activations, symmetric = not static, per = static and "tensor" or "token", weights = "row",
    alpha = settings.ALPHA[activations], skip = {}, attention = "f32", observer = "minmax",
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

--- New settings with some values changed; `self` stays as it is. Changing `activations` brings its own defaults of symmetric,
-- per, and of an alpha that was at its default.
function settings.with(self, changes, level)
  local given = {}
  for key, value in pairs(self.values) do
    given[key] = value
  end
  if changes.activations ~= nil and changes.activations ~= given.activations then
    given.symmetric, given.per = nil, nil
    if given.alpha == settings.ALPHA[given.activations] then
      given.alpha = nil
    end
  end
  for key, value in pairs(changes) do
    given[key] = value
  end
  return setmetatable({ values = values_of(given, level) }, Settings)
end

--- The alpha of a site: a number, or false.
function settings.alpha(self, site)
  local alpha = self.values.alpha
  if type(alpha) ~= "table" then
    return alpha
  end
  local best
  for p in pairs(alpha) do
    if settings.matches(p, site) and (not best or #p > #best or (#p == #best and p < best)) then
      best = p
    end
  end
  if best == nil then
    return settings.ALPHA[self.values.activations]
  end
  return alpha[best]
end

--- Whether a site stays FP32.
function settings.skips(self, site)
  for _, p in ipairs(self.values.skip) do
    if settings.matches(p, site) then
      return true
    end
  end
  return false
end

--- Errors if a pattern in the settings matches none of the sites.
function settings.check_patterns(self, sites)
  local names = {}
  for _, site in ipairs(sites) do
    names[#names + 1] = site.name
    for _, linear in ipairs(site.linears) do
      names[#names + 1] = linear
    end
  end
  local function matched(key, p)
    for _, site in ipairs(sites) do
      if settings.matches(p, site) then
        return
      end
    end
    error(("settings: %s %q matches no linear%s"):format(key, p, settings.hint(p, names)), 0)
  end
  for _, p in ipairs(self.values.skip) do
    matched("skip pattern", p)
  end
  if type(self.values.alpha) == "table" then
    for p in pairs(self.values.alpha) do
      matched("alpha pattern", p)
    end
  end
end

function Settings:__index(key)
  return self.values[key]
end

function Settings.__newindex(_, key)
  error(("settings are immutable: %s cannot be assigned; make new ones with settings.with"):format(tostring(key)), 2)
end

-- The shortest digits that read back as the same number.
local function digits(number)
  for precision = 1, 17 do
    local text = ("%." .. precision .. "g"):format(number)
    if tonumber(text) == number then
      return text
    end
  end
end

local function literal(value)
  if type(value) == "number" then
    return digits(value)
  elseif type(value) ~= "table" then
    return show(value)
  end
  local items, keys = {}, {}
  for _, v in ipairs(value) do
    items[#items + 1] = literal(v)
  end
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

--- As the Lua table that makes them again.
function Settings:__tostring()
  local items = {}
  for _, key in ipairs(order) do
    items[#items + 1] = key .. " = " .. literal(self.values[key])
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

return settings
