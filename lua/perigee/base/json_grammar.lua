--- The grammar of JSON: where values stand in a text, and what they are in Lua. base/json.lua and pipe/jsonl.lua read with it.
--
-- Perigee has its own reader for two reasons. lua-cjson depends on the locale that the process had when lua-cjson was loaded:
-- with a decimal comma it refuses 0.45. lua-cjson also rounds integers above 2^53, which recipes/pipe.lua must pass through
-- unchanged. This reader accepts RFC 8259 and nothing more: UTF-8, no control characters in strings, no NaN, no comments. If
-- two names in an object are equal, the last one counts.
local utf8 = require "perigee.base.utf8"
local byte, sub = string.byte, string.sub

local grammar = { null = newproxy(true) } -- userdata: no table, no number, and equal to itself alone
getmetatable(grammar.null).__tostring = function() return "null" end

local DEEPEST = 512 -- lists and objects in one another

---- Reading -----------------------------------------------------------------------------------------------------------

local function fail(at, expected)
  error(("expected %s at byte %d"):format(expected, at), 0)
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

-- Each of these functions reads one kind of value: it takes the position of the value's first byte and returns the position
-- after its last byte.
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

-- Reads the members of a list or an object up to the bracket `close`; i is the position of the bracket that opens it. `member`
-- reads one member from a position and returns the position after it.
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

-- Calls each(first, last, from) for each member of an object: first to last is its name with the quotes, its value begins at
-- `from`. each returns the position after the value.
local function members(text, i, each)
  return sequence(text, i, 125, "',' or '}'", function(at)
    local b
    if byte(text, at) ~= 34 then
      fail(at, "a name in quotes")
    end
    local first, after = at, quoted(text, at)
    at, b = blank(text, after)
    if b ~= 58 then
      fail(at, "':'")
    end
    return each(first, after - 1, (blank(text, at + 1)))
  end)
end

local function too_deep(i)
  error(("more than %d lists and objects in one another at byte %d"):format(DEEPEST, i), 0)
end

local WORDS = { [116] = "true", [102] = "false", [110] = "null" }

-- The kind of the value that begins at i, from its first byte. If no value begins there, that is an error.
local function kind_of(text, i, depth)
  local b = byte(text, i)
  if b == 34 then
    return "string"
  elseif b == 45 or b and b >= 48 and b <= 57 then
    return "number"
  elseif WORDS[b] and sub(text, i, i + #WORDS[b] - 1) == WORDS[b] then
    return WORDS[b]
  elseif b ~= 91 and b ~= 123 then
    fail(i, "a value")
  elseif depth > DEEPEST then
    too_deep(i)
  end
  return b == 123 and "object" or "list"
end

-- The position after the value that begins at i.
local function skip(text, i, depth)
  local kind = kind_of(text, i, depth)
  if kind == "string" then
    return quoted(text, i)
  elseif kind == "number" then
    return number(text, i)
  elseif kind == "object" then
    return members(text, i, function(_, _, from) return skip(text, from, depth + 1) end)
  elseif kind == "list" then
    return sequence(text, i, 93, "',' or ']'", function(at) return skip(text, at, depth + 1) end)
  end
  return i + #kind
end

-- The text of a raw string; nil if it has half of a surrogate pair, which UTF-8 cannot encode.
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
      parts[#parts + 1] = utf8.encode(code)
    else
      parts[#parts + 1] = ESCAPES[e]
    end
  end
end

---- Values ------------------------------------------------------------------------------------------------------------

local CONSTANTS = { ["true"] = true, ["false"] = false, null = grammar.null }

local function string_of(text, first, last)
  return unquoted(sub(text, first, last)) or fail(first, "a string without half of a surrogate pair")
end

-- The value that begins at i, and the position after it.
local function read(text, i, depth)
  local kind = kind_of(text, i, depth)
  if kind == "string" then
    local after = quoted(text, i)
    return string_of(text, i, after - 1), after
  elseif kind == "number" then
    local after = number(text, i)
    local value = tonumber(sub(text, i, after - 1))
    return value - value == 0 and value or fail(i, "a number that a double can hold"), after
  elseif kind == "object" then
    local object = {}
    return object, members(text, i, function(first, last, from)
      local name, value, after = string_of(text, first, last), read(text, from, depth + 1)
      object[name] = value
      return after
    end)
  elseif kind == "list" then
    local list, n = {}, 0
    return list, sequence(text, i, 93, "',' or ']'", function(at)
      local after
      n = n + 1
      list[n], after = read(text, at, depth + 1)
      return after
    end)
  end
  return CONSTANTS[kind], i + #kind
end

--- The value that a text holds: objects and lists are tables, null is grammar.null. Errors, which blame nobody: the text is not
-- UTF-8, or not JSON; it has half of a surrogate pair, or a number beyond the range of doubles.
function grammar.decode(text)
  local bad = utf8.malformed(text)
  if bad then
    error(("expected UTF-8 at byte %d"):format(bad), 0)
  end
  local value, i = read(text, (blank(text, 1)), 1)
  local b
  i, b = blank(text, i)
  if b then
    fail(i, "the end of the text")
  end
  return value
end

grammar.fail, grammar.blank, grammar.skip, grammar.members, grammar.sequence = fail, blank, skip, members, sequence
grammar.unquoted, grammar.DEEPEST = unquoted, DEEPEST

return grammar
