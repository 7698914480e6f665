--- Packed weights: what a linear multiplies by, in the layout that the kernels read. Made once, used often.
--
--   local packed = require "perigee.packed"
--   local w = packed.new(W)                          -- W: a tensor [N][K]; s8, one scale for each of its N rows
--   local w = packed.new({ Q, K, V }, { smooth = s })  -- three weights that read one input, stacked
--   w.N, w.K, w.dtype, w.bytes                       -- 1152, 384, "s8", 456192
--   w.scales, w.sums                                 -- tensors: F32 [N], I32 [N] (s8 only)
--   w:unpack()                                       -- I8 [N][K]: W[n][k] is about w:unpack()[n][k] * w.scales[n]
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local options = require "perigee.options"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local methods = {}
local class
local out = pgee.out "pgee_packed *"
local out_tensor, out_scales, out_sums = pgee.out "pgee_tensor *", pgee.out "pgee_tensor *", pgee.out "pgee_tensor *"

local PER = { row = C.PGEE_PER_ROW, tensor = C.PGEE_PER_TENSOR }
local DTYPES = { s8 = C.PGEE_S8, bf16 = C.PGEE_BF16, f32 = C.PGEE_F32 }
local known = { per = true, dtype = true, smooth = true, in_place = true, scales = true, pages = true }
local PAGES = { normal = true, huge = true }

-- A list of tensors from a tensor, a list of them, or nested lists of numbers.
local function weights_of(W)
  if tensor.is(W) then
    return { W }
  elseif type(W) == "table" and type(W[1]) == "table" then
    return { tensor.from(W) }
  elseif type(W) ~= "table" then
    error(("weights are %s, expected a tensor or a list of tensors"):format(pgee.describe(W)))
  end
  return W
end

