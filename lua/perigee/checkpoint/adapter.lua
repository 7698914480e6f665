--- Adapters: a folder with adapter_config.json and adapter_model.safetensors, as peft writes them, for the weights of a base
-- model. Adapters of LoRA (Hu et al. 2021) and DoRA (Liu et al. 2024) are merged into a weight when it is read:
--   W' = W + s B A      s = lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora
--   with use_dora each row of W' is then scaled to the length that lora_magnitude_vector gives for it
--
-- adapter_config.lua reads the config, adapter_merge.lua has the arithmetic.
local adapter_config = require "perigee.checkpoint.adapter_config"
local json = require "perigee.base.json"
local merge = require "perigee.checkpoint.adapter_merge"
local read = require "perigee.tokenizer.read"
local weight_files = require "perigee.checkpoint.weight_files"
local fail, given, join = read.fail, read.given, read.join

local M = {}

--- The adapter in the folder of the checkpoint `self`; nil if there is none. Its fields:
--   config, path   adapter_config.json, decoded, and its path
--   base           the folder of the base model
--   changes        { [name of a tensor that the adapter changes] = the adapter's parts for it }; index fills it
function M.read(self)
  local own = adapter_config(self)
  if own then
    own.changes = {}
  end
  return own
end

---- The adapter's tensors ---------------------------------------------------------------------------------------------

-- The parts of an adapter's change to a module: the end of the part's name, its key in the change, the tensor of the module that
-- it changes, and whether the module is an embedding table.
local PARTS = {
  { "%.lora_A%.weight$", "A", ".weight" }, { "%.lora_B%.weight$", "B", ".weight" }, { "%.lora_B%.bias$", "bias", ".bias" },
  { "%.lora_embedding_A$", "A", ".weight", true }, { "%.lora_embedding_B$", "B", ".weight", true },
  { "%.lora_magnitude_vector%.weight$", "magnitude", ".weight" }, { "%.lora_magnitude_vector$", "magnitude", ".weight" },
}

-- The name of an adapter's tensor inside the base model.
local function plain(name)
  return (name:gsub("^base_model%.model%.", ""):gsub("%.default%f[.%z]", ""):gsub("%.default$", ""):gsub("%.base_layer%.", ".")
    :gsub("%.modules_to_save%.", "."))
end

-- A tensor of the adapter's file in F32, finite.
local function finite(file, name, path)
  local ok, t = pcall(file.tensor, file, name)
  if not ok then
    fail("%s", t)
  end
  local dense = t:f32()
  if dense:first_nonfinite() then
    fail("'%s': the adapter's tensor '%s' has NaN or infinity", path, name)
  end
  return dense
end

-- Adds one tensor of the adapter's file to the change that it is a part of. Returns false if its name is not that of a part
-- (PARTS). plain_name: the name inside the base model.
local function add_part(own, plain_name, file, name, canonical)
  for _, part in ipairs(PARTS) do
    local module = plain_name:match("^(.*)" .. part[1])
    if module then
      local target = canonical(module .. part[3])
      local change = own.changes[target] or { module = module, embedding = part[4], names = {} }
      own.changes[target], change[part[2]] = change, finite(file, name, own.path)
      table.insert(change.names, name)
      return true
    end
  end
  return false
end

-- The value for a module from an object of patterns, such as rank_pattern; nil if no key matches. A key matches the module's
-- name or the end of its path. peft reads the keys as regular expressions; here a key that is more than a name is an error. If
-- two keys with different values match, that is an error, because JSON does not keep the order of keys.
local function by_pattern(own, key, module)
  local patterns, found = given(own.config[key]) or {}, nil
  if type(patterns) ~= "table" or #patterns > 0 then
    fail("'%s': %s is %s, expected an object", own.path, key, json.describe(patterns))
  end
  for pattern, value in pairs(patterns) do
    local anchored, name = pattern:match "^(%^?)([%w_.-]+)$"
    if not name or type(value) ~= "number" then
      fail("'%s': %s has %s for '%s', expected numbers for names of modules", own.path, key, json.describe(value), pattern)
    elseif module == name or anchored == "" and module:sub(-#name - 1) == "." .. name then
      if found and found ~= value then
        fail("'%s': two keys of %s match '%s', with different values", own.path, key, module)
      end
      found = value
    end
  end
  return found
end

-- A number of adapter_config.json for a module: the one of a pattern that matches the module, else the one for all modules, else
-- peft's default 8.
local function number_of(own, key, pattern_key, module)
  local value = by_pattern(own, pattern_key, module) or own.config[key] or 8
  if type(value) ~= "number" or not (value > 0 and value < math.huge) then
    fail("'%s': %s is %s, expected a number above 0", own.path, key, json.describe(value))
  end
  return value
end

-- The factor on the product of B and A: lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora.
local function scale_of(own, change)
  local r = number_of(own, "r", "rank_pattern", change.module)
  local alpha = number_of(own, "lora_alpha", "alpha_pattern", change.module)
  if r ~= change.A.shape[1] then
    fail("'%s': r of %s is %s, its lora_A has %d rows", own.path, change.module, tostring(r), change.A.shape[1])
  end
  return alpha / (own.config.use_rslora and math.sqrt(r) or r)
end

local function check_change(own, target, change)
  if not (change.A and change.B) and not change.bias then
    fail("'%s': of the adapter's parts of '%s' one is missing: lora_A or lora_B", own.path, target)
  elseif change.embedding and own.config.use_dora then
    fail("'%s': use_dora of the table '%s' is not supported, only of linears", own.path, target)
  elseif change.A and (change.magnitude ~= nil) ~= (own.config.use_dora or false) then
    fail("'%s': use_dora is %s, but there is %s lora_magnitude_vector of '%s'", own.path, tostring(own.config.use_dora),
      change.magnitude and "a" or "no", target)
  elseif change.bias and not own.config.lora_bias then
    fail("'%s': lora_bias is %s, but there is a bias of lora_B for '%s'", own.path, tostring(own.config.lora_bias), target)
  end
  for key, part in pairs { A = change.A or false, B = change.B or false } do
    if part and #part.shape ~= 2 then
      fail("'%s': lora_%s of '%s' is not a matrix", own.path, key, target)
    end
  end
end

-- Checks all changes and gives each its scale. If the base model lacks the tensor of a change (a pooler's, for example), the
-- change has no effect, and the checkpoint's unused() lists its names. If no change has an effect, that is an error.
local function check_changes(self)
  local own, left = self.adapter, next(self.adapter.changes)
  for target, change in pairs(own.changes) do
    check_change(own, target, change)
    change.scale = change.A and scale_of(own, change)
    if self.tensors[target] then
      left = nil
    else
      for _, name in ipairs(change.names) do
        self.stored[#self.stored + 1] = name
      end
    end
  end
  if left then
    fail("'%s': the adapter changes '%s' and no tensor that the base model in '%s' has", own.path, left, own.base)
  end
  for target, change in pairs(own.changes) do -- a bias has the scale of its weight
    change.scale = change.scale or (own.changes[(target:gsub("%.bias$", ".weight"))] or {}).scale or 1
  end
end

--- Adds the adapter's tensors to the checkpoint's. A whole tensor replaces the one of the base model; a part of a change is kept
-- in adapter.changes until M.merge. canonical: a function from a tensor's name to its key in checkpoint.tensors.
function M.index(self, canonical)
  local own, path = self.adapter, join(self.folder, "adapter_model.safetensors")
  if not json.exists(path) then
    local pickled = json.exists(join(self.folder, "adapter_model.bin"))
    fail("'%s' has no weights: expected adapter_model.safetensors in the same folder%s", own.path,
      pickled and "; peft writes it in place of adapter_model.bin if it loads the adapter and saves it" or "")
  end
  local file = weight_files.open(path)
  table.insert(self.files.weights, path)
  for _, name in ipairs(file:names()) do
    local plain_name = plain(name)
    if not add_part(own, plain_name, file, name, canonical) then
      local short = canonical(plain_name)
      if not self.tensors[short] then
        self.order[#self.order + 1] = short
      end
      self.stored[#self.stored + 1] = name
      self.tensors[short] = { file = file, name = name, distance = -1 }
    end
  end
  check_changes(self)
end

--- The tensor of that name with the adapter's change, a new tensor in F32; nil if the adapter does not change it. t: the base
-- model's tensor.
function M.merge(own, name, t)
  local change = own.changes[name]
  return change and merge(t, change, name, own.path)
end

return M
