--- Digests: 64-bit FNV-1a over 32-bit words. A digest identifies the bits of tensors in one line.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local M = {}
local Digest = {}
Digest.__index = Digest
local PRIME = 0x100000001b3ULL
local words = ffi.typeof "const uint32_t *"
local bytes = ffi.typeof "const uint8_t *"

--- An empty digest.
function M.new()
  return setmetatable({ hash = 0xcbf29ce484222325ULL }, Digest)
end

--- Adds `count` bytes: whole words first, then the remaining bytes one by one.
function Digest:bytes(pointer, count)
  local w, h = ffi.cast(words, pointer), self.hash
  local whole = math.floor(count / 4)
  for i = 0, whole - 1 do
    h = bit.bxor(h, w[i] + 0ULL) * PRIME
  end
  local b = ffi.cast(bytes, pointer)
  for i = whole * 4, count - 1 do
    h = bit.bxor(h, b[i] + 0ULL) * PRIME
  end
  self.hash = h
  return self
end

--- Adds a tensor's type, shape and elements.
function Digest:tensor(t)
  local shape = t.shape
  self:string(t.dtype .. table.concat(shape, "x"))
  local pointer, stride = t:pointer()
  local width = 1
  for i = 2, #shape do
    width = width * shape[i]
  end
  local size = pgee.C.pgee_dtype_bytes(tensor.code(t.dtype))
  if stride == width then
    return self:bytes(pointer, shape[1] * width * size)
  end
  for i = 0, shape[1] - 1 do
    self:bytes(pointer + i * stride, width * size)
  end
  return self
end

function Digest:string(s)
  return self:bytes(s, #s)
end

--- Returns the digest as 16 hexadecimal digits.
function Digest:text()
  return bit.tohex(self.hash, 16)
end

return M