--- For modules: the handles of a list of tensors as a C array, and their number.
function M.handles(list, what)
  if type(list) ~= "table" then
    error(("the %ss are %s, expected a list of tensors"):format(what, pgee.describe(list)))
  end
  local array = ffi.new("const pgee_tensor *[?]", math.max(#list, 1))
  for i, t in ipairs(list) do
    array[i - 1] = tensor.handle(t, ("%s %d"):format(what, i))
  end
  return pgee.hold(array, list), #list
end

-- The same weight with its bytes in huge pages; frees the one given.
local function in_huge_pages(w)
  local parts = w:parts()
  local bytes = parts.bytes:huge()
  local moved = M.over({ N = w.N, K = w.K, bytes = bytes, scales = parts.scales, sums = parts.sums })
  for _, part in pairs(parts) do
    part:release()
  end
  bytes:release()
  w:release()
  return moved
end

--- Packs a weight for the kernels. W: a tensor [N][K] of any float type, or a list of such tensors with the same K, which are
-- stacked: then N is the sum of theirs. Options:
--   dtype     "s8" (default): symmetric, scale = absmax / 127. "bf16": rounded to the nearest BF16. "f32": the values stay as
--             they are
--   per       "row" (default): one scale for each output channel. "tensor": one scale for each tensor of the list
--   pages     "normal" (default), or "huge": the memory asks Linux for huge pages
--   smooth    F32 [K], SmoothQuant's factors: W[n][k] * smooth[k] is quantized. Only with "s8"
--   in_place  true: W, one tensor, is not copied. Each product packs it again, panel by panel. This is for a table that is used
--             elsewhere, too. The dtype is "f32". dtype, per and smooth may not be given
--   scales    F32 [N], if W is a table of type I8, which must be in place: W[n][k] stands for W[n][k] * scales[n] (quant.table)
-- A value of W that is NaN or infinite is an error that names weight, row and column; with in_place it is not looked for.
function M.new(W, given)
  given = options.check(given, known, "packed")
  local dtype = options.choice(given.dtype or "s8", DTYPES, "packed: dtype")
  local per = options.choice(given.per or "row", PER, "packed: per")
  local pages = options.choice(given.pages or "normal", PAGES, "packed: pages")
  if given.in_place then
    if given.dtype or given.smooth or given.per or not tensor.is(W) or #W.shape ~= 2 then
      error("packed: in_place is for a tensor [N][K] as it is")
    end
    return M.over({ N = W.shape[1], K = W.shape[2], bytes = W, scales = given.scales })
  elseif given.scales ~= nil then
    error("packed: scales is for in_place = true with a table of type I8 only")
  end
  local list = weights_of(W)
  local array, count = M.handles(list, "weight")
  if dtype == "s8" then
    check(C.pgee_packed_s8(out, array, count, tensor.optional(given.smooth, "packed: smooth"), PER[per]))
  elseif given.smooth or given.per then
    error(("packed: %s is for s8 only"):format(given.smooth and "smooth" or "per"))
  elseif dtype == "bf16" then
    check(C.pgee_packed_bf16(out, array, count))
  else
    check(C.pgee_packed_f32(out, array, count))
  end
  return pages == "huge" and in_huge_pages(class.wrap(out[0])) or class.wrap(out[0])
end

local asked, granted = pgee.out "int64_t", pgee.out "int64_t"

--- Bytes in memory of this process that asks for huge pages, and bytes that the kernel gave in huge pages: nil if the kernel does
-- not say, because /proc is not mounted.
function M.huge_pages()
  check(C.pgee_huge_pages(asked, granted))
  return tonumber(asked[0]), granted[0] >= 0 and tonumber(granted[0]) or nil
end

local PARTS = { N = true, K = true, bytes = true, scales = true, sums = true }

--- For modules: a packed weight over what w:parts() gave, which it holds and does not copy: { N =, K =, bytes =, scales =, sums =
-- }.
function M.over(given)
  options.check(given, PARTS, "packed.over")
  given = given or {}
  for _, key in ipairs { "N", "K" } do
    options.integer(options.given(given[key], "packed.over: " .. key, "an integer"), 1, 2 ^ 31 - 1, "packed.over: " .. key)
  end
  check(C.pgee_packed_over(out, given.N, given.K, tensor.handle(given.bytes, "bytes"),
    tensor.optional(given.scales, "scales"), tensor.optional(given.sums, "sums")))
  return class.wrap(out[0])
end

--- Whether x is a packed weight.
function M.is(x)
  return class.is(x)
end

--- For modules: the handle of x, or an error that names `what`.
function M.handle(x, what)
  return (class.handle(x, what))
end

--- The weights as a row-major tensor of their own: I8 [N][K], or BF16 or F32 [N][K].
function methods.unpack(w)
  check(C.pgee_packed_unpack(out_tensor, class.handle(w, "packed weight")))
  return tensor.wrap(out_tensor[0])
end

--- F32 [N], x_scale * scales[n]: what an accumulator is multiplied by when the input has one scale.
function methods.multiplier(w, x_scale)
  if type(x_scale) ~= "number" then
    error(("x_scale is %s, expected a number"):format(pgee.describe(x_scale)))
  end
  check(C.pgee_packed_multiplier(out_tensor, class.handle(w, "packed weight"), x_scale))
  return tensor.wrap(out_tensor[0])
end

--- Returns views of its memory: { bytes = I8, BF16 or F32, in the order in which the kernels read them, scales = F32 [N],
-- sums = I32 [N] }. Only s8 has sums. Only s8 and a table of type I8 have scales. The bytes of a weight in place are the table
-- [N][K].
function methods.parts(w)
  local h = class.handle(w, "packed weight")
  check(C.pgee_packed_read(h, nil, nil, out_tensor))
  local parts = { bytes = tensor.wrap(out_tensor[0]) }
  if parts.bytes.dtype == "I8" then
    check(C.pgee_packed_read(h, out_scales, nil, nil))
    parts.scales = tensor.wrap(out_scales[0])
  end
  if C.pgee_packed_dtype(h) == C.PGEE_S8 then
    check(C.pgee_packed_read(h, nil, out_sums, nil))
    parts.sums = tensor.wrap(out_sums[0])
  end
  return parts
end

--- Frees it at once, unless a plan still holds it.
function methods.release(w)
  class.release(w)
end

local function scales_of(h)
  check(C.pgee_packed_read(h, out_scales, nil, nil))
  return tensor.wrap(out_scales[0])
end

local function sums_of(h)
  check(C.pgee_packed_read(h, nil, out_sums, nil))
  return tensor.wrap(out_sums[0])
end

local function dtype_of(h)
  local code = C.pgee_packed_dtype(h)
  return code == C.PGEE_S8 and "s8" or code == C.PGEE_BF16 and "bf16" or "f32"
end

local properties = {
  N = function(h) return tonumber(C.pgee_packed_N(h)) end,
  K = function(h) return tonumber(C.pgee_packed_K(h)) end,
  bytes = function(h) return tonumber(C.pgee_packed_bytes(h)) end,
  dtype = dtype_of,
  scales = function(h) return dtype_of(h) == "s8" and scales_of(h) or nil end,
  sums = function(h) return dtype_of(h) == "s8" and sums_of(h) or nil end,
}

class = pgee.class("packed weight", "pgee_packed", "pgee_packed_free", {
  __index = function(w, key)
    local property = properties[key]
    return property and property(class.handle(w, "packed weight")) or methods[key]
  end,
  __names = function() return { methods, properties } end,
  __tostring = function(w)
    local h = w.handle
    if h == nil then
      return "packed weight (released)"
    end
    return ("packed weight %s [%d][%d], %d bytes"):format(w.dtype, w.N, w.K, w.bytes)
  end,
})

return M
