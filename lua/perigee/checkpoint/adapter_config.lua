--- Adapter config: reads adapter_config.json of peft and finds the adapter's base model.
--
-- Each key is obeyed (here, or by adapter.lua), or matters only for training, or is an error.
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local set = require "perigee.base.set"
local weight_files = require "perigee.checkpoint.weight_files"
local fail, given, join = read.fail, read.given, read.join

-- Keys that are obeyed below, and those that decide which tensors an adapter has, or how it was trained.
local KNOWN = set [[
  peft_type base_model_name_or_path r lora_alpha use_rslora use_dora rank_pattern alpha_pattern init_lora_weights bias lora_bias
  modules_to_save target_modules exclude_modules layers_to_transform layers_pattern fan_in_fan_out task_type
  auto_mapping revision peft_version inference_mode lora_dropout loftq_config eva_config corda_config lora_ga_config
  velora_config runtime_config megatron_core qalora_group_size base_model_class parent_library]]

-- Values of init_lora_weights that change only the adapter. With other values, peft also changes the base model's weights.
local BEGINNINGS = { gaussian = true, eva = true }

local MERGE = "; peft's merge_and_unload makes a checkpoint without an adapter"

local function is_set(value)
  return given(value) ~= nil and value ~= false and not (type(value) == "table" and next(value) == nil)
end

local function check(config, path, ignored)
  if config.peft_type ~= "LORA" then
    fail("'%s': peft_type is %s, which is not supported, only LORA%s", path, json.describe(config.peft_type), MERGE)
  end
  for key, value in pairs(config) do
    if not KNOWN[key] and is_set(value) then
      fail("'%s': %s is %s, which is not supported%s", path, tostring(key), json.describe(value), MERGE)
    end
  end
  for _, key in ipairs { "use_rslora", "use_dora", "lora_bias" } do
    config[key] = read.optional(config[key], "boolean", false, path, key)
  end
  local beginning = config.init_lora_weights
  if type(beginning) == "string" and not BEGINNINGS[beginning] then
    fail("'%s': init_lora_weights is '%s', which changes the base model's weights, too, and is not supported%s", path, beginning,
      MERGE)
  end
  if config.fan_in_fan_out == true then
    ignored:add(path, "fan_in_fan_out", "linears of these models are never stored transposed")
  end
end

local function is_model(folder)
  return json.exists(join(folder, "config.json")) and weight_files.exist(folder)
end

-- The folder of the base model: the one that base_model_name_or_path names, from the adapter's folder, or the adapter's own.
local function base_of(self, config, path)
  local name = given(config.base_model_name_or_path)
  if name ~= nil and (type(name) ~= "string" or name:find "%z") then
    fail("'%s': base_model_name_or_path is %s, expected the path of a folder", path, json.describe(name))
  end
  local named = name and name ~= "" and (name:find "^/" and name or join(self.folder, name))
  if named and is_model(named) then
    return named
  elseif is_model(self.folder) then
    return self.folder
  end
  fail("'%s' is of an adapter for the model %s, which is not here: put its config.json and model.safetensors into the adapter's "
    .. "folder, or let base_model_name_or_path be the path of its folder", path, json.describe(name))
end

--- Reads the adapter_config.json in the folder of the checkpoint `self`. Returns nil if there is none, else a table:
--   config, path   the decoded file and its path
--   base           the folder of the base model
return function(self)
  local path = join(self.folder, "adapter_config.json")
  if not json.exists(path) then
    return nil
  end
  local config = json.object(path)
  check(config, path, self.ignored)
  self.files.adapter_config = path
  local own = { config = config, path = path, base = base_of(self, config, path) }
  if own.base ~= self.folder and json.exists(join(self.folder, "config.json")) then
    self.ignored:add(join(self.folder, "config.json"), "all keys", "the base model's config.json counts")
  end
  return own
end
