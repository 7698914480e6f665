--- Encoder: the methods that FP32 models, quantized models and artifacts have in common: the tasks, hidden, layers, stream and so
-- on. A head's runner is made when the head is first run.
--
-- A class that inherits from Encoder has the field `model` (the FP32 model; of an artifact the artifact itself), and the methods
-- model:graph(head) and lower(graph), which makes { plan =, outputs = } of what graph returned.
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local packed = require "perigee.packed"
local Runner = require "perigee.run.runner"
local tasks = require "perigee.tasks"
local tensor = require "perigee.tensor"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C, raise = pgee.C, pgee.raise

local Encoder = {}

tasks.give_methods(Encoder) -- model:embed, model:classify and so on

--- The runner of one of the model's heads: "hidden", "layers", or a task's.
function Encoder:runner(head)
  local runner = self.runners[head]
  if not runner then
    runner = Runner.new(self:lower(self.model:graph(head)), self.model.budget)
    self.runners[head] = runner
  end
  return runner
end

--- Forgets the runners and frees what they hold; the next call makes them again.
function Encoder:release_runners()
  for head, runner in pairs(self.runners) do
    self.runners[head] = nil
    runner:release()
  end
end

-- Copies the rows of the tensor `source` into the tensor `target`, from row `at` (from 0) on.
local function put(target, at, source)
  if #source > 0 then
    local to, stride = target:pointer()
    local from = source:pointer()
    ffi.copy(to + at * stride, from, #source * stride * 4)
  end
end

-- The field of a batch that says how many rows an output has, by what one row is for.
local ROWS = { tokens = "T", sequences = "n", marked = "R" }

--- Runs a head over a batch (run/batch.lua). Returns the head's outputs, each a new tensor with the rows of the whole batch:
-- { name = tensor }.
function Encoder:run(head, batch)
  local runner = self:runner(head)
  local gathered, at = {}, {}
  for name, buffer in pairs(runner.outputs) do
    gathered[name], at[name] = tensor.new("F32", { batch[ROWS[buffer.rows]], buffer.width }), 0
  end
  runner:run(batch, function(output)
    for name in pairs(runner.outputs) do
      local rows = output(name)
      put(gathered[name], at[name], rows)
      at[name] = at[name] + #rows
      rows:release()
    end
  end)
  return gathered
end

--- Runs a head over inputs. opts: how the inputs become a batch (run/batch.lua). Returns { name = tensor } and the batch, which
-- says where each input's tokens begin (batch.starts) and which inputs were truncated.
function Encoder:gather(head, given, what, opts)
  local batch = inputs.batch(self.model, given, what, opts)
  return self:run(head, batch), batch
end

-- The options of the methods that run no task: hidden, layers and tokens.
local CUT = { truncation_side = inputs.OPTIONS.truncation_side }

--- model:hidden(inputs, options): the last hidden states, F32 [T][H]: the tokens of all inputs, one input after another, without
-- padding. Second result: the batch; input i has rows batch.starts[i - 1] + 1 to batch.starts[i], and batch.truncated lists
-- inputs that were cut. Options: truncation_side, where a long text is cut off: "right" (its end) or "left"; by default as the
-- tokenizer's files say.
function Encoder:hidden(given, opts)
  raise(options.method, self, "hidden")
  local read = raise(options.read, opts, CUT, "hidden")
  local gathered, batch = raise(self.gather, self, "hidden", given, "hidden", read)
  return gathered.hidden, batch
end

--- model:layers(inputs, options): the hidden states of every layer, a list of tensors [T][H]: the embeddings first, then the
-- layers' outputs. Second result: the batch. Options: truncation_side, as of hidden.
function Encoder:layers(given, opts)
  raise(options.method, self, "layers")
  local read = raise(options.read, opts, CUT, "layers")
  local gathered, batch = raise(self.gather, self, "layers", given, "layers", read)
  local layers = {}
  repeat
    layers[#layers + 1] = gathered["layer " .. #layers]
  until not gathered["layer " .. #layers]
  return layers, batch
end

--- model:stream(rows, { task =, field =, ... }): an iterator over the rows of an iterator or of a list and their answers, in
-- order: for row, answer, failure, dropped in m:stream(rows, { task = "classify" }) do. See run/stream.lua.
function Encoder:stream(rows, given)
  local iterator = raise(require("perigee.run.stream").new, self, rows, given)
  return iterator
end

--- The tokenizer.
function Encoder:tokenizer()
  raise(options.method, self, "tokenizer")
  local own = raise(self.model.tokenizer, self.model)
  return own
end

--- model:tokens(text, pair, options): the tokens of a text or of a pair of texts: { ids =, types =, pieces =, offsets =, dropped
-- = the number of tokens that the limit cut off }. pair: the second text, or nil. Options: truncation_side, as of hidden.
function Encoder:tokens(text, pair, opts)
  raise(options.method, self, "tokens")
  local read = raise(options.read, opts, CUT, "tokens")
  local own = raise(self.model.tokenizer, self.model)
  local encoded = raise(own.encode, own, text, pair, { max_tokens = self.model.limit, truncation_side = read.truncation_side })
  encoded.pieces = {}
  for i, id in ipairs(encoded.ids) do
    encoded.pieces[i] = own:piece(id)
  end
  return encoded
end

--- For modules: runs the heads that were made so far over one token, in a workspace for an input of model.limit tokens. An error
-- here is about the process (ISA, threads, memory) or about the model, not about an input.
function Encoder:probe()
  local batch = inputs.batch(self.model, { { ids = { 0 } } }, "probe")
  for _, runner in pairs(self.runners) do
    runner:reserve(self.model.limit)
    runner:run(batch, function() end)
  end
end

local function bytes_of(t)
  local bytes = C.pgee_dtype_bytes(C.pgee_tensor_dtype(tensor.handle(t)))
  for _, n in ipairs(t.shape) do
    bytes = bytes * n
  end
  return bytes
end

-- The fields of an embed operator that are tables, or their scales.
local TABLES = { "word", "position", "type", "word_scales", "position_scales", "type_scales" }

--- The memory that the model holds, in bytes: { weights = packed weights, tables = embedding tables with their scales, workspace
-- = the runners' workspaces }. Tables are mapped from the file of the checkpoint or of the artifact, unless the setting `tables`
-- of a quantized model made them. With the setting pages = "huge" there is a field `huge`, too: how
-- much of this process's weights Linux has put into huge pages.
function Encoder:memory()
  raise(options.method, self, "memory")
  local sums, seen = { weights = 0, tables = 0, workspace = 0 }, {}
  local function add(what, key, bytes)
    sums[what], seen[key] = sums[what] + (seen[key] and 0 or bytes), true
  end
  for _, runner in pairs(self.runners) do
    sums.workspace = sums.workspace + runner:bytes()
    for _, linear in ipairs(runner.lowered.linears) do
      add("weights", linear.args.w, linear.args.w.bytes)
    end
    for _, embed in ipairs(runner.lowered.embeds) do
      for _, name in ipairs(TABLES) do
        local t = embed[name]
        if t then
          add("tables", tostring(t:pointer()), bytes_of(t))
        end
      end
    end
  end
  local huge = self.settings and self.settings.pages == "huge"
  sums.huge = huge and select(2, packed.huge_pages()) or nil
  return sums
end

--- Makes the table `class` a class that inherits the methods of Encoder. Returns it.
function Encoder.extend(class)
  class.__index = class
  tasks.inherited_by(class)
  return setmetatable(class, { __index = Encoder })
end

return Encoder
