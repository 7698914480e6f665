--- Artifact: a saved model, opened. It runs every task that was saved, from one file that is mapped, not read.
--
--   local a = perigee.open "model.int8.safetensors"
--   a:embed { "a text", "another" }      a:explain()      a:settings()      a:memory()
--
-- What save.lua wrote is in the file: weights as they run, plans, tokenizer. So opening reads a header, and a plan is built when
-- its task is first run. There are no FP32 weights: settings can be read, not changed.
--
-- Formats. A file says which format it is of, a whole number that rises with every change that earlier libraries cannot read.
-- This library reads formats 1 and 2; 2 is of models with layers after their pooling, or whose vectors are cut. A newer one is
-- refused by name; CHANGELOG.md says when an older one is no longer read.
--
-- Damage. The header and every tensor of at most 64 KiB are checked against their checksums whenever a file is opened, all else
-- with { verify = true } or { copy = true }. A plan is checked operator by operator as if it had been typed.
local Config = require "perigee.config"
local Encoder = require "perigee.encoder"
local json = require "perigee.json"
local operator = require "perigee.operator"
local options = require "perigee.options"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local plan = require "perigee.plan"
local safetensors = require "perigee.safetensors"
local vectors = require "perigee.tasks.vectors"
local ffi = require "ffi"
local raise, error = pgee.raise, pgee.error

local artifact = { FORMAT = 2 }

local Artifact = Encoder.extend {}

local SMALL = 65536 -- bytes of a tensor that is always verified

local function fail(self, ...)
  error(("'%s': %s"):format(self.dir, string.format(...)), 0)
end

---- Plans -------------------------------------------------------------------------------------------------------------

local OPERATORS = {}
for _, name in pairs(operator.names) do
  OPERATORS[name] = true
end

local function expect(what, value, kind)
  if type(value) ~= kind then
    error(("%s is %s, expected a %s"):format(what, json.describe(value), kind), 0)
  end
  return value
end

-- The fields of a layer after the pooling that are tensors, by name.
local LAYER_TENSORS = { weight = true, bias = true, residual = true, gamma = true, beta = true }

-- A tensor of the file, a view, kept.
local function tensor_of(self, name)
  expect("a tensor's name", name, "string")
  self.tensors[name] = self.tensors[name] or self.file:tensor(name)
  return self.tensors[name]
end

local function packed_of(self, value)
  local name = expect("a packed weight's name", value.packed, "string")
  if not self.packed[name] then
    self.packed[name] = packed.over {
      N = expect("N", value.N, "number"), K = expect("K", value.K, "number"), bytes = tensor_of(self, name),
      scales = value.scales and tensor_of(self, value.scales), sums = value.sums and tensor_of(self, value.sums),
    }
  end
  return self.packed[name]
end

-- An operator's fields, from JSON.
local function fields(self, given, buffers)
  local args = {}
  for key, value in pairs(given) do
    if type(value) ~= "table" then
      args[key] = value
    elseif value.buffer ~= nil then
      args[key] = buffers[value.buffer] or error(("there is no buffer %s"):format(tostring(value.buffer)), 0)
    elseif value.packed ~= nil then
      args[key] = packed_of(self, value)
    elseif value.tensor ~= nil then
      args[key] = tensor_of(self, value.tensor)
    else
      args[key] = fields(self, value, buffers)
    end
  end
  return args
end

-- Which kernel multiplies a step's weight: what select chose for an INT8 one; else what was saved, which for FP32 may be oneDNN,
-- where there is one and open was not told to do without it.
local function kernel_of(self, args)
  local choice = self.choices and args.w and args.w.dtype == "s8" and self.choices.shapes[("%d x %d"):format(args.w.N, args.w.K)]
  if choice then
    return choice.kernel
  end
  local usable = args.kernel ~= "onednn" or self.kernel ~= "auto" and pgee.C.pgee_onednn_version() ~= nil
  return usable and args.kernel or "auto"
end

local ROW = {
  name = "string", precision = "string", mode = "string", rows = "string", alpha = "number", scale = "number", zero = "number",
  sqnr = "number", heads = "number", width = "number",
}

-- What is said about a linear or an attention; needed: what may not be missing.
local function expect_row(what, row, needed)
  expect(what, row, "table")
  for key, kind in pairs(ROW) do
    if row[key] ~= nil or needed[key] then
      expect(("the %s of %s"):format(key, what), row[key], kind)
    end
  end
