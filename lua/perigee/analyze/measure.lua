--- Measure: this machine's peaks, and where a model's time goes on it.
local bench = require "perigee.bench"
local cpu = require "perigee.cpu"
local inputs = require "perigee.run.inputs"
local pgee = require "perigee.ffi"
local predict = require "perigee.analyze.predict"
local workload = require "perigee.bench.workload"
local C = pgee.C

local measure = {}

---- The machine -----------------------------------------------------------------------------------------------------------

-- The size of the caches in bytes, { l2 =, l3 = }, as Linux has it; nil where it says nothing.
local function caches()
  local sizes = {}
  for index = 0, 9 do
    local folder = ("/sys/devices/system/cpu/cpu0/cache/index%d/"):format(index)
    local level, size = io.open(folder .. "level"), io.open(folder .. "size")
    local kilobytes = size and tonumber(size:read "*l":match "^(%d+)K")
    if level and kilobytes then
      sizes["l" .. level:read "*l"] = kilobytes * 1024
    end
    for _, file in pairs { level, size } do
      file:close()
    end
  end
  return { l2 = sizes.l2, l3 = sizes.l3 }
end

--- This machine (see perigee.analyze.machine) with the ISA and the threads in force. An error if the ISA has no peaks.
function measure.machine()
  local peaks, isa = cpu.peaks { "int8", "f32", "bf16", "read", "l2", "l3" }, cpu.isa_name()
  if not (peaks.int8 and peaks.f32) then
    error(("the ISA in force is %s, which has no peaks: expected one from avx2 on"):format(isa), 0)
  end
  return {
    name = cpu.name(), isa = isa, cores = cpu.threads(), measured = true, cache = caches(),
    peak = { int8 = peaks.int8, f32 = peaks.f32, bf16 = peaks.bf16 },
    bandwidth = { l2 = peaks.l2, l3 = peaks.l3, memory = peaks.read },
  }
end

-- The ISAs that run here and have peaks, the slowest first.
local function isas()
  local list = {}
  for isa = C.PGEE_AVX2, C.PGEE_AMX do
    list[#list + 1] = C.pgee_isa_runs(isa) == 1 and isa or nil
  end
  return list
end

--- The peaks of each ISA that runs here: list of { isa =, int8 =, f32 =, bf16 = }, operations a second of all threads.
function measure.isas()
  local list = {}
  for i, isa in ipairs(isas()) do
    list[i] = cpu.with_isa(isa, function()
      return cpu.peaks { "int8", "f32", "bf16" }
    end)
    list[i].isa = cpu.isa_name(isa)
  end
  return list
end

---- A model ---------------------------------------------------------------------------------------------------------------

--- The seconds of a profile by class: { linear =, attention =, rest =, all = }.
function measure.classes(groups)
  local sum = { linear = 0, attention = 0, rest = 0, all = 0 }
  for _, g in ipairs(groups) do
    local class = (g.op == "linear" or g.op == "attention") and g.op or "rest"
    sum[class], sum.all = sum[class] + g.seconds, sum.all + g.seconds
  end
  return sum
end

-- Quantizes for the modes; statistics come from random ids, because times do not depend on what the numbers are.
local function encoders_of(model, modes)
  local stats = model:calibrate(bench.inputs(2, math.min(64, model.positions), model.vocabulary), { progress = false })
  local encoders = {}
  for i, mode in ipairs(modes) do
    encoders[i] = mode == "f32" and model or model:quantize { activations = mode, stats = stats }
  end
  stats:release()
  return encoders
end

--- Profiles a model in FP32, static and dynamic INT8. The modes take turns, so that other work of the machine slows all alike.
--   given   { batch = texts in a run, tokens = of each text, seconds = at least for all rounds, modes = { "f32", "static",
--           "dynamic" } }
-- Returns { batch =, tokens = of each text, rows = tokens of a run, rounds =, modes = { f32 =, static =, dynamic = } }. Each
-- mode has groups, a profile (see perigee.bench.workload) with the shortest time of each step; classes (see measure.classes); and
-- seconds, the shortest time of a whole run.
function measure.model(model, given)
  local modes = given.modes or { "f32", "static", "dynamic" }
  local list = bench.inputs(given.batch, given.tokens, model.vocabulary)
  local loads, result, encoders = {}, { batch = given.batch, tokens = given.tokens, modes = {} }, encoders_of(model, modes)
  for i in ipairs(modes) do
    loads[i] = workload.new(encoders[i], { inputs.batch(model, list, "analyze") })
    loads[i]:once()
    result.modes[modes[i]] = { seconds = math.huge }
  end
  local began, rounds = C.pgee_seconds(), 0
  repeat
    rounds = rounds + 1
    for i, mode in ipairs(modes) do
      local one, from = result.modes[mode], C.pgee_seconds()
      loads[i]:once()
      one.seconds = math.min(one.seconds, C.pgee_seconds() - from)
      one.groups = loads[i]:profile(1, one)
    end
  until rounds >= 5 and C.pgee_seconds() - began >= given.seconds
  for _, one in pairs(result.modes) do
    one.steps, one.classes = nil, measure.classes(one.groups)
  end
  result.rows, result.rounds, result.encoders = loads[1].tokens, rounds, encoders
  return result
end

--- Checks predictions: from the profile with the ISA in force it predicts the time with every other ISA, and measures that.
-- load: a workload of an INT8 encoder. The ISAs take turns for at least `seconds`. Returns a list of { from =, to =, predicted =,
-- measured = seconds of all steps, error = predicted / measured - 1 }.
function measure.check(load, seconds)
  local from, known = cpu.isa(), {}
  for _, isa in ipairs(isas()) do
    known[#known + 1] = { isa = isa }
  end
  local began, rounds = C.pgee_seconds(), 0
  repeat
    rounds = rounds + 1
    for _, one in ipairs(known) do
      cpu.with_isa(one.isa, function()
        if not one.machine then
          one.machine = measure.machine()
        end
        one.groups = load:profile(1, one)
      end)
    end
  until rounds >= 5 and C.pgee_seconds() - began >= seconds
  local here
  for _, one in ipairs(known) do
    here = one.isa == from and one or here
  end
  local list = {}
  for _, one in ipairs(known) do
    if one ~= here then
      local predicted = predict.seconds(here.machine, one.machine, here.groups, load.tokens).all
      local measured = measure.classes(one.groups).all
      list[#list + 1] = {
        from = cpu.isa_name(from), to = cpu.isa_name(one.isa), predicted = predicted, measured = measured,
        error = predicted / measured - 1,
      }
    end
  end
  return list
end

return measure
