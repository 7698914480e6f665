--- The modules that sentence-transformers runs after its Pooling: Dense, LayerNorm, Dropout and Normalize, read from the folders
-- that modules.json names. tasks/vectors.lua computes them.
--
-- A layer is one of
--   { op = "dense", weight = [N][K], bias = [N] or nil, activation =, residual = [N][K] or true or nil }
--   { op = "norm", gamma = [K], beta = [K], eps = }
--   { op = "unit" }     each vector divided by its length
-- with tensors in F32, and the field `name`, its folder. residual: what is added to the result of the activation: the input
-- (true), or the product of the input with this weight.
local json = require "perigee.base.json"
local options = require "perigee.options"
local read = require "perigee.tokenizer.read"
local weight_files = require "perigee.checkpoint.weight_files"
local fail, given, join = read.fail, read.given, read.join

local M = {}

---- Files of a module -------------------------------------------------------------------------------------------------

-- The tensors of a module, { name = tensor }, in F32. shapes: the expected tensors, { name = { N, K } }. Errors: another
-- tensor, a missing one, another shape, NaN or infinity.
local function tensors_of(folder, shapes)
  local path = join(folder, "model.safetensors")
  if not json.exists(path) then
    weight_files.no_weights(folder)
  end
  local file, list = weight_files.open(path), {}
  for _, name in ipairs(file:names()) do
    if not shapes[name] then
      fail("'%s': tensor '%s' belongs to no parameter of the module; it has %s", path, name,
        table.concat(options.names(shapes), ", "))
    end
  end
  for name, shape in pairs(shapes) do
    local ok, t = pcall(file.tensor, file, name)
    if not ok then
      fail("%s", t)
    elseif table.concat(t.shape, " ") ~= table.concat(shape, " ") then
      fail("'%s': tensor '%s' is [%s], expected [%s]", path, name, table.concat(t.shape, "]["), table.concat(shape, "]["))
    end
    list[name] = t:f32()
    if list[name]:first_nonfinite() then
      fail("'%s': tensor '%s' has NaN or infinity", path, name)
    end
  end
  file:close()
  return list
end

local function size(config, key, path)
  local value = config[key]
  if type(value) ~= "number" or value % 1 ~= 0 or value < 1 or value > 2 ^ 20 then
    fail("'%s': %s is %s, expected an integer from 1 to 2^20", path, key, json.describe(value))
  end
  return value
end

local function expect_width(width, expected, path, key)
  if width and width ~= expected then
    fail("'%s': %s is %d, expected %d, the width of the vectors that the modules before it make", path, key, expected, width)
  end
end

-- An error if the module reads or writes anything but the text's vector.
local function check_features(config, path)
  for _, key in ipairs { "module_input_name", "module_output_name" } do
    local value = given(config[key])
    if value ~= nil and value ~= "sentence_embedding" then
      fail("'%s': %s is %s, which is not supported, only sentence_embedding", path, key, json.describe(value))
    end
  end
end

---- Modules -----------------------------------------------------------------------------------------------------------

-- The engine's names of activations by PyTorch's classes.
local ACTIVATIONS = { Identity = "identity", Tanh = "tanh", ReLU = "relu", GELU = "gelu", SiLU = "silu" }

local function activation_of(config, path)
  local class = given(config.activation_function)
  if class == nil then
    return config.activation_function == nil and "tanh" or "identity"
  end
  local name = type(class) == "string" and class:match "^torch%..*%.(%w+)$"
  if not name or not ACTIVATIONS[name] then
    fail("'%s': activation_function is %s, which is not supported, only torch.nn's %s", path, json.describe(class),
      table.concat(options.names(ACTIVATIONS), ", "))
  end
  return ACTIVATIONS[name]
end

local function boolean(config, key, default, path)
  return read.flag(config, key, path, default)
end

local DENSE = {
  in_features = true, out_features = true, bias = true, activation_function = true, module_input_name = true,
  module_output_name = true, use_residual = true,
}

-- The modules by name: functions of (checkpoint, folder, path of the module's config.json, width of its input vectors or nil if
-- unknown) that return a layer, nil if the module computes nothing, and the width of its output vectors.
local MODULES = {}

function MODULES.Dense(self, folder, path, width)
  local config = json.object(path)
  for key in pairs(config) do
    if not DENSE[key] then
      self.ignored:add(path, key, "sentence-transformers' Dense has no such argument")
    end
  end
  check_features(config, path)
  local N, K = size(config, "out_features", path), size(config, "in_features", path)
  expect_width(width, K, path, "in_features")
  local residual = boolean(config, "use_residual", false, path)
  local tensors = tensors_of(folder, {
    ["linear.weight"] = { N, K }, ["linear.bias"] = boolean(config, "bias", true, path) and { N } or nil,
    ["residual.weight"] = residual and N ~= K and { N, K } or nil,
  })
  return {
    op = "dense", weight = tensors["linear.weight"], bias = tensors["linear.bias"], activation = activation_of(config, path),
    residual = tensors["residual.weight"] or residual or nil,
  }, N
end

function MODULES.LayerNorm(_, folder, path, width)
  local K = size(json.object(path), "dimension", path)
  expect_width(width, K, path, "dimension")
  local tensors = tensors_of(folder, { ["norm.weight"] = { K }, ["norm.bias"] = { K } })
  return { op = "norm", gamma = tensors["norm.weight"], beta = tensors["norm.bias"], eps = 1e-5 }, K
end

function MODULES.Dropout(_, _, _, width) -- has an effect only in training
  return nil, width
end

function MODULES.Normalize(_, _, path, width)
  if json.exists(path) then
    check_features(json.object(path), path)
  end
  return { op = "unit" }, width
end

local SUPPORTED = "Transformer, Pooling and, after these, Dense, LayerNorm, Dropout and Normalize"

--- Errors unless modules.json lists Transformer, Pooling, and modules that are supported after these.
function M.check_modules(modules, path)
  for i, module in ipairs(modules) do
    local ours = module.type:find "^sentence_transformers%." ~= nil
    local known = i == 1 and module.class == "Transformer" or i == 2 and module.class == "Pooling"
      or i > 2 and MODULES[module.class]
    if not ours then
      fail("'%s': module %d is of type %s, code that is no part of sentence-transformers, which is not supported", path, i,
        module.type)
    elseif not known then
      fail("'%s': module %d, %s, is not supported at this place, only %s", path, i, module.class, SUPPORTED)
    end
  end
  if not modules[2] then
    fail("'%s': there is no Pooling after the Transformer, which is not supported, only %s", path, SUPPORTED)
  end
end

--- The layers after the Pooling, without a Normalize at the end; nil if there are none. width: that of the Pooling's vectors,
-- or nil if unknown.
function M.read(self, modules, width)
  local list = {}
  for i = 3, #modules do
    local module = modules[i]
    local folder = join(self.dir, module.path)
    local layer, after = MODULES[module.class](self, folder, join(folder, "config.json"), width)
    width = after
    if layer and (i < #modules or layer.op ~= "unit") then
      layer.name = module.path
      list[#list + 1] = layer
    end
  end
  return #list > 0 and list or nil
end

return M
