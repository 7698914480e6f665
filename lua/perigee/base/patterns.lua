--- Patterns: names of linears and sites with * (any characters) and ? (one character) in them, and which of several decides.
--
-- A site is a table with a name and a list `linears`. A pattern matches it by its own name or by the name of one of its linears.
-- Of several that match, a site's name is closer than a linear's, a name closer than a pattern, a long pattern closer than a
-- short one.
local nearest = require "perigee.base.nearest"
local pgee = require "perigee.ffi"

local patterns = {}

-- Lua's patterns of what stands between the stars, false for names: made once.
local compiled = {}

local function compile(pattern)
  local parts = compiled[pattern]
  if parts == nil then
    parts = pattern:find "[*?]" and {} or false
    for part in (parts and pattern .. "*" or ""):gmatch "(.-)%*" do
      parts[#parts + 1] = part:gsub("[%^%$%(%)%%%.%[%]%+%-]", "%%%0"):gsub("%?", ".")
    end
    if parts then
      parts[1] = "^" .. parts[1]
      parts[#parts] = parts[#parts] .. "$"
    end
    compiled[pattern] = parts
  end
  return parts
end

-- Each part where it first is behind the one before: what a star takes never needs to be taken back.
local function holds(parts, name)
  local from = 1
  for _, part in ipairs(parts) do
    local _, last = name:find(part, from)
    if not last then
      return false
    end
    from = last + 1
  end
  return true
end

--- The pattern if it is one, a text that is not empty; else an error, which blames nobody, that calls it by `name`.
function patterns.check(name, pattern)
  if type(pattern) ~= "string" or pattern == "" then
    error(("settings: %s is %s, expected the name of a linear or a pattern such as \"encoder.layer.0.*\""):format(name,
      pgee.describe(pattern)), 0)
  end
  return pattern
end

--- A function that tells whether a name matches the pattern.
function patterns.matcher(pattern)
  local parts = compile(pattern)
  return function(name)
    return name == pattern or parts and holds(parts, name) or false
  end
end

--- Whether the pattern matches a site: its name, or the name of one of its linears.
function patterns.matches(pattern, site)
  local match = patterns.matcher(pattern)
  if match(site.name) then
    return true
  end
  for _, linear in ipairs(site.linears) do
    if match(linear) then
      return true
    end
  end
  return false
end

-- Whether pattern a is closer to the site than b; both match.
local function closer(a, b, site)
  if (a == site.name) ~= (b == site.name) then
    return a == site.name
  elseif (not compile(a)) ~= (not compile(b)) then
    return not compile(a)
  end
  return #a > #b or #a == #b and a < b
end

--- The value of the closest of the patterns in a table, { pattern = value }, that match the site; of those for which has(value)
-- is true, if it is given. nil if there is none.
function patterns.closest(map, site, has)
  local best
  for p, value in pairs(map) do
    if (not has or has(value)) and (best == nil or closer(p, best, site)) and patterns.matches(p, site) then
      best = p
    end
  end
  return map[best]
end

--- The names of sites and of their linears.
function patterns.names(sites)
  local names = {}
  for _, site in ipairs(sites) do
    if site.linears[1] ~= site.name then
      names[#names + 1] = site.name
    end
    for _, linear in ipairs(site.linears) do
      names[#names + 1] = linear
    end
  end
  return names
end

--- The sites of a list that a pattern matches; an error, which blames nobody, if there is none. what: what an error calls the
-- pattern, such as "skip pattern".
function patterns.find(pattern, sites, what)
  patterns.check("a pattern", pattern)
  local found = {}
  for _, site in ipairs(sites) do
    if patterns.matches(pattern, site) then
      found[#found + 1] = site
    end
  end
  if #found == 0 then
    error(("settings: %s%q matches no linear%s"):format(what and what .. " " or "", pattern,
      nearest.hint(pattern, patterns.names(sites))), 0)
  end
  return found
end

return patterns
