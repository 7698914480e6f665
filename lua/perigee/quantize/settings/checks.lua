--- checks: what the value of a setting may be. A check is a function (name, value) that returns the value, or a copy of a table,
-- or raises an error that blames nobody. name: the setting as the error calls it, such as alpha or sites["encoder.*"].alpha.
local nearest = require "perigee.base.nearest"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"

local checks = {}

local SHOWN = 60 -- bytes of a text that an error shows

--- A value as errors show it.
function checks.show(value)
  if type(value) == "string" then
    return ("%q"):format(#value <= SHOWN and value or value:sub(1, SHOWN) .. "...")
  end
  return pgee.describe(value)
end

local show = checks.show

--- Raises the error that a value is not what was expected.
function checks.refuse(name, value, expected)
  error(("settings: %s is %s, expected %s"):format(name, show(value), expected), 0)
end

--- A check for one of a list of values.
function checks.choice(allowed)
  local words = {}
  for i, a in ipairs(allowed) do
    words[i] = show(a)
  end
  return function(name, value)
    for _, a in ipairs(allowed) do
      if value == a then
        return value
      end
    end
    checks.refuse(name, value, table.concat(words, " or ") .. nearest.hint(value, allowed))
  end
end

--- A check of a setting that is for static activations: with dynamic activations it has to be `off`.
function checks.static_only(check, off)
  return function(name, value, all)
    local checked = check(name, value)
    if checked ~= off and all.activations ~= "static" then
      error(("settings: %s is %s, but activations are %s, expected %s: it is for static activations"):format(name, show(value),
        all.activations, show(off)), 0)
    end
    return checked
  end
end

--- An alpha: a number from 0 to 1, false, or "auto".
function checks.alpha(name, value)
  if value == false or value == "auto" then
    return value
  elseif type(value) == "number" and value >= 0 and value <= 1 then
    return value + 0 -- -0 becomes 0
  end
  checks.refuse(name, value, 'a number from 0 to 1, false for no smoothing, or "auto"')
end

--- An alpha, or a table of pattern = alpha.
function checks.alphas(name, value)
  if type(value) ~= "table" then
    return checks.alpha(name, value)
  end
  local copy = {}
  for p, alpha in pairs(value) do
    copy[patterns.check("a key of " .. name, p)] = checks.alpha(("%s[%s]"):format(name, show(p)), alpha)
  end
  return copy
end

--- A list of patterns; a text alone is a list of one. Holes and keys that are no index are errors, because the list would
-- silently lose what is behind them.
function checks.patterns(name, value)
  local given, copy, count = type(value) == "string" and { value } or value, {}, 0
  if type(given) ~= "table" then
    checks.refuse(name, value, "a list of names or patterns")
  end
  for i, p in pairs(given) do
    count = count + 1
    if type(i) ~= "number" then
      checks.refuse(("%s[%s]"):format(name, show(i)), p, "a list of names or patterns, without keys")
    end
    copy[i] = patterns.check(("%s[%s]"):format(name, i), p)
  end
  if count ~= #copy then
    error(("settings: %s is a list with holes, expected a list of names or patterns"):format(name), 0)
  end
  return copy
end

return checks
