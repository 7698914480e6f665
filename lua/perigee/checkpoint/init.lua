--- Checkpoints: a Hugging Face folder, with what sentence-transformers adds to it.
--
--   local checkpoint = require "perigee.checkpoint"
--   local c = checkpoint.open "path/to/folder"
--   c.config.hidden_size                 -- config.json, decoded
--   c:tensor "embeddings.word_embeddings.weight"
--   c:pooling()  --> { modes = { "mean" }, normalize = true }
--
-- Tensors have the names that they have in an encoder without heads: a prefix such as "bert." is removed, LayerNorm.gamma and
-- LayerNorm.beta become weight and bias, and buffers that hold no weights are left out. Each file is checked as far as it is
-- read, and errors name the file. The files for texts (the tokenizer's files and the limits in them) are read and checked when
-- they are first needed.
local adapter = require "perigee.checkpoint.adapter"
local Config = require "perigee.checkpoint.config"
local definitions = require "perigee.checkpoint.definitions"
local Ignored = require "perigee.base.ignored"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local read = require "perigee.tokenizer.read"
local sentence = require "perigee.checkpoint.sentence"
local transformer_config = require "perigee.checkpoint.transformer_config"
local weight_files = require "perigee.checkpoint.weight_files"
local fail, given, join = read.fail, read.given, read.join

local M = {}
local Checkpoint = {}

-- ---- Weights -----------------------------------------------------------------------------------------------------------

-- Buffers that some versions of the reference library saved beside the weights.
local BUFFERS = { "position_ids$", "token_type_ids$" }

-- The name that a model definition uses for a tensor, and how far from it the tensor's own name is: where two tensors would
-- answer to one name, the nearer does. Prefixed names come first: beside them, others belong to a head or to nobody.
local function canonical(name, prefix)
  local plain, distance = name, 2
  if name:sub(1, #prefix) == prefix then
    plain, distance = name:sub(#prefix + 1), 0
  end
  local modern = plain:gsub("%.gamma$", ".weight"):gsub("%.beta$", ".bias")
  return modern, modern == plain and distance or distance + 1
end

local function is_buffer(name)
  for _, pattern in ipairs(BUFFERS) do
    if name:find(pattern) then
      return true
    end
  end
  return false
end

-- The table of words and the decoder that is tied to it are one tensor, of which some writers (safetensors' save_model) keep only
-- the name that comes first in the alphabet.
local TABLE, DECODER = "embeddings.word_embeddings.weight", "lm_head.decoder.weight"

-- Fills self.tensors: for each canonical name the file and the name in it.
local function index_weights(self)
  if not weight_files.exist(self.base) then
    definitions.of(Config.new(self.config, self.files.config)) -- first say that there is no definition for the model, if so
    weight_files.no_weights(self.base)
  end
  local where, names, paths = weight_files.open_all(self.base)
  self.files.weights = paths
  local prefix = definitions.prefix(self.config.model_type) .. "."
  self.tensors, self.order, self.stored = {}, {}, {}
  for _, name in ipairs(names) do
    if not is_buffer(name) then
      local short, distance = canonical(name, prefix)
      local known = self.tensors[short]
      self.stored[#self.stored + 1] = name
      if not known then
        self.order[#self.order + 1] = short
      end
      if not known or distance < known.distance then
        self.tensors[short] = { file = where[name], name = name, distance = distance }
      end
    end
  end
  if self.adapter then
    adapter.index(self, function(name) return (canonical(name, prefix)) end)
  end
  if self.config.tie_word_embeddings ~= false then
    self.tensors[TABLE] = self.tensors[TABLE] or self.tensors[DECODER]
  end
end

--- The names of all tensors, without prefix and buffers.
function Checkpoint:names()
  return { unpack(self.order) }
end

--- The tensor of that name, a view of the mapped file; nil if there is none. If the tensor has type F64, or an adapter changes
-- it, the result is a new tensor in F32.
function Checkpoint:tensor(name)
  local found = self.tensors[name]
  if not found then
    return nil
  end
  self.asked[found.name] = true
  local ok, t = pcall(found.file.tensor, found.file, found.name)
  if not ok then
    fail("%s", t)
  end
  local changed = self.adapter and adapter.merge(self.adapter, name, t)
  return changed or t.dtype == "F64" and t:f32() or t
end

--- The names, as they stand in the files, of the tensors that nobody has asked for; buffers are not among them.
function Checkpoint:unused()
  local list = {}
  for _, name in ipairs(self.stored) do
    if not self.asked[name] then
      list[#list + 1] = name
    end
  end
  return list
end

-- ---- Tokenizer and limit -----------------------------------------------------------------------------------------------

-- Files that are read when they are first asked for, as fields: what is wrong with them stops nobody who gives no text.
local COMPANIONS = {
  config = "config.json", tokenizer_config = "tokenizer_config.json", special_tokens = "special_tokens_map.json",
}
local SENTENCE_PROMPTS = "config_sentence_transformers.json"

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
-- (vocab.txt), pieces and merges (vocab.json, merges.txt), sentencepiece, tokenizer_config, special_tokens, added_tokens. And
-- lower: whether sentence_bert_config.json asks for lower case before all else.
function Checkpoint:tokenizer_files()
  local lower = read.flag(self.sentence_config, "do_lower_case", self.files.sentence_config) == true
  return setmetatable({ lower = lower }, { __index = self.files })
end

-- A positive integer; nil if it is missing, null, or so large that it means none (the reference library writes 1e30).
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

local VOCABULARIES = {
  "tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spiece.model", "sentencepiece.model",
  "tokenizer.model",
}

-- The folder of the tokenizer's files: an adapter's may be that of its base model.
local function tokenizer_folder(self)
  for _, name in ipairs(VOCABULARIES) do
    if json.exists(join(self.folder, name)) then
      return self.folder
    end
  end
  return self.base or self.folder
end

local NOT_READ = "sentence-transformers reads this file only beside a modules.json"

-- The files of sentence-transformers, which are read only if there is a modules.json.
local function find_sentence_files(self)
  local prompts = join(self.dir, SENTENCE_PROMPTS)
  local there = json.exists(prompts) and prompts or nil
  self.files.sentence_prompts = self.modules and there
  self.files.sentence_config = transformer_config.path(self)
  if there and not self.modules then
    self.ignored:add(prompts, "all keys", NOT_READ)
  end
  local path = not self.modules and transformer_config.any_path(self)
  if path then
    self.ignored:add(path, "all keys", NOT_READ)
  end
end

local function find_tokenizer_files(self)
  local folder = tokenizer_folder(self)
  local function find(key, name)
    local path = join(folder, name)
    self.files[key] = json.exists(path) and path or nil
  end
  find("tokenizer", "tokenizer.json")
  find("vocabulary", "vocab.txt")
  find("pieces", "vocab.json")
  find("merges", "merges.txt")
  find("added_tokens", "added_tokens.json")
  for _, name in ipairs { "sentencepiece.bpe.model", "spiece.model", "sentencepiece.model", "tokenizer.model" } do
    if not self.files.sentencepiece then
      find("sentencepiece", name)
    end
  end
  for key, name in pairs(COMPANIONS) do
    self.files[key] = nil
    find(key, name)
  end
  find_sentence_files(self)
end

-- modules.json, and the folder of the Transformer module.
local function find_modules(self)
  self.modules, self.files.modules = sentence.modules(self.dir)
  self.folder = sentence.folder(self.dir, self.modules)
end

-- Blames the caller of the function that calls this.
local function check_folder(dir)
  if type(dir) ~= "string" or dir == "" or dir:find "%z" then
    error("the checkpoint is " .. json.describe(dir) .. ", expected the path of a folder", pgee.blame())
  end
end

--- What a folder says about its tokenizer, for one that need not hold config.json and weights: of the methods it has those
-- that are about the tokenizer.
function M.tokenizer(dir)
  check_folder(dir)
  local self = setmetatable({ dir = dir, files = {}, ignored = Ignored.new() }, Checkpoint)
  find_modules(self)
  find_tokenizer_files(self)
  return self
end

--- The checkpoint in the folder `dir`. Fields, beside the methods above:
--   dir      the folder
--   folder   that of its Transformer module; base: that of config.json and the weights, which an adapter's base model may have
--   adapter  what adapter_config.json says (checkpoint/adapter.lua); nil if there is none
--   config   config.json, decoded; perigee.config checks it
--   files    paths of what is there: config, weights (a list), tokenizer, vocabulary, tokenizer_config, special_tokens, modules,
--            sentence_config
--   ignored  keys of these files that have no effect here (base/ignored.lua), as far as the files have been read; every reader
-- of a
--            file adds those that it neither obeys nor refuses
function M.open(dir)
  check_folder(dir)
  local found = system.stat(dir)
  if found and found.regular then
    fail("'%s' is a file, expected the folder of a checkpoint", dir)
  elseif not json.exists(dir) then
    fail("%s. Expected the folder of a checkpoint on this machine: nothing is downloaded", select(2, json.text(dir)))
  end
  local self = setmetatable({ dir = dir, files = {}, asked = {}, ignored = Ignored.new() }, Checkpoint)
  find_modules(self)
  self.adapter = adapter.read(self)
  self.base = self.adapter and self.adapter.base or self.folder
  local config = join(self.base, "config.json")
  if not json.exists(config) then
    fail("'%s' is not a checkpoint: it has no config.json. Expected: config.json, model.safetensors (or its shards and their "
      .. "index), tokenizer.json or vocab.txt", self.base)
  end
  find_tokenizer_files(self)
  self.files.config = config
  self.config = transformer_config.override(self, json.object(config), "config_kwargs")
  sentence.activation(self)
  index_weights(self)
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
