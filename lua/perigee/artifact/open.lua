--- Artifact: a saved model, opened. It runs every task that was saved, from one file that is mapped, not read.
--
--   local a = perigee.open "model.int8.safetensors"
--   a:embed { "a text", "another" }      a:explain()      a:settings()      a:memory()
--
-- The file has packed weights, plans and the tokenizer, as artifact/save.lua wrote them. Opening reads only the header. The plan
-- of a task is built when the task is first run. The file has no FP32 weights, so settings can be read but not changed.
--
-- Formats. A file states the number of its format. The library reads only the format that artifact/format.lua states; any other
-- one is an error that says what to do.
--
-- Damage. Whenever a file is opened, the checksums of the header and of every tensor of at most 64 KiB are checked. The
-- checksums of larger tensors are checked with { verify = true } or { copy = true }. Every field of the metadata is checked
-- (artifact/*.lua).
local build = require "perigee.artifact.plan"
local Config = require "perigee.checkpoint.config"
local Encoder = require "perigee.run.encoder"
local format = require "perigee.artifact.format"
local json = require "perigee.base.json"
local metadata = require "perigee.artifact.metadata"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local safetensors = require "perigee.safetensors"
local tasks = require "perigee.tasks"
local raise, error = pgee.raise, pgee.error

local artifact = {}

local Artifact = Encoder.extend {}

local SMALL = 65536 -- bytes of a tensor that is always verified

local function fail(self, ...)
  error(("'%s': %s"):format(self.dir, string.format(...)))
end

-- f(...), whose error names the file.
local function named(self, f, ...)
  local ok, result = pcall(f, ...)
  if not ok then
    fail(self, "%s", result)
  end
  return result
end

-- Decodes the value of a key of the metadata. Returns nil if the key is missing and `optional`.
local function decoded(self, key, optional)
  local text = self.file:metadata(key)
  if not text then
    return not optional and fail(self, "there is no %s in it: it is no artifact of Perigee", key) or nil
  end
  local ok, value = pcall(json.decode, text)
  if not ok or type(value) ~= "table" then
    fail(self, "its %s is not an object of JSON%s", key, ok and "" or ": " .. value)
  end
  return value
end

---- Plans -------------------------------------------------------------------------------------------------------------

--- For Encoder and tasks: returns what stands for the graph of a head. It is an error if the model was saved without this head.
function Artifact:graph(head)
  if not self.file:metadata("plan." .. head) then
    fail(self, "it was saved without %q; it has %s", head, table.concat(self.heads, ", "))
  end
  return head
end

--- For Encoder: builds the plan of a head. The JIT compiler is off meanwhile, because each loop runs once: compiling them would
-- take longer than running them.
function Artifact:lower(head)
  local compiling = jit.status()
  jit.off()
  local ok, result = pcall(named, self, build, self, decoded(self, "plan." .. head), head)
  if compiling then
    jit.on()
  end
  if not ok then
    error(result)
  end
  return result
end

---- What it says ------------------------------------------------------------------------------------------------------

--- The tokenizer that the model had when it was saved; it runs from the file.
function Artifact:tokenizer()
  raise(options.method, self, "tokenizer")
  if not self.tokens_of then
    local ok, image = pcall(self.file.tensor, self.file, "tokenizer")
    if not ok then
      fail(self, "it was saved without a tokenizer; inputs are { ids = }")
    end
    rawset(self.tensors, "tokenizer", image)
    rawset(self, "tokens_of", named(self, require("perigee.tokenizer").from_image, image))
  end
  return self.tokens_of
end

--- How hidden states become one vector, as checkpoint/sentence.lua says.
function Artifact:pooling()
  local saved = self.pooled
  if not saved then
    fail(self, "it was saved without pooling: its checkpoint's is not supported")
  elseif not saved.layers then
    return saved
  end
  local layers = require "perigee.artifact.layers"
  local pooling = { layers = named(self, layers.of, self, saved.layers, self.config.hidden_size * #saved.modes) }
  for key, value in pairs(saved) do
    pooling[key] = pooling[key] or value
  end
  return pooling
end

--- For tasks: returns the prompts, { name = text }; the name of the default prompt, nil if there is none; and the kind of model
-- that the prompts are for.
function Artifact:prompts()
  if not self.prompted then
    fail(self, "it was saved without prompts: its checkpoint's are malformed")
  end
  return self.prompted.list, self.prompted.default, self.prompted.kind
end

--- Returns a table that prints which kernel runs each linear, and how the linear is quantized.
function Artifact:explain()
  raise(options.method, self, "explain")
  return require("perigee.run.report").explain(self)
end

--- Returns bytes: { file = size of the file, of which the used pages are in memory, shared with other processes; workspace = of
-- all runs; weights = packed weights, part of the file }.
function Artifact:memory()
  local held = raise(Encoder.memory, self)
  held.file = self.file:bytes()
  return held
end

local function select_kernels(self, given)
  options.method(self, "select")
  rawset(self, "choices", require("perigee.graph.passes.select").anew(self:runner(tasks.head_of(self.task)).lowered, given))
  self:release_runners()
  return self.choices
end

--- a:select(options): times the kernels of its linears on this machine and uses what is faster; the bits stay. Opening never
-- times and takes our own. The options are those of graph/passes/select.lua's run. Returns what it chose.
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

for _, name in ipairs {
  "set", "undo", "sweep", "sensitivity", "tune", "diff", "recipe", "sqnr", "plot", "calibrate", "quantize",
} do
  Artifact[name] = function()
    error(READ_ONLY:format(name))
  end
end

--- An artifact cannot be saved.
function Artifact.save()
  error("save: an artifact is the file that it was opened from: copy that")
end

-- The registry of settings, which is loaded when it is first needed, because opening a file must be fast.
local function settings_registry()
  return require "perigee.quantize.settings.registry"
end

-- Fields of an artifact that can be nil. They are no settings.
local OWN = { tokens_of = true, choices = true, kernel = true, budget = true, architecture = true, unreadable = true }

-- Settings are read like fields, as those of a quantized model.
function Artifact.__index(self, key)
  local method = Artifact[key]
  if method ~= nil or OWN[key] or not self.file:metadata "settings" then
    return method
  elseif key == "settings" or settings_registry().of[key] then
    local chosen = named(self, require("perigee.quantize.settings").new, decoded(self, "settings"))
    rawset(self, "settings", chosen)
    return key == "settings" and chosen or chosen[key]
  end
end

-- Tables of the names that __index knows besides methods, for completion at the prompt.
function Artifact.__names(self)
  return self.file:metadata "settings" and { settings_registry().of, { settings = true } } or {}
end

function Artifact.__newindex(_, key)
  local known = settings_registry().of[key]
  error(known and READ_ONLY:format(key) or ("an artifact has no field %s to be set"):format(pgee.describe(key)))
end

function Artifact:__tostring()
  local c = self.config
  return ("%s: %s, %s layers of %s, %s, up to %d tokens"):format(self.dir, c.model_type or "model", c.num_hidden_layers or 0,
    c.hidden_size or 0, self.file:metadata "settings" and "INT8" or "FP32", self.limit)
end

---- Opening -----------------------------------------------------------------------------------------------------------

local KNOWN = { verify = true, copy = true, max_tokens = true, budget = true, kernel = true }
local KERNELS = { native = true, onednn = true }

local function flag(given, key)
  return options.boolean(given[key], "open: " .. key)
end

local function read_model(self)
  local saved = named(self, metadata.model, decoded(self, "model"))
  for _, head in ipairs(saved.heads) do
    if not self.file:metadata("plan." .. head) then
      fail(self, "model.heads has %s, but there is no plan.%s", head, head)
    end
  end
  for _, key in ipairs { "task", "heads", "architecture", "limit", "positions", "vocabulary", "types" } do
    self[key] = saved[key]
  end
  self.pooled, self.prompted = saved.pooling or false, saved.prompts or false
  self.config = Config.new(decoded(self, "config"), self.dir)
  for key, value in pairs(saved.fields) do
    self.config[key] = value
  end
  local calibration = decoded(self, "calibration", true)
  if calibration then
    named(self, metadata.calibration, calibration)
  end
end

local function open(path, given)
  given = options.check(given, KNOWN, "open")
  if type(path) ~= "string" or path == "" or path:find "%z" then
    error(("open: the file is %s, expected a path"):format(pgee.describe(path)), 0)
  end
  local verify, copy = flag(given, "verify"), flag(given, "copy")
  local self = {
    dir = path, file = safetensors.open(path, { copy = copy }), tensors = {}, packed = {}, runners = {},
    budget = options.integer(given.budget, 1, 2 ^ 31 - 1, "open: budget"),
    kernel = given.kernel and options.choice(given.kernel, KERNELS, "open: kernel"),
  }
  self.model = self
  named(self, format.check, self.file)
  self.file:verify(not (verify or copy) and SMALL or nil)
  read_model(self)
  self.limit = options.integer(given.max_tokens, 2, self.positions, "open: max_tokens") or self.limit
  return setmetatable(self, Artifact)
end

--- open(path, { verify = false, copy = false, max_tokens =, budget =, kernel = }): the artifact that a model was saved as.
--   verify      true: checks every byte, also of the weights. Default: false
--   copy        true: reads the file into memory and checks it. Needed if another process may write to the file or cut it off
--               while it is open. Not needed for a file that is replaced by renaming another one. Default: false
--   max_tokens, budget   as for perigee.load
--   kernel      the kernel of FP32 linears: "native", Perigee's own, whose bits are the same on every CPU. Default: oneDNN if the
--               model was saved with it and it is installed
function artifact.open(path, given)
  local self = raise(open, path, given)
  return self
end

return artifact
