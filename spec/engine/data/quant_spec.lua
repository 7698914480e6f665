local tensor = require "perigee.tensor"
local ffi = require "ffi"
local quant = require "perigee.quant"
local engine = require "spec.support.engine"
local float, rne = engine.float, engine.rne

local function refuses(message, f, ...)
  local arguments = { ... }
  assert.error_matches(function() f(unpack(arguments)) end, message, 1, true)
end

describe("smoothing", function()
  it("is xmax^alpha / wmax^(1 - alpha) to the last bit of a float, or next to it", function()
    local next_number = engine.random(3)
    local off = 0
    for _, alpha in ipairs { 0, 0.3, 0.5, 0.7, 1 } do
      local x, w = tensor.new("F32", { 500 }), tensor.new("F32", { 500 })
      for k = 1, 500 do
        x[k], w[k] = 10 ^ (next_number() * 3), 10 ^ (next_number() * 3)
      end
      local s = quant.smooth(x, w, alpha)
      for k = 1, 500 do
        local want = math.min(math.max(x[k] ^ alpha / w[k] ^ (1 - alpha), 1e-5), 1e5)
        assert.is_true(math.abs(s[k] - want) <= 2^-23 * want)
        off = off + (s[k] ~= float(want) and 1 or 0)
      end
    end
    assert.is_true(off <= 2) -- of 2500: where the exact power lies between two floats
  end)

  it("is exact for powers of two", function()
    local x, w = tensor.from { 4, 16, 2^-20, 2^100, 1 }, tensor.from { 1, 4, 2^-30, 2^100, 1 }
    assert.same({ 2, 2, 32, 1, 1 }, quant.smooth(x, w, 0.5):totable())
    assert.same({ 4, 16, float(1e-5), float(1e5), 1 }, quant.smooth(x, w, 1):totable())
  end)

  it("is 1 where a channel is zero, and clamped", function()
    local s = quant.smooth(tensor.from { 0, 1, 0, 1e30, 1e-30, 1e-40 }, tensor.from { 1, 0, 0, 1e-30, 1e30, 1 }, 0.5)
    assert.same({ 1, 1, 1, float(1e5), float(1e-5), float(1e-5) }, s:totable())
  end)

  it("refuses what is no magnitude and no alpha", function()
    local one = tensor.from { 1, 1 }
    refuses("xmax, channel 2 (counted from 1) is -1, expected a magnitude", quant.smooth, tensor.from { 1, -1 }, one, 0.5)
    refuses("wmax, channel 1 (counted from 1) is inf, expected a magnitude", quant.smooth, one, tensor.from { 1 / 0, 1 }, 0.5)
    refuses("wmax is F32 [3], expected F32 [2]", quant.smooth, one, tensor.from { 1, 1, 1 }, 0.5)
    refuses("alpha is 1.5, expected 0 to 1", quant.smooth, one, one, 1.5)
    refuses("expected 0 to 1", quant.smooth, one, one, 0 / 0)
    refuses("smooth: alpha is nil, expected a number from 0 to 1", quant.smooth, one, one)
  end)

  it("takes the largest weight of each input channel over all weights, whatever the threads", function()
    local A, B = engine.matrix(130, 37, 1), engine.matrix(5, 37, 2, 1.2)
    local want = {}
    for k = 1, 37 do
      want[k] = 0
      for _, W in ipairs { A, B } do
        for n = 1, #W do
          want[k] = math.max(want[k], math.abs(W[n][k]))
        end
      end
    end
    for _, threads in ipairs { 1, 2, 7 } do
      assert.same(want, engine.with_threads(threads, function() return quant.absmax { A, B } end):totable())
    end
    A[130][37] = 0 / 0
    refuses("weight 1, row 130, column 37 (counted from 1) is NaN", quant.absmax, { A, B })
    refuses("absmax of no weights", quant.absmax, {})
    refuses("the weights are nil, expected a list of tensors", quant.absmax)
    refuses("range: lo is nil, expected a number", quant.range)
    refuses("range: hi is the string '3', expected a number", quant.range, -1, "3")
  end)
end)

