--- Quantization by hand: scales, smoothing factors, and tensors that were quantized.
--
--   local quant = require "perigee.quant"
--   local s = quant.smooth(xmax, quant.absmax { W }, 0.7)        -- F32 [K]
--   local p = quant.range(-1.2, 3.4)                             -- { scale = 0.01804, zero = 67, symmetric = false }
--   local x8 = quant.quantize(x, p)                              -- static: that scale for all
--   local x8 = quant.quantize(x, { per = "token", smooth = s })  -- dynamic: a scale for each row
--   x8.q, x8.scale, x8.zero                                      -- U8 [rows][K], what its values mean
--   x8:dequantize()                                              -- F32 [rows][K]
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local operator = require "perigee.operator"
local options = require "perigee.options"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local out_scale, scale_of = pgee.out_number "float"
local out_zero = pgee.out "int32_t"

-- ---- Scales and smoothing ------------------------------------------------------------------------------------------------

--- Scale and zero point of a static range lo <= 0 <= hi: { scale =, zero =, symmetric = }, which quantize and linear take.
--   symmetric  false (default): scale = (hi - lo) / 255, 0 lies at zero = rne(-lo / scale).
--              true: scale = max(-lo, hi) / 127, zero = 128
function M.range(lo, hi, given)
  given = options.check(given, { symmetric = true }, "range")
  if type(lo) ~= "number" or type(hi) ~= "number" then
    local what, v = "lo", lo
    if type(lo) == "number" then
      what, v = "hi", hi
    end
    error(("range: %s is %s, expected a number"):format(what, pgee.describe(v)))
  end
  local symmetric = options.boolean(given.symmetric, "range: symmetric")
  check(C.pgee_range_scale(lo, hi, symmetric and 1 or 0, out_scale, out_zero))
  return { scale = scale_of(), zero = out_zero[0], symmetric = symmetric }
end

--- Largest |w| of each input channel over a weight [N][K] or a list of those that read one input: F32 [K].
function M.absmax(weights)
  weights = tensor.is(weights) and { weights } or weights
  local array, count = packed.handles(weights, "weight")
  if count == 0 then
    error("absmax of no weights")
  end
  local wmax = tensor.new("F32", { weights[1].shape[2] or 0 })
  check(C.pgee_channel_absmax(wmax.handle, array, count))
  return wmax
end

