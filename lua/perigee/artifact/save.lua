--- Save: a model as an artifact, one safetensors file that perigee.open answers from, with no checkpoint.
--
-- The plan of each head is recorded while it is lowered: its buffers, operators and outputs are JSON in __metadata__ under
-- "plan.HEAD". A plan names its tensors; each tensor is in the file once: packed weights, scales, tables, norms. __metadata__
-- also has these keys; all but the first two are JSON:
--
--   perigee.format   the number of the format (artifact/format.lua)
--   perigee.version  of the library that wrote it
--   model            what answering needs to know: task, limit, positions, pooling, what config.json was checked to say
--   config           config.json
--   settings         of an INT8 model
--   calibration      { texts, tokens, truncated, digest } of an INT8 model with statistics
--
-- The same model by the same settings gives the same bytes: kernels, which are chosen by timing, are left out.
local format = require "perigee.artifact.format"
local json = require "perigee.base.json"
local operator = require "perigee.operator"
local options = require "perigee.options"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local safetensors = require "perigee.safetensors"
local settings = require "perigee.quantize.settings"
local tasks = require "perigee.tasks"
local tensor = require "perigee.tensor"
local ffi = require "ffi"

---- Tensors and their names -------------------------------------------------------------------------------------------

-- The tensors of a file, { name = tensor }, each stored once however many steps read it.
local Store = {}
Store.__index = Store

local function new_store()
  return setmetatable({ tensors = {}, names = {}, held = {} }, Store)
end

-- A text that is equal for two tensors if they are the same memory.
local function place_of(t)
  return ("%s %s %s"):format(tostring(t:pointer()), t.dtype, table.concat(t.shape, " "))
end

--- The name that a tensor has in the file: `name`, or what it was called before.
function Store:name(t, name)
  local place = place_of(t)
  if not self.names[place] then
    local free, n = name, 1
    while self.tensors[free] do
      n = n + 1
      free = ("%s#%d"):format(name, n)
    end
    self.tensors[free], self.names[place] = t, free
  end
  return self.names[place]
end

--- The same of a packed weight: { packed = name, N =, K = }; its parts are NAME.packed, NAME.scales and NAME.sums.
function Store:packed(w, name)
  local known = self.held[w]
  if not known then
    local parts = w:parts()
    known = { N = w.N, K = w.K, packed = self:name(parts.bytes, name .. ".packed") }
    for _, key in ipairs { "scales", "sums" } do
      known[key] = parts[key] and self:name(parts[key], name .. "." .. key)
    end
    self.held[w] = known
  end
  return known
end

---- Plans -------------------------------------------------------------------------------------------------------------

-- A buffer of a plan that is recorded.
local Buffer = {}

-- Stands in for a plan in lower.pass, and keeps what it is given.
local Recorder = {}
Recorder.__index = Recorder

local function new_recorder(store)
  return setmetatable({ store = store, buffers = {}, steps = {}, outputs = {}, names = {}, of_step = {} }, Recorder)
end

-- The name from which the names of a node's tensors are made.
local function name_of(node, names)
  if node.parts then
    local first = node.parts[1].name
    if #node.parts == 1 then
      return first
    end
    local list = {}
    for i, part in ipairs(node.parts) do
      list[i] = part.name:match "[^.]*$"
    end
    return (first:match "^.*%." or "") .. table.concat(list, "+")
  end
  return node.name or node.inputs[1] and names[node.inputs[1]] or node.op
end

--- From now on steps belong to this node.
function Recorder:visit(node)
  self.node = node
  self.names[node] = name_of(node, self.names)
  self.of_step[node] = #self.steps + 1
end

