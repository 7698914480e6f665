--- Vectors: the computations that turn the pooled hidden states of each text, F32 [texts][width], into its vector.
local linear = require "perigee.linear"
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local tensor = require "perigee.tensor"
local ffi = require "ffi"

local M = {}

-- Copies the first `width` columns of `from` to columns `at` and on of `to`, counted from 0. Both are F32 with equally many rows.
local function copy_columns(to, at, from, width)
  local to_data, to_stride = to:pointer()
  local from_data, from_stride = from:pointer()
  for row = 0, #from - 1 do
    ffi.copy(to_data + row * to_stride + at, from_data + row * from_stride, width * 4)
  end
end

--- Puts vectors of one width side by side: a list of tensors [n][width] becomes one tensor [n][width * #list]. It releases the
-- tensors of the list, unless the list has only one, which is then the result.
function M.side_by_side(list)
  if #list == 1 then
    return list[1]
  end
  local rows, width = #list[1], list[1].shape[2]
  local all = tensor.new("F32", { rows, width * #list })
  for i, part in ipairs(list) do
    if #part ~= rows or part.shape[2] ~= width then
      error(("embed: the pooled states %d are [%d][%d], expected [%d][%d] as the first"):format(i, #part, part.shape[2], rows,
        width), 0)
    end
    copy_columns(all, (i - 1) * width, part, width)
    part:release()
  end
  return all
end

-- x W^T. The weight is read as it is in memory, because packing it takes longer than it saves for a few vectors.
local function product(x, weight, given)
  local w = packed.new(weight, { in_place = true })
  given.kernel = "native"
  local y = linear(x, w, given)
  w:release()
  return y
end

-- Each: function(layer of checkpoint/layers.lua, x) -> a new tensor, or x.
local LAYERS = {}

function LAYERS.dense(layer, x)
  local residual = layer.residual == true and x or layer.residual and product(x, layer.residual, {}) or nil
  local y = product(x, layer.weight, { bias = layer.bias, activation = layer.activation, residual = residual })
  if residual and residual ~= x then
    residual:release()
  end
  return y
end

function LAYERS.norm(layer, x)
  operator.run("norm", { x = x, gamma = layer.gamma, beta = layer.beta, eps = layer.eps, y = x })
  return x
end

function LAYERS.unit(_, x)
  operator.run("unit", { x = x, y = x })
  return x
end

--- Whether layers of that name can be computed.
function M.is_layer(op)
  return LAYERS[op] ~= nil
end

local function apply(layer, x)
  local y = LAYERS[layer.op](layer, x)
  if y ~= x then
    x:release()
  end
  return y
end

-- The first elements of each vector, as a new tensor; x is released. If x has no more elements, the result is x itself.
local function cut(x, dimensions)
  if dimensions >= x.shape[2] then
    return x
  end
  local short = tensor.new("F32", { #x, dimensions })
  copy_columns(short, 0, x, dimensions)
  x:release()
  return short
end

local function check_dimensions(x, dimensions)
  local width = x.shape[2]
  if dimensions > width then
    x:release()
    error(("embed: dimensions is %d, expected an integer from 1 to %d, the length of the model's vectors"):format(dimensions,
      width), 0)
  end
end

--- Makes the texts' vectors from their pooled hidden states x [texts][width], and releases x.
--   pooling   what checkpoint/sentence.lua returns: the layers after the pooling are applied, then the division by the length,
--             then the cut to pooling.dimensions
--   given     what the caller asks for instead: dimensions, to which the vectors are cut before the division by the length;
--             normalize, whether they are divided by their length
function M.finish(x, pooling, given)
  local dimensions, normalize = given.dimensions, given.normalize
  if normalize == nil then
    normalize = pooling.normalize
  end
  for _, layer in ipairs(pooling.layers or {}) do
    x = apply(layer, x)
  end
  if dimensions then
    check_dimensions(x, dimensions)
    x = cut(x, dimensions)
  end
  if normalize then
    x = apply({ op = "unit" }, x)
  end
  return not dimensions and pooling.dimensions and cut(x, pooling.dimensions) or x
end

return M
