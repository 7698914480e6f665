--- Speed of the kernels of every ISA that runs here, on the shapes of BERT-large, BERT-base (DistilBERT's, too) and MiniLM.
--
--   make bench-kernels                        all; prints how the figures compare with those of the run before
--   taskset -c 1 luajit spec/bench/kernels.lua [--isa NAME] [--only WORDS] [--save FILE]
--
-- GOPS are billions of operations per second; a multiply-add counts as two. "of peak" is relative to the speed of the multiplying
-- instruction on registers alone, measured at the same time. The weights of BERT's shapes are read from memory, those of MiniLM's
-- from 10 MB, as in a model. Kernels without multiply-adds have core cycles for an element. FILE (build/bench/kernels.json) keeps
-- the figures for the comparison with the next run.
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local argparse = require "argparse"
local ffi = require "ffi"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local text_table = require "perigee.show.table"
local kernels = require "spec.support.kernels"
local native = require("spec.support.native").cdef [[
  double spec_bench_gigahertz(void);
  double spec_bench_gemm_u8s8(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries);
  double spec_bench_gemm_f32(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries);
  double spec_bench_gemm_bf16(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries);
  double spec_bench_epilogue(int isa, int integer, int activation, int per_row, int quantized, int64_t K, int tries);
  double spec_bench_rows(int isa, const char *op, int64_t width, int mode, int tries);
  double spec_bench_attention_f32(int isa, int64_t S, int64_t D, int64_t heads, int tries);
  double spec_bench_attention_u8s8(int isa, int64_t S, int64_t D, int64_t heads, int tries);
]]
local C, check = pgee.C, pgee.check

local parser = argparse("spec/bench/kernels.lua", "Measures the kernels.")
parser:option("--isa", "One ISA alone; ref and amx-model run only when named")
parser:option("--only", "Only what has these words in its name, such as 'gemm_u8s8 1024'")
parser:option("--save", "Where the figures of the run before are, and these are put")
local args = parser:parse()

---- Kernels to measure ------------------------------------------------------------------------------------------------

local MODELS = {
  { "large", { { 3072, 1024 }, { 1024, 1024 }, { 4096, 1024 }, { 1024, 4096 } }, 256 },
  { "base", { { 2304, 768 }, { 768, 768 }, { 3072, 768 }, { 768, 3072 } }, 256 },
  { "minilm", { { 1152, 384 }, { 384, 384 }, { 1536, 384 }, { 384, 1536 } }, 10 },
}
local ROWS = { 1, 4, 16, 128 }
-- Tokens, features of a head, heads.
local ATTENTIONS = { { "large", 128, 64, 16 }, { "large", 384, 64, 16 }, { "minilm", 32, 32, 12 }, { "minilm", 128, 32, 12 } }
-- PGEE_IDENTITY and so on, in order.
local ACTIVATIONS = { "none", "GELU", "GELU tanh", "ReLU", "tanh", "quick GELU", "SiLU", "rounded GELU", "rounded GELU tanh" }
-- Whether there are scales per row, and whether the result is quantized.
local EPILOGUES = { { "to float", 0, 0 }, { "to u8", 0, 1 }, { "per row to float", 1, 0 } }
-- Modes of operators: pgee_pool's, and QUANTIZE_* of kernels/arguments.h.
local POOLS = { { " mean", C.PGEE_POOL_MEAN }, { " max", C.PGEE_POOL_MAX } }
local QUANTIZERS = { { " static", 1 }, { " dynamic", 2 } }
local NORMS = { { "", 0 }, { " static", 1 }, { " dynamic", 2 } }
local ONE = { { "", 0 } }

-- Each calls f(name, run, what): run(isa) gives core cycles; what is { work = multiply-adds, peak = } or { elements = }.
local function each_product(kernel, peak, f)
  for _, model in ipairs(MODELS) do
    local which, shapes, megabytes = unpack(model)
    for _, shape in ipairs(shapes) do
      local N, K = unpack(shape)
      for _, rows in ipairs(ROWS) do
        f(("%s %s N %d K %d, rows %d"):format(kernel, which, N, K, rows), function(isa)
          return native["spec_bench_" .. kernel](isa, rows, K, N / 64, megabytes, rows > 16 and 20 or 100)
        end, { work = rows * N * K, peak = peak })
      end
    end
  end
end

local function each_attention(kernel, peak, f)
  for _, shape in ipairs(ATTENTIONS) do
    local which, S, D, heads = unpack(shape)
    f(("%s %s S %d D %d"):format(kernel, which, S, D), function(isa)
      return native["spec_bench_" .. kernel](isa, S, D, heads, 30)
    end, { work = 2 * S * S * D, peak = peak })
  end
end

local function each_epilogue(kernel, integer, K, f)
  for i, activation in ipairs(ACTIVATIONS) do
    for _, case in ipairs(EPILOGUES) do
      if integer == 1 or case[2] == 0 then -- FP32 sums have no scales
        f(("%s %s, activation %s"):format(kernel, case[1], activation), function(isa)
          return native.spec_bench_epilogue(isa, integer, i - 1, case[2], case[3], K, 200)
        end, { elements = 6 * 64 })
      end
    end
  end
end

local function each_row_operator(kernel, modes, f)
  for _, mode in ipairs(modes) do
    for _, width in ipairs { 384, 768, 1024 } do
      f(("%s%s, width %d"):format(kernel, mode[1], width), function(isa)
        return native.spec_bench_rows(isa, kernel, width, mode[2], 200)
      end, { elements = width })
    end
  end
end

-- What is measured for each operator of kernels/list.h. gemm_u8s8_overlapped: what the epilogue adds to the product.
local function part_of_product() end
local MEASUREMENTS = {
  gemm_u8s8 = function(f) each_product("gemm_u8s8", "int8", f) end,
  gemm_f32 = function(f) each_product("gemm_f32", "f32", f) end,
  gemm_bf16 = function(f) each_product("gemm_bf16", "f32", f) end, -- the peak is that of fma, not that of tdpbf16ps
  round_bf16 = function(f) each_row_operator("round_bf16", ONE, f) end,
  attention_u8s8 = function(f) each_attention("attention_u8s8", "int8", f) end,
  attention_f32 = function(f) each_attention("attention_f32", "f32", f) end,
  epilogue_s32 = function(f) each_epilogue("epilogue_s32", 1, 0, f) end,
  epilogue_f32 = function(f) each_epilogue("epilogue_f32", 0, 0, f) end,
  gemm_u8s8_overlapped = function(f) each_epilogue("gemm_u8s8_overlapped", 1, 384, f) end,
  prepare_panel = part_of_product, configure_tiles = part_of_product, release_tiles = part_of_product,
  flush_tiles = part_of_product,
  norm = function(f) each_row_operator("norm", NORMS, f) end,
  quantize = function(f) each_row_operator("quantize", QUANTIZERS, f) end,
  range = function(f) each_row_operator("range", ONE, f) end,
  embed = function(f) each_row_operator("embed", ONE, f) end,
  pool = function(f) each_row_operator("pool", POOLS, f) end,
  unit = function(f) each_row_operator("unit", ONE, f) end,
  minmax = function(f) each_row_operator("minmax", ONE, f) end,
}

-- Calls f(name, run, what) for everything that is measured of an ISA's kernels.
local function each(isa, f)
  for _, operator in ipairs(kernels.operators(isa)) do
    local measurement = MEASUREMENTS[operator]
      or error(("kernels/list.h has the operator %s, MEASUREMENTS of spec/bench/kernels.lua has not"):format(operator), 0)
    measurement(f)
  end
end

local function wanted(name)
  for word in (args.only or ""):gmatch "%S+" do
    if not name:find(word, 1, true) then
      return false
    end
  end
  return true
end

---- Measuring ---------------------------------------------------------------------------------------------------------

local rate = ffi.new "double[1]"
local PEAKS = { int8 = C.PGEE_PEAK_INT8, f32 = C.PGEE_PEAK_F32 }

local function peak_now(what)
  check(C.pgee_cpu_peak(PEAKS[what], 30, rate))
  return rate[0] / 1e9
end

-- { gops =, share = } or { cycles = } of one kernel.
local function measure(isa, run, what)
  if what.elements then
    return { cycles = run(isa) / what.elements }
  end
  local before, ghz = peak_now(what.peak), native.spec_bench_gigahertz()
  local gops = 2 * what.work * ghz / run(isa)
  local peak = math.max(before, peak_now(what.peak))
  return { gops = gops, share = peak > 0 and gops / peak or nil }
end

local function measure_isa(isa)
  local list = {}
  each(isa, function(name, run, what)
    if wanted(name) then
      local figure = measure(isa, run, what)
      figure.name = name
      list[#list + 1] = figure
    end
  end)
  return list
end

---- Comparing and printing --------------------------------------------------------------------------------------------

local function read(path)
  return path and json.exists(path) and json.object(path) or {}
end

-- How many times as fast as before, by the share of the peak if there is one: the clock may have changed.
local function gain(now, before)
  if not before then
    return nil
  elseif now.cycles then
    return before.cycles and before.cycles / now.cycles
  end
  return now.share and before.share and now.share / before.share or before.gops and now.gops / before.gops
end

local function print_isa(name, list, before)
  local known, rows = {}, { { name .. " ", "GOPS", "of peak", "cycles", "as before" } }
  for _, figure in ipairs(before or {}) do
    known[figure.name] = figure
  end
  for _, figure in ipairs(list) do
    local times = gain(figure, known[figure.name])
    rows[#rows + 1] = {
      figure.name, figure.gops and ("%.0f"):format(figure.gops) or "",
      figure.share and ("%.1f %%"):format(100 * figure.share) or "", figure.cycles and ("%.2f"):format(figure.cycles) or "",
      times and ("x %.2f%s"):format(times, (times < 0.95 or times > 1.05) and " *" or "") or "",
    }
  end
  print(text_table(rows) .. "\n")
end

-- The figures of before with those that were measured now in their place.
local function merged(before, list)
  local now, all = {}, { unpack(list) }
  for _, figure in ipairs(list) do
    now[figure.name] = true
  end
  for _, figure in ipairs(before or {}) do
    all[#all + 1] = not now[figure.name] and figure or nil
  end
  return all
end

local saved, measured = read(args.save), 0
for isa = 0, C.PGEE_ISAS - 1 do
  local name = ffi.string(C.pgee_isa_name(isa))
  local slow = isa == C.PGEE_REF or isa == C.PGEE_AMX_MODEL
  if C.pgee_isa_runs(isa) == 1 and (args.isa == name or not args.isa and not slow) then
    check(C.pgee_isa_set(isa))
    local key = ffi.string(C.pgee_cpu_name()) .. ", " .. name
    local list = measure_isa(isa)
    print_isa(name, list, saved[key])
    saved[key] = merged(saved[key], list)
    measured = measured + #list
  end
end
if measured == 0 then
  error(("nothing was measured: there is no '%s' here of ISA %s"):format(args.only or "kernel", args.isa or "any"), 0)
end
if args.save then
  system.make_folder(args.save:match "^(.*)/" or ".")
  local file = assert(io.open(args.save, "wb"))
  assert(file:write(json.canonical(saved), "\n"))
  file:close()
end
