--- Options: tables of named values that a function takes. An unknown name is an error, never ignored. Errors blame as
-- perigee.ffi's error does. Checks for nil use type(), because a null pointer of C equals nil but is a value of the wrong kind.
local nearest = require "perigee.base.nearest"
local pgee = require "perigee.ffi"
local error = pgee.error

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

--- `given` if it is a table whose keys are all keys of `known`, an empty table if it is nil, else an error.
function M.check(given, known, what)
  if type(given) ~= "nil" and type(given) ~= "table" then
    error(("%s: the options are %s, expected a table"):format(what, pgee.describe(given)))
  end
  for key in pairs(given or {}) do
    if known[key] == nil then
      local said = type(key) == "string" and #key <= 40 and key or pgee.describe(key)
      error(("%s has no option %s, only %s%s"):format(what, said, names(known), nearest.hint(key, M.names(known))))
    end
  end
  return given or {}
end

--- `value` if it is a key of `allowed`, else an error that lists them.
function M.choice(value, allowed, what)
  if type(value) ~= "string" or allowed[value] == nil then
    error(("%s is %s, expected one of %s"):format(what, pgee.describe(value), names(allowed)))
  end
  return value
end

--- `value` if it is nil or an integer from min to max; else an error that calls it `what`.
function M.integer(value, min, max, what)
  if type(value) ~= "nil" and (type(value) ~= "number" or value % 1 ~= 0 or value < min or value > max) then
    local large = type(value) == "number" and value > max -- else the message leaves out a large upper bound
    error(("%s is %s, expected an integer %s"):format(what, pgee.describe(value),
      (large or max < 2 ^ 20) and ("from %d to %.0f"):format(min, max) or ("of at least %d"):format(min)))
  end
  return value
end

--- `value` if it is not nil; else an error that calls it `what`.
function M.given(value, what, expected)
  if value == nil then
    error(("%s is nil, expected %s"):format(what, expected))
  end
  return value
end

--- `value` if it is nil or a number from min to max; else an error that calls it `what`.
function M.number(value, min, max, what)
  if type(value) ~= "nil" and not (type(value) == "number" and value >= min and value <= max) then
    local range = max < math.huge and (" from %g to %g"):format(min, max) or ""
    error(("%s is %s, expected a number%s"):format(what, pgee.describe(value), range))
  end
  return value
end

--- `value` if it is nil or a string; else an error that calls it `what`.
function M.text(value, what)
  if type(value) ~= "nil" and type(value) ~= "string" then
    error(("%s is %s, expected a text"):format(what, pgee.describe(value)))
  end
  return value
end

--- `value` if it is nil or a list of at least one text; else an error that calls it `what` and names the wrong entry.
function M.texts(value, what)
  if type(value) ~= "nil" and (type(value) ~= "table" or #value == 0) then
    error(("%s is %s, expected a list of texts"):format(what, type(value) == "table" and "empty" or pgee.describe(value)))
  elseif value ~= nil then
    M.list(value, what .. ": expected a list of texts")
  end
  for i = 1, value and #value or 0 do
    M.text(value[i], ("%s[%d]"):format(what, i))
  end
  return value
end

--- An error if a table has keys that no list has. what: "embed: expected a list of inputs".
function M.list(given, what)
  for key in pairs(given) do
    if type(key) ~= "number" or key % 1 ~= 0 or key < 1 or key > #given then
      error(("%s, found the key %s"):format(what, type(key) == "string" and key:sub(1, 40) or pgee.describe(key)))
    end
  end
end

--- `value` if it is true or false, and false if it is nil; else an error that calls it `what`.
function M.boolean(value, what)
  if type(value) ~= "nil" and type(value) ~= "boolean" then
    error(("%s is %s, expected true or false"):format(what, pgee.describe(value)))
  end
  return value or false
end

-- How a value of each kind is checked: (value, what, entry) -> value.
local KINDS = {
  flag = function(value, what) return M.boolean(value, what) end,
  text = function(value, what) return M.text(value, what) end,
  texts = function(value, what) return M.texts(value, what) end,
  integer = function(value, what, entry) return M.integer(value, entry[2], entry[3] or 2 ^ 31, what) end,
  number = function(value, what, entry) return M.number(value, entry[2], entry[3], what) end,
  choice = function(value, what, entry) return M.choice(value, entry[2], what) end,
  other = function(value) return value end, -- the function checks it itself
}

--- The options in `given` as a new table, checked by their descriptions.
--   known   { name = { kind, ... } }. Kinds: "flag"; "text"; "texts"; "integer", min, max; "number", min, max; "choice", { name
--           = true }; "other". Fields of a description: default, the value if the caller gives none; required, what is
--           expected of an option that must be given; help, the text for a command line
--   what    what errors call the function: "classify"
function M.read(given, known, what)
  local read = {}
  for name, value in pairs(M.check(given, known, what)) do
    local entry = known[name]
    read[name] = KINDS[entry[1]](value, what .. ": " .. name, entry)
  end
  for name, entry in pairs(known) do
    if read[name] == nil then
      read[name] = entry.default
    end
    if entry.required then
      M.given(read[name], what .. ": " .. name, entry.required)
    end
  end
  return read
end

--- For methods: an error if the metatable of `self` is not `class`, as in s.alphas() instead of s:alphas().
function M.self(self, class, name, what)
  if type(self) ~= "table" or getmetatable(self) ~= class then
    error(("%s is a method of %s: call it with a colon, as in x:%s()"):format(name, what, name))
  end
end

--- For methods of models: raises an error if `self` is not a model, as in m.embed(x) instead of m:embed(x).
function M.method(self, name)
  if type(self) ~= "table" or type(self.model) ~= "table" then
    error(("%s is a method of a model: call it with a colon, as in m:%s(...)"):format(name, name))
  end
end

return M
