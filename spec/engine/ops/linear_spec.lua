-- Fused linears. The integer part is exact, so oracles are near to a last bit where there is no activation.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local quant = require "perigee.quant"
local linear = require "perigee.linear"
local engine = require "spec.support.engine"
local skip = require "spec.support.skip"
local native = require("spec.support.native").cdef [[
  typedef struct model_counts { int64_t configurations, zeros, loads, products, stores, releases; } model_counts;
  void spec_tile_count_from_zero(void);
  model_counts spec_tile_counted(void);
  int spec_tile_configured(void);
  const char *spec_tile_fault(void);
]]
local C = pgee.C
local float, near = engine.float, engine.near

-- Rows, K, N: around tiles and panels, and primes.
local SHAPES = { { 1, 1, 1 }, { 5, 63, 63 }, { 6, 64, 64 }, { 7, 65, 65 }, { 33, 130, 127 }, { 13, 257, 191 } }

local function erf(x)
  -- Abramowitz and Stegun 7.1.5: the series, exact enough in doubles for |x| < 4.
  local sum, term = x, x
  for n = 1, 100 do
    term = -term * x * x / n
    sum = sum + term / (2 * n + 1)
  end
  return math.abs(x) > 4 and (x > 0 and 1 or -1) or 2 / math.sqrt(math.pi) * sum
end

local ACTIVATIONS = {
  gelu = function(x) return x * 0.5 * (1 + erf(x / math.sqrt(2))) end,
  gelu_tanh = function(x) return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) end,
  relu = function(x) return math.max(x, 0) end,
  tanh = math.tanh,
  quick_gelu = function(x) return x / (1 + math.exp(-1.702 * x)) end,
  silu = function(x) return x / (1 + math.exp(-x)) end,
}

-- The accumulators of x8 and w, and from them y before the activation, as the contract says: the fma is one rounding.
local function integer_oracle(x8, w, bias)
  local q, rows = w:unpack():totable(), x8.q:totable()
  local scales, each = w.scales:totable(), type(x8.scale) ~= "number"
  local m = each and scales or w:multiplier(x8.scale):totable()
  local y = {}
  for t, row in ipairs(rows) do
    y[t] = {}
    local zero = each and x8.zero[t] or x8.zero
    for n, wrow in ipairs(q) do
      local acc = 0
      for k, v in ipairs(row) do
        acc = acc + (v - zero) * wrow[k]
      end
      local a = float(acc)
      a = each and float(a * x8.scale[t]) or a
      y[t][n] = float(a * m[n] + (bias and bias[n] or 0)) -- a product of two floats is exact in a double, the sum nearly
    end
  end
  return y
end

