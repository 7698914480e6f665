--- Measures the time of a phase and of a barrier of the team of threads, for engine/README.md.
--
--   make speclib && luajit spec/bench/barriers.lua
package.path = "lua/?.lua;./?.lua;" .. package.path
require "spec.helper"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = require("spec.support.native").cdef "double spec_barrier_seconds(int threads); double spec_phase_seconds(int threads);"

print(ffi.string(pgee.C.pgee_cpu_name()))
for _, threads in ipairs { 1, 2, 3, 7 } do
  pgee.C.pgee_threads_set(threads)
  print(("%d threads: %6.2f us a phase that does nothing, %6.2f us a barrier"):format(threads,
    C.spec_phase_seconds(threads) * 1e6, C.spec_barrier_seconds(threads) * 1e6))
end
