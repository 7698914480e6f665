--- Checkpoints: a Hugging Face folder, with what sentence-transformers adds to it.
--
--   local checkpoint = require "perigee.checkpoint"
--   local c = checkpoint.open "path/to/folder"
--   c.config.hidden_size                 -- config.json, decoded
--   c:tensor "embeddings.word_embeddings.weight"
--   c:pooling()  --> { modes = { "mean" }, normalize = true }
--
-- Names of tensors are those of the bare encoder: a prefix such as "bert." is taken off, LayerNorm.gamma and beta are weight and
-- bias, buffers that hold no weights are not seen. All files are checked as far as they are read, and errors name the file. What
-- is for text alone (the tokenizer's files and the limits in them) is read, and checked, when it is first asked for.
local definitions = require "perigee.definitions"
local Ignored = require "perigee.ignored"
local json = require "perigee.json"
local pgee = require "perigee.ffi"
local safetensors = require "perigee.safetensors"

local M = {}
local Checkpoint = {}

local function fail(...)
  error(string.format(...), 0)
end

local function join(folder, name)
  return name == "" and folder or folder:gsub("/+$", "") .. "/" .. name
end

-- A missing or null value as nil.
local function given(value)
  if value == json.null then
    return nil
  end
  return value
end

-- ---- Weights -----------------------------------------------------------------------------------------------------------

-- Buffers that some versions of the reference library saved beside the weights.
local BUFFERS = { "position_ids$", "token_type_ids$" }

local CONVERSION = [[
'%s' has its weights as pytorch_model.bin, which only PyTorch can read. To convert them, run in that folder:
  python3 -c "import glob, torch; from safetensors.torch import save_file; save_file({k: v.clone().contiguous()
    for f in glob.glob('pytorch_model*.bin') for k, v in torch.load(f, map_location='cpu', weights_only=True).items()},
    'model.safetensors', {'format': 'pt'})"]]

local function open_file(path)
  local ok, file = pcall(safetensors.open, path)
  return ok and file or fail("%s", file)
end

-- Every tensor's file by its name, from a single file.
local function single(self, path)
  local file = open_file(path)
  self.files.weights = { path }
  local where = {}
  for _, name in ipairs(file:names()) do
    where[name] = file
  end
  return where, file:names()
end

-- The same from shards: the index says which tensor is in which. A tensor that it does not name is not seen.
local function sharded(self, index_path)
  local map = json.object(index_path).weight_map
  if type(map) ~= "table" then
    fail("'%s': weight_map is %s, expected an object of tensor name: file name", index_path, json.describe(map))
  end
  local shards, has, where, names = {}, {}, {}, {}
  self.files.weights = {}
  for name, shard in pairs(map) do
    if type(name) ~= "string" or type(shard) ~= "string" or shard:find "/" or shard:find "%z" or shard:match "^%.*$" then
      fail("'%s': the shard of tensor '%s' is %s, expected the name of a file in the same folder", index_path, tostring(name),
        json.describe(shard))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local shard = map[name]
    if not shards[shard] then
      local path = join(self.folder, shard)
      if not json.exists(path) then
        fail("'%s': the shard '%s' of tensor '%s' is missing", index_path, shard, name)
      end
      shards[shard] = open_file(path)
      has[shard] = {}
      for _, inside in ipairs(shards[shard]:names()) do
        has[shard][inside] = true
      end
      table.insert(self.files.weights, path)
    end
    if not has[shard][name] then
      fail("'%s': tensor '%s' should be in '%s', which has no such tensor", index_path, name, shard)
    end
    where[name] = shards[shard]
  end
  return where, names
end

local function open_weights(self)
  local file, index = join(self.folder, "model.safetensors"), join(self.folder, "model.safetensors.index.json")
  if json.exists(file) then
    return single(self, file)
  elseif json.exists(index) then
    return sharded(self, index)
  end
  local pickled = join(self.folder, "pytorch_model.bin")
  if json.exists(pickled) or json.exists(pickled .. ".index.json") then
    fail(CONVERSION, self.folder)
  end
  fail("'%s' has no weights: neither model.safetensors nor model.safetensors.index.json", self.folder)
end

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
  local where, names = open_weights(self)
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
  if self.config.tie_word_embeddings ~= false then
    self.tensors[TABLE] = self.tensors[TABLE] or self.tensors[DECODER]
  end
end

--- The names of all tensors, without prefix and buffers.
function Checkpoint:names()
  return { unpack(self.order) }
end

--- The tensor of that name, a view of the mapped file; nil if there is none.
function Checkpoint:tensor(name)
  local found = self.tensors[name]
  if not found then
    return nil
  end
  self.asked[found.name] = true
  local ok, t = pcall(found.file.tensor, found.file, found.name)
  return ok and t or fail("%s", t)
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
  sentence_config = "sentence_bert_config.json", sentence_prompts = "config_sentence_transformers.json",
}

