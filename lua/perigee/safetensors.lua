--- Safetensors files. Opening a file maps it into memory, and reads and checks its header. Tensors are views of its bytes.
--
--   local safetensors = require "perigee.safetensors"
--   local f = safetensors.open "model.safetensors"
--   for _, name in ipairs(f:names()) do print(name, f:tensor(name).shape[1]) end
--   f:metadata "format"  --> "pt", nil if there is no such key
--   f:close()            -- tensors stay valid: they keep the file mapped
--   safetensors.write("b.safetensors", { a = tensor.from { 1, 2 } }, { key = "value" })
local ffi = require "ffi"
local foreign = require "perigee.base.foreign"
local pgee = require "perigee.ffi"
local options = require "perigee.options"
local tensor = require "perigee.tensor"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local methods = {}
local out = pgee.out "pgee_safetensors *"
local out_tensor = pgee.out "pgee_tensor *"
local out_sum = pgee.out "uint32_t"

local class = pgee.class("safetensors file", "pgee_safetensors", "pgee_safetensors_free", {
  __index = methods,
  __len = function(f) return #f:names() end,
  __tostring = function(f)
    return f.handle == nil and "safetensors file (closed)" or ("safetensors file of %d tensors"):format(#f)
  end,
})

-- For C, a string ends at its first zero byte, and the rest would be ignored.
local function text_check(s, what)
  if type(s) ~= "string" or s:find("%z") then
    error(("%s is %s, expected a string without zero bytes"):format(what, pgee.describe(s)))
  end
end

--- Opens the file at `path`. An error says what is missing or malformed, or which other kind of file it is. With
-- { copy = true } the whole file is read into memory, so that later changes to the file have no effect.
function M.open(path, opts)
  text_check(path, "path")
  opts = options.check(opts, { copy = true }, "safetensors")
  local open = options.boolean(opts.copy, "safetensors: copy") and C.pgee_safetensors_read or C.pgee_safetensors_open
  if open(out, path) ~= 0 then
    local message = ffi.string(C.pgee_message())
    pgee.error(message .. foreign.hint(path, message))
  end
  return class.wrap(out[0])
end

-- The keys of a table, sorted. They must be texts. For errors, what: the name of the table; of: the name of a key.
local function sorted(t, what, of)
  if type(t) ~= "table" then
    error(("%s is %s, expected a table by name"):format(what, pgee.describe(t)))
  end
  local keys = {}
  for key in pairs(t) do
    text_check(key, of)
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

--- Writes a file. tensors: { name = tensor }; metadata: { key = text }, or nil. The file appears as a whole or not at all. It has
-- checksums. Equal tensors and metadata give equal bytes. See pgee_safetensors_write in perigee.h.
function M.write(path, tensors, metadata)
  text_check(path, "path")
  local names = sorted(tensors, "tensors", "a tensor's name")
  local keys = sorted(metadata == nil and {} or metadata, "metadata", "a key of the metadata")
  local list, handles = ffi.new("const char *[?]", #names + 1), ffi.new("const pgee_tensor *[?]", #names + 1)
  for i, name in ipairs(names) do
    list[i - 1], handles[i - 1] = name, tensor.handle(tensors[name], ("tensor '%s'"):format(name))
  end
  local pairs_of = ffi.new("const char *[?]", 2 * #keys + 1)
  for i, key in ipairs(keys) do
    text_check(metadata[key], ("metadata '%s'"):format(key))
    pairs_of[2 * i - 2], pairs_of[2 * i - 1] = key, metadata[key]
  end
  pgee.hold(list, names, tensors)
  pgee.hold(pairs_of, keys, metadata)
  check(C.pgee_safetensors_write(path, list, handles, #names, pairs_of, #keys))
end

--- Whether x is a safetensors file.
function M.is(x)
  return class.is(x)
end

--- The names of the file's tensors, in the order of the header.
function methods.names(f)
  local h, names = class.handle(f), {}
  for i = 1, tonumber(C.pgee_safetensors_count(h)) do
    names[i] = ffi.string(C.pgee_safetensors_name(h, i - 1))
  end
  return names
end

--- The tensor of that name, a view that can only be read (its :copy() can be written). A tensor without dimensions becomes a
-- vector of one element. It is an error if the file has no such tensor, if the tensor has more than four dimensions, or a type
-- that Perigee does not have (F8_E4M3, U16, ...).
function methods.tensor(f, name)
  text_check(name, "name")
  check(C.pgee_safetensors_tensor(out_tensor, class.handle(f), name))
  return tensor.wrap(out_tensor[0])
end

--- The string under a key of __metadata__, or nil.
function methods.metadata(f, key)
  text_check(key, "key")
  local value = C.pgee_safetensors_metadata(class.handle(f), key)
  return value ~= nil and ffi.string(value) or nil
end

--- The size of the file in bytes.
function methods.bytes(f)
  return tonumber(C.pgee_safetensors_bytes(class.handle(f)))
end

--- Checks the checksums of a file that safetensors.write made: of the header, and of each tensor of at most `bytes` bytes
-- (default: of each tensor). An error names what is damaged.
function methods.verify(f, bytes)
  local h = class.handle(f)
  options.integer(bytes, 0, 2 ^ 53, "verify: bytes")
  check(C.pgee_safetensors_verify(h, bytes or -1))
end

--- The checksum (CRC-32, a number) that the file has of a tensor; without a name, of its header.
function methods.checksum(f, name)
  if name ~= nil then
    text_check(name, "name")
  end
  check(C.pgee_safetensors_checksum(class.handle(f), name, out_sum))
  return tonumber(out_sum[0])
end

--- Closes the file at once. Every later use of f is an error.
function methods.close(f)
  class.release(f)
end

return M
