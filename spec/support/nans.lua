--- NaNs of every kind, as bits that a file may have. LuaJIT takes some of them for tables, strings or functions (perigee.ffi says
-- why).
--
--   for _, bits in ipairs(nans.F32) do ... end          -- numbers; uint64_t for F64
--   nans.tensor("F32", nans.F32)                         -- a tensor of these bits
--   nans.in_both_modes(function() ... end)               -- runs in LuaJIT's interpreter, and compiled
local ffi = require "ffi"
local tensor = require "perigee.tensor"

local nans = { F32 = {}, F64 = {}, F16 = {}, BF16 = {} }

-- NaNs of F32 and F64 for each sign and each tag. (The tag is the leading bits of the fraction, in which LuaJIT keeps a value's
-- type.) For each there are four values of the remaining bits, among them the min and the max. Of F16 and BF16, all NaNs.
for _, sign in ipairs { 0, 1 } do
  for tag = 0, 31 do
    for _, rest in ipairs { 0, 1, 0x20001, 0x3ffff } do
      if tag + rest > 0 then
        table.insert(nans.F32, sign * 2 ^ 31 + 0x7f800000 + tag * 2 ^ 18 + rest)
      end
    end
    for _, rest in ipairs { 0, 1, 0x414141414141ULL, 0x7fffffffffffULL } do
      if tag > 0 or rest ~= 0 then
        table.insert(nans.F64, (sign * 0x8000ULL + 0x7ff0) * 2ULL ^ 48 + tag * 2ULL ^ 47 + rest)
      end
    end
  end
  for fraction = 1, 0x3ff do
    table.insert(nans.F16, sign * 0x8000 + 0x7c00 + fraction)
  end
  for fraction = 1, 0x7f do
    table.insert(nans.BF16, sign * 0x8000 + 0x7f80 + fraction)
  end
end

-- In addition, some random NaNs.
local state = 1
local function random()
  state = (state * 16807) % 2147483647
  return state
end
for _ = 1, 500 do
  table.insert(nans.F32, random() % 2 * 2 ^ 31 + 0x7f800000 + 1 + random() % 0x7fffff)
  local high = (random() % 2 * 0x8000ULL + 0x7ff0) * 2ULL ^ 48
  table.insert(nans.F64, high + random() % 0xffffff * 2ULL ^ 28 + 1 + random() % 2 ^ 28)
end

--- Returns a vector of a float type with these bits.
function nans.tensor(dtype, list)
  local t = tensor.new(dtype, #list)
  local bits = t:pointer()
  for i, b in ipairs(list) do
    bits[i - 1] = b
  end
  return t
end

local box = ffi.new "union { double v; uint64_t bits; }"

--- Returns whether v is the NaN that the library gives to Lua in the place of any NaN.
function nans.is(v)
  if type(v) ~= "number" then
    return false
  end
  box.v = v
  return box.bits == 0x7ff8000000000000ULL
end

--- Calls f with LuaJIT's compiler off, and then several times with it on, so that f is compiled.
function nans.in_both_modes(f)
  local ok, failure = pcall(function()
    jit.off()
    jit.flush()
    f()
    jit.on()
    for _ = 1, 3 do
      f()
    end
  end)
  jit.on()
  assert(ok, failure)
end

return nans