function Checkpoint.__index(self, key)
  if COMPANIONS[key] then
    self[key] = self.files[key] and json.object(self.files[key]) or {}
    return self[key]
  end
  return Checkpoint[key]
end

local function boolean(values, key, path)
  local value = given(values[key])
  if value ~= nil and type(value) ~= "boolean" then
    fail("'%s': %s is %s, expected true or false", path, key, json.describe(value))
  end
  return value
end

local CLASSES = {
  ["xlm-roberta"] = "XLMRobertaTokenizer", camembert = "CamembertTokenizer", mpnet = "MPNetTokenizer", xlnet = "XLNetTokenizer",
}

-- What the checkpoint says is its tokenizer, or what its architecture goes with; nil where neither is known.
local function tokenizer_class(self)
  for _, source in ipairs { "tokenizer_config", "config" } do
    if type(self[source].tokenizer_class) == "string" then
      return self[source].tokenizer_class
    end
  end
  return CLASSES[self.config.model_type]
end

--- The fields that say which tokens are special, of which the last counts: the older special_tokens_map.json does where
-- tokenizer_config.json does not list the added tokens, as in the reference library.
function Checkpoint:special_sources()
  local lists = given(self.tokenizer_config.added_tokens_decoder) ~= nil
  return lists and { "tokenizer_config" } or { "tokenizer_config", "special_tokens" }
end

--- What the folder says about its tokenizer:
--   tokenizer, vocabulary   paths of tokenizer.json and vocab.txt, nil where there is none. tokenizer.json says everything
--                           itself; the rest is for a vocabulary alone
--   pieces, merges          paths of vocab.json and merges.txt, of byte pair encoding
--   lowercase               default true, as in the reference library
--   strip_accents           default as do_lower_case of tokenizer_config.json
--   chinese                 spaces around CJK ideographs, default true
--   lower                   whether sentence_bert_config.json asks for lower case before all else
--   special                 { unk_token = "[UNK]", ... } as far as the folder names them
--   sentencepiece           path of a SentencePiece model, nil where there is none
--   class                   tokenizer_class of tokenizer_config.json, of config.json, else by the architecture; nil if none says
function Checkpoint:tokenizer_files()
  local config, path = self.tokenizer_config, self.files.tokenizer_config
  local special = {}
  for _, name in ipairs(self:special_sources()) do
    for key, value in pairs(self[name]) do
      local text = type(value) == "table" and value.content or value
      if type(key) == "string" and key:find "_token$" and type(text) == "string" then
        special[key] = text
      end
    end
  end
  local lowercase = boolean(config, "do_lower_case", path)
  local strip = boolean(config, "strip_accents", path)
  if strip == nil then
    strip = lowercase ~= false
  end
  local chinese = boolean(config, "tokenize_chinese_chars", path)
  if config.padding_side == "left" then
    self.ignored:add(path, "padding_side", "sequences are not padded")
  end
  return {
    tokenizer = self.files.tokenizer, vocabulary = self.files.vocabulary, special = special,
    pieces = self.files.pieces, merges = self.files.merges,
    sentencepiece = self.files.sentencepiece, class = tokenizer_class(self),
    lowercase = lowercase ~= false, strip_accents = strip, chinese = chinese ~= false,
    lower = boolean(self.sentence_config, "do_lower_case", self.files.sentence_config) == true,
  }
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

