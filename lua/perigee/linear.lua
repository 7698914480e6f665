--- A fused linear by hand: activation(x W^T + bias) + residual, in INT8 or FP32, in one call.
--
--   local linear = require "perigee.linear"
--   local w = packed.new(W)                                             -- s8
--   local y = linear(x, w, { bias = b, activation = "gelu" })           -- x: F32; quantized on the way, a scale for each row
--   local y = linear(x, w, { bias = b, quantize = quant.range(-3, 5) }) -- one static scale
--   local x8 = quant.quantize(x, quant.range(-3, 5))
--   local y8 = linear(x8, w, { bias = b, requantize = quant.range(-1, 9) })  -- u8 in, u8 out, the tile never leaves the cache
--   local y = linear(y8, w2, { residual = x })
--
-- Plans are built from the same operator.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local quant = require "perigee.quant"
local operator = require "perigee.operator"
local options = require "perigee.options"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}

local known = {
  bias = true, activation = true, residual = true, quantize = true, requantize = true, kernel = true,
}
local requantize_known = { scale = true, zero = true, symmetric = true, smooth = true }

-- Fields of the operator that say what x means, and the multiplier for w.
local function input(x, w, given)
  if type(x) == "table" and not quant.is(x) then
    x = pgee.raise(tensor.from, x)
  end
  if w.dtype ~= "s8" then
    if not tensor.is(x) or given.quantize then
      error(("linear: %s weights take an F32 tensor, not quantized"):format(w.dtype == "bf16" and "BF16" or "FP32"))
    end
    return { x = x }
  elseif quant.is(x) then
    if given.quantize then
      error("linear: x is quantized already")
    end
  else
    tensor.handle(x, "linear: x")
    x = pgee.raise(quant.quantize, x, given.quantize)
  end
  if type(x.scale) == "number" then
    return { x = x.q, scale = w:multiplier(x.scale), zero = x.zero }
  end
  return { x = x.q, scale = w.scales, row_scale = x.scale, row_zero = x.zero }
end

--- x: F32 [rows][K], nested lists, or what quant.quantize or a linear with requantize returned; w: a packed weight. Options:
--   bias        F32 [N] or a list of N numbers
--   activation  "gelu" (by erf), "gelu_tanh", "quick_gelu", "relu", "silu", "tanh"; none by default. "gelu_rounded" and
--               "gelu_tanh_rounded" are faster and off by up to 4e-5, for a result that is only used in 8 bits
--   residual    F32 [rows][N], added after the activation
--   quantize    how an F32 x becomes u8 for s8 weights, as quant.quantize takes it. Default: dynamic, per token, symmetric
--   requantize  { scale =, zero =, symmetric =, smooth = (F32 [N]) }: the result is quantized by this static scale
--   kernel      "native" (default): the kernel of the ISA in force. "onednn"
-- Returns F32 [rows][N], or a quantized tensor if requantize is given.
local function call(_, x, w, given)
  given = options.check(given, known, "linear")
  packed.handle(w, "linear: w")
  local fields = input(x, w, given)
  local rows, N = fields.x.shape[1], w.N
  fields.w, fields.activation, fields.residual, fields.kernel = w, given.activation, given.residual, given.kernel
  fields.bias = type(given.bias) == "table" and pgee.raise(tensor.from, given.bias) or given.bias
  if not given.requantize then
    fields.y = tensor.new("F32", { rows, N })
    operator.run("linear", fields)
    return fields.y
  end
  options.check(given.requantize, requantize_known, "linear: requantize")
  local to = quant.quantizer(given.requantize, N, "linear: requantize")
  local scale, zero = to.scale, to.zero
  if not scale then
    error("linear: requantize has no scale, expected a number; use quant.quantize on the result for dynamic ones")
  end
  to.scale, to.q = nil, tensor.new("U8", { rows, N })
  fields.quantize = to
  operator.run("linear", fields)
  return quant.wrap(to.q, scale, zero, given.requantize.smooth)
end

local name = ffi.new("char[128]")

--- Returns the name of the kernel that would multiply: "avx512vnni 6x64". w: a packed weight; rows: the number of rows of x;
-- kernel: "native" or "onednn".
function M.kernel(w, rows, kernel)
  packed.handle(w, "kernel: w")
  if rows == nil then
    error("kernel: rows is nil, expected how many x would have")
  end
  options.integer(rows, 0, 2 ^ 31, "kernel: rows")
  local _, args = operator.args("linear", { w = w, kernel = kernel })
  check(C.pgee_linear_kernel(args, rows, name, ffi.sizeof(name)))
  return ffi.string(name)
end

return setmetatable(M, { __call = call })
