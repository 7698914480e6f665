--- Core cycles of the float kernels.
--
--   taskset -c 1 luajit spec/support/bench_float.lua [isa...]
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  double spec_bench_gemm_f32(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries);
  double spec_bench_epilogue(int isa, int integer, int activation, int per_row, int quantized, int tries);
  double spec_bench_rows(int isa, int normed, int64_t width, int mode, int tries);
  double spec_bench_attention(int isa, int64_t S, int64_t D, int64_t heads, int tries);
  double spec_bench_attention_u8s8(int isa, int64_t S, int64_t D, int64_t heads, int tries);
]]

local wanted = #arg > 0 and arg or { "avx2", "avx512vnni" }
--- Multiply-adds a cycle: two FMA pipes.
local LANES = { avx2 = 16, avxvnni = 16, avx512vnni = 32, amx = 32 }
--- u8 by s8: two vpdpbusd a cycle, or two vpmaddwd.
local INT8_LANES = { avx2 = 32, avxvnni = 64, avx512vnni = 128, amx = 128 }

--- Rows, K, panels, megabytes of weights to go through (0: the same ones each time).
local SHAPES = { { 6, 64, 1, 0 }, { 32, 384, 6, 0 }, { 126, 1024, 16, 0 }, { 32, 384, 6, 128 }, { 128, 1024, 4, 128 } }

local function isa_of(name)
  for isa = 0, C.PGEE_ISAS - 1 do
    if ffi.string(C.pgee_isa_name(isa)) == name then
      return C.pgee_isa_runs(isa) == 1 and isa
    end
  end
end

local function line(format, ...)
  print("  " .. format:format(...))
end

for _, name in ipairs(wanted) do
  local isa, lanes = isa_of(name), LANES[name] or 1
  if isa then
    print(name)
    for _, shape in ipairs(SHAPES) do
      local rows, K, panels, megabytes = unpack(shape)
      local share = rows * panels * 64 * K / lanes / C.spec_bench_gemm_f32(isa, rows, K, panels, megabytes, 60)
      local from = megabytes > 0 and ", weights from memory" or ""
      line("gemm_f32 %d x %d x %d%s: %.1f %% of %d multiply-adds a cycle", rows, panels * 64, K, from, 100 * share, lanes)
    end
    for i, activation in ipairs { "none", "GELU", "GELU tanh", "ReLU", "tanh" } do
      local function tile(integer, per_row, quantized)
        return C.spec_bench_epilogue(isa, integer, i - 1, per_row, quantized, 200)
      end
      line("epilogue of 6 x 64, activation %s: s32 to float %.0f cycles, s32 to u8 %.0f, s32 per row to float %.0f, float %.0f",
        activation, tile(1, 0, 0), tile(1, 0, 1), tile(1, 1, 0), tile(0, 0, 0))
    end
    for _, width in ipairs { 384, 1024 } do
      local function rows(normed, mode)
        return C.spec_bench_rows(isa, normed, width, mode, 200) / width
      end
      line("width %d, cycles an element: norm %.2f, norm and static %.2f, norm and dynamic %.2f, static %.2f, dynamic %.2f",
        width, rows(1, 0), rows(1, 1), rows(1, 2), rows(0, 1), rows(0, 2))
    end
    for _, shape in ipairs { { 32, 32, 12 }, { 128, 64, 16 }, { 384, 64, 16 } } do
      local S, D, heads = unpack(shape)
      local cycles = C.spec_bench_attention(isa, S, D, heads, 60)
      local times = cycles * lanes / (2 * S * S * D)
      line("attention S %d D %d: %.0f cycles a head, %.2f times its multiply-adds", S, D, cycles, times)
      local int8 = C.spec_bench_attention_u8s8(isa, S, D, heads, 60)
      line("  in INT8: %.0f cycles, %.2f times its multiply-adds, %.2f times as fast", int8,
        int8 * (INT8_LANES[name] or 1) / (2 * S * S * D), cycles / int8)
    end
  end
end