end

-- What explain reads: lowered.linears and lowered.attentions as passes/lower.lua makes them.
local function describe(saved, args_of)
  local linears = {}
  for i, row in ipairs(expect("linears", saved.linears, "table")) do
    expect_row("linear " .. i, row, { name = true, precision = true })
    local args, parts = args_of[row.step], {}
    if not args or not args.w then
      error(("linear %d is at step %s, which is none"):format(i, tostring(row.step)), 0)
    end
    for p, name in ipairs(expect("a linear's parts", row.linears, "table")) do
      parts[p] = { name = expect("a linear's part", name, "string") }
    end
    linears[i] = {
      args = args, quantize = row.mode and { mode = row.mode, scale = row.scale, zero = row.zero },
      node = {
        name = row.name, parts = parts, site = { name = row.name }, precision = row.precision, alpha = row.alpha, rows = row.rows,
        width = args.w.N, inputs = { { width = args.w.K } },
      },
    }
  end
  local attentions = {}
  for i, row in ipairs(expect("attentions", saved.attentions, "table")) do
    expect_row("attention " .. i, row, { name = true, heads = true, width = true })
    local args = args_of[row.step] or error(("attention %d is at step %s, which is none"):format(i, tostring(row.step)), 0)
    attentions[i] = {
      name = row.name, heads = row.heads, width = row.width, precision = row.precision, sqnr = row.sqnr,
      scales = args.qk_scale and { qk = args.qk_scale, v = args.v_scale },
    }
  end
  return linears, attentions
end