--- SmoothQuant's factors, F32 [K]: xmax^alpha / wmax^(1 - alpha), clamped to [1e-5, 1e5]; 1 where either is 0. The input is
-- divided by them, the weight multiplied. xmax, wmax: F32 [K], the largest magnitudes of each channel; alpha from 0 to 1.
function M.smooth(xmax, wmax, alpha)
  if type(alpha) ~= "number" then
    error(("smooth: alpha is %s, expected a number from 0 to 1"):format(pgee.describe(alpha)))
  end
  local x, w = tensor.handle(xmax, "smooth: xmax"), tensor.handle(wmax, "smooth: wmax")
  local s = tensor.new("F32", { #xmax })
  check(C.pgee_smooth(s.handle, x, w, alpha))
  return s
end

--- Returns the factors by which a static quantizer multiplies, F32 [K]: (1 / scale) * (1 / s[k]). s: the smoothing factors, F32
-- [K], or the number K if nothing is smoothed.
function M.multiplier(scale, s)
  if type(scale) ~= "number" then
    error(("multiplier: scale is %s, expected a number"):format(pgee.describe(scale)))
  end
  local smooth = type(s) ~= "number" and tensor.handle(s, "multiplier: s") or nil
  options.integer(not smooth and s or nil, 0, 2 ^ 31, "multiplier: s")
  local m = tensor.new("F32", { smooth and #s or s })
  check(C.pgee_quantize_multiplier(m.handle, scale, smooth))
  return m
end

local out_table, out_scales = pgee.out "pgee_tensor *", pgee.out "pgee_tensor *"

--- A copy of an embedding table, a tensor [rows][H] of type F32, F16 or BF16, as F16 (type = "f16") or as I8 (type = "int8").
-- Second result of "int8": the scales, F32 [rows]; W[n][k] is about q[n][k] * scales[n], where scales[n] = absmax of the row /
-- 127. An error if a value is NaN or infinite, or too large for F16.
function M.table(W, type)
  local handle = tensor.handle(W, "quant.table: the table")
  if options.choice(type, { f16 = true, int8 = true }, "quant.table: type") == "f16" then
    check(C.pgee_table_f16(out_table, handle))
    return tensor.wrap(out_table[0])
  end
  check(C.pgee_table_s8(out_table, out_scales, handle))
  return tensor.wrap(out_table[0]), tensor.wrap(out_scales[0])
end

-- 1 / s[k]: what a dynamic quantizer multiplies by.
local function reciprocal(s, what)
  local handle = tensor.handle(s, what .. ": smooth")
  local m = tensor.new("F32", { #s })
  check(C.pgee_quantize_multiplier(m.handle, 1, handle))
  return m
end

--- What a static quantizer adds to x * m for a shift of z, F32 [K]: -z[k] * m[k]. z, m: F32 [K].
function M.addend(z, m)
  local b = tensor.new("F32", { tensor.is(m) and #m or 0 })
  check(C.pgee_shift_addend(b.handle, tensor.handle(z, "addend: z"), tensor.handle(m, "addend: m")))
  return b
end

--- The bias of linears whose input was shifted by z, F32 [N]: bias[n] + sum over k of W[n][k] * z[k], summed in double. weights:
-- a weight [N][K] or a list of those that read one input; z: F32 [K]; bias: F32 [N], or nil for none.
function M.shifted_bias(weights, z, bias)
  weights = tensor.is(weights) and { weights } or weights
  local array, count = packed.handles(weights, "weight")
  local N = 0
  for _, weight in ipairs(weights) do
    N = N + (weight.shape[1] or 0)
  end
  local y = tensor.new("F32", { N })
  check(C.pgee_shift_bias(y.handle, array, count, tensor.handle(z, "shifted_bias: z"),
    tensor.optional(bias, "shifted_bias: bias")))
  return y
end

-- ---- Quantized tensors ---------------------------------------------------------------------------------------------------

local Quantized = {}
Quantized.__index = Quantized
Quantized.__tostring = function(x)
  local scale = type(x.scale) == "number" and ("scale %.6g, zero %d"):format(x.scale, x.zero) or "a scale and zero for each row"
  return ("quantized [%d][%d], %s%s"):format(#x.q, x.q.shape[2], scale, x.smooth and ", smoothed" or "")
end

--- Whether x is what quantize returns.
function M.is(x)
  return getmetatable(x) == Quantized
end

--- For modules: U8 values and what they mean. scale and zero are numbers, or F32 [rows] and I32 [rows].
function M.wrap(q, scale, zero, smooth)
  return setmetatable({ q = q, scale = scale, zero = zero, smooth = smooth }, Quantized)
end

local function quantized(x, what)
  if not M.is(x) then
    error(("%s: x is %s, expected a quantized tensor"):format(what, pgee.describe(x)))
  end
end

--- (q - zero) * scale, F32 [rows][K]: the values that the weights see, that is, shifted and then divided by the smoothing
-- factors.
function Quantized.dequantize(x)
  quantized(x, "dequantize")
  local rows, K = #x.q, x.q.shape[2]
  local from, stride = x.q:pointer()
  local to = pgee.doubles(math.max(rows * K, 1))
  local each = type(x.scale) ~= "number"
  for i = 0, rows - 1 do
    local scale, zero = each and x.scale[i + 1] or x.scale, each and x.zero[i + 1] or x.zero
    for k = 0, K - 1 do
      to[i * K + k] = (from[i * stride + k] - zero) * scale
    end
  end
  return tensor.new("F32", { rows, K }):put(to)
end

--- Frees its tensors at once.
function Quantized.release(x)
  quantized(x, "release")
  x.q:release()
  if type(x.scale) ~= "number" then
    x.scale:release()
    x.zero:release()
  end
end

local known = { scale = true, zero = true, symmetric = true, smooth = true, shift = true, per = true, batch = true }

--- For modules: what quantize was given, as the fields of a quantizer for rows of K: mode, symmetric, zero, m, b; scale if
-- static.
function M.quantizer(given, K, what)
  what = what or "quantizer"
  given = options.check(given, known, what)
  options.boolean(given.symmetric, what .. ": symmetric")
  if given.smooth ~= nil then
    tensor.handle(given.smooth, what .. ": smooth")
  end
  if given.scale == nil then
    if given.shift ~= nil then
      error(what .. ": there is a shift but no scale: only static quantization shifts, so give both or none")
    end
    if given.zero ~= nil then
      error(what .. ": there is a zero but no scale, expected both or none")
    end
    local mode = options.choice(given.per or "token", { token = true, sequence = true }, what .. ": per")
    local m = given.smooth and reciprocal(given.smooth, what) or nil
    return { mode = mode, symmetric = given.symmetric ~= false, m = m }
  elseif type(given.scale) ~= "number" or given.per ~= nil then
    local rest = given.per and " and no per" or ""
    error(("%s: scale is %s, expected a number%s"):format(what, pgee.describe(given.scale), rest))
  end
  local symmetric = given.symmetric
  if symmetric == nil then
    symmetric = given.zero == nil
  end
  local zero = given.zero or (symmetric and 128) or 0
  local m = M.multiplier(given.scale, given.smooth or K)
  return { mode = "static", symmetric = symmetric, zero = zero, scale = given.scale, m = m,
    b = given.shift ~= nil and M.addend(given.shift, m) or nil }
end

--- Quantizes x, F32 [rows][K] or nested lists, to u8. Static, one scale for all, if a scale is given:
--   scale, zero, symmetric  as range returns them; symmetric (zero 128) if there is no zero
--   shift                   F32 [K], which is subtracted from x first, before smoothing. Default: nothing
-- Dynamic, a scale from the values at hand, if not:
--   per        "token" (default): each row its own. "sequence": each sequence of `batch`, one that plan.batch made
--   symmetric  true (default): zero 128. false: a zero point of its own
-- Both:
--   smooth     F32 [K], factors by which x is divided first
-- Returns a quantized tensor: q U8 [rows][K]; scale and zero, numbers if static, else F32 [rows] and I32 [rows]; smooth;
-- methods dequantize, release.
function M.quantize(x, given)
  if type(x) == "table" then
    x = pgee.raise(tensor.from, x)
  end
  tensor.handle(x, "quantize: x")
  local shape = x.shape
  local quantizer = M.quantizer(given, shape[2] or 0, "quantize")
  local scale, zero = quantizer.scale, quantizer.zero
  quantizer.scale = nil
  quantizer.q = tensor.new("U8", shape)
  if not scale then
    scale, zero = tensor.new("F32", { shape[1] }), tensor.new("I32", { shape[1] })
    quantizer.row_scale, quantizer.row_zero = scale, zero
  end
  operator.run("quantize", { x = x, quantize = quantizer }, given and given.batch)
  return M.wrap(quantizer.q, scale, zero, given and given.smooth)
end

return M