--- The most tokens of one input that the checkpoint provides for: the smallest of config.json's max_position_embeddings,
-- tokenizer_config.json's model_max_length and sentence_bert_config.json's max_seq_length; nil if none of them says so.
function Checkpoint:limit()
  local limits = {
    positive(self.config, "max_position_embeddings", self.files.config) or math.huge,
    positive(self.tokenizer_config, "model_max_length", self.files.tokenizer_config) or math.huge,
    positive(self.sentence_config, "max_seq_length", self.files.sentence_config) or math.huge,
  }
  local limit = math.min(unpack(limits))
  return limit < math.huge and limit or nil
end

-- ---- sentence-transformers ---------------------------------------------------------------------------------------------

local function read_modules(self, dir)
  local path = join(dir, "modules.json")
  if not json.exists(path) then
    return nil
  end
  self.files.modules = path
  local modules = json.list(path)
  for i, module in ipairs(modules) do
    if type(module) ~= "table" or type(module.type) ~= "string" or type(module.path) ~= "string" then
      fail("'%s': module %d is not an object with the strings type and path", path, i)
    elseif module.path:find "^/" or module.path:find "%.%." or module.path:find "%z" then
      fail("'%s': module %d is in '%s', expected a folder inside this one", path, i, module.path)
    end
    module.class = module.type:match "[^.]*$"
  end
  return modules
end

-- Pooling modes in the order in which the reference puts them side by side. `default`: what a key that is missing means.
local MODES = {
  { key = "pooling_mode_cls_token", name = "cls", mode = "first" },
  { key = "pooling_mode_max_tokens", name = "max", mode = "max" },
  { key = "pooling_mode_mean_tokens", name = "mean", mode = "mean", default = true },
  { key = "pooling_mode_mean_sqrt_len_tokens", name = "mean_sqrt_len_tokens", mode = "mean_sqrt" },
  { key = "pooling_mode_weightedmean_tokens", name = "weightedmean" },
  { key = "pooling_mode_lasttoken", name = "lasttoken", mode = "last" },
}

local function read_modes(path)
  local config = json.object(path)
  local named = given(config.pooling_mode) -- newer files name it instead
  local modes = {}
  for _, m in ipairs(MODES) do
    local on = boolean(config, m.key, path)
    if on == nil then
      on = m.default
    end
    if named ~= nil then
      on = named == m.name
    end
    if on and not m.mode then
      fail("'%s': the pooling mode %s is not supported", path, m.name)
    elseif on then
      modes[#modes + 1] = m.mode
    end
  end
  if #modes == 0 then
    fail("'%s' asks for %s", path, named == nil and "no pooling mode" or "an unknown pooling mode: " .. json.describe(named))
  end
  return modes
end

--- What sentence-transformers puts before texts, { name = text }, and the name of what it puts there unless told otherwise; nil
-- if that is nothing.
function Checkpoint:prompts()
  local path, prompts = self.files.sentence_prompts, given(self.sentence_prompts.prompts) or {}
  if type(prompts) ~= "table" then
    fail("'%s': prompts is %s, expected an object of name: text", path, json.describe(prompts))
  end
  local default = given(self.sentence_prompts.default_prompt_name)
  if default ~= nil and (type(default) ~= "string" or type(prompts[default]) ~= "string") then
    fail("'%s': default_prompt_name is %s, expected the name of one of the prompts", path, json.describe(default))
  end
  local list = {}
  for name, text in pairs(prompts) do
    if type(name) ~= "string" or type(text) ~= "string" then
      fail("'%s': the prompt %s is %s, expected a text", path, tostring(name), json.describe(text))
    end
    list[name] = text
  end
  return list, default
end

--- How a text's hidden states become its vector: { modes = { "mean" }, normalize = true }. Modes ("first", "max", "mean",
-- "mean_sqrt", "last") stand side by side in the vector. Without modules.json it is the mean, not scaled, as in the reference.
-- skip_prompt is true where the tokens of a prompt do not count, and the special token before them. Modules that are not
-- supported are an error here, not when the checkpoint is opened.
function Checkpoint:pooling()
  if not self.modules then
    return { modes = { "mean" }, normalize = false }
  end
  local path, order, pooling = self.files.modules, {}, nil
  for i, module in ipairs(self.modules) do
    order[i] = module.class
    if module.class == "Pooling" then
      pooling = module
    end
  end
  local chain = table.concat(order, ", ")
  if #order == 0 then
    fail("'%s' lists no modules, expected Transformer, Pooling and, after them, possibly Normalize", path)
  elseif chain ~= "Transformer, Pooling" and chain ~= "Transformer, Pooling, Normalize" then
    fail("'%s': the modules %s are not supported, only Transformer, Pooling and, after them, Normalize", path, chain)
  end
  local config = join(join(self.dir, pooling.path), "config.json")
  local include = boolean(json.object(config), "include_prompt", config)
  return { modes = read_modes(config), normalize = order[3] ~= nil, skip_prompt = include == false or nil }
