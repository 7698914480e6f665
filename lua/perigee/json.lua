--- JSON files of a checkpoint, read with lua-cjson. Errors name the file.
--
-- As in Python's reader, the last of two equal keys counts. null is json.null; NaN, Infinity and hexadecimal numbers are errors;
-- integers beyond 2^53 are rounded.
local pgee = require "perigee.ffi"
local cjson = require("cjson").new()
cjson.decode_invalid_numbers(false)


local M = { null = cjson.null }

--- What a value is, for messages: "missing", "null", "a list or an object", the string 'abc', 3.
function M.describe(value)
  if value == nil then
    return "missing"
  elseif value == M.null then
    return "null"
  end
  return type(value) == "table" and "a list or an object" or pgee.describe(value)
end

--- The text of a file. Missing or unreadable: nil and why.
function M.text(path)
  local file, why = io.open(path, "rb")
  if not file then
    return nil, "cannot open '" .. path .. "': " .. why:sub(#path + 3)
  end
  local text
  text, why = file:read "*a"
  file:close()
  return text, why and "cannot read '" .. path .. "': " .. why
end

local function read(path, open, kind)
  local text, why = M.text(path)
  if not text then
    error(why, 0)
  end
  local ok, value = pcall(cjson.decode, text)
  if not ok then
    error(("'%s' is not valid JSON: %s"):format(path, value), 0)
  elseif text:match "^%s*(.)" ~= open then -- the decoded tables of [] and {} look alike
    local came = type(value) ~= "table" and M.describe(value) or open == "[" and "an object" or "a list"
    error(("'%s' holds %s, expected %s"):format(path, came, kind), 0)
  end
  return value
end

--- The file's one object, as a table.
function M.object(path)
  return read(path, "{", "an object")
end

--- The file's one list, as a table.
function M.list(path)
  return read(path, "[", "a list")
end

--- A table as JSON text, and back.
M.encode, M.decode = cjson.encode, cjson.decode

--- Whether there is something at that path that can be opened.
function M.exists(path)
  local file = io.open(path, "rb")
  return file ~= nil and file:close()
end

return M
