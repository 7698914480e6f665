--- Shapes of tensors, from their handles.
local pgee = require "perigee.ffi"
local types = require("perigee.tensor.types").types
local C = pgee.C

local shape = {}

--- The sizes of the dimensions, { 2, 3 }.
function shape.of(h)
  local sizes = {}
  for i = 1, C.pgee_tensor_ndim(h) do
    sizes[i] = tonumber(C.pgee_tensor_dim(h, i - 1))
  end
  return sizes
end

--- The number of elements in a row, t[1]: the product of all dimensions but the first.
function shape.width(h)
  local width = 1
  for i = 1, C.pgee_tensor_ndim(h) - 1 do
    width = width * tonumber(C.pgee_tensor_dim(h, i))
  end
  return width
end

--- "F32 [2][3]"
function shape.title(h)
  return types[C.pgee_tensor_dtype(h)].name .. " [" .. table.concat(shape.of(h), "][") .. "]"
end

return shape
