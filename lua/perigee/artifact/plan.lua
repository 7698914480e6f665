--- plan: builds the engine's plan of a head from "plan.HEAD" of an artifact's metadata. The plan reads its weights from the
-- file.
--
-- Buffers, steps, outputs and the rows for explain are checked one by one. A step's arguments are checked like those of a
-- caller (operator.lua, and pgee_plan_push). Errors name the place, "plan.hidden.steps[3]", and blame nobody.
local check = require "perigee.artifact.check"
local cpu = require "perigee.cpu"
local json = require "perigee.base.json"
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local plan = require "perigee.plan"
local tasks = require "perigee.tasks"
local tensor = require "perigee.tensor"

local MOST = 2 ^ 31 - 1
local at = check.at

---- What the file says ------------------------------------------------------------------------------------------------

local OPERATORS = {}
for _, name in pairs(operator.names) do
  OPERATORS[name] = name ~= "observe" or nil
end

local ROWS, PRECISIONS = { tokens = true, sequences = true, marked = true }, { int8 = true, bf16 = true, f32 = true }
local index, count = check.integer(1, MOST), check.integer(1, MOST)

local PLAN = check.object {
  buffers = check.list(check.tuple(check.choice(tensor.codes), check.choice(ROWS), check.integer(0, MOST)), 1),
  steps = check.list(check.tuple(check.choice(OPERATORS), check.map(check.any)), 1),
  outputs = check.map(index),
  linears = check.list(check.object {
    step = index, name = check.text, linears = check.list(check.text, 1), precision = check.choice(PRECISIONS),
    alpha = check.maybe(check.number), shift = check.maybe(check.flag),
    mode = check.maybe(check.choice(operator.MODES)), scale = check.maybe(check.number),
    zero = check.maybe(check.integer(0, 255)), rows = check.choice(ROWS),
  }),
  attentions = check.list(check.object {
    step = index, name = check.text, heads = count, width = count, precision = check.maybe(check.choice(PRECISIONS)),
    sqnr = check.maybe(check.number),
  }),
}

---- Arguments of steps ------------------------------------------------------------------------------------------------

-- The file's tensor of that name, a view, which the artifact keeps.
local function tensor_of(artifact, name, place)
  check.text(name, place)
  artifact.tensors[name] = artifact.tensors[name] or at(place, artifact.file.tensor, artifact.file, name)
  return artifact.tensors[name]
end

local PACKED = check.object {
  packed = check.text, N = count, K = count, scales = check.maybe(check.text), sums = check.maybe(check.text),
}

local function packed_of(artifact, value, place)
  PACKED(value, place)
  local key = ("%d %d %s %s %s"):format(value.N, value.K, value.packed, value.scales or "", value.sums or "")
  artifact.packed[key] = artifact.packed[key] or at(place, packed.over, {
    N = value.N, K = value.K, bytes = tensor_of(artifact, value.packed, place),
    scales = value.scales and tensor_of(artifact, value.scales, place),
    sums = value.sums and tensor_of(artifact, value.sums, place),
  })
  return artifact.packed[key]
end

local BUFFER, TENSOR = check.object { buffer = index }, check.object { tensor = check.text }

