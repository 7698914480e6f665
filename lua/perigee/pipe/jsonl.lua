--- JSON Lines: one object a line, read without loss and written exactly.
--
--   local line = jsonl.read '{"id":12345678901234567890,"text":"a\\u00e9"}'
--   line:text "text"       -- "aé"
--   line:raw "id"          -- "12345678901234567890", as it stands in the line; line:member "id" has its name, too
--   jsonl.write { label = "x", score = 0.5 }
--
-- Numbers and strings of a line pass through as they stand in it. perigee.json_grammar says what is JSON.
local grammar = require "perigee.base.json_grammar"
local pgee = require "perigee.ffi"
local byte, sub = string.byte, string.sub

local jsonl = {}
local Line = {}
Line.__index = Line

-- Returns `text` if it is a text; else an error that names the function. This does not use perigee.options, because it runs for
-- every line.
local function check_text(text, what)
  if type(text) ~= "string" then
    pgee.error(("%s is %s, expected a text"):format(what, pgee.describe(text)))
  end
  return text
end

--- The position of the first byte that is no UTF-8, nil if all are. from: where a character begins, to look from there on.
function jsonl.malformed(text, from)
  return grammar.malformed(check_text(text, "jsonl.malformed: the text"), from)
end

---- Reading -----------------------------------------------------------------------------------------------------------

local function members_of(line, text)
  local i, b = grammar.blank(text, 1)
  if b ~= 123 then
    grammar.fail(i, "an object, {")
  end
  i = grammar.members(text, i, function(first, last, from)
    local quoted, to = sub(text, first, last), grammar.skip(text, from, 2)
    local name = grammar.unquoted(quoted) or quoted
    if not line.from[name] then
      line.names[#line.names + 1] = name
    end
    line.quoted[name], line.from[name], line.to[name] = quoted, from, to - 1
    return to
  end)
  i, b = grammar.blank(text, i)
  if b then
    grammar.fail(i, "the end of the line")
  end
end

--- The object that a line holds. Errors, which blame nobody: it is no UTF-8, no JSON, no object.
function jsonl.read(text)
  check_text(text, "jsonl.read: the line")
  local bad = jsonl.malformed(text)
  if bad then
    error(("no valid UTF-8 at byte %d"):format(bad), 0)
  end
  local line = setmetatable({ whole = text, names = {}, quoted = {}, from = {}, to = {} }, Line)
  local ok, why = pcall(members_of, line, text)
  return ok and line or error("no valid JSON: " .. why, 0)
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
  return grammar.unquoted(raw) or error(("field %q has half of a surrogate pair"):format(name), 0)
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
  grammar.sequence(raw, 1, 93, "", function(at)
    local after = grammar.skip(raw, at, 1)
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
  elseif depth == grammar.DEEPEST then
    pgee.error(("jsonl.write: more than %d tables in one another"):format(grammar.DEEPEST))
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
