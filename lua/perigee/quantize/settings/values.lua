--- values: checks a table of settings, fills in defaults, and writes settings as Lua text. registry.lua says what each setting
-- is.
local checks = require "perigee.quantize.settings.checks"
local json = require "perigee.base.json"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local registry = require "perigee.quantize.settings.registry"

local values = {}

---- Checking ----------------------------------------------------------------------------------------------------------

--- Checks what a site is given of its own, { alpha = 0.5, ... }, and returns a copy. Errors blame nobody; they name the setting,
-- the value and what is allowed. where: what they call the table, such as sites["encoder.*"]; nil if the table was just typed.
function values.own(given, where)
  if type(given) ~= "table" then
    checks.refuse(where or "what is to be set", given, "a table such as { alpha = 0.5 }")
  end
  local copy = {}
  for key, value in pairs(given) do
    local entry = type(key) == "string" and registry.of[key]
    if not entry or not entry.site then
      error(("settings: %sa site has no %s of its own%s; it can have %s"):format(where and where .. ": " or "", checks.show(key),
        nearest.hint(key, registry.OF_SITE), table.concat(registry.OF_SITE, ", ")), 0)
    end
    copy[key] = entry.check_site(where and where .. "." .. key or key, value)
  end
  return copy
end

function registry.of.sites.check(name, value)
  if type(value) ~= "table" then
    checks.refuse(name, value, "a table of pattern = { alpha = 0.5, ... }")
  end
  local copy = {}
  for p, given in pairs(value) do
    patterns.check("a key of " .. name, p)
    local own = values.own(given, ("%s[%s]"):format(name, checks.show(p)))
    copy[p] = next(own) ~= nil and own or nil
  end
  return copy
end

--- Checks a table of settings and returns a copy with all others at their defaults. Errors as those of `own`.
function values.all(given)
  if type(given) ~= "table" then
    error("settings: expected a table, got " .. type(given), 0)
  end
  for key in pairs(given) do
    if not registry.of[key] then
      error(("settings: there is no %s%s; there are %s"):format(checks.show(key), nearest.hint(key, registry.KEYS),
        table.concat(registry.KEYS, ", ")), 0)
    end
  end
  local activations = given.activations
  if activations == nil then
    activations = registry.of.activations.default
  end
  local result = registry.defaults(registry.of.activations.check("activations", activations))
  for _, entry in ipairs(registry.LIST) do
    if given[entry.name] ~= nil then
      result[entry.name] = entry.check(entry.name, given[entry.name], result)
    end
  end
  return result
end

---- Writing -----------------------------------------------------------------------------------------------------------

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
  table.sort(items) -- the only lists are lists of patterns, whose order means nothing
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

-- Patterns in alphabetical order, the settings of each in the order of the registry.
local function sites_literal(sites)
  local items = {}
  for i, p in ipairs(options.names(sites)) do
    local own = {}
    for _, key in ipairs(registry.OF_SITE) do
      if sites[p][key] ~= nil then
        own[#own + 1] = key .. " = " .. literal(sites[p][key])
      end
    end
    items[i] = ("[%q] = { %s }"):format(p, table.concat(own, ", "))
  end
  return #items == 0 and "{}" or "{ " .. table.concat(items, ", ") .. " }"
end

--- The value of one setting as Lua text. Equal values give equal texts.
function values.literal(key, value)
  return key == "sites" and sites_literal(value) or literal(value)
end

return values
