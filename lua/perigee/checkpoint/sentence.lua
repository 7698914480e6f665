--- Reads sentence-transformers' files in a checkpoint's folder: modules.json, the folders that modules.json names, and
-- config_sentence_transformers.json. transformer_config.lua reads sentence_bert_config.json.
--
-- sentence-transformers 6 reads these files only if there is a modules.json; this module does the same. If
-- sentence-transformers acts on a key, this module obeys the key, raises an error, or puts the key on checkpoint.ignored.
-- Functions take a checkpoint (checkpoint/init.lua): `dir` is its folder, `folder` the folder of its Transformer module.
local json = require "perigee.base.json"
local layers = require "perigee.checkpoint.layers"
local options = require "perigee.options"
local read = require "perigee.tokenizer.read"
local fail, given, join, refuse = read.fail, read.given, read.join, read.refuse

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

--- The folder of config.json or adapter_config.json: that of the Transformer module in modules.json, else `dir`.
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

---- config_sentence_transformers.json ---------------------------------------------------------------------------------

-- The kinds of model that this file can be of, and whether perigee runs them.
local KINDS = {
  SentenceTransformer = true, CrossEncoder = true, SparseEncoder = false, MultiVectorEncoder = false, ColBERT = false,
}

-- Keys that PyLate writes for ColBERT models. A ColBERT model makes one vector for each token.
local PYLATE = {
  "query_prefix", "document_prefix", "query_length", "document_length", "attend_to_expansion_tokens", "skiplist_words",
  "do_query_expansion",
}

local function note_ignored(self, config)
  local path = self.files.sentence_prompts
  local similarity = given(config.similarity_fn_name)
  if similarity ~= nil and similarity ~= "cosine" then
    self.ignored:add(path, "similarity_fn_name", "the caller compares the vectors; perigee.evaluate takes their cosine")
  end
  if given(config.keep_in_fp32_modules) ~= nil then
    self.ignored:add(path, "keep_in_fp32_modules", "the setting `skip` says which linears stay in FP32; heads always do")
  end
end

--- The kind of model that config_sentence_transformers.json is for: "SentenceTransformer" or "CrossEncoder". Other kinds are an
-- error.
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

--- If config_sentence_transformers.json is that of a CrossEncoder and names an activation_fn, this puts it into the decoded
-- config.json as sentence_transformers.activation_fn, because tasks/rerank.lua reads it there.
function M.activation(self)
  local ok, config = pcall(function() return self.sentence_prompts end)
  local class = ok and config.model_type == "CrossEncoder" and given(config.activation_fn)
  if class then
    self.config.sentence_transformers = { activation_fn = class }
  end
end

-- The prompts that every SentenceTransformer has by default.
local EMPTY = { query = "", document = "" }

--- Returns the prompts that sentence-transformers puts before texts, { name = text }; the name of the default prompt, nil if
-- there is none; and the kind of model that the prompts are for.
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

-- truncate_dim: to how many elements a vector is cut; nil: it is not cut.
local function dimensions(self)
  local value, path = given(self.sentence_prompts.truncate_dim), self.files.sentence_prompts
  if value ~= nil and (type(value) ~= "number" or value % 1 ~= 0 or value < 1) then
    refuse(path, "truncate_dim", value, "an integer of at least 1")
  end
  return value
end

---- Vectors -----------------------------------------------------------------------------------------------------------

-- The pooling modes: key (switches the mode on in older files), name (of sentence-transformers), mode (of Graph:pool). The
-- order is that in which the vectors of several modes are concatenated.
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

-- The modes that an older file switches on; the mean if it switches none on.
local function switched_modes(config, path)
  local modes = {}
  for _, m in ipairs(MODES) do
    modes[#modes + 1] = read.flag(config, m.key, path) and m.mode or nil
  end
  return #modes > 0 and modes or { "mean" }
end

-- The modes that pooling_mode names: one name or a list.
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

-- Reads the Pooling module's config.json. Returns its modes and include_prompt.
local function read_pooling(module, dir)
  local path = join(join(dir, module.path), "config.json")
  local config = json.object(path)
  for key in pairs(config) do
    if not POOLING[key] then
      fail("'%s': %s is no key of this file; it may have %s", path, tostring(key), table.concat(options.names(POOLING), ", "))
    end
  end
  local names = given(config.pooling_mode)
  return names ~= nil and named_modes(names, path) or switched_modes(config, path), read.flag(config, "include_prompt", path)
end

-- The pooling without modules.json: the last token if the model generates text (ForCausalLM), else the mean.
local function default_pooling(self)
  local architectures = self.config.architectures
  local first = type(architectures) == "table" and architectures[1]
  local writes = type(first) == "string" and first:find "ForCausalLM$" and self.config.is_causal ~= false
  return { modes = { writes and "last" or "mean" }, normalize = false }
end

--- How a text's hidden states become its vector. width: that of the hidden states, or nil.
--   modes        modes of Graph:pool; their vectors are concatenated
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
