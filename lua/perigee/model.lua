--- Model: a checkpoint as an FP32 model. It runs every task, and quantized models are made from it.
local calibrate = require "perigee.quantize.calibrate"
local checkpoint = require "perigee.checkpoint"
local Config = require "perigee.checkpoint.config"
local cpu = require "perigee.cpu"
local definitions = require "perigee.checkpoint.definitions"
local Encoder = require "perigee.run.encoder"
local fuse = require "perigee.graph.passes.fuse"
local gather = require "perigee.graph.passes.gather"
local Graph = require "perigee.graph"
local lower = require "perigee.graph.passes.lower"
local Memo = require "perigee.quantize.memo"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local place = require "perigee.graph.passes.place"
local quantized = require "perigee.quantize.quantized"
local random = require "perigee.checkpoint.random"
local report = require "perigee.run.report"
local save = require "perigee.artifact.save"
local sites = require "perigee.graph.passes.sites"
local tasks = require "perigee.tasks"
local tokenizer = require "perigee.tokenizer"
local tune = require "perigee.tune.tune"
local Weights = require "perigee.checkpoint.weights"
local raise = pgee.raise

local Model = Encoder.extend {}

-- The heads that are no task's: (g, hidden states, the embeddings and every layer's output).
local HEADS = {
  hidden = function(g, x)
    g:output("hidden", x)
  end,
  layers = function(g, _, layers)
    for i, layer in ipairs(layers) do
      g:output("layer " .. i - 1, layer)
    end
  end,
}

-- Draws the head of a task, { outputs =, draw = }. Without `draw` the definition has a function of the task's name.
local function draw_task(task, g, x, model, weights)
  if task.head.needs == "labels" and not model.config.labels then
    model.config:read_head()
  end
  if task.head.draw then
    return task.head.draw(g, x, model, weights)
  end
  g:output("logits", model:head(task)(g, model.config, weights, x))
end

---- Loading -----------------------------------------------------------------------------------------------------------

local KNOWN = { max_tokens = true, budget = true, kernel = true, strict = true }

-- Max tokens of a text: the caller's max_tokens, else what the checkpoint's files say, but at most the positions. Second result:
-- the error in these files, or nil. It is raised when the tokenizer is first needed.
local function limit_of(c, positions, max_tokens)
  if max_tokens == nil then
    local ok, limit = pcall(c.limit, c)
    return math.min(positions, ok and limit or positions), not ok and limit or nil
  end
  if type(max_tokens) ~= "number" or max_tokens % 1 ~= 0 or max_tokens < 2 or max_tokens > positions then
    error(("max_tokens is %s, expected an integer from 2 to %d, the positions that the model has"):format(
      pgee.describe(max_tokens), positions), 0)
  end
  return max_tokens
end

-- The task that config.json's architectures name, and the architecture; the default task if they name none. A checkpoint of
-- sentence-transformers is for embed, because its architectures keep the class that it was trained from, whose head it lacks.
local function task_of(config, c)
  for _, module in ipairs(c.modules or {}) do
    if module.class == "Pooling" then
      return tasks.DEFAULT
    end
  end
  for _, architecture in ipairs(type(config.json.architectures) == "table" and config.json.architectures or {}) do
    local task = type(architecture) == "string" and tasks.of_architecture(architecture)
    if task then
      return task, architecture
    end
  end
  return tasks.DEFAULT
end

local function budget_of(given)
  if given ~= nil and (type(given) ~= "number" or given % 1 ~= 0 or given < 1) then
    error(("budget is %s, expected an integer of at least 1"):format(pgee.describe(given)), 0)
  end
  return given
end

-- The kernel of FP32 products: the one that the caller names, else oneDNN if it can be used.
local function kernel_of(given)
  if given ~= nil then
    options.choice(given, { native = true, onednn = true }, "load: kernel")
  end
  if given == "native" then
    return given -- without a look for oneDNN, which loads it
  end
  local there, reason = cpu.onednn()
  if given == "onednn" and not there then
    error("load: kernel is onednn, which cannot be used: " .. reason, 0)
  end
  return given or there and "onednn" or "native"
end

