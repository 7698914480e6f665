--- The internal C functions that specs call: the C files of spec/, which are part of build/libperigee_spec.so.
--
--   local C = require("spec.support.native").cdef [[ int spec_share(int64_t n, int threads, int thread); ]]
--
-- cdef declares the text and returns the library's namespace. Several files may declare the same text. The text may use the types
-- of perigee.h.
local ffi = require "ffi"
require "perigee.ffi"

-- LuaJIT keeps declarations for the life of the process, even if busted unloads modules. Therefore the list of
-- declared texts is in the registry.
local registry = debug.getregistry()
registry.perigee_native = registry.perigee_native or {}
local declared = registry.perigee_native

local native = { lib = ffi.load(os.getenv "PERIGEE_LIB") }

function native.cdef(text)
  if not declared[text] then
    ffi.cdef(text)
    declared[text] = true
  end
  return native.lib
end

return native