describe("a static range", function()
  it("is asymmetric by default: 0 is a value of its own", function()
    local p = quant.range(-1, 3)
    assert.same({ scale = float(4 / 255), zero = 64, symmetric = false }, p)
    assert.equal(0, quant.range(0, 5).zero)
    assert.equal(255, quant.range(-5, 0).zero)
    assert.equal(128, quant.range(-127.5, 127.5).zero) -- 127.5 is rounded to even
    assert.equal(126, quant.range(-126.5, 128.5).zero)
  end)

  it("is symmetric if told so", function()
    assert.same({ scale = float(3 / 127), zero = 128, symmetric = true }, quant.range(-1, 3, { symmetric = true }))
    assert.same({ scale = float(4 / 127), zero = 128, symmetric = true }, quant.range(-4, 3, { symmetric = true }))
  end)

  it("has scale 1 where there is nothing, or too little to divide by", function()
    for _, symmetric in ipairs { false, true } do
      for _, r in ipairs { { 0, 0 }, { -1e-38, 1e-38 }, { 0, 1e-45 } } do
        assert.equal(1, quant.range(r[1], r[2], { symmetric = symmetric }).scale)
      end
    end
    assert.equal(0, quant.range(-1e-40, 0).zero)
    assert.equal(float(1e38 / 255), quant.range(0, 1e38).scale)
  end)

  it("refuses what is no range around 0", function()
    for _, r in ipairs { { 1, 2 }, { -2, -1 }, { 0 / 0, 1 }, { 0, 0 / 0 }, { -1 / 0, 0 }, { -3e38, 3e38 } } do
      refuses("expected finite floats around 0", quant.range, r[1], r[2])
    end
    refuses("range: lo is the string 'x', expected a number", quant.range, "x", 1)
    refuses("range has no option symetric, only symmetric", quant.range, 0, 1, { symetric = true })
  end)
end)

describe("a multiplier", function()
  it("is the product of two reciprocals, in float", function()
    local s = tensor.from { 1, 3, 0.7, 1e5 }
    local m, r = quant.multiplier(0.3, s), float(1 / float(0.3))
    for k = 1, 4 do
      assert.equal(float(r * float(1 / s[k])), m[k])
    end
    assert.same({ r, r }, quant.multiplier(0.3, 2):totable())
  end)

  it("is never infinite", function()
    assert.equal(float(3.4028234663852886e38), quant.multiplier(2^-126, tensor.from { 1e-5 })[1])
  end)

  it("refuses a scale that cannot be divided by", function()
    for _, scale in ipairs { 0, -1, 1e-40, 2^127 * 1.5, 1 / 0, 0 / 0 } do
      refuses("expected a positive float that has a reciprocal", quant.multiplier, scale, 3)
    end
    refuses("s, channel 2 (counted from 1) is 0, expected a positive number", quant.multiplier, 1, tensor.from { 1, 0 })
  end)
end)

describe("a shift", function()
  it("adds -z m, which is never infinite", function()
    local z, m = tensor.from { 0.1, -3, 0, 1e30 }, tensor.from { 7, 0.3, 5, 1e30 }
    local most = float(3.4028234663852886e38)
    assert.same({ float(-float(0.1) * 7), float(3 * float(0.3)), 0, -most }, quant.addend(z, m):totable())
  end)

  it("adds W z to the bias, summed in double with k ascending", function()
    local A, B, z, bias = engine.matrix(130, 37, 1), engine.matrix(5, 37, 2), engine.matrix(1, 37, 3), engine.matrix(1, 135, 4)
    local want = { {}, {} }
    for i, W in ipairs { A, B } do
      for n = 1, #W do
        local sum = 0
        for k = 1, 37 do
          sum = sum + W[n][k] * z[1][k]
        end
        table.insert(want[1], float(0 + sum))
        table.insert(want[2], float(bias[1][n + (i - 1) * 130] + sum))
      end
    end
    local zs, biases = tensor.from(z[1]:totable()), tensor.from(bias[1]:totable())
    local got = engine.same_everywhere(function()
      return { quant.shifted_bias({ A, B }, zs), quant.shifted_bias({ A, B }, zs, biases) }
    end)
    assert.same(want, { got[1]:totable(), got[2]:totable() })
  end)

  it("refuses other shapes and what is not finite", function()
    local W = engine.matrix(4, 3, 1)
    refuses("z is F32 [2], expected F32 [3]", quant.shifted_bias, W, tensor.from { 1, 2 })
    refuses("z, channel 2 (counted from 1) is NaN, expected a finite number", quant.shifted_bias, W,
      tensor.from { 1, 0 / 0, 1 })
    refuses("bias is F32 [3], expected F32 [4]", quant.shifted_bias, W, tensor.from { 1, 2, 3 }, tensor.from { 1, 2, 3 })
    refuses("z is F32 [2], expected F32 [3]", quant.addend, tensor.from { 1, 2 }, tensor.from { 1, 2, 3 })
    refuses("there is a shift but no scale", quant.quantize, W, { shift = tensor.from { 1, 2, 3 } })
    refuses("quantize.b is F32 [2], expected F32 [3]", require("perigee.operator").run, "quantize", {
      x = W,
      quantize = { mode = "static", m = tensor.from { 1, 1, 1 }, b = tensor.from { 1, 1 }, q = tensor.new("U8", { 4, 3 }) },
    })
  end)
end)

