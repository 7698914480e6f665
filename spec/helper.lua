--- busted runs this file before all specs. It chooses the library that perigee.ffi and spec/support/native.lua load.
--
-- Specs run from the top folder. The library is PERIGEE_LIB if it is set, else build/libperigee_spec.so. It has the objects of
-- libperigee.so and those of spec/, so that both use one copy of the engine's state.
--
-- Kernels that specs select are kept in build/cache, not in the user's cache.
local ffi = require "ffi"

pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); char *getcwd(char *buffer, size_t bytes);")
local here = ffi.string(ffi.C.getcwd(ffi.new("char[4096]"), 4096))
ffi.C.setenv("PERIGEE_LIB", here .. "/build/libperigee_spec.so", 0)
ffi.C.setenv("PERIGEE_CACHE", here .. "/build/cache", 0)
ffi.C.setenv("LC_ALL", "C.UTF-8", 1) -- printed text depends on the locale: it has … or ...

require "perigee.ffi"

local collect = os.getenv "PERIGEE_COLLECT" or ""
if collect ~= "" and package.loaded.busted then -- programs that specs start have no busted
  require("spec.support.collect").start(collect)
end
