--- Vectors: F32 vectors in the formats of other programs: JSON lists, base64 of little-endian floats, NumPy's .npy.
local bit = require "bit"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local vectors = {}

-- Returns the vector if it is an F32 tensor [H]; else an error that names the function `what`.
local function checked(vector, what)
  tensor.handle(vector, what)
  if vector.dtype ~= "F32" or #vector.shape ~= 1 then
    pgee.error(("%s is a %s, expected F32 [H]"):format(what, tostring(vector):match "^[^\n]*"))
  end
  return vector
end

--- A vector [H] as a JSON list. Numbers have nine digits, which read back as the same float.
function vectors.list(vector)
  local from, parts = checked(vector, "vectors.list"):numbers(), {}
  for i = 1, #vector do
    local v = from[i - 1]
    parts[i] = v - v == 0 and ("%.9g"):format(v) or "null" -- JSON has no infinity and no NaN
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

--- The bytes of a vector: little-endian floats.
function vectors.bytes(vector)
  return ffi.string(checked(vector, "vectors.bytes"):pointer(), 4 * #vector)
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
local digits = ffi.new("uint8_t[64]", { ALPHABET:byte(1, -1) })

--- The bytes of a vector in base64 (RFC 4648), with padding.
function vectors.base64(vector)
  local from, count = ffi.cast("const uint8_t *", (checked(vector, "vectors.base64"):pointer())), 4 * #vector
  local length = math.ceil(count / 3) * 4
  local to = ffi.new("uint8_t[?]", length)
  for i = 0, math.ceil(count / 3) - 1 do
    local at = 3 * i
    local b, c = at + 1 < count and from[at + 1] or 0, at + 2 < count and from[at + 2] or 0
    local three = bit.bor(bit.lshift(from[at], 16), bit.lshift(b, 8), c)
    for k = 0, 3 do
      to[4 * i + k] = digits[bit.band(bit.rshift(three, 18 - 6 * k), 63)]
    end
  end
  for k = 1, (3 - count % 3) % 3 do
    to[length - k] = 61 -- =
  end
  return ffi.string(to, length)
end

--- The header of a .npy file of F32 [rows][width]: 128 bytes, however many rows there are.
function vectors.header(rows, width)
  local text = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }"):format(rows, width)
  return "\147NUMPY\1\0\118\0" .. text .. (" "):rep(117 - #text) .. "\n"
end

return vectors
