--- What sentence-transformers' files in a checkpoint's folder say: modules.json and the folders that it names,
-- config_sentence_transformers.json, and sentence_bert_config.json under any of its names.
--
-- sentence-transformers 6 reads these files only if there is a modules.json; this module does the same. Every key that it acts on
-- is obeyed, or an error, or on checkpoint.ignored. Functions take a checkpoint (checkpoint.lua): `dir` is its folder, `folder`
-- the folder of its Transformer module.
local json = require "perigee.json"
local layers = require "perigee.checkpoint.layers"
local options = require "perigee.options"
local read = require "perigee.tokenizer.read"
local fail, given, join = read.fail, read.given, read.join

local M = {}

---- modules.json ------------------------------------------------------------------------------------------------------

--- The modules of the folder `dir`, a list of { type =, path =, class = the last part of type }, and the path of modules.json;
-- nil if there is none.
function M.modules(dir)
  local path = join(dir, "modules.json")
  if not json.exists(path) then
    return nil
  end
  local modules = json.list(path)
  for i, module in ipairs(modules) do
    if type(module) ~= "table" or type(module.type) ~= "string" or type(module.path) ~= "string" then
      fail("'%s': module %d is not an object with the strings type and path", path, i)
    elseif module.path:find "^/" or module.path:find "%.%." or module.path:find "%z" then
      fail("'%s': module %d is in '%s', expected a folder inside this one", path, i, module.path)
    end
    module.class = module.type:match "[^.]*$"
  end
  return modules, path
end

--- The folder of config.json, or of an adapter's: the Transformer module's if modules.json has one.
function M.folder(dir, modules)
  for _, module in ipairs(modules or {}) do
    local folder = join(dir, module.path)
    if module.class == "Transformer" and (json.exists(join(folder, "config.json"))
      or json.exists(join(folder, "adapter_config.json"))) then
      return folder
    end
  end
  return dir
end

---- The Transformer module's file -------------------------------------------------------------------------------------

-- The names of the file, in the order in which sentence-transformers looks for them.
local NAMES = {
  "sentence_bert_config.json", "sentence_roberta_config.json", "sentence_distilbert_config.json",
  "sentence_camembert_config.json", "sentence_albert_config.json", "sentence_xlm-roberta_config.json",
  "sentence_xlnet_config.json",
}

-- The keys of arguments that name a place to load from. sentence-transformers replaces them by the caller's.
local HUB = {
  subfolder = true, token = true, cache_dir = true, revision = true, local_files_only = true, trust_remote_code = true,
}

-- Arguments of from_pretrained that do not change what a model computes, or only in how many bits.
local HARMLESS_ARGUMENTS = {
  dtype = true, torch_dtype = true, attn_implementation = true, device_map = true, low_cpu_mem_usage = true,
  add_pooling_layer = true, use_safetensors = true,
}

local TASKS = { ["feature-extraction"] = "last_hidden_state", ["sequence-classification"] = "logits" }

local function refuse(path, key, value, expected)
  fail("'%s': %s is %s, expected %s", path, key, json.describe(value), expected)
end