-- Whether the folder has a tokenizer.
local function has_tokenizer(files)
  return (files.tokenizer or files.vocabulary or files.pieces or files.sentencepiece) ~= nil
end

-- Functions that read the files next to the weights. Each takes the model, and puts keys without effect on checkpoint.ignored.
local READERS = {
  function(model) model.checkpoint:limit() end,
  function(model) return has_tokenizer(model.checkpoint.files) and model:tokenizer() end,
  function(model) model:pooling() end,
  function(model) model:prompts() end,
}

-- For the option strict: reads every file next to the weights, and raises an error if any key has no effect.
local function check_strictly(model)
  for _, read in ipairs(READERS) do
    read(model)
  end
  local ignored = model.checkpoint.ignored
  if #ignored > 0 then
    error(("strict: %s\n%s"):format(ignored:summary(), tostring(ignored)), 0)
  end
end

local function load(dir, given)
  given = options.check(given, KNOWN, "load")
  options.boolean(given.strict, "load: strict")
  local c = random.is(dir) and dir or checkpoint.open(dir)
  local config = Config.new(c.config, c.files.config, c.ignored)
  local definition = definitions.of(config)
  definitions.check(definition, config)
  local model = setmetatable({
    dir = c.dir, checkpoint = c, config = config, definition = definition, weights = Weights.new(c),
    positions = config.positions, vocabulary = config.vocab_size, types = config.type_vocab_size,
    budget = budget_of(given.budget), kernel = kernel_of(given.kernel), given = given,
    memo = Memo.new(), runners = {}, graphs = {},
  }, Model)
  model.model = model
  model.task, model.architecture = task_of(config, c)
  model.limit, model.unreadable = limit_of(c, model.positions, given.max_tokens)
  local owner = tasks.get(tasks.head_of(model.task))
  if owner and owner.head.needs == "labels" then
    config:read_head()
  elseif owner and owner.head.optional and not pcall(model.graph, model, model.task) then
    model.task, model.architecture = tasks.DEFAULT, nil -- the checkpoint is the encoder alone
  end
  model:graph "hidden"
  if given.strict then
    check_strictly(model)
  end
  return model
end

---- The model ---------------------------------------------------------------------------------------------------------

--- For tasks: the function of the model's definition that draws a task's head. If the checkpoint is for another task, or the
-- definition has no such function, that is an error.
function Model:head(task)
  raise(options.method, self, "head")
  if type(task) ~= "table" or type(task.name) ~= "string" then
    pgee.error(("head: the task is %s, expected a declaration of perigee.tasks"):format(pgee.describe(task)))
  end
  if tasks.head_of(self.task) ~= task.name and self.task ~= tasks.DEFAULT then
    error(("%s: this checkpoint has a head for %s (its config.json says %s)"):format(task.name, self.task, self.architecture), 0)
  end
  return definitions.head(self.definition, task, self)
end

-- Draws the graph of a head unless it was drawn before. title: the beginning of the error about missing weights (weights:check).
local function draw(model, head, title)
  if not model.graphs[head] then
    local g = Graph.new()
    local x, layers = definitions.encoder(model.definition, g, model.config, model.weights)
    g.in_head = true
    if HEADS[head] then
      HEADS[head](g, x, layers)
    else
      draw_task(tasks.get(head), g, x, model, model.weights)
    end
    model.weights:check(title)
    model.graphs[head] = sites.find(fuse(g))
  end
  return model.graphs[head]
end

