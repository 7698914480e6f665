--- check: what a value of an artifact's JSON may be. A check is a function (value, place) that returns the value, or raises an
-- error that names the place: "model.fields.labels[2] is 3, expected a text". The errors blame nobody: artifact/open.lua adds the
-- file's name.
--
--   local point = check.object { x = check.integer(0, 9), label = check.maybe(check.text) }
--   point({ x = 12 }, { "plan.hidden", "points", 3 })  --> plan.hidden.points[3].x is 12, expected an integer from 0 to 9
--
-- A place is a list of keys, which is put into words only for an error.
local json = require "perigee.base.json"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"

local check = {}

--- Returns a place as errors spell it. more: further keys of the place.
function check.spelled(place, ...)
  local text = ""
  for _, list in ipairs { place, { ... } } do
    for _, key in ipairs(list) do
      text = text .. (type(key) == "number" and ("[%d]"):format(key) or text == "" and key or "." .. key)
    end
  end
  return text
end

--- Raises an error about the value at a place. what: a format, the rest of the sentence.
function check.wrong(place, what, ...)
  error(check.spelled(place) .. what:format(...), 0)
end

--- Raises an error that says that the value at a place is not what was expected.
function check.fail(value, place, expected)
  check.wrong(place, " is %s, expected %s", json.describe(value), expected)
end

--- Calls f(value, place) with the value under a key of the table at `place`.
function check.inside(f, value, place, key)
  local n = #place + 1
  place[n] = key
  local result = f(value, place)
  place[n] = nil
  return result
end

local inside = check.inside

--- Calls f(...). If it fails, the place is put before the error's message.
function check.at(place, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    check.wrong(place, ": %s", result)
  end
  return result
end

--- Anything.
function check.any(value)
  return value
end

--- A text.
function check.text(value, place)
  return type(value) == "string" and value or check.fail(value, place, "a text")
end

--- true or false.
function check.flag(value, place)
  if type(value) ~= "boolean" then
    check.fail(value, place, "true or false")
  end
  return value
end

--- A finite number.
function check.number(value, place)
  return type(value) == "number" and value - value == 0 and value or check.fail(value, place, "a finite number")
end

--- An integer from min to max.
function check.integer(min, max)
  return function(value, place)
    if type(value) ~= "number" or value % 1 ~= 0 or value < min or value > max then
      check.fail(value, place, ("an integer from %.0f to %.0f"):format(min, max))
    end
    return value
  end
end

--- One of the keys of a table.
function check.choice(allowed)
  return function(value, place)
    if type(value) ~= "string" or allowed[value] == nil then
      check.fail(value, place, "one of " .. table.concat(options.names(allowed), ", "))
    end
    return value
  end
end

--- nil, or a value that another check accepts. No other check accepts nil.
function check.maybe(other)
  return function(value, place)
    return value ~= nil and other(value, place) or value
  end
end

local function expect_table(value, place, what)
  if type(value) ~= "table" then
    check.fail(value, place, what)
  end
end

--- A list of at least `min` values that another check accepts.
function check.list(item, min)
  return function(value, place)
    expect_table(value, place, "a list")
    for key in pairs(value) do
      if type(key) ~= "number" then
        check.wrong(place, " has the key %s, expected a list", key)
      end
    end
    if #value < (min or 0) then
      check.wrong(place, " has %d entries, expected at least %d", #value, min)
    end
    for i = 1, #value do
      inside(item, value[i], place, i)
    end
    return value
  end
end

--- An object with any keys, whose values another check accepts.
function check.map(item)
  return function(value, place)
    expect_table(value, place, "an object")
    for key, inner in pairs(value) do
      if type(key) ~= "string" then
        check.wrong(place, " is a list, expected an object")
      end
      inside(item, inner, place, key)
    end
    return value
  end
end

--- An object with these fields, { name = check }, and no others.
function check.object(fields)
  local names = options.names(fields)
  return function(value, place)
    expect_table(value, place, "an object")
    for key in pairs(value) do
      if not fields[key] then
        check.wrong(place, " has a field %s, which this library does not know%s", tostring(key),
          nearest.hint(key, names))
      end
    end
    for _, name in ipairs(names) do
      inside(fields[name], value[name], place, name)
    end
    return value
  end
end

--- A list of one entry for each of these checks: { "F32", "tokens", 32 }.
function check.tuple(...)
  local items = { ... }
  return function(value, place)
    expect_table(value, place, "a list")
    if #value ~= #items then
      check.wrong(place, " has %d entries, expected %d", #value, #items)
    end
    for i, item in ipairs(items) do
      inside(item, value[i], place, i)
    end
    return value
  end
end

return check
