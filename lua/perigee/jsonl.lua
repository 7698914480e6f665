--- JSON Lines: one object a line, read without loss and written exactly.
--
--   local line = jsonl.read '{"id":12345678901234567890,"text":"a\\u00e9"}'
--   line:text "text"       -- "aé"
--   line:raw "id"          -- "12345678901234567890", as it stands in the line; line:member "id" has its name, too
--   jsonl.write { label = "x", score = 0.5 }
--
-- A reader of its own: lua-cjson rounds integers above 2^53 and prints 14 digits, so that what passes through would not be what
-- came. It takes RFC 8259 and nothing more: UTF-8 without surrogates, no control characters in strings, no NaN, no comments. The
-- last of two equal names counts.
local pgee = require "perigee.ffi"
local byte, sub = string.byte, string.sub

local jsonl = {}
local Line = {}
Line.__index = Line

local DEEPEST = 512 -- lists and objects in one another

-- `text` if it is one; else an error that names the function. Not perigee.options: this is called for every line.
local function check_text(text, what)
  if type(text) ~= "string" then
    pgee.error(("%s is %s, expected a text"):format(what, pgee.describe(text)))
  end
  return text
end

---- UTF-8 -------------------------------------------------------------------------------------------------------------

-- The first continuation byte's range by lead byte, and how many there are: RFC 3629's table.
local function lead(b)
  if b >= 0xC2 and b <= 0xDF then return 1, 0x80, 0xBF end
  if b == 0xE0 then return 2, 0xA0, 0xBF end
  if b == 0xED then return 2, 0x80, 0x9F end
  if b >= 0xE1 and b <= 0xEF then return 2, 0x80, 0xBF end
  if b == 0xF0 then return 3, 0x90, 0xBF end
  if b >= 0xF1 and b <= 0xF3 then return 3, 0x80, 0xBF end
  if b == 0xF4 then return 3, 0x80, 0x8F end
end

--- The position of the first byte that is no UTF-8, nil if all are. from: where a character begins, to look from there on.
function jsonl.malformed(text, from)
  check_text(text, "jsonl.malformed: the text")
  local i = text:find("[\128-\255]", from)
  while i and i <= #text do
    local b = byte(text, i)
    if b < 0x80 then
      i = i + 1
    else
      local count, low, high = lead(b)
      for k = 1, count or 0 do
        local c = byte(text, i + k) or 0
        if c < (k == 1 and low or 0x80) or c > (k == 1 and high or 0xBF) then
          return i
        end
      end
      if not count then
        return i
      end
      i = i + count + 1
    end
  end
end

---- Reading -----------------------------------------------------------------------------------------------------------

local function fail(at, expected)
  error(("no valid JSON: expected %s at byte %d"):format(expected, at), 0)
end

local function blank(text, i)
  local b = byte(text, i)
  while b == 32 or b == 9 or b == 10 or b == 13 do
    i = i + 1
    b = byte(text, i)
  end
  return i, b
end

local ESCAPES = { [34] = '"', [92] = "\\", [47] = "/", [98] = "\b", [102] = "\f", [110] = "\n", [114] = "\r", [116] = "\t" }

-- Each of these begins at the first byte of its kind and returns the position after the last.
local function quoted(text, i)
  i = i + 1
  while true do
    local b = byte(text, i)
    if b == 34 then
      return i + 1
    elseif b == 92 then
      local e = byte(text, i + 1)
      if e == 117 and text:find("^%x%x%x%x", i + 2) then
        i = i + 6
      elseif e and ESCAPES[e] then
        i = i + 2
      else
        fail(i, "an escape")
      end
    elseif not b or b < 32 then
      fail(i, b and "no control character in a string" or 'the end of a string, "')
    else
      i = i + 1
    end
  end
end

local function digits(text, i)
  local first = i
  local b = byte(text, i)
  while b and b >= 48 and b <= 57 do
    i = i + 1
    b = byte(text, i)
  end
  if i == first then
    fail(i, "a digit")
  end
  return i, b
end

