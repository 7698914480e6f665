--- Safetensors files, mapped: opening one reads and checks its header, tensors are views of its bytes.
--
--   local safetensors = require "perigee.safetensors"
--   local f = safetensors.open "model.safetensors"
--   for _, name in ipairs(f:names()) do print(name, f:tensor(name).shape[1]) end
--   f:metadata "format"  --> "pt", nil if there is no such key
--   f:close()            -- tensors stay valid: they keep the file mapped
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local C, check = pgee.C, pgee.check

local M = {}
local methods = {}
local out = pgee.out "pgee_safetensors *"
local out_tensor = pgee.out "pgee_tensor *"

local class = pgee.class("safetensors file", "pgee_safetensors", "pgee_safetensors_free", {
  __index = methods,
  __len = function(f) return #f:names() end,
  __tostring = function(f)
    return f.handle == nil and "safetensors file (closed)" or ("safetensors file of %d tensors"):format(#f)
  end,
})

-- C ends a string at its first zero byte: what follows would be ignored.
local function text_check(s, what, level)
  if type(s) ~= "string" or s:find("%z") then
    error(("%s is %s, expected a string without zero bytes"):format(what, pgee.describe(s)), (level or 1) + 2)
  end
end

--- The file at `path`. Errors say what is missing or malformed.
function M.open(path)
  text_check(path, "path")
  check(C.pgee_safetensors_open(out, path))
  return class.wrap(out[0])
end

--- Whether x is a safetensors file.
function M.is(x)
  return class.is(x)
end

--- The names of its tensors, in the header's order.
function methods.names(f)
  local h, names = class.handle(f), {}
  for i = 1, tonumber(C.pgee_safetensors_count(h)) do
    names[i] = ffi.string(C.pgee_safetensors_name(h, i - 1))
  end
  return names
end

--- The tensor of that name, a view that can only be read (its :copy() can be written). A single number is a vector of one.
-- Errors for another name, for more than four dimensions, and for types that only the format knows (F8_E4M3, U16, ...).
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

--- Closes it at once. What is done with f afterwards is an error.
function methods.close(f)
  if not class.is(f) then
    error("file is " .. pgee.describe(f) .. ", expected a safetensors file", 2)
  end
  class.release(f)
end

return M
