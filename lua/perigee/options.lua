--- Options: tables of named values that a function takes. A name that it does not know is an error, never ignored.
local pgee = require "perigee.ffi"

local M = {}

--- The keys of a table as texts, in order.
function M.names(known)
  local list = {}
  for name in pairs(known) do
    list[#list + 1] = tostring(name)
  end
  table.sort(list)
  return list
end

local function names(known)
  return table.concat(M.names(known), ", ")
end

--- `given` if it is a table whose keys are all keys of `known`, an empty table if it is nil, else an error. Blames as check of
-- perigee.ffi does.
function M.check(given, known, what, level)
  level = (level or 1) + 2
  if given ~= nil and type(given) ~= "table" then
    error(("%s: the options are %s, expected a table"):format(what, pgee.describe(given)), level)
  end
  for key in pairs(given or {}) do
    if known[key] == nil then
      error(("%s has no option %s, only %s"):format(what, tostring(key), names(known)), level)
    end
  end
  return given or {}
end

--- `value` if it is a key of `allowed`, else an error that lists them.
function M.choice(value, allowed, what, level)
  if type(value) ~= "string" or allowed[value] == nil then
    error(("%s is %s, expected one of %s"):format(what, pgee.describe(value), names(allowed)), (level or 1) + 2)
  end
  return value
end

--- An integer from least to most, or nil; else an error that names it.
function M.integer(value, least, most, what, level)
  if value ~= nil and (type(value) ~= "number" or value % 1 ~= 0 or value < least or value > most) then
    local large = type(value) == "number" and value > most -- else a large bound is of no use to who reads this
    error(("%s is %s, expected an integer %s"):format(what, pgee.describe(value),
      (large or most < 2 ^ 20) and ("from %d to %.0f"):format(least, most) or ("of at least %d"):format(least)), (level or 1) + 2)
  end
  return value
end

--- A number from least to most, or nil; else an error that names it.
function M.number(value, least, most, what, level)
  if value ~= nil and not (type(value) == "number" and value >= least and value <= most) then
    error(("%s is %s, expected a number from %g to %g"):format(what, pgee.describe(value), least, most), (level or 1) + 2)
  end
  return value
end

--- A string, or nil; else an error that names it.
function M.text(value, what, level)
  if value ~= nil and type(value) ~= "string" then
    error(("%s is %s, expected a text"):format(what, pgee.describe(value)), (level or 1) + 2)
  end
  return value
end

--- An error, which blames nobody, if a table has keys that a list has not. what: "embed: expected a list of inputs".
function M.list(given, what)
  for key in pairs(given) do
    if type(key) ~= "number" or key % 1 ~= 0 or key < 1 or key > #given then
      error(("%s, found the key %s"):format(what, tostring(key)), 0)
    end
  end
end

--- true or false, which nil is; else an error that names it.
function M.boolean(value, what, level)
  if value ~= nil and type(value) ~= "boolean" then
    error(("%s is %s, expected true or false"):format(what, pgee.describe(value)), (level or 1) + 2)
  end
  return value or false
end

--- For methods of models: an error, which blames nobody, if `self` is none, as in m.embed(x) for m:embed(x).
function M.method(self, name)
  if type(self) ~= "table" or type(self.model) ~= "table" then
    error(("%s is a method of a model: call it with a colon, as in m:%s(...)"):format(name, name), 0)
  end
end

return M