describe("quantizing by hand", function()
  local x = engine.matrix(9, 37, 8, 4)

  it("by a static scale", function()
    local p = quant.range(-3, 4)
    local x8 = quant.quantize(x, p)
    assert.same({ p.scale, p.zero }, { x8.scale, x8.zero })
    local m = float(1 / p.scale)
    for i = 1, 9 do
      for k = 1, 37 do
        local q = math.min(math.max(rne(float(x[i][k] * m)), -p.zero), 255 - p.zero) + p.zero
        assert.equal(q, x8.q[i][k])
      end
    end
  end)

  it("by a scale for each row, symmetric and not", function()
    for _, symmetric in ipairs { true, false } do
      local x8 = quant.quantize(x, { symmetric = symmetric })
      local y = x8:dequantize()
      for i = 1, 9 do
        assert.is_true(not symmetric or x8.zero[i] == 128)
        for k = 1, 37 do
          assert.is_true(math.abs(y[i][k] - x[i][k]) <= 0.501 * x8.scale[i])
        end
      end
    end
  end)

  it("shifts before it smooths", function()
    local rows = tensor.from { { 10, 21, -3 }, { 12, 19, -5 } }
    local z, s = tensor.from { 11, 20, -4 }, tensor.from { 1, 0.5, 2 }
    local x8 = quant.quantize(rows, { scale = 0.25, zero = 100, symmetric = false, shift = z, smooth = s })
    assert.same({ { 96, 108, 102 }, { 104, 92, 98 } }, x8.q:totable())
    assert.same({ { -1, 2, 0.5 }, { 1, -2, -0.5 } }, x8:dequantize():totable())
  end)

  it("divides by smoothing factors first", function()
    local s = engine.vector(37, 5, 0.5, 1)
    local y = quant.quantize(x, { smooth = s, symmetric = true }):dequantize()
    for k = 1, 37 do
      assert.is_true(math.abs(y[1][k] - x[1][k] / s[k]) < 0.05)
    end
  end)

  it("refuses options that say nothing", function()
    refuses("quantize: x is nil, expected a tensor", quant.quantize, nil)
    refuses("quantize: there is a zero but no scale, expected both or none", quant.quantize, x, { zero = 3 })
    refuses("quantize: per is the string 'row', expected one of sequence, token", quant.quantize, x, { per = "row" })
    refuses("quantize has no option scales", quant.quantize, x, { scales = 1 })
    refuses("no batch was given", quant.quantize, x, { per = "sequence" })
    refuses("zero is 300, expected 0 to 255", quant.quantize, x, { scale = 1, zero = 300 })
  end)

  it("prints, and is freed by name", function()
    local x8 = quant.quantize(x, quant.range(-3, 4))
    assert.matches("quantized [9][37], scale 0.027451, zero 109", tostring(x8), 1, true)
    x8:release()
    assert.error_matches(function() x8.q:totable() end, "released")
    x8 = quant.quantize(x, { smooth = engine.vector(37, 5, 0.5, 1) })
    assert.matches("a scale and zero for each row, smoothed", tostring(x8))
  end)
end)

