--- Adapters: a folder with adapter_config.json and adapter_model.safetensors, as peft writes them, over the weights of a base
-- model. The adapters of LoRA (Hu et al. 2021) and DoRA (Liu et al. 2024) are merged into the weights when these are read:
--   W' = W + s B A      s = lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora
--   with use_dora each row of W' is then scaled to the length that lora_magnitude_vector says
--
-- Every key of adapter_config.json is obeyed, needed for training alone, or an error.
local json = require "perigee.base.json"
local linear = require "perigee.linear"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local read = require "perigee.tokenizer.read"
local tensor = require "perigee.tensor"
local weight_files = require "perigee.checkpoint.weight_files"
local fail, given, join = read.fail, read.given, read.join

local M = {}

---- adapter_config.json -----------------------------------------------------------------------------------------------

-- Keys that are obeyed below, and those that decide which tensors an adapter has, or how it was trained.
local KNOWN = {}
for key in ([[peft_type base_model_name_or_path r lora_alpha use_rslora use_dora rank_pattern alpha_pattern init_lora_weights bias
  lora_bias modules_to_save target_modules exclude_modules layers_to_transform layers_pattern fan_in_fan_out task_type
  auto_mapping revision peft_version inference_mode lora_dropout loftq_config eva_config corda_config lora_ga_config
  velora_config runtime_config megatron_core qalora_group_size base_model_class parent_library]]):gmatch "%S+" do
  KNOWN[key] = true
end

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

--- Reads the adapter_config.json in a checkpoint's folder. Returns nil if there is none, else a table with the fields
--   config, path   the file
--   base           the folder of the base model
--   changes        { [name of a tensor that the adapter changes] = the adapter's parts for it }; index fills it
function M.read(self)
  local path = join(self.folder, "adapter_config.json")
  if not json.exists(path) then
    return nil
  end
  local config = json.object(path)
  check(config, path, self.ignored)
  self.files.adapter_config = path
  local own = { config = config, path = path, base = base_of(self, config, path), changes = {} }
  if own.base ~= self.folder and json.exists(join(self.folder, "config.json")) then
    self.ignored:add(join(self.folder, "config.json"), "all keys", "the base model's config.json counts")
  end
  return own
end

---- Its tensors -------------------------------------------------------------------------------------------------------

-- The parts of a changed module by the ends of their names, and which tensor of the module they change.
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

-- Stores one tensor of the adapter's file under the name of the tensor that it changes. Returns false if its name is not that
-- of a known part (PARTS). bare: the name inside the base model.
local function add_part(own, bare, file, name, canonical)
  for _, part in ipairs(PARTS) do
    local module = bare:match("^(.*)" .. part[1])
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

-- A number of adapter_config.json for a module, by its patterns or for all.
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
-- change is left out, and model:unused() lists its names. If no change is left, that is an error.
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

--- Adds the adapter's tensors to the checkpoint's: whole ones replace those of the base model, others change them when they are
-- read. canonical: from a tensor's name to that of checkpoint.tensors.
function M.index(self, canonical)
  local own, path = self.adapter, join(self.folder, "adapter_model.safetensors")
  if not json.exists(path) then
    local pickled = json.exists(join(self.folder, "adapter_model.bin"))
    fail("'%s' has no weights beside it: expected adapter_model.safetensors%s", own.path,
      pickled and "; peft writes it in place of adapter_model.bin if it loads the adapter and saves it" or "")
  end
  local file = weight_files.open(path)
  table.insert(self.files.weights, path)
  for _, name in ipairs(file:names()) do
    local bare = plain(name)
    if not add_part(own, bare, file, name, canonical) then
      local short = canonical(bare)
      if not self.tensors[short] then
        self.order[#self.order + 1] = short
      end
      self.stored[#self.stored + 1] = name
      self.tensors[short] = { file = file, name = name, distance = -1 }
    end
  end
  check_changes(self)
end

---- Merging -----------------------------------------------------------------------------------------------------------

-- Rows and columns exchanged and multiplied by a number: F32 [K][N].
local function transposed(t, factor)
  local rows, columns = t.shape[1], t.shape[2]
  local from, to = t:numbers(), pgee.doubles(rows * columns)
  for i = 0, rows - 1 do
    for j = 0, columns - 1 do
      to[j * rows + i] = from[i * columns + j] * factor
    end
  end
  return tensor.new("F32", { columns, rows }):put(to)
end

-- W + x w^T in F32. x: [N][r], w: [K][r].
local function add_product(W, x, w)
  local base, p = W:f32(), packed.new(w, { dtype = "f32" })
  local sum = linear(x, p, { residual = base })
  base:release()
  p:release()
  return sum
end

-- Scales the rows of W to the lengths in `magnitude`.
local function scale_rows(W, magnitude)
  local N, K, numbers, length = W.shape[1], W.shape[2], W:numbers(), magnitude:numbers()
  for n = 0, N - 1 do
    local sum = 0
    for k = n * K, (n + 1) * K - 1 do
      sum = sum + numbers[k] * numbers[k]
    end
    local factor = length[n] / math.sqrt(sum)
    for k = n * K, (n + 1) * K - 1 do
      numbers[k] = numbers[k] * factor
    end
  end
  return W:put(numbers)
end

-- The sum of two vectors of one length, the second times a number.
local function add_vector(a, b, factor)
  local sum, more = a:numbers(), b:numbers()
  for i = 0, #a - 1 do
    sum[i] = sum[i] + more[i] * factor
  end
  return tensor.new("F32", #a):put(sum)
end

local function expect(own, name, what, t, shape)
  if table.concat(t.shape, " ") ~= table.concat(shape, " ") then
    fail("'%s': %s of '%s' is [%s], expected [%s]", own.path, what, name, table.concat(t.shape, "]["), table.concat(shape, "]["))
  end
end

--- The tensor of that name with the adapter's change, in F32; nil if the adapter does not change it. t: the base model's
-- tensor.
function M.merge(own, name, t)
  local change = own.changes[name]
  if not change then
    return nil
  elseif change.bias and not change.A then
    expect(own, name, "lora_B's bias", change.bias, t.shape)
    return add_vector(t, change.bias, change.scale)
  elseif #t.shape ~= 2 then
    fail("'%s': the adapter changes '%s', which is not a matrix", own.path, name)
  end
  local N, K, r = t.shape[1], t.shape[2], change.A.shape[1]
  expect(own, name, "lora_A", change.A, { r, change.embedding and N or K })
  expect(own, name, "lora_B", change.B, { change.embedding and K or N, r })
  if change.embedding then
    return add_product(t, transposed(change.A, change.scale), change.B)
  end
  local merged = add_product(t, change.B, transposed(change.A, change.scale))
  if change.magnitude then
    expect(own, name, "lora_magnitude_vector", change.magnitude, { N })
    scale_rows(merged, change.magnitude)
  end
  return merged
end

return M
