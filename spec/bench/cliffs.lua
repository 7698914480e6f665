--- Checks that one token more never costs much more time. The model is MiniLM, static INT8. A batch of T tokens has texts of 32
-- tokens, and the last one may be shorter.
--
--   make bench-cliffs                       every T from 8 to 128, then each multiple of 64 and its neighbours
--   luajit spec/bench/cliffs.lua --most 320 --rounds 6        up to 320 tokens, 6 rounds
--   luajit spec/bench/cliffs.lua --least 1088 --most 2048     only these numbers of tokens
--
-- It measures processor time of one thread, which other processes disturb less than elapsed time. The minimum over all rounds
-- counts, and each round runs every length once. It fails if time(T + 1) is more than 1.15 times time(T).
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local argparse = require "argparse"
local bench = require "perigee.bench"
local ffi = require "ffi"
local inputs = require "perigee.run.inputs"
local perigee = require "perigee"
local random = require "perigee.checkpoint.random"
local text_table = require "perigee.show.table"

local parser = argparse("spec/bench/cliffs.lua", "Times runs of one token more.")
parser:option("--least", "Fewest tokens", 8, tonumber)
parser:option("--most", "Most tokens: the last step is from these to one more", 4096, tonumber)
parser:option("--rounds", "Times that each length is run", 20, tonumber)
parser:option("--show", "How many of the largest steps are printed", 8, tonumber)
local args = parser:parse()

local LENGTH, EACH, LIMIT = 32, 128, 1.15

ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } spec_timespec;
  int clock_gettime(int clock, spec_timespec *t);
]]
local PROCESS, clock = 2, ffi.new "spec_timespec"
local function seconds()
  ffi.C.clock_gettime(PROCESS, clock)
  return tonumber(clock.seconds) + tonumber(clock.nanoseconds) * 1e-9
end

local function lengths_of(T)
  local lengths = {}
  for at = 0, T - 1, LENGTH do
    lengths[#lengths + 1] = math.min(LENGTH, T - at)
  end
  return lengths
end

-- All numbers of tokens to run, in ascending order.
local function totals()
  local list = {}
  for T = args.least, args.most + 1 do
    if T <= EACH or (T + 1) % 64 <= 2 then
      list[#list + 1] = T
    end
  end
  return list
end

local function nothing() end

-- Returns the minimum time of each number of tokens. One more round before the first warms up.
local function measure(runner, batches, list)
  local least = {}
  for round = 0, args.rounds do
    for _, T in ipairs(list) do
      for _ = 1, T <= EACH and 4 or 1 do -- short ones are disturbed more
        local from = seconds()
        runner:run(batches[T], nothing)
        local took = seconds() - from
        least[T] = round > 0 and math.min(least[T] or took, took) or nil
      end
    end
  end
  return least
end

perigee.threads(1)
local model = perigee.load(random.checkpoint "minilm")
local stats = model:calibrate(bench.inputs(4, 128, model.vocabulary), { progress = false })
local q = model:quantize { stats = stats }
stats:release()

local list, batches, steps = totals(), {}, {}
if #list < 2 then
  error(("from %d to %d there is no step that is timed"):format(args.least, args.most), 0)
end
for _, T in ipairs(list) do
  batches[T] = inputs.batch(model, bench.inputs_of(lengths_of(T), model.vocabulary), "bench")
end
local least = measure(q:runner "hidden", batches, list)
for _, T in ipairs(list) do
  if least[T + 1] then
    steps[#steps + 1] = { T = T, ratio = least[T + 1] / least[T] }
  end
end
table.sort(steps, function(a, b)
  return a.ratio > b.ratio
end)
local rows = { { "tokens", "ms", "one more" } }
for i = 1, math.min(args.show, #steps) do
  local T = steps[i].T
  rows[#rows + 1] = { tostring(T), ("%.3f"):format(1e3 * least[T]), ("x %.3f"):format(steps[i].ratio) }
end
print(text_table(rows))
os.exit(steps[1].ratio <= LIMIT)
