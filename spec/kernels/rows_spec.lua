-- The row operators and tile epilogues: every ISA gives the reference's bits, the reference is close to plain loops in double,
-- and what a kernel does with zeros, denormals, infinities and NaN is what kernels/ARITHMETIC.md says.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local skip = require "spec.support.skip"
local C = require("spec.support.native").cdef [[
  typedef struct rows_case {
    int op, fill;
    int rows, width, first;
    int activation;
    int residual, y, mode;
    int symmetric, multiplied, ranged, per_row;
    uint32_t seed;
    int step;
    int in_place;
    int shifted;
    int overlapped;
  } rows_case;
  int spec_rows_equal(int isa, const rows_case *c, int corrupt, char *why, int64_t bytes);
  uint64_t spec_rows_digest(int isa, const rows_case *c, uint64_t h);
  void spec_rows_error(const rows_case *c, double *y, double *q);
  float spec_exp(float x);
  float spec_activate(int isa, float x, int activation);
  double spec_error_in_u8(int isa, int activation, float limit, float step);
  int spec_activate_u8(int isa, float x, int activation);
  double spec_function_error(int activation, float limit, uint32_t stride);
  void spec_widen(int isa, int dtype, float *y);
  void spec_widen_s8(int isa, float scale, float *y);
]]

local NAMES = kernels.row_operators()
local number = {} -- of each row operator, as rows_case takes it
for i, name in ipairs(NAMES) do
  number[name] = i - 1
end
local EPILOGUE_S32, EPILOGUE_F32, NORM, QUANTIZE = number.epilogue_s32, number.epilogue_f32, number.norm, number.quantize
local RANGE, EMBED, POOL, UNIT, MINMAX = number.range, number.embed, number.pool, number.unit, number.minmax
local ORDINARY, ZERO, CONSTANT, EXTREME, SPECIAL = 0, 1, 2, 3, 4
local NONE, STATIC, DYNAMIC = 0, 1, 2
local FILLS = { ORDINARY, ZERO, CONSTANT, EXTREME, SPECIAL }
local inf, nan = math.huge, 0 / 0
local HARD = os.getenv "PERIGEE_HARD"

-- ---- Cases ----------------------------------------------------------------------------------------------------------------

