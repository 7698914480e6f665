--- Writes values as JSON, in two styles. For perigee.base.json, whose `canonical` and `line` these are.
--
--   canonical   for files: the shortest digits that read back as the same double; {} for an empty table. NaN and infinity are
--               errors
--   line        for lines of answers: nine digits, which read back as the same float; [] for an empty table; null for NaN,
--               infinity and nil
-- In both, members are sorted by name, there are no spaces, and a table is an object if it has a key that is a text.
local grammar = require "perigee.base.json_grammar"
local pgee = require "perigee.ffi"

local writer = {}

--- The shortest digits that read back as the same number; nil for NaN.
function writer.shortest(number)
  for precision = 1, 17 do
    local text = ("%." .. precision .. "g"):format(number)
    if tonumber(text) == number then
      return text
    end
  end
end

local function finite(number)
  return number - number == 0
end

local CANONICAL = {
  what = "json.canonical", empty = "{}",
  number = function(v) return finite(v) and writer.shortest(v) or error("JSON has no " .. tostring(v), 0) end,
}
local LINE = {
  what = "json.line", empty = "[]", null = true,
  number = function(v) return finite(v) and ("%.9g"):format(v) or "null" end,
}

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n" }

--- A text in quotes.
function writer.quote(text)
  if type(text) ~= "string" then
    pgee.error(("json.quote: the text is %s, expected a text"):format(pgee.describe(text)))
  elseif text:find '[%c"\\]' then
    text = text:gsub('[%c"\\]', function(c)
      return ESCAPES[c] or ("\\u%04x"):format(c:byte())
    end)
  end
  return '"' .. text .. '"'
end

local write

-- The names of an object's members in order; none if the table is a list.
local function names_of(t, style)
  local names = {}
  for name in pairs(t) do
    if type(name) == "string" then
      names[#names + 1] = name
    elseif #t == 0 then
      pgee.error(("%s: a member's name is %s, expected a text"):format(style.what, pgee.describe(name)))
    end
  end
  table.sort(names)
  return names
end

local function write_table(t, style, depth)
  if depth == grammar.DEEPEST then
    pgee.error(("%s: more than %d tables in one another"):format(style.what, grammar.DEEPEST))
  end
  local parts, names = {}, names_of(t, style)
  if #names == 0 and #t > 0 then
    for i = 1, #t do
      if t[i] == nil and not style.null then
        break -- a list ends before its first nil
      end
      parts[i] = write(t[i], style, depth + 1)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for i, name in ipairs(names) do
    parts[i] = writer.quote(name) .. ":" .. write(t[name], style, depth + 1)
  end
  return #names == 0 and style.empty or "{" .. table.concat(parts, ",") .. "}"
end

function write(v, style, depth)
  if type(v) == "string" then
    return writer.quote(v)
  elseif type(v) == "number" then
    return v % 1 == 0 and math.abs(v) < 2 ^ 53 and ("%.0f"):format(v) or style.number(v)
  elseif type(v) == "boolean" then
    return tostring(v)
  elseif type(v) == "table" then
    return write_table(v, style, depth)
  elseif v == grammar.null or type(v) == "nil" and style.null then
    return "null"
  end
  return pgee.error(("%s: JSON has no %s, only texts, numbers, booleans and tables"):format(style.what, type(v)))
end

function writer.canonical(value)
  local text = write(value, CANONICAL, 0)
  return text
end

function writer.line(value)
  local text = write(value, LINE, 0)
  return text
end

return writer
