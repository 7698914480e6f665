--- Values: what each setting may be, what it is if nothing is said, and how it is written. quantize/settings.lua says what they
-- mean.
local json = require "perigee.base.json"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local ranges = require "perigee.quantize.ranges"

local values = {}

--- The names of all settings, activations first: others depend on it. And of those that a site may have of its own.
values.KEYS = { "activations", "symmetric", "per", "weights", "alpha", "skip", "attention", "range", "pages", "sites" }
values.OF_SITE = { "activations", "symmetric", "per", "weights", "alpha", "skip", "range" }

--- The alphas that lose least over the checkpoints they were measured on (spec/bench/ALPHA.md has the table).
values.ALPHA = { static = 0.75, dynamic = 0.6 }

--- All settings as they are if only the activations are given.
function values.defaults(activations)
  local static = activations == "static"
  return {
    activations = activations, symmetric = not static, per = static and "tensor" or "token", weights = "row",
    alpha = values.ALPHA[activations], skip = {}, attention = "auto", range = ranges.NAMES[1], pages = "normal", sites = {},
  }
end

---- What they may be --------------------------------------------------------------------------------------------------

local SHOWN = 60 -- bytes of a text in an error

local function show(value)
  if type(value) == "string" then
    return ("%q"):format(#value <= SHOWN and value or value:sub(1, SHOWN) .. "...")
  end
  return pgee.describe(value)
end

-- name: the setting as an error calls it, such as alpha or sites["encoder.*"].alpha
local function refuse(name, value, expected)
  error(("settings: %s is %s, expected %s"):format(name, show(value), expected), 0)
end

local function choice(name, value, allowed)
  local words = {}
  for i, a in ipairs(allowed) do
    if value == a then
      return value
    end
    words[i] = show(a)
  end
  refuse(name, value, table.concat(words, " or ") .. nearest.hint(value, allowed))
end

local function alpha_value(name, value)
  if value == false then
    return false
  elseif type(value) == "number" and value >= 0 and value <= 1 then
    return value + 0 -- -0 is 0
  end
  refuse(name, value, "a number from 0 to 1, or false for no smoothing")
end

local check = {}

local CHOICES = {
  activations = { "static", "dynamic" }, symmetric = { true, false }, weights = { "row", "tensor" },
  attention = { "auto", "int8", "f32" }, pages = { "normal", "huge" }, range = ranges.NAMES,
}

for key, allowed in pairs(CHOICES) do
  check[key] = function(name, value) return choice(name, value, allowed) end
end

local PER = { static = { "tensor" }, dynamic = { "token", "sequence" } }

function check.per(name, value, given)
  return choice(name, value, PER[given.activations])
end

function check.alpha(name, value)
  if type(value) ~= "table" then
    return alpha_value(name, value)
  end
  local copy = {}
  for p, alpha in pairs(value) do
    copy[patterns.check("a key of " .. name, p)] = alpha_value(("%s[%s]"):format(name, show(p)), alpha)
  end
  return copy
end

-- Holes and keys that are no index would be lost without a word.
function check.skip(name, value)
  local given, copy, count = type(value) == "string" and { value } or value, {}, 0
  if type(given) ~= "table" then
    refuse(name, value, "a list of names or patterns")
  end
  for i, p in pairs(given) do
    count = count + 1
    if type(i) ~= "number" then
      refuse(("%s[%s]"):format(name, show(i)), p, "a list of names or patterns, without keys")
    end
    copy[i] = patterns.check(("%s[%s]"):format(name, i), p)
  end
  if count ~= #copy then
    error(("settings: %s is a list with holes, expected a list of names or patterns"):format(name), 0)
  end
  return copy
end

-- Of a site.
local check_own = {
  activations = check.activations, symmetric = check.symmetric, weights = check.weights, range = check.range,
  alpha = alpha_value,
}

function check_own.per(name, value)
  return choice(name, value, { "tensor", "token", "sequence" }) -- whether it goes with the activations is asked site by site
end

function check_own.skip(name, value)
  return choice(name, value, { true, false })
end

--- A copy of what a site is given of its own, { alpha = 0.5, ... }. Errors, which blame nobody, name the setting, the value and
-- what is allowed. where: what they call the table, such as sites["encoder.*"]; nil if it is what was just typed.
function values.own(given, where)
  if type(given) ~= "table" then
    refuse(where or "what is to be set", given, "a table such as { alpha = 0.5 }")
  end
  local copy = {}
  for key, value in pairs(given) do
    if type(key) ~= "string" or not check_own[key] then
      error(("settings: %sa site has no %s of its own%s; it can have %s"):format(where and where .. ": " or "", show(key),
        nearest.hint(key, values.OF_SITE), table.concat(values.OF_SITE, ", ")), 0)
    end
    copy[key] = check_own[key](where and where .. "." .. key or key, value)
  end
  return copy
end

function check.sites(name, value)
  if type(value) ~= "table" then
    refuse(name, value, "a table of pattern = { alpha = 0.5, ... }")
  end
  local copy = {}
  for p, given in pairs(value) do
    patterns.check("a key of " .. name, p)
    local own = values.own(given, ("%s[%s]"):format(name, show(p)))
    copy[p] = next(own) ~= nil and own or nil
  end
  return copy
end

--- All settings, from a table of those that differ from the defaults. Errors as those of `own`.
function values.all(given)
  if type(given) ~= "table" then
    error("settings: expected a table, got " .. type(given), 0)
  end
  for key in pairs(given) do
    if not check[key] then
      error(("settings: there is no %s%s; there are %s"):format(show(key), nearest.hint(key, values.KEYS),
        table.concat(values.KEYS, ", ")), 0)
    end
  end
  local result = values.defaults(check.activations("activations", given.activations == nil and "static" or given.activations))
  for _, key in ipairs(values.KEYS) do
    if given[key] ~= nil then
      result[key] = check[key](key, given[key], result)
    end
  end
  return result
end

---- How they are written ----------------------------------------------------------------------------------------------

local function literal(value)
  if type(value) == "number" then
    return json.shortest(value)
  elseif type(value) ~= "table" then
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
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

-- Sites in order, the settings of each in theirs.
local function sites_literal(sites)
  local items = {}
  for i, p in ipairs(options.names(sites)) do
    local own = {}
    for _, key in ipairs(values.OF_SITE) do
      if sites[p][key] ~= nil then
        own[#own + 1] = key .. " = " .. literal(sites[p][key])
      end
    end
    items[i] = ("[%q] = { %s }"):format(p, table.concat(own, ", "))
  end
  return "{ " .. table.concat(items, ", ") .. " }"
end

--- The value of one setting as Lua text. Equal values are written alike.
function values.literal(key, value)
  return key == "sites" and sites_literal(value) or literal(value)
end

return values