describe("an INT8 linear", function()
  it("is exact, whatever the shape, with a static scale", function()
    for _, s in ipairs(SHAPES) do
      local w = packed.new(engine.matrix(s[3], s[2], 1, 2))
      local x8 = quant.quantize(engine.matrix(s[1], s[2], 2), quant.range(-0.9, 1))
      local bias = engine.vector(s[3], 3)
      near(integer_oracle(x8, w, bias), linear(x8, w, { bias = bias }), 2^-23)
      near(integer_oracle(x8, w), linear(x8, w), 2^-23)
    end
  end)

  it("is exact with a scale and a zero point for each row", function()
    for _, s in ipairs(SHAPES) do
      local w = packed.new(engine.matrix(s[3], s[2], 1, 2))
      for _, symmetric in ipairs { true, false } do
        local x8 = quant.quantize(engine.matrix(s[1], s[2], 2), { symmetric = symmetric })
        near(integer_oracle(x8, w), linear(x8, w), 2^-22)
      end
    end
  end)

  it("quantizes floats on the way", function()
    local x, w = engine.matrix(9, 70, 1), packed.new(engine.matrix(11, 70, 2))
    assert.is_true(linear(x, w):equals(linear(quant.quantize(x), w)))
    local p = quant.range(-0.5, 1)
    assert.is_true(linear(x, w, { quantize = p }):equals(linear(quant.quantize(x, p), w)))
  end)

  it("is close to the FP32 linear", function()
    local W, x = engine.matrix(64, 256, 1), engine.matrix(30, 256, 2)
    local exact = linear(x, packed.new(W, { dtype = "f32" }))
    assert.is_true(exact:sqnr(linear(x, packed.new(W))) > 38)
    assert.is_true(exact:sqnr(linear(x, packed.new(W), { quantize = quant.range(-1, 1) })) > 38)
  end)

  it("undoes smoothing: x / s times W * s", function()
    local W, x, s = engine.matrix(64, 256, 1), engine.matrix(30, 256, 2), engine.vector(256, 3, 0.4, 1)
    local exact = linear(x, packed.new(W, { dtype = "f32" }))
    local y = linear(x, packed.new(W, { smooth = s }), { quantize = { smooth = s } })
    assert.is_true(exact:sqnr(y) > 36)
  end)

  it("gives the bias for an input of zeros, and for weights of zeros", function()
    local bias = engine.vector(70, 5)
    local want = tensor.from { bias:totable(), bias:totable() }
    local zeros = tensor.new("F32", { 2, 33 })
    local w = packed.new(engine.matrix(70, 33))
    assert.is_true(linear(zeros, w, { bias = bias }):equals(want))
    assert.is_true(linear(zeros, w, { bias = bias, quantize = { symmetric = false } }):equals(want))
    assert.is_true(linear(zeros, w, { bias = bias, quantize = quant.range(-1, 3) }):equals(want))
    assert.is_true(linear(engine.matrix(2, 33), packed.new(tensor.new("F32", { 70, 33 })), { bias = bias }):equals(want))
  end)

  it("does not overflow at the extremes: 255 times 127, K 32768", function()
    local K = 32768
    local W = tensor.new("F32", { 2, K })
    W[1]:set(1)
    W[2]:set(-1)
    local x = tensor.new("F32", { 1, K }):set(255)
    local w = packed.new(W)
    for _, zero in ipairs { 0, 255 } do
      local x8 = quant.quantize(zero == 0 and x or x:copy():set(-255), { scale = 1, zero = zero, symmetric = false })
      local sign = zero == 0 and 1 or -1
      local y = linear(x8, w)
      local m = w:multiplier(1)
      assert.same({ { sign * float(float(255 * 127 * K) * m[1]), -sign * float(float(255 * 127 * K) * m[2]) } }, y:totable())
    end
  end)

  it("applies activation, then residual, then requantizes", function()
    local x8 = quant.quantize(engine.matrix(9, 70, 1), quant.range(-1, 1))
    local w, residual, s = packed.new(engine.matrix(67, 70, 2)), engine.matrix(9, 67, 3), engine.vector(67, 4, 0.5, 1)
    local plain = linear(x8, w):totable()
    for activation, f in pairs(ACTIVATIONS) do
      local want = {}
      for t = 1, 9 do
        want[t] = {}
        for n = 1, 67 do
          want[t][n] = f(plain[t][n]) + residual[t][n]
        end
      end
      local y = linear(x8, w, { activation = activation, residual = residual })
      near(want, y, 1e-6)
      local p = quant.range(-3, 9)
      local requantize = { scale = p.scale, zero = p.zero, symmetric = false, smooth = s }
      local y8 = linear(x8, w, { activation = activation, residual = residual, requantize = requantize })
      assert.is_true(y8.q:equals(quant.quantize(y, requantize).q))
      assert.same({ p.scale, p.zero }, { y8.scale, y8.zero })
    end
  end)

  it("is the same bits on every ISA, with 1, 2 and 7 threads", function()
    local x, residual = engine.matrix(45, 130, 1), engine.matrix(45, 200, 5)
    local W, bias = engine.matrix(200, 130, 2), engine.vector(200, 3)
    local w = packed.new(W)
    local p = quant.range(-3, 9)
    engine.same_everywhere(function()
      local x8 = quant.quantize(x, quant.range(-1, 1))
      return {
        linear(x8, w, { bias = bias }), linear(x, w, { bias = bias, activation = "gelu", residual = residual }),
        linear(x8, w, { activation = "tanh", requantize = p }).q,
        linear(x, w, { activation = "gelu_tanh", quantize = { symmetric = false } }),
      }
    end)
  end)

  it("is the same bits for each row alone", function()
    local x, w = engine.matrix(45, 130, 1), packed.new(engine.matrix(200, 130, 2))
    local all = linear(x, w, { activation = "gelu" })
    for _, t in ipairs { 1, 6, 7, 44, 45 } do
      assert.is_true(all:rows(t, t):copy():equals(linear(x:rows(t, t), w, { activation = "gelu" })))
    end
  end)
end)

describe("an INT8 linear on AMX", function()
  -- The counts of the portable AMX model for `rows` rows with one thread.
  local function counted(rows)
    local x8, w = quant.quantize(engine.matrix(rows, 130, 1), quant.range(-1, 1)), packed.new(engine.matrix(200, 130, 2))
    return engine.with_isa(C.PGEE_AMX_MODEL, function()
      return engine.with_threads(1, function()
        native.spec_tile_count_from_zero()
        linear(x8, w)
        assert.equal(nil, native.spec_tile_fault())
        assert.equal(0, native.spec_tile_configured())
        return native.spec_tile_counted()
      end)
    end)
  end

  it("configures tiles once where they are of one height, and releases them", function()
    for _, rows in ipairs { 1, 16, 31, 32, 96 } do
      local n = counted(rows)
      assert.same({ 1, 1 }, { tonumber(n.configurations), tonumber(n.releases) })
    end
  end)

  it("configures again only where the height changes", function()
    local n = counted(100) -- 32, 32, 32 and 4 rows, of all 4 panels one after another
    assert.same({ 2, 1 }, { tonumber(n.configurations), tonumber(n.releases) })
  end)
end)