function Recorder:buffer(dtype, rows, width)
  self.buffers[#self.buffers + 1] = { dtype, rows, width or 0 }
  return setmetatable({ index = #self.buffers }, Buffer)
end

-- Names of tensors in the file that differ from the operator's field.
local CALLED = { scale = "multiplier" }

-- The keys of fields in the order in which their tensors are named: w first, then by name. A tensor keeps its first name.
local function sorted(fields)
  local keys = {}
  for key in pairs(fields) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if (a == "w") ~= (b == "w") then
      return a == "w"
    end
    return a < b
  end)
  return keys
end

-- An operator's field as JSON. path: "bias", "quantize.m".
local function field(self, value, path)
  if getmetatable(value) == Buffer then
    return { buffer = value.index }
  elseif packed.is(value) then
    return self.store:packed(value, self.names[self.node])
  elseif tensor.is(value) then
    local parameter = self.node[path]
    local own = type(parameter) == "table" and parameter.tensor and parameter.name
    return { tensor = self.store:name(value, own or self.names[self.node] .. "." .. (CALLED[path] or path)) }
  elseif type(value) ~= "table" then
    return value
  end
  local copy = {}
  for _, key in ipairs(sorted(value)) do
    copy[key] = field(self, value[key], path and path .. "." .. key or key)
  end
  return copy
end

for _, name in pairs(operator.names) do
  Recorder[name] = function(self, args)
    self.steps[#self.steps + 1] = { name, field(self, args) }
  end
end

function Recorder.seal() end

-- The facts about a linear that explain shows and its step does not have.
local function describe_linear(recorder, entry)
  local node, names, quantizer = entry.node, {}, entry.quantize
  for i, part in ipairs(node.parts) do
    names[i] = part.name
  end
  return {
    step = recorder.of_step[node], name = #names == 1 and names[1] or node.site and node.site.name or recorder.names[node],
    linears = names, precision = node.precision, alpha = node.alpha or nil,
    shift = node.shift and true or nil, mode = quantizer and quantizer.mode,
    scale = quantizer and quantizer.scale, zero = quantizer and quantizer.zero, rows = node.rows,
  }
end

-- dB to two decimal places, so that small differences between C libraries do not reach the file.
local function rounded(db)
  return db and db == db and math.abs(db) < math.huge and math.floor(db * 100 + 0.5) / 100 or nil
end

local function describe_attention(recorder, node)
  return {
    step = recorder.of_step[node], name = node.name, heads = node.heads, width = node.width, precision = node.precision,
    sqnr = rounded(node.sqnr),
  }
end

-- The plan of a head as a table for JSON.
local function plan_of(given, head, store)
  local recorder = new_recorder(store)
  local lowered = given.lower(given.model:graph(head), {
    memo = given.memo, plan = recorder, visit = function(node) recorder:visit(node) end,
  })
  local plan = { buffers = recorder.buffers, steps = recorder.steps, outputs = {}, linears = {}, attentions = {} }
  for name, buffer in pairs(lowered.outputs) do
    plan.outputs[name] = buffer.index
  end
  for i, entry in ipairs(lowered.linears) do
    plan.linears[i] = describe_linear(recorder, entry)
    local args = plan.steps[plan.linears[i].step][2]
    args.kernel = entry.node.precision ~= "int8" and args.kernel or nil
  end
  for i, node in ipairs(lowered.attentions) do
    plan.attentions[i] = describe_attention(recorder, node)
  end
  return plan
end

---- The model ---------------------------------------------------------------------------------------------------------

-- The fields of a table that are numbers, texts, booleans or lists of texts.
local function plain(from, without)
  local copy = {}
  for key, value in pairs(from) do
    local kind = type(value)
    if not without[key] and (kind == "number" or kind == "string" or kind == "boolean"
      or kind == "table" and type(value[1]) == "string") then
      copy[key] = value
    end
  end
  return copy
end

-- A copy of the pooling in which the layers' tensors are replaced by their names in the store.
local function pooling_of(pooling, store)
  local copy, saved = {}, {}
  for key, value in pairs(pooling) do
    copy[key] = value
  end
  for i, layer in ipairs(pooling.layers or {}) do
    saved[i] = {}
    for key, value in pairs(layer) do
      saved[i][key] = tensor.is(value) and store:name(value, ("embed.%s.%s"):format(layer.name, key)) or value
    end
  end
  copy.layers = pooling.layers and saved
  return copy
end

local function model_of(model, heads, store)
  local has_pooling, pooling = pcall(model.pooling, model)
  local has_prompts, list, default, kind = pcall(model.prompts, model)
  return {
    task = model.task, architecture = model.architecture, limit = model.limit, positions = model.positions,
    vocabulary = model.vocabulary, types = model.types, heads = heads,
    pooling = has_pooling and pooling_of(pooling, store) or nil,
    prompts = has_prompts and { list = list, default = default, kind = kind } or nil,
    fields = plain(model.config, { json = true, path = true }),
  }
end

-- The settings as saved. skip is sorted, because equal models must give equal files.
local function settings_of(chosen)
  local values = {}
  for _, key in ipairs(settings.KEYS) do
    values[key] = chosen.values[key]
  end
  values.skip = { unpack(values.skip) }
  table.sort(values.skip)
  return values
end

-- The heads that an artifact of a model has: that of the checkpoint's task, and those that tasks draw by themselves on the
-- encoder, such as embed's, if they can be drawn on this one.
local function heads_of(model)
  local heads = { "hidden", "layers", tasks.head_of(model.task) }
  for _, task in ipairs(tasks.with_heads()) do
    heads[#heads + 1] = task.head.draw and task.name ~= heads[3]
      and pcall(model.graph, model, task.name) and task.name or nil
  end
  return heads
end

-- The image of the tokenizer; nil if the checkpoint has no tokenizer. A tokenizer that cannot be used is an error, because
-- otherwise the user would notice only after opening the file.
local function tokenizer_of(model)
  local files = model.checkpoint.files
  local ok, own = pcall(model.tokenizer, model)
  if not ok and (files.tokenizer or files.vocabulary or files.sentencepiece or files.pieces and files.merges) then
    error(("save: the tokenizer cannot be used (%s); { tokenizer = false } saves without it"):format(own), 0)
  end
  return ok and own:image() or nil
end

---- Saving ------------------------------------------------------------------------------------------------------------

local KNOWN = { tokenizer = true }

local function save(path, given)
  if type(path) ~= "string" or path == "" or path:find "%z" then
    error(("save: the file is %s, expected a path"):format(pgee.describe(path)), 0)
  end
  local chosen = options.check(given.options, KNOWN, "save")
  options.boolean(chosen.tokenizer, "save: tokenizer")
  local model, store = given.model, new_store()
  local metadata = {
    ["perigee.format"] = tostring(format.NUMBER), ["perigee.version"] = ffi.string(pgee.C.pgee_version()),
    config = json.canonical(model.config.json),
    settings = given.settings and json.canonical(settings_of(given.settings)) or nil,
    calibration = given.calibration and json.canonical(given.calibration) or nil,
  }
  local heads = heads_of(model)
  for _, head in ipairs(heads) do
    metadata["plan." .. head] = json.canonical(plan_of(given, head, store))
  end
  metadata.model = json.canonical(model_of(model, heads, store)) -- after the heads, which read what they need of config.json
  if chosen.tokenizer ~= false then
    store.tensors.tokenizer = tokenizer_of(model)
  end
  safetensors.write(path, store.tensors, metadata)
end

--- Writes a model to a file.
--   model        the FP32 model
--   lower        function(graph, options): runs the passes, and lower.pass with these options
--   memo         keeps what is made on the way; it is released at the end
--   settings, calibration   of an INT8 model
--   options      { tokenizer = false }: saves without the tokenizer
return function(path, given)
  local ok, failure = pcall(save, path, given)
  given.memo:release()
  if not ok then
    error(failure, 0)
  end
end
