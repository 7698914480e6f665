--- Patterns: names of linears and sites in which * stands for any characters and ? for one character.
--
-- A site is a table with a name and a list `linears`. A pattern matches a site by the site's name or by the name of one of its
-- linears. If several patterns match, the closest decides: a site's name is closer than a linear's name, a name is closer than
-- a name with * or ?, and a longer pattern is closer than a shorter one.
local nearest = require "perigee.base.nearest"
local pgee = require "perigee.ffi"

local patterns = {}

-- By pattern: Lua's patterns for the parts between the stars, or false if the pattern has no * and no ?. Each is made once.
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

-- Finds each part at its first place after the part before it. No other place needs to be tried, because a star between them
-- takes everything.
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

--- Returns the pattern if it is a text that is not empty; else raises an error that blames nobody and calls the pattern `name`.
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

--- The linears that a pattern does not match although it matches another linear of their site.
function patterns.not_named(pattern, found)
  local match, list = patterns.matcher(pattern), {}
  for _, site in ipairs(found) do
    for _, linear in ipairs(match(site.name) and {} or site.linears) do
      list[#list + 1] = not match(linear) and linear or nil
    end
  end
  return list
end

-- Whether pattern a is closer to the site than pattern b. Both match the site.
local function closer(a, b, site)
  if (a == site.name) ~= (b == site.name) then
    return a == site.name
  elseif (not compile(a)) ~= (not compile(b)) then
    return not compile(a)
  end
  return #a > #b or #a == #b and a < b
end

--- map: { pattern = value }. Returns the value of the closest pattern that matches the site; nil if none matches. has: nil, or a
-- function; patterns whose value has(value) refuses do not count.
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

--- The sites of a list that a pattern matches. If there is none, the error blames nobody. what: the name of the pattern in the
-- error, such as "skip pattern".
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