describe("an FP32 linear", function()
  it("is one chain of fma for each output", function()
    for _, s in ipairs(SHAPES) do
      local W, x, bias = engine.matrix(s[3], s[2], 1), engine.matrix(s[1], s[2], 2), engine.vector(s[3], 3)
      local want, rows, list = {}, W:totable(), x:totable()
      for t, row in ipairs(list) do
        want[t] = {}
        for n, wrow in ipairs(rows) do
          local acc = 0
          for k, v in ipairs(row) do
            acc = float(v * wrow[k] + acc)
          end
          want[t][n] = float(acc + bias[n])
        end
      end
      near(want, linear(x, packed.new(W, { dtype = "f32" }), { bias = bias }), 2^-22)
    end
  end)

  it("is the same bits on every ISA, with 1, 2 and 7 threads", function()
    local x, w = engine.matrix(45, 130, 1), packed.new(engine.matrix(200, 130, 2), { dtype = "f32" })
    engine.same_everywhere(function()
      return { linear(x, w), linear(x, w, { activation = "gelu" }), linear(x, w, { requantize = quant.range(-3, 9) }).q }
    end)
  end)
end)

describe("a BF16 linear", function()
  local function bf16(W)
    return packed.new(W, { dtype = "bf16" })
  end

  it("is the FP32 linear of rounded inputs and weights, up to the order of the sum", function()
    for _, s in ipairs(SHAPES) do
      local W, x, bias = engine.matrix(s[3], s[2], 1), engine.matrix(s[1], s[2], 2), engine.vector(s[3], 3)
      local rounded = packed.new(bf16(W):unpack():f32(), { dtype = "f32" })
      local want = linear(bf16(x):unpack():f32(), rounded, { bias = bias, activation = "gelu" })
      near(want:totable(), linear(x, bf16(W), { bias = bias, activation = "gelu" }), 1e-5)
    end
  end)

  it("is the same bits on every ISA, with 1, 2 and 7 threads", function()
    for _, rows in ipairs { 1, 45, 1100 } do -- the last one is rounded in several parts
      local x, w = engine.matrix(rows, 330, 1), bf16(engine.matrix(200, 330, 2))
      local residual = engine.matrix(rows, 200, 3)
      engine.same_everywhere(function()
        return { linear(x, w, { residual = residual }), linear(x, w, { requantize = quant.range(-3, 9) }).q }
      end)
    end
  end)

  it("is the same bits for each row alone", function()
    local x, w = engine.matrix(45, 130, 1), bf16(engine.matrix(200, 130, 2))
    local all = linear(x, w)
    for _, t in ipairs { 1, 32, 33, 45 } do
      assert.is_true(all:rows(t, t):copy():equals(linear(x:rows(t, t), w)))
    end
  end)

  it("configures the tiles of AMX once where they are of one height, and releases them", function()
    engine.with_isa(C.PGEE_AMX_MODEL, function()
      engine.with_threads(1, function()
        native.spec_tile_count_from_zero()
        linear(engine.matrix(64, 130, 1), bf16(engine.matrix(200, 130, 2)))
        assert.equal(nil, native.spec_tile_fault())
        local n = native.spec_tile_counted()
        assert.same({ 1, 1 }, { tonumber(n.configurations), tonumber(n.releases) })
        assert.equal(2 * 4 * 5 * 8, tonumber(n.products)) -- tiles of rows, panels, blocks of K, products of each
      end)
    end)
  end)

  it("names its kernel, and takes neither quantized rows nor oneDNN", function()
    local x, w = engine.matrix(4, 5), bf16(engine.matrix(3, 5))
    engine.with_isa(C.PGEE_REF, function() assert.equal("ref bf16", linear.kernel(w, 4)) end)
    assert.error_matches(function() linear(quant.quantize(x), w) end, "BF16 weights take an F32 tensor, not quantized", 1, true)
    assert.error_matches(function() linear(x, w, { kernel = "onednn" }) end, "BF16 weights are multiplied by PGEE_NATIVE only")
    assert.error_matches(function() w:multiplier(1) end, "a BF16 weight has no multiplier")
  end)
end)

