--- Predicts the speed of AMX on the linears and the INT8 attention of known encoders by counting instructions, and measures the
-- real speed.
--
--   make model-amx
--   taskset -c 1 luajit spec/bench/amx_model.lua [--tokens N]
--
-- The portable model of the tile instructions runs each operator once, with one thread, and counts. These costs, measured on
-- Granite Rapids, turn the counts into cycles. Those of instructions hold for data in the first-level cache.
local CYCLES = {
  product = 16, -- tdpbusd; tdpbf16ps is assumed to take as long
  load = 8, -- tileloadd
  store = 16, -- tilestored
  configuration = 200, -- ldtilecfg, during which nothing else runs
  l2_bytes = 45, -- that the second-level cache delivers in one cycle
  l3_bytes = 7.5, -- that the third-level cache delivers in one cycle
}
-- Float multiplications, conversions, comparisons and shifts for 16 results: the core does one a cycle while products run, and
-- two a cycle otherwise.
local VECTOR = { f32 = 2, u8 = 5, gelu = 11, probability = 9, rounding = 7 }
-- The model: an operator takes the time of the slowest of these, because all of them overlap: products, loads, stores, bytes
-- from the caches, and the vector instructions. The time of configurations, and of the epilogue of the operator's last tile, is
-- added. Attention runs its parts one after another. Therefore the time of its vector instructions is added, too.
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local argparse = require "argparse"
local ffi = require "ffi"
local bench = require "perigee.bench"
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local text_table = require "perigee.show.table"
local tensor = require "perigee.tensor"
local engine = require "spec.support.engine"
local native = require("spec.support.native").cdef [[
  typedef struct model_counts { int64_t configurations, zeros, loads, products, stores, releases; } model_counts;
  void spec_tile_count_from_zero(void);
  model_counts spec_tile_counted(void);
  double spec_bench_gigahertz(void);
  double spec_bench_attention_u8s8(int isa, int64_t S, int64_t D, int64_t heads, int tries);
]]
local C, check = pgee.C, pgee.check

local parser = argparse("spec/bench/amx_model.lua", "Counts what AMX does, and compares with what it takes.")
parser:option("--tokens", "Rows of the linears, tokens of the attention"):convert(tonumber):default "128"
local args = parser:parse()

-- For each model: N, K, the type or activation of the results, and the number of rows if it is not --tokens, for each linear of a
-- layer; then the number of features of a head. bf16: BF16 weights, whose results are floats.
local MODELS = {
  { "MiniLM", { { 1152, 384, "u8" }, { 384, 384, "f32" }, { 1536, 384, "gelu" }, { 384, 1536, "f32" } }, 32 },
  -- With floats = "bf16": linears that settings skip, and the decoder of fill_mask for four masks.
  { "MiniLM BF16", { { 384, 384, "bf16" }, { 1536, 384, "bf16" }, { 384, 1536, "bf16" }, { 30522, 384, "bf16", 4 } } },
  { "BERT-large BF16", { { 1024, 1024, "bf16" }, { 4096, 1024, "bf16" }, { 1024, 4096, "bf16" }, { 30522, 1024, "bf16", 4 } } },
  { "DistilBERT", { { 2304, 768, "u8" }, { 768, 768, "f32" }, { 3072, 768, "gelu" }, { 768, 3072, "f32" } }, 64 },
  { "BERT-large", { { 3072, 1024, "u8" }, { 1024, 1024, "f32" }, { 4096, 1024, "gelu" }, { 1024, 4096, "f32" } }, 64 },
  { "ModernBERT", { { 2304, 768, "u8" }, { 768, 768, "f32" }, { 2304, 768, "f32" }, { 768, 1152, "f32" } }, 64 },
}
local HEADS = 4 -- that lie side by side in the attention's rows
local FMA = 32 -- FP32 fma in a cycle: two registers of 16
local PANEL, TILE, GROUP_BYTES, MAX_GROUP, SPAN, KEPT = 64, 32, 512 * 1024, 8, 1024, 2^20

---- Counting ----------------------------------------------------------------------------------------------------------

-- f() on the model: its counts as numbers.
local function counted(f)
  return engine.with_isa(C.PGEE_AMX_MODEL, function()
    return engine.with_threads(1, function()
      native.spec_tile_count_from_zero()
      f()
      local n, counts = native.spec_tile_counted(), {}
      for _, name in ipairs { "configurations", "loads", "products", "stores" } do
        counts[name] = tonumber(n[name])
      end
      return counts
    end)
  end)
end

-- Bytes of a linear from the second-level cache: a panel for each tile of rows; the rows for each group of panels, or for each
-- panel if they do not fit the first-level cache.
local function l2_bytes(rows, N, K)
  local panels, group = math.ceil(N / PANEL), 1
  if rows > TILE then
    group = math.max(1, math.min(MAX_GROUP, math.floor(GROUP_BYTES / (K * PANEL))))
  end
  return math.ceil(rows / TILE) * N * K + rows * K * (K > SPAN and panels or math.ceil(panels / group))
end

local function tile_cycles(n, bytes)
  return math.max(CYCLES.product * n.products, CYCLES.load * n.loads, CYCLES.store * n.stores, bytes / CYCLES.l2_bytes)
end

-- Cycles to read the weights, if the second-level cache cannot keep them until the next run.
local function l3_cycles(N, K)
  return N * K > KEPT and N * K / CYCLES.l3_bytes or 0