end

-- ---- Opening -----------------------------------------------------------------------------------------------------------

-- The folder of config.json: the Transformer module's where modules.json has one.
local function transformer_folder(dir, modules)
  for _, module in ipairs(modules or {}) do
    if module.class == "Transformer" and json.exists(join(join(dir, module.path), "config.json")) then
      return join(dir, module.path)
    end
  end
  return dir
end

local function find_tokenizer_files(self)
  local function find(key, name)
    local path = join(self.folder, name)
    self.files[key] = json.exists(path) and path or nil
  end
  find("tokenizer", "tokenizer.json")
  find("vocabulary", "vocab.txt")
  find("pieces", "vocab.json")
  find("merges", "merges.txt")
  for _, name in ipairs { "sentencepiece.bpe.model", "spiece.model", "sentencepiece.model", "tokenizer.model" } do
    if not self.files.sentencepiece then
      find("sentencepiece", name)
    end
  end
  for key, name in pairs(COMPANIONS) do
    find(key, name)
  end
  local prompts = join(self.dir, COMPANIONS.sentence_prompts) -- beside modules.json
  self.files.sentence_prompts = json.exists(prompts) and prompts or nil
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
  self.modules = read_modules(self, dir)
  self.folder = transformer_folder(dir, self.modules)
  find_tokenizer_files(self)
  return self
end

--- The checkpoint in the folder `dir`. Fields, beside the methods above:
--   dir      the folder
--   config   config.json, decoded; perigee.config checks it
--   files    paths of what is there: config, weights (a list), tokenizer, vocabulary, tokenizer_config, special_tokens, modules,
--            sentence_config
--   ignored  keys of these files that have no effect here (ignored.lua), as far as the files have been read; every reader of a
--            file adds those that it neither obeys nor refuses
function M.open(dir)
  check_folder(dir)
  local _, why = json.text(dir)
  if not json.exists(dir) then
    fail("%s", why)
  elseif not why then
    fail("'%s' is a file, expected the folder of a checkpoint", dir)
  end
  local self = setmetatable({ dir = dir, files = {}, asked = {}, ignored = Ignored.new() }, Checkpoint)
  self.modules = read_modules(self, dir)
  self.folder = transformer_folder(dir, self.modules)
  self.files.config = join(self.folder, "config.json")
  if not json.exists(self.files.config) then
    fail("'%s' is not a checkpoint: it has no config.json. Expected: config.json, model.safetensors (or its shards and their "
      .. "index), tokenizer.json or vocab.txt", self.folder)
  end
  self.config = json.object(self.files.config)
  find_tokenizer_files(self)
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