local function number(text, i)
  if byte(text, i) == 45 then
    i = i + 1
  end
  local b
  if byte(text, i) == 48 then -- no other digit follows a leading zero
    i, b = i + 1, byte(text, i + 1)
  else
    i, b = digits(text, i)
  end
  if b == 46 then
    i, b = digits(text, i + 1)
  end
  if b == 101 or b == 69 then
    b = byte(text, i + 1)
    i = digits(text, i + ((b == 43 or b == 45) and 2 or 1))
  end
  return i
end

local value

-- What stands between the brackets; `member` reads one from a position and returns the position after it.
local function sequence(text, i, close, expected, member)
  local b
  i, b = blank(text, i + 1)
  if b == close then
    return i + 1
  end
  while true do
    i, b = blank(text, member(i))
    if b == close then
      return i + 1
    elseif b ~= 44 then
      fail(i, expected)
    end
    i = blank(text, i + 1)
  end
end

-- found(name, from, to) is told each member's raw value.
local function object(text, i, depth, found)
  return sequence(text, i, 125, "',' or '}'", function(at)
    local b
    if byte(text, at) ~= 34 then
      fail(at, "a name in quotes")
    end
    local name, after = at, quoted(text, at)
    at, b = blank(text, after)
    if b ~= 58 then
      fail(at, "':'")
    end
    local from = blank(text, at + 1)
    local to = value(text, from, depth + 1)
    if found then
      found(sub(text, name, after - 1), from, to - 1)
    end
    return to
  end)
end

local WORDS = { [116] = "true", [102] = "false", [110] = "null" }

function value(text, i, depth)
  local b = byte(text, i)
  if b == 34 then
    return quoted(text, i)
  elseif b == 45 or b and b >= 48 and b <= 57 then
    return number(text, i)
  elseif WORDS[b] and sub(text, i, i + #WORDS[b] - 1) == WORDS[b] then
    return i + #WORDS[b]
  elseif b ~= 91 and b ~= 123 then
    fail(i, "a value")
  elseif depth > DEEPEST then
    error(("no JSON that is read here: more than %d lists and objects in one another"):format(DEEPEST), 0)
  elseif b == 123 then
    return object(text, i, depth)
  end
  return sequence(text, i, 93, "',' or ']'", function(at)
    return value(text, at, depth + 1)
  end)
end

-- U+10000 and up as UTF-8 take four bytes.
local function utf8(code)
  if code < 0x80 then
    return string.char(code)
  elseif code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64, 0x80 + math.floor(code / 64) % 64,
    0x80 + code % 64)
end

