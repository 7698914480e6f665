--- Bench: measures times, and compares them with the peaks of the machine.
local cpu = require "perigee.cpu"
local json = require "perigee.base.json"
local linear = require "perigee.linear"
local pgee = require "perigee.ffi"
local process = require "perigee.bench.process"
local C = pgee.C

local bench = {}

---- Times -------------------------------------------------------------------------------------------------------------

--- The p-quantile of a sorted list (p from 0 to 1): the smallest element that at least a share p of the elements does not exceed.
function bench.percentile(sorted, p)
  return sorted[math.max(1, math.ceil(p * #sorted))]
end

--- Times a list of functions. They take turns, so that other work of the machine slows all of them alike. given: { rounds = the
-- smallest number of rounds (7), seconds = the shortest time for all rounds together (1) }. A round that is not timed comes
-- first. Returns { min =, median = } in seconds for each function.
function bench.time(functions, given)
  local rounds, seconds = given and given.rounds or 7, given and given.seconds or 1
  local times = {}
  for i, f in ipairs(functions) do
    times[i] = {}
    f()
  end
  local start = C.pgee_seconds()
  while #times[1] < rounds or C.pgee_seconds() - start < seconds do
    for i, f in ipairs(functions) do
      local from = C.pgee_seconds()
      f()
      table.insert(times[i], C.pgee_seconds() - from)
    end
  end
  for i, list in ipairs(times) do
    table.sort(list)
    times[i] = { min = list[1], median = bench.percentile(list, 0.5) }
  end
  return times
end

--- An input of random token ids for each of the lengths, the same on every machine. vocabulary: ids are below it.
function bench.inputs_of(lengths, vocabulary)
  local state, list = 1, {}
  for i, length in ipairs(lengths) do
    local ids = {}
    for j = 1, length do
      state = (state * 16807) % 2147483647 -- Park and Miller; exact in doubles
      ids[j] = state % vocabulary
    end
    list[i] = { ids = ids }
  end
  return list
end

--- B inputs of S random token ids each.
function bench.inputs(B, S, vocabulary)
  local lengths = {}
  for i = 1, B do
    lengths[i] = S
  end
  return bench.inputs_of(lengths, vocabulary)
end

---- Measuring a workload ----------------------------------------------------------------------------------------------

-- By the name of a kernel: how many linears it multiplies.
local function kernels_of(load)
  local counts = {}
  for _, entry in ipairs(load.runner.lowered.linears) do
    local name = linear.kernel(entry.args.w, math.min(load.longest, 512), entry.args.kernel)
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

--- Describes a workload and the machine as a table that can become JSON.
function bench.describe(load)
  local encoder = load.encoder
  return {
    model = encoder.model.dir, settings = encoder.settings and tostring(encoder.settings) or nil, batches = #load.batches,
    tokens = load.tokens, multiply_adds = load:work(), cpu = cpu.name(), isa = cpu.isa_name(), threads = cpu.threads(),
    affinity = cpu.affinity(), kernels = kernels_of(load), onednn = cpu.onednn() or nil,
  }
end

-- Adds the profile, the peaks, and the shares of the peaks to a result. The INT8 peak is the speed of the peak's loop or of the
-- fastest linear of the profile, whichever is larger.
local function compare(result, groups, peaks)
  local bytes = 0
  for _, group in ipairs(groups) do
    bytes = bytes + group.bytes
    group.gops = group.work > 0 and 2e-9 * group.work / group.seconds or nil
    if group.op == "linear" and peaks[group.precision] then
      peaks[group.precision] = math.max(peaks[group.precision], group.gops * 1e9)
    end
  end
  for _, group in ipairs(groups) do
    local peak = peaks[group.precision]
    group.share = group.gops and peak and group.gops * 1e9 / peak or nil
  end
  local peak, seconds = result.settings and peaks.int8 or peaks.f32, result.time.all.min
  result.profile, result.peaks = groups, peaks
  result.share = { peak = peak and 2 * result.multiply_adds / seconds / peak or nil, read = bytes / seconds / peaks.read }
end

--- Times a workload (workload.lua) for at least `seconds`, with the peaks before and after. Returns describe's table and
--   time      workload:time's
--   profile   workload:profile's, each with gops and its share of the peak of its precision
--   peaks     cpu.peaks'
--   share     { peak = share of the INT8 peak (FP32 peak of an FP32 encoder), read = share of memory's peak that weights take }
--   tokens_per_second, memory
function bench.measure(load, seconds)
  local result, before = bench.describe(load), cpu.peaks()
  result.time = load:time(seconds)
  local rounds = math.min(100, math.max(3, math.floor(seconds / 2 / result.time.all.min)))
  local groups, peaks = load:profile(rounds), cpu.peaks()
  for name, peak in pairs(peaks) do
    peaks[name] = math.max(peak, before[name])
  end
  compare(result, groups, peaks)
  result.memory, result.tokens_per_second = load.encoder:memory(), load.tokens / result.time.all.median
  return result
end

-- This process's memory in bytes: own, its private memory; with_share, the same plus its share of shared memory. nil without
-- /proc.
local function own_memory()
  local sizes, file = {}, io.open "/proc/self/smaps_rollup"
  if not file then
    return nil
  end
  for text in file:lines() do
    local name, kilobytes = text:match "^([%w_]+):%s+(%d+) kB"
    sizes[name or ""] = tonumber(kilobytes)
  end
  file:close()
  return { own = (sizes.Private_Dirty + sizes.Private_Clean) * 1024, with_share = sizes.Pss * 1024 }
end

--- Times `count` processes side by side, each pinned to CPUs of its own, as many as there are threads in force. They share the
-- encoder's weights. make() makes a process its workload. Returns describe's table and
--   instances           list of { affinity =, time =, tokens_per_second =, memory }
--                       memory: bytes { own =, with_share = }, nil without /proc
--   tokens_per_second   of all together
function bench.together(count, make, seconds)
  local result, cpus = bench.describe(make()), cpu.affinity()
  local threads = result.threads
  if count * threads > #cpus then
    error(("%d instances of %d threads need %d CPUs, and this process may run on %d"):format(count, threads, count * threads,
      #cpus), 0)
  end
  result.instances, result.tokens_per_second = {}, 0
  local texts = process.together(count, function(i, meet)
    local own = { unpack(cpus, (i - 1) * threads + 1, i * threads) }
    cpu.pin(own)
    local load = make()
    load:time(0)
    meet()
    local time = load:time(seconds)
    return json.canonical {
      affinity = own, time = time, tokens_per_second = load.tokens / time.all.median, memory = own_memory(),
    }
  end)
  for i, text in ipairs(texts) do
    local one = json.decode(text)
    result.instances[i] = one
    result.tokens_per_second = result.tokens_per_second + one.tokens_per_second
  end
  return result
end

---- Whether it computes what it should --------------------------------------------------------------------------------

--- Checks an encoder: two different inputs must have different hidden states, and the hidden states must be those of the portable
-- reference: equal if the encoder is quantized, else with an SQNR above 90 dB. The inputs are short, because the reference is
-- slow. Returns true; or false and what is wrong.
function bench.verify(encoder)
  local S = math.min(6, encoder.model.positions)
  local inputs = bench.inputs(2, S, encoder.model.vocabulary)
  local hidden = encoder:hidden(inputs)
  local reference = cpu.with_isa(C.PGEE_REF, function()
    return encoder:hidden(inputs)
  end)
  local one, other = hidden:rows(1, S), hidden:rows(S + 1, 2 * S)
  local differ, equal, distance = not one:equals(other), hidden:equals(reference), reference:sqnr(hidden)
  for _, t in ipairs { one, other, hidden, reference } do
    t:release()
  end
  if not differ then
    return false, "two inputs that differ have the same hidden states"
  elseif encoder.settings and not equal then
    return false, ("the hidden states are not the reference's: SQNR %.1f dB"):format(distance)
  elseif not (equal or distance > 90) then
    return false, ("the hidden states are far from the reference's: SQNR %.1f dB"):format(distance)
  end
  return true
end

return bench