local function build(self, saved)
  local p, buffers, outputs, list, args_of = plan.new(), {}, {}, {}, {}
  for i, buffer in ipairs(expect("buffers", saved.buffers, "table")) do
    buffers[i] = p:buffer(buffer[1], buffer[2], buffer[3])
  end
  for i, step in ipairs(expect("steps", saved.steps, "table")) do
    local name = step[1]
    if not OPERATORS[name] or name == "observe" then
      error(("step %d is %s, which is no operator"):format(i, json.describe(name)), 0)
    end
    args_of[i] = fields(self, expect("an operator's fields", step[2], "table"), buffers)
    args_of[i].kernel = name == "linear" and kernel_of(self, args_of[i]) or args_of[i].kernel
    p[name](p, args_of[i])
  end
  for name, index in pairs(expect("outputs", saved.outputs, "table")) do
    outputs[name] = buffers[index] or error(("there is no buffer %s"):format(tostring(index)), 0)
    list[#list + 1] = outputs[name]
  end
  p:seal(list)
  local linears, attentions = describe(saved, args_of)
  return { plan = p, outputs = outputs, linears = linears, attentions = attentions }
end

-- A key of the metadata, decoded.
local function decoded(self, key)
  local text = self.file:metadata(key)
  if not text then
    fail(self, "there is no %s in it: it is no artifact of Perigee", key)
  end
  local ok, value = pcall(json.decode, text)
  if not ok or type(value) ~= "table" then
    fail(self, "its %s is not an object of JSON", key)
  end
  return value
end

--- For Encoder and tasks: stands for the graph of a head; an error if there is none.
function Artifact:graph(head)
  if not self.file:metadata("plan." .. head) then
    fail(self, "it was saved without %q; it has %s", head, table.concat(self.heads, ", "))
  end
  return head
end

--- For Encoder: from what graph returns to what runs. It is done once: compiling its loops would take longer than running them.
function Artifact:lower(head)
  local compiling = jit.status()
  jit.off()
  local ok, result = pcall(build, self, decoded(self, "plan." .. head))
  if compiling then
    jit.on()
  end
  if not ok then
    fail(self, "its plan is malformed: %s", result)
  end
  return result
end

---- What it says ------------------------------------------------------------------------------------------------------

--- The tokenizer that the model had when it was saved; it runs from the file.
function Artifact:tokenizer()
  raise(options.method, self, "tokenizer")
  if not self.tokens_of then
    local ok, result = pcall(tensor_of, self, "tokenizer")
    if not ok then
      fail(self, "it was saved without a tokenizer; inputs are { ids = }")
    end
    rawset(self, "tokens_of", require("perigee.tokenizer").from_image(result))
  end
  return self.tokens_of
end

-- The layers after the pooling with their tensors in place of the names of these. Shapes are checked where they run.
local function layers_of(self, saved)
  local list = {}
  for i, layer in ipairs(saved) do
    list[i] = {}
    for key, value in pairs(layer) do
      list[i][key] = LAYER_TENSORS[key] and type(value) == "string" and tensor_of(self, value) or value
    end
  end
  return list
end

--- How hidden states become one vector, as checkpoint/sentence.lua says.
function Artifact:pooling()
  local saved = self.pooled
  if not saved then
    fail(self, "it was saved without pooling: its checkpoint's is not supported")
  elseif not saved.layers then
    return saved
  end
  local pooling = { layers = layers_of(self, saved.layers) }
  for key, value in pairs(saved) do
    pooling[key] = pooling[key] or value
  end
  return pooling
end

--- For tasks: prompts, { name = text }, the name of the one that goes before a text by default, nil if none, and the kind of
-- model that they are of.
function Artifact:prompts()
  if not self.prompted then
    fail(self, "it was saved without prompts: its checkpoint's are malformed")
  end
  return self.prompted.list, self.prompted.default, self.prompted.kind
end

--- What runs each linear, as a table that prints itself.
function Artifact:explain()
  raise(options.method, self, "explain")
  return require("perigee.report").explain(self)
end

--- Bytes held: { file = its size, of which what is used is in memory, shared with other processes, workspace = of the runners,
-- weights = packed weights, part of the file }.
function Artifact:memory()
  local held = raise(Encoder.memory, self)
  held.file = self.file:bytes()
  return held
end

local function select_kernels(self, given)
  options.method(self, "select")
  rawset(self, "choices", require("perigee.passes.select").anew(self:runner(self.task).lowered, given))
  self:release_runners()
  return self.choices
end

--- a:select(options): times the kernels of its linears on this machine and uses what is faster; the bits stay. Opening never
-- times and takes our own. The options are those of passes/select.lua's run. Returns what it chose.
function Artifact:select(given)
  local choices = raise(select_kernels, self, given)
  return choices
end

--- Frees what running holds. It is made again when it is needed.
function Artifact:release()
  raise(options.method, self, "release")
  self:release_runners()
  for name, w in pairs(self.packed) do
    self.packed[name] = nil
    w:release()
  end
  for name, t in pairs(self.tensors) do
    self.tensors[name] = nil
    t:release()
  end
end

local READ_ONLY = "%s: an artifact has no FP32 weights, so its settings stay as they were saved; change them in the model that "
  .. "was saved and save that again"

for _, name in ipairs { "set", "undo", "sweep", "diff", "recipe", "sqnr", "plot", "calibrate", "quantize" } do
  Artifact[name] = function()
    error(READ_ONLY:format(name), 2)
  end
end

--- There is nothing to save.
function Artifact.save()
  error("save: an artifact is the file that it was opened from: copy that", 2)
end

-- Settings are read like fields, as of a quantized model. Their module is loaded by whoever asks.
local SETTINGS = {
  activations = true, symmetric = true, per = true, weights = true, alpha = true, skip = true, attention = true, observer = true,
  pages = true, sites = true,
}

function Artifact.__index(self, key)
  local method = Artifact[key]
  if method == nil and (SETTINGS[key] or key == "settings") and self.file:metadata "settings" then
    local ok, chosen = pcall(require("perigee.settings").new, decoded(self, "settings"), 0)
    if not ok then
      fail(self, "%s", chosen)
    end
    rawset(self, "settings", chosen)
    return key == "settings" and chosen or chosen[key]
  end
  return method
end

-- What __index knows besides methods, for whoever lists names.
function Artifact.__names(self)
  return self.file:metadata "settings" and { SETTINGS, { settings = true } } or {}
end

function Artifact.__newindex(_, key)
  error(SETTINGS[key] and READ_ONLY:format(key) or ("an artifact has no field %s to be set"):format(pgee.describe(key)), 2)
end

function Artifact:__tostring()
  local c = self.config
  return ("%s: %s, %s layers of %s, %s, up to %d tokens"):format(self.dir, c.model_type or "model", c.num_hidden_layers or 0,
    c.hidden_size or 0, self.file:metadata "settings" and "INT8" or "FP32", self.limit)
end

---- Opening -----------------------------------------------------------------------------------------------------------

local KNOWN = { verify = true, copy = true, max_tokens = true, budget = true, kernel = true }
local KERNELS = { auto = true, onednn = true }

local function flag(given, key)
  return options.boolean(given[key], "open: " .. key, -2)
end

local function check_format(self)
  local format = self.file:metadata "perigee.format"
  if not format then
    fail(self, "it is no artifact of Perigee; a checkpoint is opened by perigee.load with the path of its folder")
  elseif not format:match "^[1-9]%d*$" or tonumber(format) > artifact.FORMAT then
    fail(self, "it is of format %s, this library (%s) reads formats up to %d; it was written by %s", format,
      ffi.string(pgee.C.pgee_version()), artifact.FORMAT, self.file:metadata "perigee.version" or "another version")
  end
end

local INTEGERS = { "limit", "positions", "vocabulary", "types" }

local function has_texts(list)
  for _, text in pairs(type(list) == "table" and list or { false }) do
    if type(text) ~= "string" then
      return false
    end
  end
  return true
end

local function is_layers(list)
  local ok = type(list) == "table"
  for _, layer in pairs(ok and list or {}) do
    ok = ok and type(layer) == "table" and vectors.is_layer(layer.op)
  end
  return ok
end

local function is_pooling(pooling)
  local dimensions = type(pooling) == "table" and pooling.dimensions or 1
  return type(pooling) == "table" and has_texts(pooling.modes) and #pooling.modes > 0
    and (pooling.layers == nil or is_layers(pooling.layers))
    and type(dimensions) == "number" and dimensions % 1 == 0 and dimensions >= 1
end

local function is_text(value)
  return value == nil or type(value) == "string"
end

local function is_prompts(prompts)
  return type(prompts) == "table" and has_texts(prompts.list) and is_text(prompts.default) and is_text(prompts.kind)
end

local function read_model(self)
  local saved = decoded(self, "model")
  for _, key in ipairs(INTEGERS) do
    local value = saved[key]
    if type(value) ~= "number" or value % 1 ~= 0 or value < 1 or value >= 2 ^ 31 then
      fail(self, "its %s is %s, expected a positive integer", key, json.describe(value))
    end
    self[key] = value
  end
  if type(saved.task) ~= "string" or type(saved.fields) ~= "table" or not has_texts(saved.heads) then
    fail(self, "it does not say what its model is for")
  elseif saved.pooling ~= nil and not is_pooling(saved.pooling) then
    fail(self, "its pooling is malformed")
  elseif saved.prompts ~= nil and not is_prompts(saved.prompts) then
    fail(self, "its prompts are malformed")
  end
  self.task, self.heads, self.architecture = saved.task, saved.heads, saved.architecture
  self.pooled, self.prompted = saved.pooling or false, saved.prompts or false
  self.config = Config.new(decoded(self, "config"), self.dir)
  for key, value in pairs(saved.fields) do
    self.config[key] = value
  end
end

local function open(path, given)
  given = options.check(given, KNOWN, "open", -2)
  if type(path) ~= "string" or path == "" or path:find "%z" then
    error(("open: the file is %s, expected a path"):format(pgee.describe(path)), 0)
  end
  local verify, copy = flag(given, "verify"), flag(given, "copy")
  local self = {
    dir = path, file = safetensors.open(path, { copy = copy }), tensors = {}, packed = {}, runners = {},
    budget = options.integer(given.budget, 1, 2 ^ 31 - 1, "open: budget", -2),
    kernel = given.kernel and options.choice(given.kernel, KERNELS, "open: kernel", -2),
  }
  self.model = self
  check_format(self)
  self.file:verify(not (verify or copy) and SMALL or nil)
  read_model(self)
  self.limit = options.integer(given.max_tokens, 2, self.positions, "open: max_tokens", -2) or self.limit
  return setmetatable(self, Artifact)
end

--- open(path, { verify = false, copy = false, max_tokens =, budget =, kernel = }): the artifact that a model was saved as.
--   verify      checks every byte, also of the weights
--   copy        reads the file into memory, and checks it: for files that others may write to or cut off while they are open.
--               A file that is replaced by renaming another needs neither: what was opened goes on
--   max_tokens, budget   as for perigee.load
--   kernel      of what is FP32: "auto", our own, whose bits are the same each time; by default oneDNN if the model that was
--               saved had it and it is there
function artifact.open(path, given)
  local self = raise(open, path, given)
  return self
end

return artifact