describe("tables", function()
  -- The values of an F16 tensor [1][n] by their bits.
  local function f16_bits(t)
    local bits, list = ffi.cast("const uint16_t *", (t:pointer())), {}
    for i = 1, t.shape[2] do
      list[i] = bits[i - 1]
    end
    return list
  end

  it("as F16 keep every F16 value, and round ties to even", function()
    local all, up, between, down = {}, {}, {}, {}
    for u = 0, 0x7bfe do -- every F16 value but the largest
      local e, m = bit.rshift(u, 10), bit.band(u, 1023)
      local value, step = (e == 0 and m or 1024 + m) * 2 ^ (math.max(e, 1) - 25), 2 ^ (math.max(e, 1) - 25)
      all[u + 1], between[u + 1] = value, -(value + step / 2)
      down[u + 1], up[u + 1] = value + step * (1 / 2 - 2 ^ -13), value + step * (1 / 2 + 2 ^ -13)
    end
    local t = quant.table(tensor.from { all, between, down, up }, "f16")
    assert.equal("F16", t.dtype)
    local same, tie, below, above = f16_bits(t:rows(1, 1)), f16_bits(t:rows(2, 2)), f16_bits(t:rows(3, 3)), f16_bits(t:rows(4, 4))
    for u = 0, 0x7bfe do
      assert(same[u + 1] == u and below[u + 1] == u and above[u + 1] == u + 1, u)
      assert(tie[u + 1] == 0x8000 + u + u % 2, u)
    end
  end)

  it("as F16 refuse what F16 has not", function()
    assert.same({ 65504 }, quant.table(tensor.from { { 65519.99 } }, "f16"):f32()[1]:totable())
    assert.same({ 0, 0 }, quant.table(tensor.from { { 2 ^ -25, 2 ^ -149 } }, "f16"):f32()[1]:totable())
    refuses("row 2, column 1 (counted from 1) is 65520, expected less than 65520 in magnitude for F16", quant.table,
      tensor.from { { 1, 2 }, { 65520, 1e30 } }, "f16")
    refuses("row 1, column 2 (counted from 1) is minus infinite, which a table of type F16 cannot hold", quant.table,
      tensor.from { { 1, -1 / 0 } }, "f16")
    refuses("table is I8, expected F32, F16 or BF16", quant.table, tensor.new("I8", { 2, 3 }), "f16")
    refuses("table is F32 [3], expected", quant.table, tensor.new("F32", { 3 }), "int8")
    refuses("quant.table: type is the string 'f8', expected one of f16, int8", quant.table, tensor.new("F32", { 2, 3 }), "f8")
    refuses("row 1, column 1 (counted from 1) is NaN, which a table of type I8 cannot hold", quant.table,
      tensor.from { { 0 / 0 } }, "int8")
  end)

  it("as INT8 have absmax / 127 as the scale of each row", function()
    for _, dtype in ipairs { "F32", "F16", "BF16" } do
      local W = tensor.from(engine.matrix(70, 37, 3):totable(), dtype)
      W[2]:set(0)
      local q, scales = quant.table(W, "int8")
      local wide = W:f32()
      assert.equal("I8", q.dtype)
      for n = 1, 70 do
        local top = 0
        for k = 1, 37 do
          top = math.max(top, math.abs(wide[n][k]))
        end
        local scale = top == 0 and 1 or float(top / 127)
        assert.equal(scale, scales[n])
        for k = 1, 37 do
          assert.equal(rne(float(wide[n][k] / scale)), q[n][k])
        end
      end
    end
    local _, scales = quant.table(tensor.from { { 1e-45 }, { 3e38 } }, "int8")
    assert.same({ 1, float(float(3e38) / 127) }, scales:totable())
  end)

  it("are the same with every number of threads", function()
    engine.same_everywhere(function()
      local q, scales = quant.table(engine.matrix(131, 65, 4), "int8")
      return { q, scales, quant.table(engine.matrix(131, 65, 4), "f16") }
    end)
  end)
end)
