--- Analyze: where a model's time goes, what INT8 can give at most, what was reached, and how fast another machine would be.
--
--   local result = analyze.of(measured, here, there)
--
-- It only computes; perigee.analyze.measure measures, perigee.analyze.report and .html print.
local ceilings = require "perigee.analyze.ceilings"
local predict = require "perigee.analyze.predict"
local roofline = require "perigee.analyze.roofline"

local analyze = {}

--- The INT8 modes that are compared with FP32.
analyze.INT8 = { "static", "dynamic" }

-- The shortest seconds of linears and attention in INT8.
local function bounds_of(here, linears, mode)
  local work = 0
  for _, g in ipairs(mode.groups) do
    work = work + (g.op == "attention" and g.work or 0)
  end
  return { linear = roofline.seconds(roofline.linears(here, linears), "int8"), attention = 2 * work / here.peak.int8 }
end

-- The measured points of a mode: { name =, type =, intensity =, operations_per_second =, share = of the roofline }.
local function points_of(here, mode, rows)
  local shares, weights, list = predict.efficiencies(here, mode.groups, rows), predict.weights(mode.groups), {}
  for _, g in ipairs(mode.groups) do
    if g.op == "linear" then
      local bound = roofline.linear(here, { M = rows, N = g.N, K = g.K }, g.precision, weights)
      list[#list + 1] = {
        name = g.name, type = g.precision, intensity = bound.intensity, bound = bound.bound, share = shares[g.name],
        operations_per_second = 2 * g.work / g.seconds,
      }
    end
  end
  return list
end

-- Predicts FP32 and each INT8 mode on another machine.
local function elsewhere(measured, here, there)
  local result = { machine = there, modes = {}, bounds = roofline.linears(there,
    predict.linears(measured.modes.f32.groups, measured.rows)) }
  for name, mode in pairs(measured.modes) do
    result.modes[name] = {
      classes = predict.seconds(here, there, mode.groups, measured.rows),
      instances = predict.instances(here, there, mode.groups, measured.rows, measured.batch),
    }
  end
  return result
end

--- The analysis of what perigee.analyze.measure.model returned.
--   here    this machine, with the threads that measured
--   there   nil, or a machine to predict
-- Returns {
--   batch, tokens, rows    as measured
--   here                   the machine
--   modes     by name: { seconds =, classes =, shares = { linear =, attention =, rest = }, points = }
--   bounds    what roofline.linears returns for this machine
--   ceilings  { static =, dynamic = }, each { linears =, attention =, rest = } (see ceilings.measured), reached = the speed-up
--   over
--             FP32 that was measured, linear = that of the linear blocks
--   there     nil, or { machine =, bounds =, modes = { [name] = { classes =, instances = } } } (see predict)
-- }
function analyze.of(measured, here, there)
  local f32 = measured.modes.f32
  local linears = predict.linears(f32.groups, measured.rows)
  local result = {
    batch = measured.batch, tokens = measured.tokens, rows = measured.rows, here = here, modes = {}, ceilings = {},
    bounds = roofline.linears(here, linears), there = there and elsewhere(measured, here, there) or nil,
  }
  for name, mode in pairs(measured.modes) do
    local all = mode.classes.all
    result.modes[name] = {
      seconds = mode.seconds, classes = mode.classes, points = points_of(here, mode, measured.rows),
      shares = { linear = mode.classes.linear / all, attention = mode.classes.attention / all, rest = mode.classes.rest / all },
    }
  end
  for _, name in ipairs(analyze.INT8) do
    local mode = measured.modes[name]
    if mode then
      local one = ceilings.measured(f32.classes, bounds_of(here, linears, mode), mode.classes)
      one.reached = f32.classes.all / mode.classes.all
      one.linear = f32.classes.linear / mode.classes.linear
      result.ceilings[name] = one
    end
  end
  return result
end

return analyze