-- The message that a checkpoint has no head for a task. It lists the tasks for which there is a head.
local function no_head(model, task)
  local has, named = {}, model.config.json.architectures
  for _, other in ipairs(tasks.with_heads()) do
    has[#has + 1] = other.name ~= task and pcall(draw, model, other.name) and other.name or nil
  end
  local said = type(named) == "table" and type(named[1]) == "string" and "says " .. named[1] or "names no architecture"
  return ("%s: %s has no head for it; it is a model of type %s for %s (its config.json %s)"):format(task, model.dir,
    model.config.model_type, table.concat(has, ", "), said)
end

--- The graph of the encoder with a head, fused and with its sites found. Missing weights are an error here. head: "hidden",
-- "layers" or the name of a task.
function Model:graph(head)
  local foreign = self.graphs.hidden and head ~= tasks.head_of(self.task)
  return draw(self, head, foreign and function() return no_head(self, head) end or nil)
end

-- FP32 throughout. given: lower.pass's options.
local function to_plan(model, graph, given)
  given.kernel = model.kernel
  return lower.pass(gather.pass(place(graph)), given)
end

--- From a graph to a plan.
function Model:lower(graph)
  return to_plan(self, graph, { memo = self.memo })
end

--- model:save(path, { tokenizer = true }): writes the model to one file, which perigee.open answers from. A file that is there is
-- replaced once the new one is complete. A tokenizer that cannot be used is an error unless it is left out: false. See
-- artifact/save.lua.
function Model:save(path, given)
  raise(options.method, self, "save")
  raise(save, path, { model = self, memo = self.memo:aside(), options = given, lower = function(graph, how)
    return to_plan(self, graph, how)
  end })
end

--- The checkpoint's tokenizer. It is made when text is first given.
function Model:tokenizer()
  raise(options.method, self, "tokenizer")
  if not self.tokens_of then
    if self.unreadable then
      error(self.unreadable, 0)
    end
    self.tokens_of = tokenizer.load(self.checkpoint)
  end
  return self.tokens_of
end

--- For tasks: how hidden states become one vector (checkpoint/sentence.lua). A kind of pooling that is not supported is an error.
function Model:pooling()
  self.pooled = self.pooled or self.checkpoint:pooling(self.config.hidden_size)
  return self.pooled
end

--- For tasks: returns the checkpoint's prompts, { name = text }; the name of the default prompt, nil if there is none; and the
-- kind of model that the prompts are for, "SentenceTransformer" or "CrossEncoder".
function Model:prompts()
  return self.checkpoint:prompts()
end

--- Lists the parts of the checkpoint that have no effect. First result: the names of the tensors that no head has asked for
-- yet; a head asks for its own tensors when it first runs. Second result: the keys without effect in the files next to the
-- weights, a list of { file = path, key =, reason = } that prints itself. A file that cannot be read adds no key to this list:
-- it is an error when it is needed.
function Model:unused()
  raise(options.method, self, "unused")
  for _, read in ipairs(READERS) do
    pcall(read, self)
  end
  return self.checkpoint:unused(), self.checkpoint.ignored
end

--- model:calibrate(texts, { samples = 256, ... }): see quantize/calibrate.lua.
function Model:calibrate(texts, given)
  local stats = raise(calibrate.run, self, texts, given)
  if next(self.runners) == nil then
    self.memo:release() -- nothing of FP32 is in use
  end
  return stats
end

--- model:quantize { stats =, activations = "static", alpha = ..., ... }: an INT8 model; the settings are those of
-- quantize/settings.lua.
function Model:quantize(given)
  raise(options.method, self, "quantize")
  local q = raise(quantized.new, self, given)
  return q
end

--- model:tune { stats =, data =, max_drop = 0.5 }: the fastest settings whose loss stays within max_drop points, judged on the
-- half of the data that did not choose them. The result prints itself, with a recipe. See tune/tune.lua.
function Model:tune(given)
  raise(options.method, self, "tune")
  local result = raise(tune.run, self, given)
  return result
end

--- model:explain(): which kernel runs each linear, and at which precision: a table that prints itself.
function Model:explain()
  raise(options.method, self, "explain")
  return report.explain(self)
end

--- model:release(): frees the packed weights and workspaces of FP32. They are made again when they are needed.
function Model:release()
  raise(options.method, self, "release")
  self:release_runners()
  self.memo:release()
end

function Model:__tostring()
  local c = self.config
  return ("%s: %s, %d layers of %d, FP32, up to %d tokens"):format(self.dir, c.model_type, c.num_hidden_layers, c.hidden_size,
    self.limit)
end

return {
  --- load(dir, { max_tokens =, budget =, kernel =, strict = }): opens a Hugging Face checkpoint folder, or a checkpoint of
  -- checkpoint/random.lua. strict: it is an error if a key of the files next to the weights has no effect, or if one of these
  -- files cannot be read.
  load = function(dir, given)
    local model = raise(load, dir, given)
    return model
  end,
}
