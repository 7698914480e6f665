--- JSON Lines: one object a line, read without loss. json.line writes lines.
--
--   local line = jsonl.read '{"id":12345678901234567890,"text":"a\\u00e9"}'
--   line:text "text"       -- "aé"
--   line:raw "id"          -- "12345678901234567890", as it stands in the line; line:member "id" has its name, too
--
-- Numbers and strings of a line can be copied to the output byte by byte. base/json_grammar.lua says what is JSON.
local grammar = require "perigee.base.json_grammar"
local pgee = require "perigee.ffi"
local utf8 = require "perigee.base.utf8"
local byte, sub = string.byte, string.sub

local jsonl = {}
local Line = {}
Line.__index = Line

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

--- The object that a line holds. Errors blame nobody: the line is not UTF-8, not JSON, or holds no object.
function jsonl.read(text)
  if type(text) ~= "string" then
    pgee.error(("jsonl.read: the line is %s, expected a text"):format(pgee.describe(text)))
  end
  local bad = utf8.malformed(text)
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

--- A member as it stands in the line: its name, a colon and its value; nil if there is none of that name. A CR, which JSON allows
-- between values and which some readers take for the end of a line, becomes a space.
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

--- A member's text. It is an error if the member is missing, is no string, or has half of a surrogate pair.
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

return jsonl