-- The buffer at an index.
local function buffer_of(buffers, i, place)
  return buffers[i] or check.wrong(place, " is the buffer %d, but there are %d buffers", i, #buffers)
end

local fields

-- A field of an operator, from JSON.
local function field(value, place, artifact, buffers)
  if value == json.null then
    check.fail(value, place, "a number, a name, true, false, or a tensor")
  elseif type(value) ~= "table" then
    return value
  elseif value.buffer ~= nil then
    return buffer_of(buffers, BUFFER(value, place).buffer, place)
  elseif value.packed ~= nil then
    return packed_of(artifact, value, place)
  elseif value.tensor ~= nil then
    return tensor_of(artifact, TENSOR(value, place).tensor, place)
  end
  return fields(artifact, value, buffers, place)
end

-- An operator's fields, from JSON.
function fields(artifact, given, buffers, place)
  local args, n = {}, #place + 1
  for key, value in pairs(given) do
    place[n] = key
    args[key] = field(value, place, artifact, buffers)
  end
  place[n] = nil
  return args
end

-- The kernel that multiplies a step's weight. For an INT8 weight this is the kernel that select chose. If select chose none, it
-- is the kernel that the artifact names. For an FP32 weight that can be "onednn", which is used only if oneDNN is loaded and
-- open was not given kernel = "native".
local function kernel_of(artifact, args)
  local choices = artifact.choices and packed.is(args.w) and args.w.dtype == "s8" and artifact.choices.shapes
  local choice = choices and choices[("%d x %d"):format(args.w.N, args.w.K)]
  if choice then
    return choice.kernel
  end
  local usable = args.kernel ~= "onednn" or artifact.kernel ~= "native" and cpu.onednn() ~= nil
  return usable and args.kernel or "native"
end

---- Building ----------------------------------------------------------------------------------------------------------

local function push(artifact, p, step, buffers, place)
  place[#place + 1] = 2
  local name, args = step[1], fields(artifact, step[2], buffers, place)
  place[#place] = nil
  if name == "linear" then
    args.kernel = kernel_of(artifact, args)
  end
  at(place, p[name], p, args)
  return { op = name, args = args }
end

-- The arguments of a linear or an attention, which explain reads.
local function args_at(steps, row, op, place)
  local step = steps[row.step] or check.wrong(place, ".step is %d, but there are %d steps", row.step, #steps)
  if step.op ~= op then
    check.wrong(place, ".step is %d, which is a step %s, expected a %s", row.step, step.op, op)
  end
  return step.args
end

-- lowered.linears as graph/passes/lower.lua makes them.
local function linear_of(row, args)
  local parts = {}
  for p, name in ipairs(row.linears) do
    parts[p] = { name = name }
  end
  return {
    args = args, quantize = row.mode and { mode = row.mode, scale = row.scale, zero = row.zero },
    node = {
      name = row.name, parts = parts, site = { name = row.name }, precision = row.precision, alpha = row.alpha,
      shift = row.shift, rows = row.rows,
      width = args.w.N, inputs = { { width = args.w.K } },
    },
  }
end

-- lowered.attentions as graph/passes/lower.lua makes them.
local function attention_of(row, args)
  return {
    name = row.name, heads = row.heads, width = row.width, precision = row.precision, sqnr = row.sqnr,
    scales = args.qk_scale and { qk = args.qk_scale, v = args.v_scale },
  }
end

-- make(row, its step's arguments) of each row under a key of the plan.
local function described(saved, key, op, steps, place, make)
  local list = {}
  for i, row in ipairs(saved[key]) do
    list[i] = make(row, args_at(steps, row, op, { place[1], key, i }))
  end
  return list
end

---- Outputs -----------------------------------------------------------------------------------------------------------

-- The outputs that a head has: { NAME = { what one row is for, width } }.
local function outputs_of(artifact, saved, head)
  local hidden_size, list, i = artifact.config.hidden_size, {}, 0
  if head == "hidden" then
    return { hidden = { "tokens", hidden_size } }
  elseif head ~= "layers" then
    return tasks.get(head).head.outputs(artifact)
  end
  repeat -- "layer 0", "layer 1" and so on: as many as there are
    list["layer " .. i] = { "tokens", hidden_size }
    i = i + 1
  until not saved.outputs["layer " .. i]
  return list
end

local function check_outputs(artifact, saved, head)
  local expected, place = outputs_of(artifact, saved, head), { "plan." .. head, "outputs" }
  for name in pairs(saved.outputs) do
    if not expected[name] then
      check.wrong(place, " has %s, which the head %s has not", name, head)
    end
  end
  for name, want in pairs(expected) do
    place[3] = name
    local i = saved.outputs[name] or check.wrong(place, " is missing")
    local dtype, rows, width = unpack(buffer_of(saved.buffers, i, place))
    if dtype ~= "F32" or rows ~= want[1] or width ~= want[2] then
      check.wrong(place, " is the buffer %s [%s][%d], expected F32 [%s][%d] by model.fields and model.vocabulary", dtype, rows,
        width, want[1], want[2])
    end
  end
end

--- Builds the table that a head runs from: { plan =, outputs =, linears =, attentions =, embeds = }, as lower.pass returns it.
--   artifact  has file, tensors and packed (kept views), config, vocabulary, choices, kernel
--   saved     the decoded "plan.HEAD"
return function(artifact, saved, head)
  local place = { "plan." .. head }
  PLAN(saved, place)
  check_outputs(artifact, saved, head)
  local p, buffers, steps, outputs, list, embeds = plan.new(), {}, {}, {}, {}, {}
  for i, buffer in ipairs(saved.buffers) do
    place[2], place[3] = "buffers", i
    buffers[i] = at(place, p.buffer, p, buffer[1], buffer[2], buffer[3])
  end
  for i, step in ipairs(saved.steps) do
    place[2], place[3] = "steps", i
    steps[i] = push(artifact, p, step, buffers, place)
    embeds[#embeds + 1] = step[1] == "embed" and steps[i].args or nil
  end
  for name, i in pairs(saved.outputs) do
    outputs[name] = buffers[i]
    list[#list + 1] = buffers[i]
  end
  at({ place[1], "outputs" }, p.seal, p, list)
  return {
    plan = p, outputs = outputs, linears = described(saved, "linears", "linear", steps, place, linear_of),
    attentions = described(saved, "attentions", "attention", steps, place, attention_of), embeds = embeds,
  }
end
