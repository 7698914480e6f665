--- Bootstrap: intervals of scores, by drawing samples of the items with replacement (Efron 1979; percentile intervals). All
-- models are scored on the same samples, so the intervals of differences are paired. The random numbers come from Perigee's own
-- generator with a fixed seed, so equal answers have equal intervals on every machine.
local bit = require "bit"
local bootstrap = {}

--- A generator: random(n) is an integer from 1 to n. It is Doty-Humphrey's sfc32; n is far below 2^32.
function bootstrap.generator(seed)
  local bxor, lshift, rshift, rol, tobit = bit.bxor, bit.lshift, bit.rshift, bit.rol, bit.tobit
  local a, b, c, counter = 0, 0, tobit(seed), 1
  local function word()
    local t = tobit(a + b + counter)
    counter = tobit(counter + 1)
    a = bxor(b, rshift(b, 9))
    b = tobit(c + lshift(c, 3))
    c = tobit(rol(c, 21) + t)
    return t
  end
  for _ = 1, 12 do
    word()
  end
  return function(n)
    return math.floor(word() % 2 ^ 32 / 2 ^ 32 * n) + 1
  end
end

-- The quantile of a sorted list, interpolated linearly. share: 0 to 1.
local function quantile(sorted, share)
  local at = share * (#sorted - 1) + 1
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (at - low) * (sorted[high] - sorted[low])
end

--- Intervals of several numbers at once. f(weights) returns a list of numbers over a sample that has item i weights[i] times;
-- n: the number of items. options: resamples (1000), seed (1), level (0.95). Returns for each number { low, high }, or false if
-- the number is NaN in some sample.
function bootstrap.intervals(f, n, options)
  local resamples, level = options and options.resamples or 1000, options and options.level or 0.95
  local random, drawn, broken = bootstrap.generator(options and options.seed or 1), {}, {}
  for r = 1, resamples do
    local weights = {}
    for i = 1, n do
      weights[i] = 0
    end
    for _ = 1, n do
      local i = random(n)
      weights[i] = weights[i] + 1
    end
    for k, value in ipairs(f(weights)) do
      drawn[k] = drawn[k] or {}
      drawn[k][r] = value
      broken[k] = broken[k] or value ~= value
    end
  end
  local list = {}
  for k, values in ipairs(drawn) do
    if not broken[k] then
      table.sort(values)
      list[k] = { quantile(values, (1 - level) / 2), quantile(values, (1 + level) / 2) }
    else
      list[k] = false
    end
  end
  return list
end

return bootstrap
