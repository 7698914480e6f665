--- Reading decoded JSON with errors that name the file and the value: what the other modules here share.
local json = require "perigee.base.json"
local utf8 = require "perigee.base.utf8"

local M = {}

function M.fail(...)
  error(string.format(...), 0)
end

--- Errors: the key of the file has that value, and not what is expected.
function M.refuse(path, key, value, expected)
  M.fail("'%s': %s is %s, expected %s", path, key, json.describe(value), expected)
end

--- The path of a file in a folder; of the folder itself for "".
function M.join(folder, name)
  return name == "" and folder or folder:gsub("/+$", "") .. "/" .. name
end

--- null and missing are both nil.
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

--- The value, of that kind. The rest says what it is.
function M.expect(value, kind, path, ...)
  if type(value) ~= kind then
    M.fail("'%s': %s is %s, expected a %s", path, string.format(...), json.describe(value), kind)
  end
  return value
end

--- As expect, or the default where the value is missing or null.
function M.optional(value, kind, default, path, ...)
  if value == nil or value == json.null then
    return default
  end
  return M.expect(value, kind, path, ...)
end

--- A list. An empty object cannot be told from an empty one.
function M.list(value, path, ...)
  if type(value) ~= "table" or #value == 0 and next(value) ~= nil then
    M.fail("'%s': %s is %s, expected a list", path, string.format(...),
      type(value) == "table" and "an object" or json.describe(value))
  end
  return value
end

--- An id, count or length.
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
