--- Runner: runs a sealed plan over batches of any size, in one workspace.
--
-- A batch is run in chunks of at most `budget` tokens, in order. Therefore the workspace is bounded: it grows to the size that
-- the largest chunk so far needed, and all chunks use it. The way in which a batch is cut into chunks does not change an answer's
-- bits.
local cpu = require "perigee.cpu"
local ffi = require "ffi"
local plan = require "perigee.plan"

local Runner = {}
Runner.__index = Runner

-- Default of the budget: tokens of a chunk for each thread. They are few enough that the activations that a thread passes from
-- step to step stay in its caches (lua/FIGURES.md has the measurements).
local TOKENS = 512

local int32s = ffi.typeof "int32_t[?]"

local function default_budget()
  return TOKENS * cpu.threads()
end

--- new(lowered, budget): lowered: { plan =, outputs = { name = buffer } }, as graph/passes/lower.lua returns it. budget: max
-- tokens of a chunk, or nil for the default. A sequence with more tokens is a chunk by itself.
function Runner.new(lowered, budget)
  return setmetatable({
    plan = lowered.plan, outputs = lowered.outputs, lowered = lowered, budget = budget,
  }, Runner)
end

local function power_of_two(n)
  local p = 1
  while p < n do
    p = p * 2
  end
  return p
end

-- Returns the workspace, grown if the batch does not fit in.
local function workspace(self, batch)
  local room = self.room
  if not room or batch.T > room.tokens or batch.B > room.sequences or batch.S > room.longest or batch.R > room.marked then
    room = room or { tokens = 32, sequences = 8, longest = 32, marked = 0 }
    room = {
      tokens = power_of_two(math.max(batch.T, room.tokens)), sequences = power_of_two(math.max(batch.B, room.sequences)),
      longest = power_of_two(math.max(batch.S, room.longest)),
      marked = batch.R > 0 and power_of_two(math.max(batch.R, room.marked)) or room.marked,
    }
    if self.workspace then
      self.workspace:release()
      self.workspace, self.room = nil, nil
    end
    self.workspace = self.plan:workspace(room)
    self.room = room
  end
  return self.workspace
end

-- How many of a batch's marked tokens come before `token`.
local function marks_before(batch, token)
  local low, high = 0, batch.R or 0
  while low < high do
    local middle = math.floor((low + high) / 2)
    if batch.rows[middle] < token then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Sequences first to last (from 0, last excluded) of a batch, as the engine takes them; and how many marked tokens come before
-- them.
local function packed(batch, first, last)
  if first == 0 and last == batch.n then
    return plan.packed_batch(last, batch.starts, batch.ids, batch.types, batch.R, batch.rows), 0
  end
  local token, starts = batch.starts[first], int32s(last - first + 1)
  for i = first, last do
    starts[i - first] = batch.starts[i] - token
  end
  local mark = marks_before(batch, token)
  local R = marks_before(batch, batch.starts[last]) - mark
  local rows = R > 0 and int32s(R) or nil
  for i = 0, R - 1 do
    rows[i] = batch.rows[mark + i] - token
  end
  return plan.packed_batch(last - first, starts, batch.ids + token, batch.types + token, R, rows), mark
end

-- Calls f(space, chunk, first, last, mark) for each chunk of a batch. space: a workspace that the chunk fits in.
local function each_chunk(self, batch, f)
  for first, last in batch:chunks(self.budget or default_budget()) do
    local chunk, mark = packed(batch, first, last)
    f(workspace(self, chunk), chunk, first, last, mark)
  end
end

--- Makes the workspace large enough for one sequence of `tokens` tokens.
function Runner:reserve(tokens)
  workspace(self, { T = tokens, B = 1, S = tokens, R = 0 })
end

---- Results that are not finite ---------------------------------------------------------------------------------------

-- A name for a step in errors. A linear and an attention have names in the model. Another operator is named after the last such
-- step before it.
local function step_name(self, step)
  local named, at = { linear = self.lowered.linears, attention = self.lowered.attentions }, { linear = 0, attention = 0 }
  local name, op
  for i, of in ipairs(self.plan:steps()) do
    op = of
    local entry
    if named[op] then
      at[op] = at[op] + 1
      entry = named[op][at[op]]
    end
    if entry then
      local node = entry.node or entry
      name = node.parts and node.parts[1].name or node.name
    end
    if i == step then
      return entry and ("the %s %s"):format(op, name) or name and ("the %s after %s"):format(op, name) or "the " .. op
    end
  end
end

-- The input that a row of an output belongs to. counts: what one row is for, "tokens", "sequences" or "marked". before: how many
-- tokens, sequences and marked tokens of the batch come before the chunk.
local function input_of(batch, counts, row, before)
  if counts == "sequences" then
    return batch.of[before.sequences + row]
  end
  local token = counts == "marked" and batch.rows[before.marked + row - 1] or before.tokens + row - 1
  for s = 1, batch.n do
    if token < batch.starts[s] then
      return batch.of[s]
    end
  end
end

-- Raises the error about an output with a NaN or an infinity. It names the input, and the first step whose result has one.
local function not_finite(self, space, chunk, input)
  local step = space:first_nonfinite(chunk)
  local where = step and ("; the first step whose result is not finite is %s (step %d of %d)"):format(step_name(self, step), step,
    #self.plan:steps()) or ""
  error(("input %d: the model's result is not finite%s: the weights there, or what they are multiplied by, are too large"):format(
    input, where), 0)
end

---- Running -----------------------------------------------------------------------------------------------------------

--- Runs a batch. For each chunk it calls visit(output, first, last, token, mark):
--   output(name)   the tensor of that output, valid until visit returns. A NaN or an infinity in it is an error that names the
--                  first step whose result has one
--   first, last    the chunk's sequences in the batch (from 0, last excluded)
--   token, mark    how many tokens and how many marked tokens of the batch come before the chunk
function Runner:run(batch, visit)
  each_chunk(self, batch, function(space, chunk, first, last, mark)
    space:run(chunk)
    visit(function(name)
      local buffer = self.outputs[name]
      local rows = space:output(buffer)
      local row = rows:first_nonfinite()
      if row then
        rows:release()
        local before = { tokens = batch.starts[first], sequences = first, marked = mark }
        not_finite(self, space, chunk, input_of(batch, buffer.rows, row, before))
      end
      return rows
    end, first, last, batch.starts[first], mark)
  end)
end

--- Runs a batch and returns the seconds that each step of the plan took over all chunks, and the number of chunks.
function Runner:profile(batch)
  local sums, chunks = {}, 0
  each_chunk(self, batch, function(space, chunk)
    for i, seconds in ipairs(space:profile(chunk)) do
      sums[i] = (sums[i] or 0) + seconds
    end
    chunks = chunks + 1
  end)
  return sums, chunks
end

--- The width of an output in elements. An output that does not exist is an error. what: the task's name, for the error.
function Runner:width(name, what)
  local buffer = self.outputs[name] or error(("%s: the model's plan has no output '%s'"):format(what, name), 0)
  return buffer.width
end

--- The size of the workspace in bytes; 0 before the first run.
function Runner:bytes()
  return self.workspace and self.workspace:bytes() or 0
end

function Runner:release()
  if self.workspace then
    self.workspace:release()
  end
  self.plan:release()
  self.workspace, self.plan = nil, nil
end

return Runner
