--- Speed of the gemm_u8s8 kernels: giga-operations a second and the share of what the multiplying instruction alone can do.
--
--   taskset -c 1 luajit spec/support/bench_gemm_u8s8.lua [isa...]
--
-- "warm": the weights were just used; "cold": they come from memory, as in a model larger than the cache.
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  double spec_peak_u8s8(int isa, int tries);
  double spec_bench_u8s8(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries);
]]

local wanted = {}
for i = 1, #arg do
  wanted[arg[i]] = true
end

local ROWS = { 1, 2, 4, 6, 7, 12, 16, 32, 128 }
for isa = 0, C.PGEE_ISAS - 1 do
  local name = ffi.string(C.pgee_isa_name(isa))
  if C.pgee_isa_runs(isa) == 1 and (wanted[name] or not next(wanted) and C.spec_peak_u8s8(isa, 1) > 0) then
    local peak = C.spec_peak_u8s8(isa, 60)
    print(("%s, peak %.0f GOPS; rows %s"):format(name, peak, table.concat(ROWS, " ")))
    for _, cold in ipairs { 0, 256 } do
      for _, K in ipairs { 384, 1024, 1536, 4096 } do
        local line = { ("  %s K %-4d"):format(cold > 0 and "cold" or "warm", K) }
        for _, rows in ipairs(ROWS) do
          local now = C.spec_peak_u8s8(isa, 10)
          local gops = C.spec_bench_u8s8(isa, rows, K, 16, cold, rows > 32 and 10 or 20)
          table.insert(line, ("%5.0f %3.0f%%"):format(gops, now > 0 and 100 * gops / now or 0))
        end
        print(table.concat(line, " "))
      end
    end
  end
end
