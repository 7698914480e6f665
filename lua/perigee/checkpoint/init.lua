--- Checkpoints: a Hugging Face folder, with what sentence-transformers adds to it.
--
--   local checkpoint = require "perigee.checkpoint"
--   local c = checkpoint.open "path/to/folder"
--   c.config.hidden_size                 -- config.json, decoded
--   c:tensor "embeddings.word_embeddings.weight"
--   c:pooling()  --> { modes = { "mean" }, normalize = true }
--
-- Tensors have the names that they have in an encoder without heads: a prefix such as "bert." is removed, LayerNorm.gamma and
-- LayerNorm.beta become weight and bias, and buffers that hold no weights are left out (checkpoint/tensors.lua). Errors name the
-- file. The tokenizer's files, and the token limits in them, are read and checked when they are first needed: a caller that
-- needs no tokenizer sees no error about them.
local adapter = require "perigee.checkpoint.adapter"
local Ignored = require "perigee.base.ignored"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local paths = require "perigee.checkpoint.paths"
local read = require "perigee.tokenizer.read"
local sentence = require "perigee.checkpoint.sentence"
local tensors = require "perigee.checkpoint.tensors"
local transformer_config = require "perigee.checkpoint.transformer_config"
local fail, given, join = read.fail, read.given, read.join

local M = {}
local Checkpoint = {}
for name, method in pairs(tensors.methods) do -- names, tensor, unused
  Checkpoint[name] = method
end

-- ---- Tokenizer and limit -----------------------------------------------------------------------------------------------

-- The fields below are read from files when they are first asked for.
local function object(self, key)
  return self.files[key] and json.object(self.files[key]) or {}
end

local READERS = { config = object, special_tokens = object, sentence_prompts = object, sentence_config = transformer_config.read }

function READERS.tokenizer_config(self, key)
  return transformer_config.override(self, object(self, key), "processor_kwargs")
end

function Checkpoint.__index(self, key)
  if READERS[key] then
    self[key] = READERS[key](self, key)
    return self[key]
  end
  return Checkpoint[key]
end

--- Paths of the files that a tokenizer is read from, nil for those that are not there: tokenizer (tokenizer.json), vocabulary
-- (vocab.txt), pieces and merges (vocab.json, merges.txt), sentencepiece, tokenizer_config, special_tokens, added_tokens. The
-- field `lower` is true if sentence_bert_config.json says that texts are lowercased before the tokenizer reads them.
function Checkpoint:tokenizer_files()
  local lower = read.flag(self.sentence_config, "do_lower_case", self.files.sentence_config) == true
  return setmetatable({ lower = lower }, { __index = self.files })
end

-- values[key], a positive integer; nil if it is missing, null, or at least 2^31 (transformers writes 1e30 for "no limit").
local function positive(values, key, path)
  local value = given(values[key])
  if value == nil then
    return nil
  elseif type(value) ~= "number" or value % 1 ~= 0 or value < 1 then
    fail("'%s': %s is %s, expected an integer of at least 1", path, key, json.describe(value))
  end
  return value < 2 ^ 31 and value or nil
end

--- The max tokens of one input by the checkpoint's files; nil if no file gives a number. A model's positions limit an input as
-- well. As in sentence-transformers, the first of these numbers counts:
--   1. model_max_length of the Transformer module's processor_kwargs
--   2. max_seq_length of the Transformer module
--   3. the smaller of tokenizer_config.json's model_max_length (or the older max_len) and config.json's max_position_embeddings
function Checkpoint:limit()
  local kwargs, path = self.sentence_config.processor_kwargs or {}, self.files.sentence_config
  local own = positive(kwargs, "model_max_length", path)
  if given(kwargs.model_max_length) == nil then
    own = positive(self.sentence_config, "max_seq_length", path)
  end
  local positions = positive(self.config, "max_position_embeddings", self.files.config)
  local key = self.tokenizer_config.model_max_length == nil and "max_len" or "model_max_length"
  local length = positive(self.tokenizer_config, key, self.files.tokenizer_config)
  local limit = own or math.min(positions or math.huge, length or math.huge)
  return limit < math.huge and limit or nil
end

-- ---- sentence-transformers ---------------------------------------------------------------------------------------------

Checkpoint.pooling, Checkpoint.prompts = sentence.pooling, sentence.prompts

-- ---- Opening -----------------------------------------------------------------------------------------------------------

-- Blames the caller of the function that calls this.
local function check_folder(dir)
  if type(dir) ~= "string" or dir == "" or dir:find "%z" then
    error("the checkpoint is " .. json.describe(dir) .. ", expected the path of a folder", pgee.blame())
  end
end

--- A checkpoint of which only the tokenizer is used: the folder may lack config.json and weights, and only the methods about the
-- tokenizer work.
function M.tokenizer(dir)
  check_folder(dir)
  local self = setmetatable({ dir = dir, files = {}, ignored = Ignored.new() }, Checkpoint)
  paths.find_modules(self)
  paths.find_tokenizer(self)
  return self
end

--- The checkpoint in the folder `dir`. Its fields:
--   dir      the folder
--   folder   the folder of its Transformer module
--   base     the folder of config.json and the weights: `folder`, or that of the base model of an adapter
--   adapter  what adapter_config.json says (checkpoint/adapter.lua); nil if there is none
--   config   config.json, decoded but not checked (checkpoint/config.lua checks it)
--   files    the paths of the files that exist: config, weights (a list), tokenizer, vocabulary, tokenizer_config,
--            special_tokens, modules, sentence_config ...
--   ignored  keys of these files that have no effect here (base/ignored.lua). Each reader of a file adds the keys that it neither
--            obeys nor refuses, so the list grows as files are read
-- Errors: no such folder, no config.json or weights, a malformed file.
function M.open(dir)
  check_folder(dir)
  local found = system.stat(dir)
  if found and found.regular then
    fail("'%s' is a file, expected the folder of a checkpoint", dir)
  elseif not json.exists(dir) then
    fail("%s. Expected the folder of a checkpoint on this machine: nothing is downloaded", select(2, json.text(dir)))
  end
  local self = setmetatable({ dir = dir, files = {}, asked = {}, ignored = Ignored.new() }, Checkpoint)
  paths.find_modules(self)
  self.adapter = adapter.read(self)
  self.base = self.adapter and self.adapter.base or self.folder
  local config = join(self.base, "config.json")
  if not json.exists(config) then
    fail("'%s' is not a checkpoint: it has no config.json. Expected: config.json, model.safetensors (or its shards and their "
      .. "index), tokenizer.json or vocab.txt", self.base)
  end
  paths.find_tokenizer(self)
  self.files.config = config
  self.config = transformer_config.override(self, json.object(config), "config_kwargs")
  sentence.activation(self)
  tensors.index(self)
  return self
end

--- Closes the files. Tensors stay valid.
function Checkpoint:close()
  for _, found in pairs(self.tensors) do
    found.file:close()
  end
  self.tensors, self.order = {}, {}
end

return M
