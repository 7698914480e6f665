--- Predict: how fast a model would run on another machine, from its profile on this one.
--
-- A linear takes its roofline's time on the other machine, divided by the share of the roofline that it reaches here. All
-- other steps scale with the speed of FP32 vector instructions. The products of attention scale as linears of the same type do.
-- Its softmax and its quantizing scale as vector instructions do.
--
-- After each step all threads of a process meet at a barrier. If the machine has `barrier`, the seconds of a barrier of all
-- cores, that counts in proportion to the logarithm of the number of threads. Left out: threads that wait for the slowest one
-- because the work cannot be divided equally, and clocks that fall under load. Predictions for many threads are therefore too
-- good.
local machine = require "perigee.analyze.machine"
local roofline = require "perigee.analyze.roofline"

local predict = {}

--- The linears of a profile (perigee.bench.workload) as roofline.linears takes them: { name =, M =, N =, K =, steps = }.
-- tokens: rows of each linear.
function predict.linears(groups, tokens)
  local list = {}
  for _, g in ipairs(groups) do
    if g.op == "linear" then
      list[#list + 1] = { name = g.name, M = tokens, N = g.N, K = g.K, steps = g.steps, precision = g.precision }
    end
  end
  return list
end

--- Bytes of the weights that a profile's linears read, each in its own precision.
function predict.weights(groups)
  local sum = 0
  for _, g in ipairs(groups) do
    if g.op == "linear" then
      sum = sum + g.N * g.K * g.steps * roofline.BYTES[g.precision].weight
    end
  end
  return sum
end

-- The shortest time of a group of equal linears.
local function bound_of(m, g, tokens, weights)
  local bound = roofline.linear(m, { M = tokens, N = g.N, K = g.K }, g.precision, weights)
  return bound and bound.seconds * g.steps or error(("%s has no peak of %s"):format(m.name, g.precision), 0)
end

--- Returns two values: the share of its roofline that each linear of a profile reaches on the machine where it was measured,
-- { [name] = share }; and the mean share of all linears, weighted by time. A share is at most 1.
function predict.efficiencies(here, groups, tokens)
  local weights, shares, bounds, seconds = predict.weights(groups), {}, 0, 0
  for _, g in ipairs(groups) do
    if g.op == "linear" then
      local bound = bound_of(here, g, tokens, weights)
      shares[g.name] = math.min(1, bound / g.seconds)
      bounds, seconds = bounds + bound, seconds + g.seconds
    end
  end
  return shares, seconds > 0 and math.min(1, bounds / seconds) or 1
end

--- The seconds of each class on another machine.
--   here, there   machines; here is where the profile was measured, with all of its cores in use
--   groups        the profile
--   tokens        tokens of one run
-- Returns { linear =, attention =, rest =, barriers =, all = }. If `there.efficiency` says what linears reach there, that
-- counts instead of what was measured here.
function predict.seconds(here, there, groups, tokens)
  local shares, mean = predict.efficiencies(here, groups, tokens)
  local weights, known = predict.weights(groups), there.efficiency or {}
  local vectors = here.peak.f32 / there.peak.f32
  local sum, steps = { linear = 0, attention = 0, rest = 0 }, 0
  for _, g in ipairs(groups) do
    steps = steps + g.steps
    if g.op == "linear" then
      sum.linear = sum.linear + bound_of(there, g, tokens, weights) / (known[g.precision] or shares[g.name])
    elseif g.op == "attention" then
      local type = g.precision
      local products = math.min(g.seconds, 2 * g.work / (here.peak[type] * mean))
      sum.attention = sum.attention + 2 * g.work / (there.peak[type] * (known[type] or mean)) + (g.seconds - products) * vectors
    else
      sum.rest = sum.rest + g.seconds * vectors
    end
  end
  sum.barriers = steps * (there.barrier or 0)
  sum.all = sum.linear + sum.attention + sum.rest + sum.barriers
  return sum
end

-- The divisors of n, ascending.
local function divisors(n)
  local list = {}
  for d = 1, n do
    list[#list + 1] = n % d == 0 and d or nil
  end
  return list
end

--- Processes side by side on another machine, each with an equal part of its cores, against the latency of one of them.
-- texts: how many texts a run has. Returns a list of { instances =, threads = of each, seconds = of a run, texts_per_second =
-- of all together, level = where the weights lie, best = true where no other row has both a shorter time and more texts a
-- second }.
function predict.instances(here, there, groups, tokens, texts)
  local weights, rows = predict.weights(groups), {}
  for i, instances in ipairs(divisors(there.cores)) do
    local part = machine.part(there, there.cores / instances, instances)
    local seconds = predict.seconds(here, part, groups, tokens).all
    rows[i] = {
      instances = instances, threads = part.cores, seconds = seconds, texts_per_second = instances * texts / seconds,
      level = roofline.level(part, weights),
    }
  end
  for _, row in ipairs(rows) do
    row.best = true
    for _, other in ipairs(rows) do
      if other.seconds < row.seconds and other.texts_per_second >= row.texts_per_second then
        row.best = false
      end
    end
  end
  return rows
end

return predict