describe("linear", function()
  it("of no rows is no rows", function()
    for _, threads in ipairs { 1, 7 } do
      engine.with_threads(threads, function()
        local x = tensor.new("F32", { 0, 5 })
        assert.same({ 0, 3 }, linear(x, packed.new(engine.matrix(3, 5))).shape)
        assert.same({ 0, 3 }, linear(x, packed.new(engine.matrix(3, 5), { dtype = "f32" })).shape)
      end)
    end
  end)

  it("names its kernel", function()
    local w, f = packed.new { { 1 } }, packed.new({ { 1 } }, { dtype = "f32" })
    engine.with_isa(C.PGEE_REF, function()
      assert.matches("^ref %d+x64$", linear.kernel(w, 4))
      assert.matches("^ref f32 %d+x64$", linear.kernel(f, 4))
    end)
    engine.with_isa(C.PGEE_AMX_MODEL, function() assert.matches("^amx%-model 32x64$", linear.kernel(w, 4)) end)
  end)

  it("leaves what it reads as it is, also where rows of x are a view", function()
    local x = engine.matrix(20, 70, 1)
    local before, w = x:copy(), packed.new(engine.matrix(30, 70, 2))
    local part = linear(x:rows(5, 9), w)
    assert.is_true(x:equals(before))
    assert.is_true(part:equals(linear(x, w):rows(5, 9):copy()))
  end)

  it("refuses what does not fit, naming it", function()
    local x, W = engine.matrix(4, 5), engine.matrix(3, 5)
    local w, f = packed.new(W), packed.new(W, { dtype = "f32" })
    local function refuses(message, ...)
      local arguments = { ... }
      assert.error_matches(function() linear(unpack(arguments)) end, message, 1, true)
    end
    refuses("linear: w is nil, expected a packed weight", x, nil)
    refuses("linear: x is nil, expected a tensor", nil, w)
    refuses("x is U8 [4][6], expected U8 [rows][5]", engine.matrix(4, 6), w)
    refuses("bias is F32 [2], expected F32 [3]", x, w, { bias = { 1, 2 } })
    refuses("residual is F32 [4][5], expected F32 [4][3]", x, w, { residual = x })
    refuses("linear: activation is the string 'swish', expected one of gelu, gelu_rounded, gelu_tanh, gelu_tanh_rounded, "
      .. "identity, quick_gelu, relu, silu, tanh", x, w, { activation = "swish" })
    refuses("linear has no option bais, only activation, bias, kernel, quantize, requantize, residual", x, w, { bais = 1 })
    refuses("linear: FP32 weights take an F32 tensor, not quantized", quant.quantize(x), f)
    refuses("linear: FP32 weights take an F32 tensor, not quantized", x, f, { quantize = {} })
    refuses("linear: x is quantized already", quant.quantize(x), w, { quantize = {} })
    refuses("linear: requantize has no scale, expected a number", x, w, { requantize = {} })
    refuses("linear: requantize has no option per", x, w, { requantize = { per = "token" } })
    refuses("linear: kernel is the string 'mkl', expected one of native, onednn", x, w, { kernel = "mkl" })
  end)
end)

describe("oneDNN", function()
  local missing = C.pgee_onednn_version() == nil
  local it = missing and skip "there is no oneDNN" or it

  it("says which it is", function() assert.matches("^3%.%d+", ffi.string(C.pgee_onednn_version())) end)

  it("gives the same bits in INT8, or says why it cannot", function()
    for _, s in ipairs(SHAPES) do
      local x, w = engine.matrix(s[1], s[2], 2), packed.new(engine.matrix(s[3], s[2], 1))
      local bias = engine.vector(s[3], 3)
      local ok = C.pgee_onednn_check(packed.handle(w))
      if ok ~= 0 then
        assert.error_matches(function() linear(x, w, { kernel = "onednn" }) end, ffi.string(C.pgee_message()), 1, true)
      end
      for _, threads in ipairs(ok == 0 and { 1, 2, 7 } or {}) do
        engine.with_threads(threads, function()
          local options = { bias = bias, activation = "gelu", quantize = { symmetric = false } }
          local want = linear(x, w, options)
          options.kernel = "onednn"
          assert.is_true(linear(x, w, options):equals(want))
        end)
      end
    end
  end)

  it("is close in FP32", function()
    for _, s in ipairs { { 1, 64, 64 }, { 300, 129, 257 } } do
      local x, w = engine.matrix(s[1], s[2], 2), packed.new(engine.matrix(s[3], s[2], 1), { dtype = "f32" })
      for _, threads in ipairs { 1, 2, 7 } do
        local y = engine.with_threads(threads, function() return linear(x, w, { kernel = "onednn", activation = "relu" }) end)
        assert.is_true(linear(x, w, { activation = "relu" }):sqnr(y) > 120)
      end
    end
  end)

  it("is refused in INT8 where the ISA in force has no VNNI", function()
    engine.with_isa(C.PGEE_REF, function()
      assert.error_matches(function() linear({ { 1 } }, packed.new { { 1 } }, { kernel = "onednn" }) end, "VNNI")
    end)
  end)
end)
