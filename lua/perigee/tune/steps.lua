--- Steps: the operators of a lowered graph, run one by one on tensors, from any of them on.
--
-- A Steps object stands in for a plan in lower.pass. steps:run computes only what the wanted output needs. It takes buffers that
-- the caller has from an earlier run as they are, so a change in a late layer costs the late layers only. The bits are those of
-- a plan, because both call the same operators.
local operator = require "perigee.operator"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local Buffer, Steps = {}, {}
Steps.__index = Steps

-- The fields of an operator, and of its quantizer, that it writes.
local WRITES = { y = true, ["quantize.q"] = true, ["quantize.row_scale"] = true, ["quantize.row_zero"] = true }

local steps = {}

--- For lower.pass's option `plan`.
function steps.new()
  return setmetatable({ list = {}, writer = {} }, Steps)
end

function Steps:buffer(dtype, rows, width)
  if rows ~= "tokens" then
    error(("steps: a buffer has one row for each of the %s, expected tokens"):format(rows), 0)
  end
  return setmetatable({ dtype = dtype, width = width or 0, steps = self }, Buffer)
end

-- Calls f(buffer, path) for each buffer among an operator's fields.
local function each_buffer(args, f, prefix)
  for key, value in pairs(args) do
    local path = prefix .. key
    if getmetatable(value) == Buffer then
      f(value, path)
    elseif type(value) == "table" and getmetatable(value) == nil then
      each_buffer(value, f, path .. ".")
    end
  end
end

for _, name in pairs(operator.names) do
  Steps[name] = function(self, args)
    local step = { op = name, args = args, reads = {}, writes = {}, at = #self.list + 1 }
    each_buffer(args, function(buffer, path)
      table.insert(WRITES[path] and step.writes or step.reads, { buffer, path })
      if WRITES[path] then
        self.writer[buffer] = step
      end
    end, "")
    self.list[step.at] = step
  end
end

function Steps.seal() end

--- The buffers that the writer of `buffer` writes: { [path of the field] = buffer }.
function Steps:siblings(buffer)
  local map = {}
  for _, entry in ipairs(self.writer[buffer].writes) do
    map[entry[2]] = entry[1]
  end
  return map
end

--- Whether a step that matches(step) is among those that the floats of `buffer` depend on. known: a table that keeps answers.
function Steps:depends(buffer, matches, known)
  local step = self.writer[buffer]
  if known[step] == nil then
    known[step] = matches(step) and true or false
    for _, entry in ipairs(step.reads) do
      known[step] = known[step] or self:depends(entry[1], matches, known)
    end
  end
  return known[step]
end

-- The steps that `wanted`, a list of buffers, need, in order, if the buffers in `have` are there.
local function slice(self, wanted, have)
  local marked, list = {}, {}
  local function need(buffer)
    local step = self.writer[buffer]
    if not have[buffer] and not marked[step] then
      marked[step] = true
      for _, entry in ipairs(step.reads) do
        need(entry[1])
      end
    end
  end
  for _, buffer in ipairs(wanted) do
    need(buffer)
  end
  for _, step in ipairs(self.list) do
    list[#list + 1] = marked[step] and step or nil
  end
  return list
end

-- The fields with tensors in place of buffers.
local function with_tensors(args, of)
  local copy = {}
  for key, value in pairs(args) do
    if getmetatable(value) == Buffer then
      copy[key] = of(value)
    elseif type(value) == "table" and getmetatable(value) == nil then
      copy[key] = with_tensors(value, of)
    else
      copy[key] = value
    end
  end
  return copy
end

--- Computes buffers. wanted: a list of buffers. batch: the texts, as perigee.plan's batch makes it. have: { [buffer] = tensor },
-- which are used as they are and stay the caller's. Returns { [buffer] = tensor } of those of `wanted` that were not in `have`.
function Steps:run(wanted, batch, have)
  local list, last, kept, own = slice(self, wanted, have), {}, {}, {}
  for _, buffer in ipairs(wanted) do
    kept[buffer] = true
  end
  for i, step in ipairs(list) do
    for _, entry in ipairs(step.reads) do
      last[entry[1]] = i
    end
    for _, entry in ipairs(step.writes) do
      last[entry[1]] = last[entry[1]] or i
    end
  end
  local function of(buffer)
    if not own[buffer] and self.writer[buffer].running then
      own[buffer] = tensor.new(buffer.dtype, buffer.width > 0 and { batch.T, buffer.width } or { batch.T })
    end
    return own[buffer] or have[buffer]
  end
  local ok, failure = pcall(function()
    for i, step in ipairs(list) do
      if pgee.C.pgee_interrupted() ~= 0 then
        error("interrupted", 0)
      end
      step.running = true
      operator.run(step.op, with_tensors(step.args, of), batch)
      step.running = nil
      for buffer, t in pairs(own) do
        if last[buffer] <= i and not kept[buffer] then
          own[buffer] = nil
          t:release()
        end
      end
    end
  end)
  for buffer, t in pairs(own) do
    if not ok or not kept[buffer] then
      own[buffer] = nil
      t:release()
    end
  end
  if not ok then
    for _, step in ipairs(list) do
      step.running = nil
    end
    error(failure, 0)
  end
  return own
end

return steps
