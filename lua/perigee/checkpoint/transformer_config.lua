--- The Transformer module's file of sentence-transformers: sentence_bert_config.json under any of its names, read and checked.
-- Functions take a checkpoint (checkpoint/init.lua).
local json = require "perigee.base.json"
local options = require "perigee.options"
local read = require "perigee.tokenizer.read"
local fail, given, join, refuse = read.fail, read.given, read.join, read.refuse

local M = {}

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

-- Arguments of from_pretrained that do not change the computation, except for its precision.
local HARMLESS_ARGUMENTS = {
  dtype = true, torch_dtype = true, attn_implementation = true, device_map = true, low_cpu_mem_usage = true,
  add_pooling_layer = true, use_safetensors = true,
}

local TASKS = { ["feature-extraction"] = "last_hidden_state", ["sequence-classification"] = "logits" }

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

-- The check of each key that is present and not null: function(value, path, key, the whole file, checkpoint.ignored). false:
-- another module obeys the key.
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

-- The paths of the files that there are with these names, in the order of NAMES.
local function paths_of(self)
  local list = {}
  for _, name in ipairs(NAMES) do
    local path = join(self.folder, name)
    list[#list + 1] = json.exists(path) and path or nil
  end
  return list
end

--- The path of a Transformer module's file, whatever is in it; nil if there is none.
function M.any_path(self)
  return paths_of(self)[1]
end

--- Finds the file that sentence-transformers reads if there is a modules.json: the first file of these names that is not {}. Sets
-- files.sentence_config to its path, and sentence_json to its value, so that M.read need not decode it again. A file that is not
-- JSON counts as found; M.read raises its error.
function M.find(self)
  for _, path in ipairs(paths_of(self)) do
    local ok, values = pcall(json.object, path)
    if not ok or next(values) ~= nil then
      self.files.sentence_config, self.sentence_json = path, ok and values or nil
      return
    end
  end
end

--- The Transformer module's file, checked: a table of its keys without those that are null; an empty table if there is none.
-- Older names of keys are replaced by the newer ones.
function M.read(self)
  local path = self.files.sentence_config
  if not path then
    return {}
  end
  local config, values = self.sentence_json or json.object(path), {}
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

--- Replaces values of a file by the arguments of that name, processor_kwargs or config_kwargs.
function M.override(self, values, name)
  for key, value in pairs(self.sentence_config[name] or {}) do
    if not HUB[key] then
      values[key] = value
    end
  end
  return values
end

return M
