--- JSON: reads files and texts, and writes tables. Errors about a file name the file.
--
-- As in Python's reader, the last of two equal keys counts. null is json.null; NaN, Infinity and hexadecimal numbers are errors;
-- integers beyond 2^53 are rounded. The process's locale has no effect.
local foreign = require "perigee.base.foreign"
local grammar = require "perigee.base.json_grammar"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local writer = require "perigee.base.json_writer"

local M = { null = grammar.null }

local LARGEST = 2 ^ 30 -- bytes of a file
local BLOCK = 2 ^ 20 -- bytes that are read from a pipe at once

--- Describes a value for messages: "missing", "null", "a list or an object", "the string 'abc'", "3".
function M.describe(value)
  if value == nil then
    return "missing"
  elseif value == M.null then
    return "null"
  end
  return type(value) == "table" and "a list or an object" or pgee.describe(value)
end

-- Reads a pipe to its end. Returns the text; nil and the reason if there are more than LARGEST bytes.
local function read_pipe(file)
  local parts, bytes = {}, 0
  while true do
    local block, why = file:read(BLOCK)
    if not block then
      return not why and table.concat(parts) or nil, why
    end
    parts[#parts + 1], bytes = block, bytes + #block
    if bytes > LARGEST then
      return nil, ("it has more than %.0f bytes"):format(LARGEST)
    end
  end
end

--- The text of a regular file of at most 1 GiB; nil and the reason if there is no such file or it cannot be read. Everything else
-- is refused before it is opened: opening a pipe may wait for ever, and a device such as /dev/zero has no end. If `pipes` is
-- true, pipes and regular files of any size are read, too.
function M.text(path, pipes)
  local found = system.stat(path)
  local is_pipe = found and found.kind == "a named pipe"
  if found and not found.regular and not (pipes and is_pipe) then
    return nil, ("cannot read '%s': it is %s, expected a file%s"):format(path, found.kind, pipes and " or a pipe" or "")
  elseif found and not pipes and found.bytes > LARGEST then
    return nil, ("cannot read '%s': it has %.0f bytes, expected at most %.0f"):format(path, found.bytes, LARGEST)
  end
  local file, why = io.open(path, "rb")
  if not file then
    return nil, "cannot open '" .. path .. "': " .. why:sub(#path + 3)
  end
  local text
  if is_pipe then
    text, why = read_pipe(file)
  else
    text, why = file:read "*a"
  end
  file:close()
  return text, why and "cannot read '" .. path .. "': " .. why
end

local function read(path, open, kind, text)
  local why
  if not text then
    text, why = M.text(path)
  end
  if not text then
    error(why, 0)
  end
  local ok, value = pcall(grammar.decode, text)
  if not ok then
    error(("'%s' is not valid JSON: %s%s"):format(path, value, foreign.hint(path)), 0)
  elseif text:match "^%s*(.)" ~= open then -- the decoded tables of [] and {} look alike
    local came = type(value) ~= "table" and M.describe(value) or open == "[" and "an object" or "a list"
    error(("'%s' holds %s, expected %s"):format(path, came, kind), 0)
  end
  return value
end

--- The file's one object, as a table. text: the content of the file, if the caller has read it already.
function M.object(path, text)
  return read(path, "{", "an object", text)
end

--- The file's one list, as a table.
function M.list(path)
  return read(path, "[", "a list")
end

--- Writing: canonical(value) gives the one JSON text that equal tables have, for files; line(value) the JSON of an answer; quote
-- a text in quotes; shortest(number) the shortest digits that read back as the same number. See base/json_writer.lua.
M.canonical, M.line, M.quote, M.shortest = writer.canonical, writer.line, writer.quote, writer.shortest

--- The value of a JSON text. If the text is not JSON, the error names the byte where it stops being JSON. Errors blame nobody.
function M.decode(text)
  if type(text) ~= "string" then
    pgee.error(("json.decode: the JSON is %s, expected a text"):format(pgee.describe(text)))
  end
  return grammar.decode(text)
end

--- Whether there is something at that path. This includes a file that may not be opened: the function that opens it reports the
-- reason.
function M.exists(path)
  local found, missing = system.stat(path)
  return found ~= nil or not missing
end

return M
