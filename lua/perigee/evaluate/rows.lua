--- Rows: tables as text (tab- or comma-separated, or JSON objects) as lists of rows, each with the line that it begins on.
--
-- Comma-separated text is quoted as RFC 4180 says. Quotes in tab-separated text are text, unless some are doubled and all of it
-- parses as quoted: that is how data frames are written.
local json = require "perigee.base.json"

local rows = {}

local function fail(path, line, ...)
  error(("%s, line %d: "):format(path, line) .. string.format(...), 0)
end

--- The lines of a text, without their ends (LF or CR LF), as an iterator of number and line.
function rows.lines(text)
  local at, n = 1, 0
  return function()
    if at > #text then
      return nil
    end
    local stop = text:find("\n", at, true) or #text + 1
    local line = text:sub(at, stop - 1)
    at, n = stop + 1, n + 1
    return n, (line:gsub("\r$", ""))
  end
end

--- The fields between delimiters, a plain string of one character.
function rows.split(line, delimiter)
  local fields, at = {}, 1
  while true do
    local stop = line:find(delimiter, at, true)
    fields[#fields + 1] = line:sub(at, (stop or 0) - 1)
    if not stop then
      return fields
    end
    at = stop + 1
  end
end

--- Fields as they stand; empty lines are left out.
function rows.plain(text, delimiter)
  local list = {}
  for n, line in rows.lines(text) do
    if line ~= "" then
      local row = rows.split(line, delimiter)
      row.line = n
      list[#list + 1] = row
    end
  end
  return list
end

-- A quoted field that begins at `at`, a quote: its text, the place behind it, and the lines in it.
local function quoted_field(text, at, path, line)
  local parts, from = {}, at + 1
  while true do
    local stop = text:find('"', from, true)
    if not stop then
      fail(path, line, "a quote opens a field and is never closed")
    end
    parts[#parts + 1] = text:sub(from, stop - 1)
    if text:byte(stop + 1) ~= 34 then
      local value = table.concat(parts)
      local _, breaks = value:gsub("\n", "")
      return value, stop + 1, breaks
    end
    parts[#parts + 1] = '"'
    from = stop + 2
  end
end

--- Fields quoted as in RFC 4180: "a ""quoted"" word, and a comma". Empty lines are left out. Errors name file and line.
function rows.quoted(text, delimiter, path)
  local list, at, line = {}, 1, 1
  local ends = "[" .. delimiter .. "\n]"
  while at <= #text do
    local row, more = { line = line }, true
    while more do
      local value
      if text:byte(at) == 34 then
        local breaks
        value, at, breaks = quoted_field(text, at, path, line)
        line = line + breaks
        at = text:sub(at, at + 1) == "\r\n" and at + 1 or at
        if at <= #text and not text:find("^" .. ends, at) then
          fail(path, line, "expected '%s' or the end of the line behind a closing quote, found '%s'",
            delimiter == "\t" and "TAB" or delimiter, text:sub(at, at))
        end
      else
        local stop = text:find(ends, at) or #text + 1
        value, at = text:sub(at, stop - 1):gsub("\r$", ""), stop
      end
      row[#row + 1] = value
      more = text:sub(at, at) == delimiter
      at = at + 1
    end
    line = line + 1
    if #row > 1 or row[1] ~= "" then
      list[#list + 1] = row
    end
  end
  return list
end

local function same_width(list)
  for _, row in ipairs(list) do
    if #row ~= #list[1] then
      return false
    end
  end
  return true
end

--- Tab-separated rows. quoted: true, false, or nil, which decides by the text.
function rows.tabs(text, path, quoted)
  if quoted == nil and text:find('""', 1, true) then
    local ok, list = pcall(rows.quoted, text, "\t", path)
    if ok and same_width(list) then
      return list
    end
  end
  return quoted and rows.quoted(text, "\t", path) or rows.plain(text, "\t")
end

--- One JSON object a line, each as a table with its `line`.
function rows.jsonl(text, path)
  local list = {}
  for n, line in rows.lines(text) do
    if line:find "%S" then
      local ok, object = pcall(json.decode, line)
      if not ok or type(object) ~= "table" or not line:find "^%s*{" then
        fail(path, n, "expected a JSON object, found %s", ok and "'" .. line:sub(1, 40) .. "'" or "'" .. line:sub(1, 40) .. "': "
          .. tostring(object))
      end
      list[#list + 1] = { object = object, line = n }
    end
  end
  return list
end

return rows