end

---- Operators ---------------------------------------------------------------------------------------------------------

local function linear(rows, N, K, kind)
  local x, w = tensor.new("U8", { rows, K }), packed.new(engine.matrix(N, K, 1))
  local bytes, stride = x:pointer()
  ffi.fill(bytes, rows * stride, 0x55)
  local y, given = tensor.new(kind == "f32" and "F32" or "U8", { rows, N }), { x = x, w = w, scale = w.scales, zero = 128 }
  if kind == "f32" then
    given.y = y
  else
    given.activation = kind == "gelu" and "gelu_rounded" or "identity"
    given.quantize = { mode = "static", q = y, m = engine.vector(N, 2), zero = 100 }
  end
  local code, struct = operator.args("linear", given)
  local function run()
    check(C.pgee_run(code, struct, nil))
  end
  local n, vector = counted(run), VECTOR[kind] * rows * N / 16
  local last = VECTOR[kind] * math.min(rows, TILE) * PANEL / 16 / 2
  return {
    name = ("linear K %d, N %d, %s"):format(K, N, kind), counts = n, run = run,
    cycles = math.max(tile_cycles(n, l2_bytes(rows, N, K)), vector, l3_cycles(N, K))
      + CYCLES.configuration * n.configurations + last,
  }
end

-- A linear with BF16 weights. Rows are rounded first, and each tile's epilogue runs after its product. So all times are added.
-- Weights of more than a megabyte come from the third-level cache.
local function bf16_linear(rows, N, K)
  local x, y = engine.matrix(rows, K, 2), tensor.new("F32", { rows, N })
  local w = packed.new(engine.matrix(N, K, 1), { dtype = "bf16" })
  local code, struct = operator.args("linear", { x = x, w = w, y = y })
  local function run()
    check(C.pgee_run(code, struct, nil))
  end
  local n, tiles = counted(run), math.ceil(rows / TILE)
  local groups = math.ceil(N / PANEL / math.max(1, math.floor(GROUP_BYTES / (2 * K * PANEL))))
  local bytes = 2 * (tiles * N * K + rows * K * groups)
  local vector = (VECTOR.f32 * rows * N + VECTOR.rounding * rows * K) / 16 / 2
  return {
    name = ("linear K %d, N %d, bf16, rows %d"):format(K, N, rows), counts = n, run = run,
    cycles = math.max(tile_cycles(n, bytes), l3_cycles(N, 2 * K)) + vector + CYCLES.configuration * n.configurations,
    fma = math.max(rows * N * K / FMA, l3_cycles(N, 4 * K)), -- cycles of FP32 at its peak, or to read its weights
  }
end

local function attention(S, D)
  local function cycles(isa, tries)
    return native.spec_bench_attention_u8s8(isa, S, D, HEADS, tries)
  end
  local n = counted(function() cycles(C.PGEE_AMX_MODEL, 0) end)
  return {
    name = ("attention S %d, D %d"):format(S, D), counts = n,
    run = function() cycles(C.PGEE_AMX, 0) end, cycles = tile_cycles(n, 0) + VECTOR.probability * S * S / 16 / 2
      + CYCLES.configuration * n.configurations,
    measure = function() return cycles(C.PGEE_AMX, 50) / native.spec_bench_gigahertz() / 1e9 end,
  }
end

---- Measuring and printing --------------------------------------------------------------------------------------------

local rate = ffi.new "double[1]"

-- Seconds of one product, on registers alone.
local function product_seconds()
  check(C.pgee_cpu_peak(C.PGEE_PEAK_INT8, 30, rate))
  return 2 * 16 * 16 * 64 / rate[0]
end

-- The share of the peak that an operator reaches: the seconds that its products take alone, of those it takes.
local function measured(op)
  return engine.with_isa(C.PGEE_AMX, function()
    return engine.with_threads(1, function()
      local product = product_seconds()
      local seconds = op.measure and op.measure() or bench.time({ op.run }, { rounds = 30, seconds = 0.05 })[1].min
      return op.counts.products * math.min(product, product_seconds()) / seconds
    end)
  end)
end

local function percent(share)
  return ("%.0f %%"):format(100 * share)
end

local here = C.pgee_isa_runs(C.PGEE_AMX) == 1
local rows = {
  { "model", "operator ", "products", "loads", "stores", "configurations", "cycles", "of peak", "measured", "FP32 / this" },
}
for _, model in ipairs(MODELS) do
  local operators = {}
  for i, shape in ipairs(model[2]) do
    local N, K, kind, some = unpack(shape)
    operators[i] = kind == "bf16" and bf16_linear(some or args.tokens, N, K) or linear(args.tokens, N, K, kind)
  end
  operators[#operators + 1] = model[3] and attention(args.tokens, model[3]) or nil
  for _, op in ipairs(operators) do
    local n = op.counts
    rows[#rows + 1] = {
      model[1], op.name, ("%d"):format(n.products), ("%d"):format(n.loads), ("%d"):format(n.stores),
      ("%d"):format(n.configurations), ("%.0f"):format(op.cycles), percent(CYCLES.product * n.products / op.cycles),
      here and percent(measured(op)) or "no AMX", op.fma and ("%.1f"):format(op.fma / op.cycles) or "",
    }
  end
end
print(text_table(rows))
