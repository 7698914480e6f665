--- Checks a request against the schema that /openapi.json shows of it, so that the description cannot differ from the check.
--
-- A schema is a table of JSON Schema: type, properties, required, items, minItems, maxItems, minimum, maximum, enum, anyOf. An
-- object has no other properties than those that its schema lists. A property that is null counts as absent. `said` names a
-- schema in messages; the description does not show it.
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"

local schema = {}

local SAID = {
  string = "a string", integer = "an integer", number = "a number", boolean = "true or false", array = "a list",
  object = "an object",
}

-- What a schema expects, in words.
local function words(s)
  if s.said then
    return s.said
  elseif s.enum then
    local list = {}
    for i, value in ipairs(s.enum) do
      list[i] = ('"%s"'):format(value)
    end
    return table.concat(list, " or ")
  elseif s.anyOf then
    local list = {}
    for i, other in ipairs(s.anyOf) do
      list[i] = words(other)
    end
    return table.concat(list, ", or ")
  elseif s.type == "array" and s.items then
    return "a list of " .. words(s.items):gsub("^an? ", ""):gsub("^(%w+)", "%1s", 1)
  end
  local text = SAID[s.type]
  if s.minimum and s.maximum then
    text = ("%s from %.0f to %.0f"):format(text, s.minimum, s.maximum)
  elseif s.minimum then
    text = ("%s of at least %.0f"):format(text, s.minimum)
  end
  return text
end

local function is_list(v)
  return type(v) == "table" and v ~= json.null and (#v > 0 or next(v) == nil)
end

local function is_object(v)
  return type(v) == "table" and v ~= json.null and (#v == 0 or next(v) == nil)
end

local IS = {
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return type(v) == "number" and v % 1 == 0 end,
  array = is_list, object = is_object,
}

local check

local function in_enum(s, v)
  for _, value in ipairs(s.enum) do
    if value == v then
      return true
    end
  end
end

local function shown(v)
  if type(v) == "table" and v ~= json.null then
    return is_list(v) and "a list" or "an object"
  elseif type(v) == "string" and #v > 40 then
    return "a string of " .. #v .. " bytes"
  end
  return v == json.null and "null" or pgee.describe(v)
end

local function wrong(s, v, where)
  return ("%s is %s, expected %s"):format(where, shown(v), words(s))
end

local function check_list(s, v, where)
  if s.minItems and #v < s.minItems or s.maxItems and #v > s.maxItems then
    local expected = s.said or ("%d to %s"):format(s.minItems or 0, s.maxItems or "any")
    return ("%s has %d entries, expected %s"):format(where, #v, expected)
  end
  for i, item in ipairs(v) do
    local why = check(s.items, item, ("%s[%d]"):format(where, i - 1))
    if why then
      return why
    end
  end
end

local function check_object(s, v, where)
  local prefix = where ~= "the request" and where .. "." or ""
  for key, value in pairs(v) do
    if value == json.null then
      v[key] = nil
    elseif not s.properties[key] then
      return ("%s%s is not known; expected %s"):format(prefix, key, table.concat(schema.names(s), ", "))
    end
  end
  for _, key in ipairs(s.required or {}) do
    if v[key] == nil then
      return ("%s%s is missing, expected %s"):format(prefix, key, words(s.properties[key]))
    end
  end
  for key, value in pairs(v) do
    local why = check(s.properties[key], value, prefix .. key)
    if why then
      return why
    end
  end
end

-- What is wrong with a value, or nil.
function check(s, v, where)
  if s.anyOf then
    for _, other in ipairs(s.anyOf) do
      if not check(other, v, where) then
        return nil
      end
    end
    return wrong(s, v, where)
  elseif not s.type then -- anything
    return nil
  elseif not IS[s.type](v) or s.enum and not in_enum(s, v) or s.minimum and v < s.minimum or s.maximum and v > s.maximum then
    return wrong(s, v, where)
  elseif s.type == "array" then
    return check_list(s, v, where)
  elseif s.type == "object" then
    return check_object(s, v, where)
  end
end

--- The names of an object's properties, in order.
function schema.names(s)
  local names = {}
  for key in pairs(s.properties) do
    names[#names + 1] = key
  end
  table.sort(names)
  return names
end

--- What is wrong with a request, or nil. Properties that are null are taken out of it.
function schema.check(s, v)
  return check(s, v, "the request")
end

-- A schema as the description shows it.
local function described(s)
  local copy = {}
  for key, value in pairs(s) do
    if key ~= "said" then
      copy[key] = value
    end
  end
  if s.anyOf then
    copy.anyOf = {}
    for i, other in ipairs(s.anyOf) do
      copy.anyOf[i] = described(other)
    end
  end
  copy.items = s.items and described(s.items)
  if s.properties then
    copy.properties = {}
    for name, property in pairs(s.properties) do
      copy.properties[name] = described(property)
    end
    copy.additionalProperties = false
  end
  return copy
end

schema.described = described

return schema