local function object(value, path, key)
  if value ~= nil and (type(value) ~= "table" or #value > 0) then
    refuse(path, key, value, "an object")
  end
  return value or {}
end

-- Refuses a key unless it is missing or null.
local function absent(why)
  return function(value, path, key)
    refuse(path, key, value, "null: " .. why)
  end
end

local function check_modalities(value, path, key, config)
  local method = TASKS[given(config.transformer_task) or "feature-extraction"]
  for modality, how in pairs(object(value, path, key)) do
    if modality == "message" then
      fail("'%s': %s has the modality 'message', expected 'text': chat templates are not supported", path, key)
    elseif modality == "text" and (type(how) ~= "table" or how.method ~= "forward" or how.method_output_name ~= method) then
      fail("'%s': %s says that a text is read by something else than %s of forward, which is not supported", path, key,
        tostring(method))
    end
  end
end

local function check_arguments(value, path, key, _, ignored)
  for name, argument in pairs(object(value, path, key)) do
    if name == "dtype" or name == "torch_dtype" then
      ignored:add(path, key .. "." .. name, "settings say how a model computes: FP32 or INT8")
    elseif not HUB[name] and not HARMLESS_ARGUMENTS[name] and given(argument) ~= nil then
      fail("'%s': %s.%s is %s, which is not supported", path, key, name, json.describe(argument))
    end
  end
end

local LENGTHS = absent "encoding by task is not supported: a token limit for queries or for documents would be ignored"

-- What checks each key that is there and not null: function(value, path, key, the whole file, checkpoint.ignored). The keys that
-- are obeyed elsewhere have none.
local KEYS = {
  max_seq_length = false, do_lower_case = false,
  unpad_inputs = false, -- a batch has no padding here
  tokenizer_args = object, processor_kwargs = object, config_args = object, config_kwargs = object,
  model_args = check_arguments, model_kwargs = check_arguments,
  query_length = LENGTHS, document_length = LENGTHS, query_expansion = absent "ColBERT's query expansion is not supported",
  tokenizer_name_or_path = absent "the tokenizer is that of the checkpoint's folder",
  modality_config = check_modalities,
  transformer_task = function(value, path, key)
    if type(value) ~= "string" or not TASKS[value] then
      refuse(path, key, value, table.concat(options.names(TASKS), " or "))
    end
  end,
  module_output_name = function(value, path, key)
    if value ~= "token_embeddings" and value ~= "scores" then
      refuse(path, key, value, "token_embeddings or scores")
    end
  end,
  processing_kwargs = function(value, path, key)
    if next(object(value, path, key)) ~= nil then
      fail("'%s': %s has arguments of the tokenizer, which are not supported here; max_seq_length is", path, key)
    end
  end,
}

-- The path of the first file of these names for which f(path) is true.
local function find(self, f)
  for _, name in ipairs(NAMES) do
    local path = join(self.folder, name)
    if json.exists(path) and f(path) then
      return path
    end
  end
end

--- The path of a Transformer module's file, whatever is in it; nil if there is none.
function M.some_config(self)
  return find(self, function() return true end)
end

--- The path of the one that sentence-transformers reads: beside a modules.json, the first that is not empty. One that is not JSON
-- is an error when it is read.
function M.config_path(self)
  return self.modules and find(self, function(path)
    local ok, values = pcall(json.object, path)
    return not ok or next(values) ~= nil
  end) or nil
end

--- The Transformer module's file, checked: a table of its keys without those that are null; an empty table if there is none.
-- Older names of keys are replaced by the newer ones.
function M.config(self)
  local path = self.files.sentence_config
  if not path then
    return {}
  end
  local config, values = json.object(path), {}
  for key, value in pairs(config) do
    if KEYS[key] == nil then
      fail("'%s': %s is no key of this file; it may have %s", path, tostring(key), table.concat(options.names(KEYS), ", "))
    elseif KEYS[key] and given(value) ~= nil then
      KEYS[key](value, path, key, config, self.ignored)
    end
    values[key] = given(value)
  end
  for old, new in pairs { tokenizer_args = "processor_kwargs", config_args = "config_kwargs" } do
    values[new] = values[old] or values[new]
  end
  return values
end

--- Puts the arguments of that name, processor_kwargs or config_kwargs, over the values of the file that they go with.
function M.override(self, values, name)
  for key, value in pairs(self.sentence_config[name] or {}) do
    if not HUB[key] then
      values[key] = value
    end
  end
  return values
end

---- config_sentence_transformers.json ---------------------------------------------------------------------------------

-- The kinds of model that this file can be of, and whether perigee runs them.
local KINDS = {
  SentenceTransformer = true, CrossEncoder = true, SparseEncoder = false, MultiVectorEncoder = false, ColBERT = false,
}

-- What PyLate writes for ColBERT models, whose vectors are those of tokens.
local PYLATE = {
  "query_prefix", "document_prefix", "query_length", "document_length", "attend_to_expansion_tokens", "skiplist_words",
  "do_query_expansion",
}

local function note_ignored(self, config)
  local path = self.files.sentence_prompts
  local similarity = given(config.similarity_fn_name)
  if similarity ~= nil and similarity ~= "cosine" then
    self.ignored:add(path, "similarity_fn_name", "who takes the vectors compares them; perigee.evaluate does by their cosine")
  end
  if given(config.keep_in_fp32_modules) ~= nil then
    self.ignored:add(path, "keep_in_fp32_modules", "the setting `skip` says which linears stay in FP32; heads always do")
  end
end

--- What kind of model the file is of: "SentenceTransformer" or "CrossEncoder". Others are an error.
function M.kind(self)
  local path, config = self.files.sentence_prompts, self.sentence_prompts
  local kind = given(config.model_type) or "SentenceTransformer"
  if KINDS[kind] == nil then
    fail("'%s': model_type is %s, expected SentenceTransformer or CrossEncoder", path, json.describe(kind))
  end
  for _, key in ipairs(PYLATE) do
    if given(config[key]) ~= nil then
      kind = "ColBERT"
    end
  end
  if not KINDS[kind] then
    fail("'%s' is of a %s, which is not supported; expected a SentenceTransformer or a CrossEncoder", path, kind)
  end
  note_ignored(self, config)
  return kind
end

--- Puts the activation that a CrossEncoder's file names into config.json, where it has its place in other checkpoints and in
-- artifacts.
function M.activation(self)
  local ok, config = pcall(function() return self.sentence_prompts end)
  local class = ok and config.model_type == "CrossEncoder" and given(config.activation_fn)
  if class then
    self.config.sentence_transformers = { activation_fn = class }
  end
end

-- The prompts that every SentenceTransformer has, unless its file says something else.
local EMPTY = { query = "", document = "" }

--- What sentence-transformers puts before texts, { name = text }, the name of what it puts there unless told otherwise, nil if
-- that is nothing, and the kind of model that the prompts are of.
function M.prompts(self)
  local path, prompts = self.files.sentence_prompts, given(self.sentence_prompts.prompts) or {}
  if type(prompts) ~= "table" then
    fail("'%s': prompts is %s, expected an object of name: text", path, json.describe(prompts))
  end
  local kind, list = M.kind(self), {}
  for name, text in pairs(kind == "SentenceTransformer" and EMPTY or {}) do
    list[name] = text
  end
  for name, text in pairs(prompts) do
    if type(name) ~= "string" or type(text) ~= "string" and text ~= json.null then
      fail("'%s': the prompt %s is %s, expected a text", path, tostring(name), json.describe(text))
    end
    list[name] = given(text) or ""
  end
  local default = given(self.sentence_prompts.default_prompt_name)
  if default ~= nil and (type(default) ~= "string" or not list[default]) then
    fail("'%s': default_prompt_name is %s, expected the name of one of the prompts", path, json.describe(default))
  end
  return list, default, kind
end

-- truncate_dim: how many of a vector's elements count; nil for all.
local function dimensions(self)
  local value, path = given(self.sentence_prompts.truncate_dim), self.files.sentence_prompts
  if value ~= nil and (type(value) ~= "number" or value % 1 ~= 0 or value < 1) then
    refuse(path, "truncate_dim", value, "an integer of at least 1")
  end
  return value
end

---- Vectors -----------------------------------------------------------------------------------------------------------

-- Pooling modes by sentence-transformers' names, with the key that switched each on in older files, in the order in which the
-- vectors of several such keys stand side by side; `mode` is that of Graph:pool.
local MODES = {
  { key = "pooling_mode_cls_token", name = "cls", mode = "first" },
  { key = "pooling_mode_max_tokens", name = "max", mode = "max" },
  { key = "pooling_mode_mean_tokens", name = "mean", mode = "mean" },
  { key = "pooling_mode_mean_sqrt_len_tokens", name = "mean_sqrt_len_tokens", mode = "mean_sqrt" },
  { key = "pooling_mode_weightedmean_tokens", name = "weightedmean", mode = "weighted" },
  { key = "pooling_mode_lasttoken", name = "lasttoken", mode = "last" },
}

local POOLING = { pooling_mode = true, include_prompt = true, embedding_dimension = true, word_embedding_dimension = true }
local by_name = {}
for _, m in ipairs(MODES) do
  POOLING[m.key], by_name[m.name] = true, m.mode
end

local function flag(config, key, path)
  local value = given(config[key])
  if value ~= nil and type(value) ~= "boolean" then
    refuse(path, key, value, "true or false")
  end
  return value
end

-- The modes of older files: those that are switched on, the mean if none is.
local function switched_modes(config, path)
  local modes = {}
  for _, m in ipairs(MODES) do
    modes[#modes + 1] = flag(config, m.key, path) and m.mode or nil
  end
  return #modes > 0 and modes or { "mean" }
end

-- The modes that pooling_mode names, one or a list, in its order.
local function named_modes(names, path)
  local modes = {}
  for i, name in ipairs(type(names) == "table" and #names > 0 and names or { names }) do
    modes[i] = by_name[name]
    if not modes[i] then
      local all = options.names(by_name)
      refuse(path, "pooling_mode", name, table.concat(all, ", ") .. ", or a list of these")
    end
  end
  return modes
end

-- Modes, and whether prompts count.
local function read_pooling(module, dir)
  local path = join(join(dir, module.path), "config.json")
  local config = json.object(path)
  for key in pairs(config) do
    if not POOLING[key] then
      fail("'%s': %s is no key of this file; it may have %s", path, tostring(key), table.concat(options.names(POOLING), ", "))
    end
  end
  local names = given(config.pooling_mode)
  return names ~= nil and named_modes(names, path) or switched_modes(config, path), flag(config, "include_prompt", path)
end

-- Without modules.json: the mean; of a model that was made to write text the last token.
local function default_pooling(self)
  local architectures = self.config.architectures
  local first = type(architectures) == "table" and architectures[1]
  local writes = type(first) == "string" and first:find "ForCausalLM$" and self.config.is_causal ~= false
  return { modes = { writes and "last" or "mean" }, normalize = false }
end

--- How a text's hidden states, of that width, become its vector:
--   modes        of Graph:pool, whose vectors stand side by side
--   layers       what comes after that, a list of checkpoint/layers.lua; nil if nothing does
--   normalize    whether the vector has length 1 in the end
--   dimensions   how many of its elements are kept after that; nil for all
--   skip_prompt  true if the tokens of a prompt do not count, nor the special token before them
-- Modules that are not supported are an error here, not when the checkpoint is opened.
function M.pooling(self, width)
  if not self.modules then
    return default_pooling(self)
  elseif M.kind(self) == "CrossEncoder" then
    fail("'%s' is of a CrossEncoder, which gives scores of pairs (rerank) and no vectors of texts", self.files.sentence_prompts)
  end
  local path, modules = self.files.modules, self.modules
  if #modules == 0 then
    fail("'%s' lists no modules, expected Transformer, Pooling and possibly Dense, LayerNorm, Dropout, Normalize", path)
  end
  layers.check_modules(modules, path)
  local task = self.sentence_config.transformer_task
  if task ~= nil and task ~= "feature-extraction" then
    refuse(self.files.sentence_config, "transformer_task", task, "feature-extraction before a Pooling")
  end
  local pooling = {}
  local modes, include = read_pooling(modules[2], self.dir)
  pooling.modes, pooling.skip_prompt, pooling.dimensions = modes, include == false or nil, dimensions(self)
  pooling.normalize = modules[#modules].class == "Normalize"
  pooling.layers = layers.read(self, modules, width and width * #modes)
  return pooling
end

return M
