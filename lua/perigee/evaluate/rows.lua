--- Rows: reads tables (tab-separated, comma-separated, or JSON lines) as lists of rows. The field `line` of a row is the number
-- of its first line.
--
-- Comma-separated text is quoted as in RFC 4180. In tab-separated text a quote is an ordinary character, unless the text has a
-- doubled quote and all of it can be read as quoted, with rows of equal width: data frames are written so.
local json = require "perigee.base.json"

local rows = {}

--- Raises an error that names the file and the line. The further arguments are a format and its values.
function rows.fail(path, line, ...)
  error(("%s, line %d: "):format(path, line) .. string.format(...), 0)
end
local fail = rows.fail

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

--- The fields of a line. delimiter: one character.
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

--- Rows of a text without quoting; empty lines are left out.
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

-- Reads the quoted field whose opening quote is at `at`. Returns its text, the position after it, and the number of line breaks
-- in it.
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

--- Rows of a text with quoting as in RFC 4180: "a ""quoted"" word, and a comma". Empty lines are left out.
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
          fail(path, line, "expected '%s' or the end of the line after a closing quote, found '%s'",
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

--- Rows of a tab-separated text. quoted: whether it has quoting; nil: as the text looks (above).
function rows.tabs(text, path, quoted)
  if quoted == nil and text:find('""', 1, true) then
    local ok, list = pcall(rows.quoted, text, "\t", path)
    if ok and same_width(list) then
      return list
    end
  end
  return quoted and rows.quoted(text, "\t", path) or rows.plain(text, "\t")
end

--- The objects of a text with one JSON object a line: a list of { object =, line = }. Empty lines are left out.
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
