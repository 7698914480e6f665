--- Functions that read values of decoded JSON files. Their errors name the file, the value, and what was expected.
local json = require "perigee.base.json"
local utf8 = require "perigee.base.utf8"

local M = {}

function M.fail(...)
  error(string.format(...), 0)
end

--- Raises the error that a key of a file has a value that is not as expected.
function M.refuse(path, key, value, expected)
  M.fail("'%s': %s is %s, expected %s", path, key, json.describe(value), expected)
end

--- The path of a file in a folder; the folder itself for the name "".
function M.join(folder, name)
  return name == "" and folder or folder:gsub("/+$", "") .. "/" .. name
end

--- The value, or nil if it is missing or null.
function M.given(value)
  if value ~= json.null then
    return value
  end
end

--- values[key], true or false; the default if the key is missing. null counts as missing if there is no default; else it is an
-- error, because transformers would take it for false or fail, and not use its default.
function M.flag(values, key, path, default)
  local value = values[key]
  if value == nil or value == json.null and default == nil then
    return default
  elseif type(value) ~= "boolean" then
    M.refuse(path, key, value, "true or false")
  end
  return value
end

--- The value, which must be of the Lua type `kind`. The further arguments, a format and its values, name it in the error.
function M.expect(value, kind, path, ...)
  if type(value) ~= kind then
    M.fail("'%s': %s is %s, expected a %s", path, string.format(...), json.describe(value), kind)
  end
  return value
end

--- As expect, but returns the default if the value is missing or null.
function M.optional(value, kind, default, path, ...)
  if value == nil or value == json.null then
    return default
  end
  return M.expect(value, kind, path, ...)
end

--- The value, which must be a list. An empty object is accepted too, because decoded it is equal to an empty list.
function M.list(value, path, ...)
  if type(value) ~= "table" or #value == 0 and next(value) ~= nil then
    M.fail("'%s': %s is %s, expected a list", path, string.format(...),
      type(value) == "table" and "an object" or json.describe(value))
  end
  return value
end

--- The value, which must be an integer from 0 to 2^31 - 1: an id, a count or a length.
function M.integer(value, path, ...)
  if type(value) ~= "number" or value % 1 ~= 0 or value < 0 or value >= 2 ^ 31 then
    M.fail("'%s': %s is %s, expected an integer from 0 to 2^31 - 1", path, string.format(...), json.describe(value))
  end
  return value
end

--- The code point of a text that is one character.
function M.character(value, path, ...)
  local text = M.expect(value, "string", path, ...)
  if text == "" or utf8.at(text, 1) ~= text then
    M.fail("'%s': %s is '%s', expected one character", path, string.format(...), text)
  end
  return utf8.code_point(text)
end

return M
