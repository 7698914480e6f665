--- Adapter merge: the arithmetic that merges an adapter's change into a weight of the base model, in FP32.
local linear = require "perigee.linear"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local read = require "perigee.tokenizer.read"
local tensor = require "perigee.tensor"

-- The transpose of t, multiplied by a number. t: F32 [N][K]; the result: F32 [K][N].
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

-- W + x w^T in F32. W: [N][K], x: [N][r], w: [K][r].
local function add_product(W, x, w)
  local base, p = W:f32(), packed.new(w, { dtype = "f32" })
  local sum = linear(x, p, { residual = base })
  base:release()
  p:release()
  return sum
end

-- Scales each row of W, F32 [N][K], to the length that `magnitude`, F32 [N], has for it. Changes W and returns it.
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

-- a + b * factor, for vectors of the same length.
local function add_vector(a, b, factor)
  local sum, more = a:numbers(), b:numbers()
  for i = 0, #a - 1 do
    sum[i] = sum[i] + more[i] * factor
  end
  return tensor.new("F32", #a):put(sum)
end

-- An error unless the part `t` of the change of the tensor `name` has that shape.
local function expect(path, name, what, t, shape)
  if table.concat(t.shape, " ") ~= table.concat(shape, " ") then
    read.fail("'%s': %s of '%s' is [%s], expected [%s]", path, what, name, table.concat(t.shape, "]["),
      table.concat(shape, "]["))
  end
end

--- The tensor t of the base model with the adapter's change to it, a new tensor in F32.
--   change   { A =, B =, bias =, magnitude =, embedding =, scale = } of adapter.lua
--   name     the tensor's name, for errors; path: that of adapter_config.json, for errors
return function(t, change, name, path)
  if change.bias and not change.A then
    expect(path, name, "lora_B's bias", change.bias, t.shape)
    return add_vector(t, change.bias, change.scale)
  elseif #t.shape ~= 2 then
    read.fail("'%s': the adapter changes '%s', which is not a matrix", path, name)
  end
  local N, K, r = t.shape[1], t.shape[2], change.A.shape[1]
  expect(path, name, "lora_A", change.A, { r, change.embedding and N or K })
  expect(path, name, "lora_B", change.B, { change.embedding and K or N, r })
  if change.embedding then
    return add_product(t, transposed(change.A, change.scale), change.B)
  end
  local merged = add_product(t, change.B, transposed(change.A, change.scale))
  if change.magnitude then
    expect(path, name, "lora_magnitude_vector", change.magnitude, { N })
    scale_rows(merged, change.magnitude)
  end
  return merged
end
