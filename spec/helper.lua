--- What every run of the specs begins with: which library is loaded, by perigee.ffi and by spec/support/native.lua alike.
--
-- Specs run from the top folder. The library is PERIGEE_LIB if set, else build/libperigee_spec.so: the objects of libperigee.so
-- and those of spec/, so that one copy of the engine's state serves both.
--
-- What the specs select stays out of the user's cache.
local ffi = require "ffi"

pcall(ffi.cdef, "int setenv(const char *name, const char *value, int overwrite); char *getcwd(char *buffer, size_t bytes);")
local here = ffi.string(ffi.C.getcwd(ffi.new("char[4096]"), 4096))
ffi.C.setenv("PERIGEE_LIB", here .. "/build/libperigee_spec.so", 0)
ffi.C.setenv("PERIGEE_CACHE", here .. "/build/cache", 0)
ffi.C.setenv("LC_ALL", "C.UTF-8", 1) -- what is written for people depends on it: … or ...

require "perigee.ffi"

local collect = os.getenv "PERIGEE_COLLECT" or ""
if collect ~= "" and package.loaded.busted then -- not in programs that specs start
  require("spec.support.collect").start(collect)
end