-- The text of a raw string, or nil if it has half of a surrogate pair, which no UTF-8 can say.
local function unquoted(raw)
  local text = sub(raw, 2, -2)
  if not text:find("\\", 1, true) then
    return text
  end
  local parts, at = {}, 1
  while true do
    local slash = text:find("\\", at, true)
    parts[#parts + 1] = sub(text, at, (slash or 0) - 1)
    if not slash then
      return table.concat(parts)
    end
    local e = byte(text, slash + 1)
    at = slash + 2
    if e == 117 then
      local code = tonumber(sub(text, slash + 2, slash + 5), 16)
      at = slash + 6
      if code >= 0xD800 and code <= 0xDFFF then
        local low = tonumber(text:match("^\\u(%x%x%x%x)", at) or "0", 16)
        if code > 0xDBFF or low < 0xDC00 or low > 0xDFFF then
          return nil
        end
        code, at = 0x10000 + (code - 0xD800) * 1024 + low - 0xDC00, at + 6
      end
      parts[#parts + 1] = utf8(code)
    else
      parts[#parts + 1] = ESCAPES[e]
    end
  end
end

--- The object that a line holds. Errors, which blame nobody: it is no UTF-8, no JSON, no object.
function jsonl.read(text)
  check_text(text, "jsonl.read: the line")
  local bad = jsonl.malformed(text)
  if bad then
    error(("no valid UTF-8 at byte %d"):format(bad), 0)
  end
  local i, b = blank(text, 1)
  if b ~= 123 then
    fail(i, "an object, {")
  end
  local line = setmetatable({ whole = text, names = {}, quoted = {}, from = {}, to = {} }, Line)
  i = object(text, i, 1, function(quoted_name, from, to)
    local name = unquoted(quoted_name) or quoted_name
    if not line.from[name] then
      line.names[#line.names + 1] = name
    end
    line.quoted[name], line.from[name], line.to[name] = quoted_name, from, to
  end)
  i, b = blank(text, i)
  if b then
    fail(i, "the end of the line")
  end
  return line
end

--- A member's value as it stands in the line; nil if there is none of that name.
function Line:raw(name)
  return self.from[name] and sub(self.whole, self.from[name], self.to[name])
end

--- A member as it stands in the line, its name, a colon and its value; nil if there is none of that name. A CR in it, which can
-- only stand between values and which some readers take for the end of a line, is a space.
function Line:member(name)
  return self.from[name] and self.quoted[name] .. ":" .. self:raw(name):gsub("\r", " ")
end

local KINDS = { [34] = "a string", [91] = "a list", [123] = "an object", [116] = "true", [102] = "false", [110] = "null" }

local function kind(raw)
  return KINDS[byte(raw)] or "a number"
end

local function text_of(raw, name)
  if byte(raw) ~= 34 then
    error(("field %q is %s, expected a string"):format(name, kind(raw)), 0)
  end
  return unquoted(raw) or error(("field %q has half of a surrogate pair"):format(name), 0)
end

local function present(line, name)
  return line:raw(name) or error(("field %q is missing"):format(name), 0)
end

--- A member's text. Errors: it is missing, no string, no Unicode.
function Line:text(name)
  return text_of(present(self, name), name)
end

--- A member's text, or a list of texts.
function Line:texts(name)
  local raw = present(self, name)
  if byte(raw) ~= 91 then
    return text_of(raw, name)
  end
  local list = {}
  sequence(raw, 1, 93, "", function(at)
    local after = value(raw, at, 1)
    list[#list + 1] = text_of(sub(raw, at, after - 1), name)
    return after
  end)
  return list
end

---- Writing -----------------------------------------------------------------------------------------------------------

local function escape(c)
  return ("\\u%04x"):format(byte(c))
end

--- A text in quotes.
function jsonl.quote(text)
  check_text(text, "jsonl.quote: the text")
  if text:find '[%c"\\]' then
    text = text:gsub('["\\]', "\\%0"):gsub("\n", "\\n"):gsub("%c", escape)
  end
  return '"' .. text .. '"'
end

local function write_number(v)
  if v - v ~= 0 then
    return "null" -- JSON has no infinity and no NaN
  end
  return v % 1 == 0 and math.abs(v) < 2 ^ 53 and ("%d"):format(v) or ("%.9g"):format(v) -- 9 digits say a float
end

local write

local function write_list(list, depth)
  local parts = {}
  for i = 1, #list do
    parts[i] = write(list[i], depth)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function write_object(members, depth)
  local parts = {}
  for name in pairs(members) do
    parts[#parts + 1] = check_text(name, "jsonl.write: a member's name")
  end
  table.sort(parts)
  for i, name in ipairs(parts) do
    parts[i] = jsonl.quote(name) .. ":" .. write(members[name], depth)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

function write(v, depth)
  if type(v) == "string" then
    return jsonl.quote(v)
  elseif type(v) == "number" then
    return write_number(v)
  elseif v == nil or type(v) == "boolean" then
    return v == nil and "null" or tostring(v)
  elseif type(v) ~= "table" then
    pgee.error(("jsonl.write: JSON has no %s, only texts, numbers, booleans and tables"):format(type(v)))
  elseif depth == DEEPEST then
    pgee.error(("jsonl.write: more than %d tables in one another"):format(DEEPEST))
  end
  return ((#v > 0 or next(v) == nil) and write_list or write_object)(v, depth + 1)
end

--- A value as JSON: members by name, an empty table as a list, numbers that are no integers with nine digits. Errors: a value
-- that JSON does not have, more than 512 tables in one another.
function jsonl.write(v)
  local text = write(v, 0)
  return text
end

return jsonl
