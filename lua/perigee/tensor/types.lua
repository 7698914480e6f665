--- The element types of tensors: how Lua reads and writes an element of each.
--
-- An entry stands under the type's name and under the library's number for it, and has
--   name, code   "F32", C.PGEE_F32
--   pointer      the C type of a pointer to elements. Of floats: to their bits, as unsigned integers (perigee.ffi says why)
--   written      of floats: the C type of a pointer through which Lua writes, and never reads
--   get, set     an element as a Lua value (not of floats, which pgee.number reads); a Lua value as an element, nil if it is none
--   expected     what set takes, for errors
--   float        true if the type is a float
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C, error = pgee.C, pgee.error

-- The bits of v as a 16-bit float of `fraction` fraction bits, whose exponent has this bias. To the nearest, ties to even; a
-- carry out of the fraction is a carry into the exponent.
local function narrow(v, fraction, bias)
  local one, infinite = 2 ^ fraction, (2 * bias + 1) * 2 ^ fraction
  if v ~= v then
    return infinite + one / 2
  end
  local sign = (v < 0 or 1 / v < 0) and 0x8000 or 0
  local a = math.abs(v)
  if a == math.huge then
    return sign + infinite
  end
  local _, exponent = math.frexp(a)
  exponent = a == 0 and 2 - bias or math.max(exponent, 2 - bias)
  local units = math.ldexp(a, fraction + 1 - exponent)
  local bits = (units + 2^52) - 2^52 + (exponent + bias - 2) * one
  return sign + math.min(bits, infinite)
end

-- The pointers in `written` are for writing floats alone (perigee.ffi says why). Callers get pointers to the bits of floats.
local function float(bits, written, stored)
  return {
    float = true, pointer = ffi.typeof(bits), written = ffi.typeof(written or bits),
    set = function(v) return type(v) == "number" and (stored and stored(v) or v) or nil end,
    expected = "a number",
  }
end

local function float16(fraction, bias)
  return float("uint16_t *", nil, function(v) return narrow(v, fraction, bias) end)
end

local function integer(pointer, low, high)
  return {
    pointer = ffi.typeof(pointer),
    get = function(v) return v end,
    set = function(v) return type(v) == "number" and v % 1 == 0 and v >= low and v <= high and v or nil end,
    expected = ("an integer from %d to %d"):format(low, high),
  }
end

local int64 = ffi.typeof "int64_t"
local types = {
  F32 = float("uint32_t *", "float *"),
  F16 = float16(10, 15),
  BF16 = float16(7, 127),
  U8 = integer("uint8_t *", 0, 255),
  I8 = integer("int8_t *", -128, 127),
  I32 = integer("int32_t *", -2^31, 2^31 - 1),
  I64 = {
    pointer = ffi.typeof "int64_t *",
    get = function(v) return v >= -2^53 and v <= 2^53 and tonumber(v) or v end,
    set = function(v)
      return (ffi.istype(int64, v) or type(v) == "number" and v % 1 == 0 and v >= -2^63 and v < 2^63) and v or nil
    end,
    expected = "a 64-bit integer",
  },
  F64 = float("uint64_t *", "double *"),
  BOOL = {
    pointer = ffi.typeof "uint8_t *",
    get = function(v) return v ~= 0 end,
    set = function(v) return type(v) == "boolean" and (v and 1 or 0) or nil end,
    expected = "a boolean",
  },
}

-- The library's numbers for the types' names.
local codes = {}
for code = 0, C.PGEE_DTYPES - 1 do
  local name = ffi.string(C.pgee_dtype_name(code))
  codes[name] = code
  types[code] = assert(types[name], name)
  types[code].name, types[code].code = name, code
end

--- The library's number for a type's name; an error for another name.
local function code_of(dtype)
  return codes[dtype] or error(("the tensor type is %s, expected 'F32', 'F16', 'BF16', 'F64', 'I64', 'I32', 'I8', 'U8' or 'BOOL'")
    :format(pgee.describe(dtype)))
end

return { types = types, codes = codes, code = code_of }