--- Each field of `choices` is a value or a list of values: calls f with every combination, a table.
local function each(choices, f)
  local names = {}
  for name in pairs(choices) do
    names[#names + 1] = name
  end
  table.sort(names)
  local case = {}
  local function choose(i)
    local name = names[i]
    if not name then
      return f(case)
    end
    local values = type(choices[name]) == "table" and choices[name] or { choices[name] }
    for _, value in ipairs(values) do
      case[name] = value
      choose(i + 1)
    end
  end
  choose(1)
end

--- Every variant of every operator, at the widths and fills given; more fields may be given too.
local function variants(more, f)
  local function with(choices)
    for name, value in pairs(more) do
      choices[name] = choices[name] == nil and value or choices[name]
    end
    each(choices, f)
  end
  local B = { 0, 1 }
  with { op = EPILOGUE_S32, activation = { 0, 1, 2, 3, 4, 5, 6 }, residual = B, y = 1, mode = { NONE, STATIC }, per_row = B }
  with { op = EPILOGUE_S32, activation = { 0, 7 }, residual = 0, y = 0, mode = STATIC, per_row = B }
  with { op = EPILOGUE_S32, activation = { 7, 8 }, residual = 0, y = 1, mode = NONE, per_row = B }
  with { op = EPILOGUE_F32, activation = { 0, 1, 2, 3, 4, 5, 6 }, residual = B, y = 1, mode = { NONE, STATIC } }
  with { op = EPILOGUE_F32, activation = { 0, 8 }, residual = 0, y = 0, mode = STATIC }
  with { op = EPILOGUE_S32, activation = { 0, 1, 7 }, residual = B, y = B, mode = STATIC, shifted = 1 }
  with { op = EPILOGUE_F32, activation = { 0, 1 }, residual = B, y = B, mode = STATIC, shifted = 1 }
  if not more.tiles then
    with { op = NORM, residual = B, y = 1, mode = { NONE, STATIC } }
    with { op = NORM, residual = B, y = 0, mode = STATIC }
    with { op = { NORM, QUANTIZE }, residual = B, y = B, mode = STATIC, shifted = 1 }
    with { op = NORM, residual = B, y = B, mode = DYNAMIC, symmetric = B, multiplied = B }
    with { op = QUANTIZE, mode = STATIC }
    with { op = QUANTIZE, mode = DYNAMIC, symmetric = B, multiplied = B, ranged = B }
    with { op = RANGE, multiplied = B }
    with { op = POOL, activation = { 0, 1, 2, 3, 4, 5 } }
    with { op = { UNIT, MINMAX } }
    with { op = EMBED, activation = { C.PGEE_F32, C.PGEE_F16, C.PGEE_BF16, C.PGEE_S8 }, residual = B, multiplied = B }
  end
end

local why = ffi.new "char[256]"

local function describe_case(case)
  local words = {}
  for name, value in pairs(case) do
    if name ~= "tiles" then
      words[#words + 1] = name .. " " .. tostring(value)
    end
  end
  table.sort(words)
  return table.concat(words, ", ")
end

local struct = ffi.new "rows_case"

--- The table as a C struct; what is not given is 0.
local function lower(case)
  ffi.fill(struct, ffi.sizeof(struct))
  struct.rows = 1
  for name, value in pairs(case) do
    if name ~= "tiles" then
      struct[name] = value
    end
  end
  struct.seed = 17 * struct.width + struct.op + 1
  return struct
end

local function equal(isa, case, corrupt)
  local ok = C.spec_rows_equal(isa, lower(case), corrupt and 1 or 0, why, 256) == 1
  return ok, not ok and describe_case(case) .. ": " .. ffi.string(why)
end

local NARROW, WIDE = {}, { 97, 131, 384, 1024 }
for width = 1, 80 do
  if not HARD or width <= 18 or (width + 2) % 16 <= 4 then -- sanitizers are slow: widths near a multiple of 16 lanes are enough
    NARROW[#NARROW + 1] = width
  end
end

-- The operators that `variants` has a case for.
local operators = {}
variants({ rows = 2, width = 64, fill = ORDINARY }, function(case)
  local name = NAMES[case.op + 1]
  if not operators[name] then
    operators[name] = true
    operators[#operators + 1] = name
  end
end)

-- ---- Bits -----------------------------------------------------------------------------------------------------------------

local PIPELINE = { "prepare_panel", "gemm_u8s8_overlapped", "configure_tiles", "release_tiles", "flush_tiles" }

describe("overlapped epilogues", function()
  kernels.each_isa(PIPELINE, function(isa, check)
    check("equal the reference when they overlap with a product, whatever their rows", function()
      local function overlapped(choices)
        choices.op, choices.fill, choices.width, choices.first = EPILOGUE_S32, { ORDINARY, EXTREME }, { 63, 64 }, 64
        choices.y, choices.mode, choices.shifted = { 0, 1 }, { NONE, STATIC }, { 0, 1 }
        each(choices, function(case)
          if case.y + case.mode > 0 and case.shifted <= case.mode then
            assert(equal(isa, case))
          end
        end)
      end
      local amx = isa == C.PGEE_AMX or isa == C.PGEE_AMX_MODEL
      overlapped {
        rows = amx and { 1, 7, 12 } or { 1, 6, 7, 13 }, overlapped = amx and { 15, 32 } or { 4, 5, 6, 7 },
        activation = {
          C.PGEE_IDENTITY, C.PGEE_GELU, C.PGEE_GELU_TANH, C.PGEE_GELU_ROUNDED, C.PGEE_GELU_TANH_ROUNDED, C.PGEE_RELU,
        },
      }
      overlapped { -- 1: a zero point for each row; 2: one for all
        rows = { 1, 6 }, overlapped = amx and { 16, 31 } or { 5, 6 }, per_row = { 1, 2 },
        activation = { C.PGEE_IDENTITY, C.PGEE_GELU, C.PGEE_GELU_ROUNDED, C.PGEE_GELU_TANH_ROUNDED },
      }
      for per_row = 0, 2, 2 do
        local case = { op = EPILOGUE_S32, width = 64, rows = 6, overlapped = 6, mode = STATIC, per_row = per_row }
        assert.is_false((equal(isa, case, true)))
      end
    end)
  end)
end)

describe("row operators", function()
  kernels.each_isa(operators, function(isa, check)
    check("equal the reference at every width", function()
      variants({ rows = 2, width = NARROW, fill = ORDINARY }, function(case)
        if case.op > EPILOGUE_F32 or case.width <= 64 then
          assert(equal(isa, case))
        end
      end)
      variants({ rows = 3, width = WIDE, fill = ORDINARY }, function(case)
        assert(equal(isa, case))
      end)
    end)

    check("equal the reference on zeros, constants, extremes, infinities and NaN", function()
      variants({ rows = { 1, 5 }, width = { 1, 16, 37, 64 }, fill = FILLS }, function(case)
        assert(equal(isa, case))
      end)
    end)

    check("do not depend on how rows and columns are divided", function()
      local tiles = { rows = 7, width = { 50, 64, 200 }, first = { 0, 3 }, fill = ORDINARY, step = { 1, 3 }, tiles = true }
      variants(tiles, function(case)
        assert(equal(isa, case))
      end)
      variants({ rows = 7, width = { 50, 64 }, fill = ORDINARY, step = { 1, 3 } }, function(case)
        assert(equal(isa, case))
      end)
    end)

    check("may write where they read", function()
      local ops = { EPILOGUE_S32, EPILOGUE_F32, NORM }
      local residual = { op = ops, rows = 5, width = { 7, 64 }, residual = 1, y = 1, in_place = 1 }
      each(residual, function(case)
        assert(equal(isa, case))
      end)
      each({ op = { NORM, UNIT }, rows = 5, width = { 7, 64 }, residual = { 0, 1 }, y = 1, in_place = 2 }, function(case)
        assert(equal(isa, case))
      end)
    end)

    check("widen every 16-bit float exactly", function()
      local y = ffi.new "float[65536]"
      local bits = ffi.cast("uint32_t *", y)
      local function expect_bits(dtype, of)
        C.spec_widen(isa, dtype, y)
        for u = 0, 65535 do
          local want = of(u) -- nil is any NaN
          assert(bits[u] == want or not want and bit.band(bits[u], 0x7fffffff) > 0x7f800000, u)
        end
      end
      expect_bits(C.PGEE_BF16, function(u)
        return bit.band(u, 0x7fff) <= 0x7f80 and u * 65536 or nil
      end)
      local float = ffi.new "float[1]"
      expect_bits(C.PGEE_F16, function(u)
        local sign, e, m = u >= 32768 and -1 or 1, bit.band(bit.rshift(u, 10), 31), bit.band(u, 1023)
        if e == 31 then
          return m == 0 and (sign < 0 and 0xff800000 or 0x7f800000) or nil
        end
        float[0] = sign * (e == 0 and m * 2^-24 or (1024 + m) * 2^(e - 25))
        return ffi.cast("uint32_t *", float)[0]
      end)
    end)

    check("widen every byte with its row's scale, rounded once", function()
      local y, float = ffi.new "float[256]", ffi.new "float[1]"
      for _, scale in ipairs { 1, 0.1, 1 / 127, 2 ^ -130, 1e37 } do
        float[0] = scale
        scale = float[0]
        C.spec_widen_s8(isa, scale, y)
        for u = 0, 255 do
          float[0] = (u < 128 and u or u - 256) * scale -- exact in double: 24 bits times 8
          assert(y[u] == float[0], u)
        end
      end
    end)

    check("define activations at the ends", function()
      for activation = C.PGEE_GELU, C.PGEE_GELU_TANH_ROUNDED do
        local function f(x)
          return C.spec_activate(isa, x, activation)
        end
        local tanh = activation == C.PGEE_TANH
        assert(math.abs(f(0)) <= (activation > C.PGEE_SILU and 4e-5 or 0))
        assert.equal(tanh and 1 or inf, f(inf))
        assert.equal(tanh and 1 or 2^127, f(2^127))
        assert(f(nan) ~= f(nan))
        local vanishes = activation <= C.PGEE_TANH or activation > C.PGEE_SILU
        if vanishes then
          assert.equal(tanh and -1 or 0, f(-inf))
          assert.equal(tanh and -1 or 0, f(-2^127))
          for _, x in ipairs { 5.5, 6, 10, 1000 } do
            assert.equal(tanh and f(x) or x, f(x))
            assert.equal(tanh and -f(x) or 0, f(-x))
          end
        else
          assert.equal(60, f(60))
          assert.is_true(math.abs(f(-60)) < 1e-20 and f(-1) < -0.1)
        end
        for x, want in pairs { [inf] = tanh and 101 or 255, [50.3] = tanh and 101 or 150, [0] = 100 } do
          assert.equal(want, C.spec_activate_u8(isa, x, activation))
        end
        if vanishes then
          assert.equal(tanh and 99 or 100, C.spec_activate_u8(isa, -inf, activation))
        end
        assert.equal(0, C.spec_activate_u8(isa, nan, activation))
      end
    end)
  end)

  it("are told apart from a result with one bit changed", function()
    variants({ rows = 2, width = { 5, 64 }, fill = ORDINARY }, function(case)
      assert.is_false((equal(C.PGEE_REF, case, true)))
    end)
  end)

  -- ---- The reference --------------------------------------------------------------------------------------------------------

  it("are close to plain loops in double", function()
    local y, q = ffi.new "double[1]", ffi.new "double[1]"
    local worst_y, worst_q = 0, 0
    variants({ rows = 3, width = { 1, 13, 64, 384, 1024 }, fill = ORDINARY }, function(case)
      local rounded = case.op == EPILOGUE_S32 and case.activation > C.PGEE_SILU
      if case.op ~= EMBED and not (case.op == NORM and case.width == 1) and not rounded then
        C.spec_rows_error(lower(case), y, q)
        assert(y[0] < 2e-6 and q[0] < 0.501, ("%s: y off by %g, q by %g"):format(describe_case(case), y[0], q[0]))
        worst_y, worst_q = math.max(worst_y, y[0]), math.max(worst_q, q[0])
      end
    end)
    assert(worst_y > 0 and worst_q > 0.49)
  end)

  local numbers = HARD and skip "numbers alone, which do not depend on sanitizers" or it
  numbers("hold their functions to the errors that functions.h states", function()
    assert(C.spec_function_error(-1, 88, 1009) <= 0.9)
    assert(C.spec_function_error(C.PGEE_TANH, 100, 1009) <= 1.4)
    assert(C.spec_function_error(C.PGEE_GELU, 1e30, 1009) <= 1.3e-7)
    assert(C.spec_function_error(C.PGEE_GELU_TANH, 1e30, 1009) <= 1.3e-7)
    for activation = C.PGEE_QUICK_GELU, C.PGEE_SILU do
      assert(C.spec_function_error(activation, 1e30, 1009) <= 1.3e-7, tostring(C.spec_function_error(activation, 1e30, 1009)))
    end
    assert(C.spec_function_error(C.PGEE_GELU, 1e30, 1009) > 5e-8)
    for activation = C.PGEE_GELU, C.PGEE_GELU_TANH do
      assert(C.spec_error_in_u8(C.PGEE_REF, activation, 6, 1 / 4096) <= 1)
    end
    for activation = C.PGEE_GELU_ROUNDED, C.PGEE_GELU_TANH_ROUNDED do
      local error_in_u8 = C.spec_error_in_u8(C.PGEE_REF, activation, 6, 1 / 4096)
      assert(error_in_u8 <= 40 and error_in_u8 > 20, error_in_u8)
      local most = C.spec_function_error(activation, 1e30, 1009)
      assert(most <= 4e-5 and most > 2e-5, most)
    end
  end)

  it("define exp below and at the ends", function()
    assert.equal(1, C.spec_exp(0))
    assert(C.spec_exp(-87.3) > 0)
    for _, x in ipairs { -88, -100, -1e30, -inf } do
      assert.equal(0, C.spec_exp(x))
    end
    assert(C.spec_exp(nan) ~= C.spec_exp(nan))
  end)

  -- Computed once by the reference; every compiler, optimization level and ISA must come to it.
  it("give the bits they always gave", function()
    for isa = 0, C.PGEE_ISAS - 1 do
      if C.pgee_isa_runs(isa) == 1 then
        local h = { 0xcbf29ce484222325ULL, 0xcbf29ce484222325ULL, 0xcbf29ce484222325ULL, 0xcbf29ce484222325ULL }
        variants({ rows = 4, width = { 5, 16, 64, 100 }, fill = { ORDINARY, SPECIAL } }, function(case)
          local weighted = case.op == POOL and case.activation == C.PGEE_POOL_WEIGHTED -- younger than the first digest
          local bytes = case.op == EMBED and case.activation == C.PGEE_S8
          local i = case.shifted and 4 or weighted and 2 or bytes and 3 or 1
          h[i] = C.spec_rows_digest(isa, lower(case), h[i])
        end)
        assert.equal("4d4e99f89d22d104", bit.tohex(h[1]), ffi.string(C.pgee_isa_name(isa)))
        assert.equal("6c9f0c0e9b59fcca", bit.tohex(h[2]), ffi.string(C.pgee_isa_name(isa)))
        assert.equal("ebbb84020ca8f72d", bit.tohex(h[3]), ffi.string(C.pgee_isa_name(isa)))
        assert.equal("81fb79aa30e38896", bit.tohex(h[4]), ffi.string(C.pgee_isa_name(isa)))
      end
    end
  end)
end)
