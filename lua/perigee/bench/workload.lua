--- Workload: the work that a bench times: an encoder computes the last hidden states of some batches, one after another.
local bench = require "perigee.bench"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = pgee.C
local percentile = bench.percentile

local workload = {}

local Workload = {}
Workload.__index = Workload

--- A workload of an encoder and a list of batches (run/inputs.lua).
function workload.new(encoder, batches)
  local self = setmetatable({ encoder = encoder, batches = batches, tokens = 0, longest = 0 }, Workload)
  for _, batch in ipairs(batches) do
    self.tokens = self.tokens + batch.T
    self.longest = math.max(self.longest, batch.T)
  end
  self.runner = encoder:runner "hidden"
  self.width = self.runner:width("hidden", "bench")
  self.hidden = ffi.new("uint32_t[?]", self.longest * self.width)
  return self
end

--- Runs one of the batches. If it ran in several pieces, or if `copy` is true, self.hidden has the hidden states afterwards, as
-- the bits of F32 [T][H]. Otherwise they stay in the workspace.
function Workload:run(batch, copy)
  self.runner:run(batch, function(output, first, last, token)
    if copy or last - first < batch.n then
      local rows = output "hidden"
      ffi.copy(self.hidden + token * self.width, rows:pointer(), #rows * self.width * 4)
      rows:release()
    end
  end)
end

--- Runs all batches. each: nil, or a list to which the seconds of each batch are added.
function Workload:once(each)
  for _, batch in ipairs(self.batches) do
    local from = C.pgee_seconds()
    self:run(batch)
    if each then
      each[#each + 1] = C.pgee_seconds() - from
    end
  end
end

--- Runs all batches again and again, at least three times and for at least `seconds`. Returns times in seconds:
--   batch   of one batch: { n =, min =, median =, p90 =, p99 = }
--   all     of all of them: { n =, min =, median = }
function Workload:time(seconds)
  local each, all, start = {}, {}, nil
  for round = 0, math.huge do
    if round == 1 then -- round 0 warms up
      each, all, start = {}, {}, C.pgee_seconds()
    elseif round > 3 and C.pgee_seconds() - start >= seconds then
      break
    end
    local began = C.pgee_seconds()
    self:once(each)
    all[#all + 1] = C.pgee_seconds() - began
  end
  table.sort(each)
  table.sort(all)
  return {
    batch = {
      n = #each, min = each[1], median = percentile(each, 0.5), p90 = percentile(each, 0.9), p99 = percentile(each, 0.99),
    },
    all = { n = #all, min = all[1], median = percentile(all, 0.5) },
  }
end

---- Where the time goes -----------------------------------------------------------------------------------------------

-- Multiply-adds of the batches' attention: scores and sums of values.
local function attention_work(self)
  local sum = 0
  for _, batch in ipairs(self.batches) do
    for b = 1, batch.n do
      sum = sum + (batch.starts[b] - batch.starts[b - 1]) ^ 2
    end
  end
  return 2 * sum * self.width
end

local describe = {}

function describe.linear(step, entry, self)
  local node, w = entry.node, entry.args.w
  step.name = (#node.parts > 1 and node.site and node.site.name or node.parts[1].name):gsub("%.%d+%.", ".*.")
  step.work, step.bytes, step.precision = self.tokens * w.N * w.K, w.bytes, node.precision
  step.N, step.K = w.N, w.K
end

function describe.attention(step, node, self)
  step.work, step.precision = attention_work(self), node.precision or "f32"
end

-- The steps of the plan: { op =, name =, precision =, work = multiply-adds, bytes = of weights }. A linear's name has * in
-- place of the layer's number. Every other step has the name of its operator.
local function steps_of(self)
  local lowered, list = self.runner.lowered, {}
  local known, at = { linear = lowered.linears, attention = lowered.attentions }, { linear = 0, attention = 0 }
  for i, op in ipairs(self.runner.plan:steps()) do
    list[i] = { op = op, name = op, work = 0, bytes = 0 }
    if known[op] then
      at[op] = at[op] + 1
      describe[op](list[i], known[op][at[op]], self)
    end
  end
  return list
end

--- Multiply-adds of linears and attention in one run of all batches.
function Workload:work()
  local sum = 0
  for _, step in ipairs(steps_of(self)) do
    sum = sum + step.work
  end
  return sum
end

-- The seconds of each step over all batches, and the number of chunks that they were run in.
local function profile_once(self)
  local sums, chunks = {}, 0
  for _, batch in ipairs(self.batches) do
    local seconds, count = self.runner:profile(batch)
    chunks = chunks + count
    for i, s in ipairs(seconds) do
      sums[i] = (sums[i] or 0) + s
    end
  end
  return sums, chunks
end

-- Adds up the steps of one name and precision.
local function grouped(steps)
  local groups, list = {}, {}
  for _, step in ipairs(steps) do
    local key = step.name .. " " .. tostring(step.precision)
    local group = groups[key]
    if not group then
      group = { op = step.op, name = step.name, precision = step.precision, steps = 0, seconds = 0, work = 0, bytes = 0,
        N = step.N, K = step.K }
      groups[key] = group
      list[#list + 1] = group
    end
    group.steps = group.steps + 1
    for _, sum in ipairs { "seconds", "work", "bytes" } do
      group[sum] = group[sum] + step[sum]
    end
  end
  return list
end

--- Runs all batches `rounds` times and times each step. Takes the shortest time of each step, and adds up the steps of one name.
-- Returns a list of { op =, name =, precision =, steps =, seconds =, work = multiply-adds, bytes = of weights that are read,
-- N =, K = output and input channels of a linear },
-- the longest time first. Reading the clock after each step makes a run a little slower.
-- kept: nil, or a table that keeps the shortest times for the next call, which counts them, too.
function Workload:profile(rounds, kept)
  local steps = kept and kept.steps or steps_of(self)
  if kept then
    kept.steps = steps
  end
  for _ = 1, rounds do
    local seconds, chunks = profile_once(self)
    for i, step in ipairs(steps) do
      step.bytes = step.seconds and step.bytes or step.bytes * chunks
      step.seconds = math.min(step.seconds or seconds[i], seconds[i])
    end
  end
  local list = grouped(steps)
  table.sort(list, function(a, b)
    return a.seconds > b.seconds
  end)
  return list
end

return workload
