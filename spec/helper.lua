--- What every run of the specs begins with: which library is loaded, by perigee.ffi and by spec/support/native.lua alike.
--
-- Specs run from the top folder. The library is PERIGEE_LIB if set, else build/libperigee_spec.so: the objects of libperigee.so
-- and those of spec/support, so that one copy of the engine's state serves both.
local ffi = require "ffi"

if not os.getenv "PERIGEE_LIB" then
  ffi.cdef "int setenv(const char *name, const char *value, int overwrite); char *getcwd(char *buffer, size_t bytes);"
  local here = ffi.string(ffi.C.getcwd(ffi.new("char[4096]"), 4096))
  ffi.C.setenv("PERIGEE_LIB", here .. "/build/libperigee_spec.so", 1)
end

require "perigee.ffi"
