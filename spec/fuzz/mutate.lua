--- Mutate: makes an input from another input. Equal seeds of the generator give equal inputs.
--
--   local random = mutate.generator(7)       -- random(n): an integer from 1 to n
--   mutate.bytes(input, inputs, random)      -- some of its bytes changed, or parts of another input put in
--   mutate.json(text, random)                -- one or more values of a JSON text replaced by odd ones
local cjson = require("cjson").new()
cjson.encode_invalid_numbers(true)

local mutate = {}

--- A function of n that returns an integer from 1 to n.
function mutate.generator(seed)
  local state = seed % 2147483629 + 1
  return function(n)
    for _ = 1, 2 do
      state = state * 48271 % 2147483647
    end
    return state % n + 1
  end
end

local NUMBERS = { "0", "-1", "1", "255", "256", "65536", "2147483647", "2147483648", "4294967295", "4294967296",
  "9007199254740993", "-9223372036854775808", "1e308", "1e999", "-0", "0.5", "1e-320", "NaN", "null", "true", "\"\"", "[]", "{}" }
local PIECES = { "\0", "\255", "\n", "\r\n", "\t", "\"", "\\", "{", "}", "[", "]", ",", ":", "\\u0000", "\\ud800", "\239\187\191",
  "\240\159\152\128", "\237\160\128", "\192\128", "../", "/dev/null", "%s", ("a"):rep(300), ("["):rep(2000) }

-- Functions of a text, a position in it and a generator that return the changed text.
local EDITS = {
  function(text, at, random) return text:sub(1, at - 1) .. string.char(random(256) - 1) .. text:sub(at + 1) end,
  function(text, at, random) return text:sub(1, at - 1) .. text:sub(at + random(16)) end,
  function(text, at, random) return text:sub(1, at - 1) .. PIECES[random(#PIECES)] .. text:sub(at) end,
  function(text, at, random)
    local length = random(64)
    return text:sub(1, at + length) .. text:sub(at)
  end,
  function(text, at, random)
    local first, last = text:find("%d+", at)
    return first and text:sub(1, first - 1) .. NUMBERS[random(#NUMBERS)] .. text:sub(last + 1) or text
  end,
  function(text, at) return text:sub(1, at) end,
}

function mutate.bytes(input, inputs, random)
  for _ = 1, random(4) do
    local at = random(#input + 1)
    if random(8) == 1 then
      local other = inputs[random(#inputs)]
      input = input:sub(1, at) .. other:sub(random(#other + 1))
    else
      input = EDITS[random(#EDITS)](input, at, random)
    end
  end
  return input
end

local ODD = {
  function() return cjson.null end,
  function() return true end,
  function(random) return ({ 0, -1, 1, 0.5, 2 ^ 31, 2 ^ 32, 2 ^ 53, -2 ^ 63, 1e308, 1e-320, math.huge, 12, 255 })[random(13)] end,
  function(random) return ({ "", "a", "0", "../a", "\0", ("x"):rep(5000), "*", "[MASK]", "gelu", "f32", "I8" })[random(11)] end,
  function() return {} end,
  function() return { { { {} } } } end,
  function() return { a = 1 } end,
  function() return { "a", 1, cjson.null } end,
}

--- All places of a decoded JSON value where something stands, as a list of { table, key }.
function mutate.places(value, list)
  list = list or {}
  for key, inner in pairs(value) do
    list[#list + 1] = { value, key }
    if type(inner) == "table" then
      mutate.places(inner, list)
    end
  end
  return list
end

local CHANGES = {
  function(place, random) place[1][place[2]] = ODD[random(#ODD)](random) end,
  function(place) place[1][place[2]] = nil end,
  function(place, random, all)
    local from = all[random(#all)]
    place[1][place[2]] = cjson.decode(cjson.encode { from[1][from[2]] })[1]
  end,
  function(place, random)
    local value = place[1][place[2]]
    place[1][place[2]] = type(value) == "number" and value + random(5) - 3 or type(value) == "string" and value .. "x"
      or { value }
  end,
  function(place, random)
    if type(place[2]) == "string" then
      place[1][place[2] .. "x"] = place[1][place[2]]
    else
      table.insert(place[1], random(#place[1] + 1), place[1][place[2]])
    end
  end,
}

--- nil if it is no JSON list or object.
function mutate.json(text, random)
  local ok, value = pcall(cjson.decode, text)
  if not ok or type(value) ~= "table" then
    return nil
  end
  for _ = 1, random(3) do
    local all = mutate.places(value)
    if #all > 0 then
      CHANGES[random(#CHANGES)](all[random(#all)], random, all)
    end
  end
  ok, text = pcall(cjson.encode, value)
  return ok and text or nil
end

--- Mutates an input as bytes or as JSON. titled: mostly leaves the first line, which says what the rest is.
function mutate.any(input, inputs, random, titled)
  local title, rest = "", input
  if titled and random(32) > 1 then
    title, rest = input:match "^([^\n]*\n)(.*)$"
    title, rest = title or "", rest or input
  end
  return title .. (random(2) == 1 and mutate.json(rest, random) or mutate.bytes(rest, inputs, random))
end

return mutate
