-- The operators one by one, by hand through pgee_run: against oracles in doubles, equal on every ISA and number of threads.
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local plan = require "perigee.plan"
local quant = require "perigee.quant"
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local linear = require "perigee.linear"
local safetensors = require "perigee.safetensors"
local files = require "spec.support.files"
local engine = require "spec.support.engine"
local P = pgee.C

local LENGTHS = { 3, 1, 30, 7, 64, 65 }

local function batch_of(lengths, ids)
  local list, at = {}, 0
  for b, length in ipairs(lengths) do
    list[b] = {}
    for i = 1, length do
      at = at + 1
      list[b][i] = ids and ids[at] or 0
    end
  end
  return plan.batch(list), at
end

local near = engine.near

local function outputs(rows, width)
  return tensor.new("F32", { rows, width })
end

-- What quantize makes of x in the same way that an operator quantizes, or the other way round.
local function quantizer(q, rows, width, mode, symmetric)
  local fields = { mode = mode, symmetric = symmetric, q = tensor.new("U8", { rows, width }) }
  if mode == "static" then
    fields.m, fields.zero = quant.multiplier(q.scale, width), q.zero
  else
    fields.row_scale, fields.row_zero = tensor.new("F32", { rows }), tensor.new("I32", { rows })
  end
  return fields
end

describe("embed", function()
  local T = select(2, batch_of(LENGTHS))
  local ids, types, state = {}, {}, 5
  for t = 1, T do
    state = (state * 16807) % 2147483647
    ids[t], types[t] = state % 11, state % 2
  end

  -- Flat values cut into lists of LENGTHS.
  local function cut(flat)
    local lists, at = {}, 0
    for b, length in ipairs(LENGTHS) do
      lists[b] = {}
      for i = 1, length do
        at = at + 1
        lists[b][i] = flat[at]
      end
    end
    return lists
  end

  it("adds the rows of word and type, then that of position", function()
    local H = 37
    local word, position, kind = engine.matrix(11, H, 1), engine.matrix(67, H, 2), engine.matrix(2, H, 3)
    local batch, typed = plan.batch(cut(ids)), plan.batch(cut(ids), cut(types))
    local result = engine.same_everywhere(function()
      local all, words, first = outputs(T, H), outputs(T, H), outputs(T, H)
      operator.run("embed", { word = word, position = position, type = kind, position_offset = 2, y = all }, typed)
      operator.run("embed", { word = word, y = words }, batch)
      operator.run("embed", { word = word, type = kind, y = first }, batch)
      return { all, words, first }
    end)
    local at = 0
    for _, length in ipairs(LENGTHS) do
      for i = 1, length do
        at = at + 1
        for k = 1, H do
          local w, p = word[ids[at] + 1][k], position[i + 2][k]
          assert(result[1][at][k] == engine.float(engine.float(w + kind[types[at] + 1][k]) + p))
          assert(result[2][at][k] == w)
          assert(result[3][at][k] == engine.float(w + kind[1][k]))
        end
      end
    end
  end)

  it("counts positions without padding tokens, which have the one before the first", function()
    local H = 5
    local word, position = engine.matrix(11, H, 1), engine.matrix(67, H, 2)
    local batch = plan.batch(cut(ids))
    local result = engine.same_everywhere(function()
      local y = outputs(T, H)
      operator.run("embed", { word = word, position = position, position_offset = 2, skip_padding = true, y = y }, batch)
      return { y }
    end)
    local at, padding = 0, 0
    for _, length in ipairs(LENGTHS) do
      local place = 0
      for _ = 1, length do
        at = at + 1
        local counts = ids[at] ~= 1
        padding = padding + (counts and 0 or 1)
        local row = position[2 + (counts and place or -1) + 1]
        place = place + (counts and 1 or 0)
        for k = 1, H do
          assert.equal(engine.float(word[ids[at] + 1][k] + row[k]), result[1][at][k])
        end
      end
    end
    assert.is_true(padding > 5)
    assert.error_matches(function()
      operator.run("embed", { word = word, position = position, skip_padding = true, y = outputs(T, H) }, batch)
    end, "embed: position_offset is 0, expected the padding token's id + 1 where skip_padding is set", 1, true)
  end)

  it("reads F16 and BF16 tables as the floats they are", function()
    local batch = plan.batch { { 1, 0 }, { 1 } }
    for _, dtype in ipairs { "F16", "BF16" } do
      local word, y = tensor.from({ { 1.5, -2, 6.103515625e-05 }, { 3, 0.25, 2^-20 } }, dtype), outputs(3, 3)
      operator.run("embed", { word = word, y = y }, batch)
      local f = word:f32()
      assert.same({ f[2]:totable(), f[1]:totable(), f[2]:totable() }, y:totable())
    end
  end)

  it("reads each row of an I8 table with its scale", function()
    local H = 37
    local tables, scales, wide = {}, {}, {}
    for i, rows in ipairs { 11, 67, 2 } do
      tables[i], scales[i] = quant.table(engine.matrix(rows, H, i), "int8")
      wide[i] = tensor.new("F32", { rows, H })
      for n = 1, rows do
        for k = 1, H do
          wide[i][n][k] = engine.float(tables[i][n][k] * scales[i][n])
        end
      end
    end
    local typed = plan.batch(cut(ids), cut(types))
    local function embed(word, position, kind, word_scales, position_scales, type_scales)
      local y = outputs(T, H)
      operator.run("embed", {
        word = word, position = position, type = kind, word_scales = word_scales, position_scales = position_scales,
        type_scales = type_scales, position_offset = 2, y = y,
      }, typed)
      return y
    end
    local result = engine.same_everywhere(function()
      return {
        embed(tables[1], tables[2], tables[3], unpack(scales)), embed(wide[1], tables[2], wide[3], nil, scales[2], nil),
        embed(tables[1], nil, nil, scales[1]),
      }
    end)
    local want = embed(wide[1], wide[2], wide[3])
    assert.is_true(want:equals(result[1]) and want:equals(result[2]))
    assert.is_true(embed(wide[1]):equals(result[3]))
  end)

  it("refuses scales that do not fit a table", function()
    local word, scales = quant.table(engine.matrix(2, 3), "int8")
    local function refuses(message, fields)
      fields.y = outputs(2, 3)
      assert.error_matches(function() operator.run("embed", fields, plan.batch { { 0, 1 } }) end, message, 1, true)
    end
    refuses("embed: word_scales is missing, expected F32 [2], one scale for each row of word, which is I8", { word = word })
    refuses("embed: word_scales is F32 [3], expected F32 [2]", { word = word, word_scales = engine.vector(3) })
    refuses("embed: word_scales is F32 [2][3], expected", { word = word, word_scales = engine.matrix(2, 3) })
    refuses("embed: word_scales is given, but word is F32: only a table of type I8 has scales",
      { word = engine.matrix(2, 3), word_scales = scales })
    refuses("embed: type_scales is given, but type is not", { word = word, word_scales = scales, type_scales = scales })
    refuses("embed: position_scales is missing", { word = word, word_scales = scales, position = word })
    refuses("embed: word is U8, expected F32, F16, BF16 or I8", { word = tensor.new("U8", { 2, 3 }) })
  end)

  it("refuses a batch that its tables or its output do not fit", function()
    local word, y = engine.matrix(2, 3), outputs(2, 3)
    local function refuses(message, batch, fields)
      fields.word, fields.y = word, y
      assert.error_matches(function() operator.run("embed", fields, batch) end, message, 1, true)
    end
    refuses("embed: no batch was given", nil, {})
    refuses("embed: y has 2 rows, expected 3: one for each token of the batch", plan.batch { { 0, 1, 1 } }, {})
    refuses("has id 2, expected 0 to 1", plan.batch { { 0, 2 } }, {})
    refuses("a sequence of 2 tokens, expected at most 1: there are 4 positions, the first is 3", plan.batch { { 0, 1 } },
      { position = engine.matrix(4, 3), position_offset = 3 })
    refuses("position is F32 [4][2], expected", plan.batch { { 0, 1 } }, { position = engine.matrix(4, 2) })
    refuses("position_offset is -1, expected 0 or more", plan.batch { { 0, 1 } }, { position_offset = -1 })
    refuses("embed: y shares memory with type", plan.batch { { 0, 1 } }, { type = y })
  end)
end)

describe("norm", function()
  local rows = 19

  local function oracle(x, residual, gamma, beta, eps)
    local want = {}
    for t, row in ipairs(x:totable()) do
      local n, sum, squares = #row, 0, 0
      for k = 1, n do
        row[k] = row[k] + (residual and residual[t][k] or 0)
        sum = sum + row[k]
      end
      for k = 1, n do
        squares = squares + (row[k] - sum / n) ^ 2
      end
      for k = 1, n do
        row[k] = (row[k] - sum / n) / math.sqrt(squares / n + eps) * gamma[k] + beta[k]
      end
      want[t] = row
    end
    return want
  end

  it("is LayerNorm of x + residual, equal everywhere, alone and quantized", function()
    for _, H in ipairs { 1, 15, 16, 48, 127 } do
      local x, residual = engine.matrix(rows, H, 1, 3), engine.matrix(rows, H, 2)
      local gamma, beta = engine.vector(H, 3, 0.5, 1), engine.vector(H, 4)
      local range = quant.range(-2, 3)
      local result = engine.same_everywhere(function()
        local plain, both, static = outputs(rows, H), outputs(rows, H), outputs(rows, H)
        local weights = { gamma = gamma, beta = beta, eps = 1e-5 }
        local function run(fields)
          for key, value in pairs(weights) do
            fields[key] = value
          end
          operator.run("norm", fields)
          return fields.quantize
        end
        run { x = x, y = plain }
        run { x = x, residual = residual, y = both }
        local q = run { x = x, residual = residual, y = static, quantize = quantizer(range, rows, H, "static", false) }
        local token = run { x = x, residual = residual, quantize = quantizer(nil, rows, H, "token", true) }
        local other = run { x = x, residual = residual, quantize = quantizer(nil, rows, H, "token", false) }
        return { plain, both, static, q.q, token.q, token.row_scale, token.row_zero, other.q, other.row_scale, other.row_zero }
      end)
      near(oracle(x, nil, gamma, beta, 1e-5), result[1], 2e-6)
      near(oracle(x, residual, gamma, beta, 1e-5), result[2], 2e-6)
      assert.is_true(result[3]:equals(result[2]))
      assert.is_true(result[4]:equals(quant.quantize(result[2], range).q))
      local by_hand = quant.quantize(result[2])
      assert.is_true(result[5]:equals(by_hand.q) and result[6]:equals(by_hand.scale) and result[7]:equals(by_hand.zero))
      by_hand = quant.quantize(result[2], { symmetric = false })
      assert.is_true(result[8]:equals(by_hand.q) and result[9]:equals(by_hand.scale) and result[10]:equals(by_hand.zero))
    end
  end)

  it("may write over x or over the residual", function()
    local H = 33
    local x, residual = engine.matrix(rows, H, 1), engine.matrix(rows, H, 2)
    local gamma, beta = engine.vector(H, 3), engine.vector(H, 4)
    local function run(a, b, y)
      operator.run("norm", { x = a, residual = b, gamma = gamma, beta = beta, eps = 1e-12, y = y })
      return y
    end
    local want = run(x, residual, outputs(rows, H))
    local a, b = x:copy(), residual:copy()
    assert.is_true(run(a, residual, a):equals(want))
    assert.is_true(run(x, b, b):equals(want))
    assert.error_matches(function() run(x:rows(1, 9), nil, x:rows(2, 10)) end, "norm: y shares memory with x")
  end)

  it("of constant rows is beta", function()
    local y, beta = outputs(2, 20), engine.vector(20, 4)
    local x = tensor.new("F32", { 2, 20 }):set(7)
    operator.run("norm", { x = x, gamma = engine.vector(20, 3), beta = beta, eps = 1e-12, y = y })
    assert.same({ beta:totable(), beta:totable() }, y:totable())
  end)

  it("refuses what does not fit", function()
    local x, g = engine.matrix(3, 4), engine.vector(4)
    local function refuses(message, fields)
      fields.x, fields.gamma = x, g
      assert.error_matches(function() operator.run("norm", fields) end, message, 1, true)
    end
    refuses("norm: beta is missing, expected F32 [4]", { y = outputs(3, 4) })
    refuses("norm: neither y nor quantize is given, expected at least one of these outputs", { beta = g })
    refuses("norm: eps is -1, expected 0 or more", { beta = g, eps = -1, y = outputs(3, 4) })
    refuses("norm: y is F32 [2][4], expected F32 [3][4]", { beta = g, y = outputs(2, 4) })
    refuses("norm: residual is F32 [3][3], expected F32 [3][4]", { beta = g, residual = outputs(3, 3), y = outputs(3, 4) })
    refuses("which this operator does not do", { beta = g, quantize = quantizer(nil, 3, 4, "sequence", true) })
  end)
end)

describe("quantize", function()
  it("per sequence gives each row the range of its sequence, equal everywhere, and the same for a text alone", function()
    for _, K in ipairs { 1, 16, 61 } do
      local batch, T = batch_of(LENGTHS)
      local x, s = engine.matrix(T, K, 1, 5), engine.vector(K, 2, 0.5, 1)
      for _, symmetric in ipairs { true, false } do
        local options = { per = "sequence", symmetric = symmetric, smooth = s, batch = batch }
        local all = engine.same_everywhere(function()
          local x8 = quant.quantize(x, options)
          return { x8.q, x8.scale, x8.zero }
        end)
        local at = 1
        for _, length in ipairs(LENGTHS) do
          local low, high = 0, 0
          for t = at, at + length - 1 do
            for k = 1, K do
              low, high = math.min(low, x[t][k] / s[k]), math.max(high, x[t][k] / s[k])
            end
          end
          local want = symmetric and math.max(-low, high) / 127 or (high - low) / 255
          for t = at, at + length - 1 do
            assert.is_true(math.abs(all[2][t] - want) < 1e-6 * want)
            assert.equal(all[2][at], all[2][t])
            assert.equal(all[3][at], all[3][t])
          end
          local alone = quant.quantize(x:rows(at, at + length - 1),
            { per = "sequence", symmetric = symmetric, smooth = s, batch = batch_of { length } })
          assert.is_true(alone.q:equals(all[1]:rows(at, at + length - 1):copy()))
          at = at + length
        end
      end
    end
  end)

  it("per token of one row is per sequence of one token", function()
    local batch, T = batch_of { 1, 1, 1, 1, 1 }
    local x = engine.matrix(T, 40, 3)
    local by_token, by_sequence = quant.quantize(x), quant.quantize(x, { per = "sequence", batch = batch })
    assert.is_true(by_token.q:equals(by_sequence.q) and by_token.scale:equals(by_sequence.scale))
  end)

  it("of zeros has scale 1", function()
    for _, options in ipairs { { symmetric = true }, { symmetric = false }, { per = "sequence", batch = batch_of { 2 } } } do
      local x8 = quant.quantize(tensor.new("F32", { 2, 20 }), options)
      assert.same({ 1, 1 }, x8.scale:totable())
      assert.is_nil(x8:dequantize():first_nonfinite())
      assert.same(tensor.new("F32", { 2, 20 }):totable(), x8:dequantize():totable())
    end
  end)

  it("refuses a batch of another number of tokens", function()
    assert.error_matches(function() quant.quantize(engine.matrix(3, 4), { per = "sequence", batch = batch_of { 4 } }) end,
      "quantize: x has 3 rows, expected 4: one for each token of the batch")
  end)
end)

describe("attention", function()
  local function oracle(qkv, lengths, heads, scale, bias)
    local width = qkv.shape[2]
    local H, D, list = width / 3, width / 3 / heads, qkv:totable()
    local y, at = {}, 0
    for _, S in ipairs(lengths) do
      for i = 1, S do
        y[at + i] = {}
        for h = 0, heads - 1 do
          local p, most, sum = {}, -math.huge, 0
          for j = 1, S do
            local dot = 0
            for d = 1, D do
              dot = dot + list[at + i][h * D + d] * list[at + j][H + h * D + d]
            end
            p[j] = dot * scale + (bias and bias[h + 1][(#bias[1] + 1) / 2 + j - i] or 0)
            most = math.max(most, p[j])
          end
          for j = 1, S do
            p[j] = math.exp(p[j] - most)
            sum = sum + p[j]
          end
          for d = 1, D do
            local v = 0
            for j = 1, S do
              v = v + p[j] * list[at + j][2 * H + h * D + d]
            end
            y[at + i][h * D + d] = v / sum
          end
        end
      end
      at = at + S
    end
    return y
  end

  it("is softmax(q k^T scale) v of each sequence alone, equal everywhere, and quantized", function()
    for _, shape in ipairs { { 1, 1 }, { 5, 24 }, { 4, 12 }, { 3, 7 } } do
      local heads, D = shape[1], shape[2]
      local H = heads * D
      local batch, T = batch_of(LENGTHS)
      local qkv, range = engine.matrix(T, 3 * H, 1, 2), quant.range(-1, 2)
      local result = engine.same_everywhere(function()
        local y, z = outputs(T, H), outputs(T, H)
        operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, y = y }, batch)
        local q = quantizer(range, T, H, "static", false)
        operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, y = z, quantize = q }, batch)
        local only = quantizer(range, T, H, "static", false)
        operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, quantize = only }, batch)
        return { y, z, q.q, only.q }
      end)
      near(oracle(qkv, LENGTHS, heads, engine.float(D ^ -0.5)), result[1], 3e-6)
      assert.is_true(result[2]:equals(result[1]))
      assert.is_true(result[3]:equals(quant.quantize(result[1], range).q))
      assert.is_true(result[4]:equals(result[3]))
      local at = 1
      for _, length in ipairs(LENGTHS) do
        local alone, part = outputs(length, H), qkv:rows(at, at + length - 1)
        operator.run("attention", { qkv = part, heads = heads, scale = D ^ -0.5, y = alone }, batch_of { length })
        assert.is_true(alone:equals(result[1]:rows(at, at + length - 1):copy()))
        at = at + length
      end
    end
  end)

  -- U8 [T][3H] with zero point 128, and one scale for all heads' Q, K and V.
  local function qkv_u8(T, H, scale)
    local qkv = tensor.new("U8", { T, 3 * H })
    operator.run("quantize", {
      x = engine.matrix(T, 3 * H, 1, 2),
      quantize = { mode = "static", symmetric = true, zero = 128, m = quant.multiplier(scale, 3 * H), q = qkv },
    })
    return qkv
  end

  local function vector(n, value)
    local t = tensor.new("F32", { n })
    for i = 0, n - 1 do
      t[i + 1] = value
    end
    return t
  end

  it("of U8 is the same to 8 bits, equal everywhere, and quantized", function()
    for _, shape in ipairs { { 1, 1 }, { 5, 24 }, { 2, 64 }, { 3, 7 } } do
      local heads, D = shape[1], shape[2]
      local H, scale = heads * D, engine.float(2 / 127)
      local batch, T = batch_of(LENGTHS)
      local qkv, range = qkv_u8(T, H, scale), quant.range(-1, 2)
      local fields = {
        qkv = qkv, heads = heads, scale = D ^ -0.5, qk_scale = vector(heads, scale ^ 2), v_scale = vector(heads, scale),
      }
      local function run(more, part)
        for key, value in pairs(fields) do
          more[key] = more[key] or value
        end
        operator.run("attention", more, part or batch)
      end
      local result = engine.same_everywhere(function()
        local y, z = outputs(T, H), outputs(T, H)
        run { y = y }
        local q, only = quantizer(range, T, H, "static", false), quantizer(range, T, H, "static", false)
        run { y = z, quantize = q }
        run { quantize = only }
        return { y, z, q.q, only.q }
      end)
      local floats = outputs(T, 3 * H)
      for t, row in ipairs(qkv:totable()) do
        for i, value in ipairs(row) do
          engine.floats(floats)[(t - 1) * 3 * H + i - 1] = (value - 128) * scale
        end
      end
      near(oracle(floats, LENGTHS, heads, engine.float(D ^ -0.5)), result[1], 0.02)
      assert.is_true(result[2]:equals(result[1]))
      assert.is_true(result[3]:equals(quant.quantize(result[1], range).q))
      assert.is_true(result[4]:equals(result[3]))
      local at = 1
      for _, length in ipairs(LENGTHS) do
        local alone = outputs(length, H)
        run({ qkv = qkv:rows(at, at + length - 1), y = alone }, batch_of { length })
        assert.is_true(alone:equals(result[1]:rows(at, at + length - 1):copy()))
        at = at + length
      end
    end
  end)

  it("adds to each score its head's bias for the distance", function()
    local heads, D = 3, 8
    local H = heads * D
    local batch, T = batch_of(LENGTHS)
    local qkv, bias = engine.matrix(T, 3 * H, 1, 2), engine.matrix(heads, 2 * 65 - 1, 4, 2)
    local scale = 2 / 127
    local qkv8, qk, v = qkv_u8(T, H, scale), vector(heads, scale * scale), vector(heads, scale)
    local result = engine.same_everywhere(function()
      local y, y8, flat = outputs(T, H), outputs(T, H), outputs(T, H)
      operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, bias = bias, y = y }, batch)
      operator.run("attention", {
        qkv = qkv8, heads = heads, scale = D ^ -0.5, bias = bias, qk_scale = qk, v_scale = v, y = y8,
      }, batch)
      operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, y = flat }, batch)
      return { y, y8, flat }
    end)
    near(oracle(qkv, LENGTHS, heads, engine.float(D ^ -0.5), bias), result[1], 3e-6)
    assert.is_true(result[1]:sqnr(result[2]) > 30 and result[1]:sqnr(result[3]) < 20)
    local wide = engine.matrix(heads, 2 * 80 - 1, 5) -- one of more distances than a sequence has
    for h = 1, heads do
      for d = -64, 64 do
        wide[h][80 + d] = bias[h][65 + d]
      end
    end
    local y = outputs(T, H)
    operator.run("attention", { qkv = qkv, heads = heads, scale = D ^ -0.5, bias = wide, y = y }, batch)
    assert.is_true(y:equals(result[1]))
  end)

  it("of U8 gives each head its own scales", function()
    local qkv, y, one = qkv_u8(9, 8, 2 / 127), outputs(9, 8), outputs(9, 8)
    local qk, v = tensor.from { 1e-4, 5e-4 }, tensor.from { 0.01, 0.25 }
    operator.run("attention", { qkv = qkv, heads = 2, scale = 0.5, qk_scale = qk, v_scale = v, y = y }, batch_of { 9 })
    for h = 0, 1 do
      operator.run("attention", {
        qkv = qkv, heads = 2, scale = 0.5, qk_scale = vector(2, qk[h + 1]), v_scale = vector(2, v[h + 1]), y = one,
      }, batch_of { 9 })
      for t = 0, 8 do
        for d = 0, 3 do
          assert.equal(one[t + 1][h * 4 + d + 1], y[t + 1][h * 4 + d + 1])
        end
      end
    end
  end)

  it("of huge scores is the value of the largest", function()
    local qkv = tensor.from { { 1e4, 1e4, 5 }, { 1e4, -1e4, 7 } }
    local y = outputs(2, 1)
    operator.run("attention", { qkv = qkv, heads = 1, scale = 1, y = y }, batch_of { 2 })
    assert.same({ { 5 }, { 5 } }, y:totable())
  end)

  it("refuses what does not fit", function()
    local qkv, y = engine.matrix(4, 12), outputs(4, 4)
    local function refuses(message, fields, batch)
      assert.error_matches(function() operator.run("attention", fields, batch or batch_of { 4 }) end, message, 1, true)
    end
    refuses("attention: qkv is 12 wide, expected 3 times a multiple of 3 heads", { qkv = qkv, heads = 3, y = y })
    refuses("attention: qkv is 12 wide, expected 3 times a multiple of 0 heads", { qkv = qkv, y = y })
    refuses("attention: y is F32 [4][12], expected F32 [rows][4]", { qkv = qkv, heads = 2, y = outputs(4, 12) })
    refuses("attention: neither y nor quantize", { qkv = qkv, heads = 2 })
    refuses("attention: scale is not finite", { qkv = qkv, heads = 2, scale = 0 / 0, y = y })
    refuses("attention: qkv has 4 rows, expected 3: one for each token of the batch",
      { qkv = qkv, heads = 2, scale = 1, y = y }, batch_of { 3 })
    refuses("attention: qk_scale and v_scale are for U8 qkv, which is F32",
      { qkv = qkv, heads = 2, scale = 1, v_scale = vector(2, 1), y = y })
    local function biased(message, bias)
      refuses(message, { qkv = qkv, heads = 2, scale = 1, bias = bias, y = y })
    end
    biased("attention: bias is F32 [3][7], expected F32 [2]", engine.matrix(3, 7))
    biased("attention: bias is 6 wide, expected an odd number: distances from 1 - M to M - 1", engine.matrix(2, 6))
    biased("attention: a sequence of 4 tokens, expected at most 3, the distances that bias has", engine.matrix(2, 5))
    biased("attention: bias[2][1] is NaN, expected a number", tensor.from { { 0 }, { 0 / 0 } })
    biased("attention: bias[1][1] is too large, expected a number", tensor.from { { 3e38 }, { 0 } })
    refuses("attention: qkv is I8 [4][12], expected F32", { qkv = tensor.new("I8", { 4, 12 }), heads = 2, y = y })
    local function refuses_u8(message, change)
      local fields = { qkv = qkv_u8(4, 4, 1), heads = 2, scale = 1, qk_scale = vector(2, 1), v_scale = vector(2, 1), y = y }
      for key, value in pairs(change) do
        fields[key] = value or nil
      end
      refuses(message, fields)
    end
    refuses_u8("attention: qk_scale is missing, expected F32 [2]", { qk_scale = false })
    refuses_u8("attention: v_scale is missing, expected F32 [2]", { v_scale = false })
    refuses_u8("attention: qk_scale is F32 [3], expected F32 [2]", { qk_scale = vector(3, 1) })
    refuses_u8("attention: v_scale[2] is 0, expected a positive number", { v_scale = tensor.from { 1, 0 } })
    refuses_u8("attention: qk_scale[1] is 3e+38, expected a positive number, times scale a normal float",
      { qk_scale = tensor.from { 3e38, 1 } })
    refuses_u8("attention: qk_scale[1] is NaN, expected a positive number", { qk_scale = tensor.from { 0 / 0, 1 } })
    refuses_u8("attention: scale is -1, expected a positive number for U8 qkv", { scale = -1 })
    assert.error_matches(function()
      local long = 32769
      operator.run("attention", {
        qkv = tensor.new("U8", { long, 3 }), heads = 1, scale = 1, qk_scale = vector(1, 1), v_scale = vector(1, 1),
        y = outputs(long, 1),
      }, batch_of { long })
    end, "attention: a sequence of 32769 tokens, expected at most 32768 in INT8", 1, true)
  end)
end)

describe("pool", function()
  it("is one row for each sequence, equal everywhere", function()
    local batch, T = batch_of(LENGTHS)
    local H = 37
    local x = engine.matrix(T, H, 1, 2)
    local names = { "first", "mean", "max", "mean_sqrt", "last", "weighted" }
    local result = engine.same_everywhere(function()
      local list = {}
      for i, mode in ipairs(names) do
        list[i] = outputs(#LENGTHS, H)
        operator.run("pool", { x = x, mode = mode, y = list[i] }, batch)
      end
      return list
    end)
    local want, at = { {}, {}, {}, {}, {}, {} }, 0
    for b, S in ipairs(LENGTHS) do
      for i = 1, #names do
        want[i][b] = {}
      end
      for k = 1, H do
        local sum, most, weighted = 0, -math.huge, 0
        for t = at + 1, at + S do
          weighted = weighted + (t - at) * x[t][k]
          sum, most = sum + x[t][k], math.max(most, x[t][k])
        end
        want[1][b][k], want[2][b][k], want[3][b][k] = x[at + 1][k], sum / S, most
        want[4][b][k], want[5][b][k] = sum / math.sqrt(S), x[at + S][k]
        want[6][b][k] = weighted / (S * (S + 1) / 2)
      end
      at = at + S
    end
    for i in ipairs(names) do
      near(want[i], result[i], 1e-6)
    end
  end)

  it("refuses outputs of another number of rows", function()
    local x = engine.matrix(4, 3)
    assert.error_matches(function() operator.run("pool", { x = x, mode = "mean", y = outputs(3, 3) }, batch_of { 2, 2 }) end,
      "pool: y has 3 rows, expected 2: one for each sequence of the batch")
    assert.error_matches(function() operator.run("pool", { x = x, mode = "mean", y = outputs(2, 2) }, batch_of { 2, 2 }) end,
      "pool: y is F32 [2][2], expected", 1, true)
  end)
end)

describe("unit", function()
  it("divides each row by its norm, equal everywhere, also in place", function()
    for _, H in ipairs { 1, 16, 61 } do
      local x = engine.matrix(9, H, 3, 4)
      local result = engine.same_everywhere(function()
        local y, z = outputs(9, H), x:copy()
        operator.run("unit", { x = x, y = y })
        operator.run("unit", { x = z, y = z })
        return { y, z }
      end)
      local want = x:totable()
      for _, row in ipairs(want) do
        local sum = 0
        for _, v in ipairs(row) do
          sum = sum + v * v
        end
        for k, v in ipairs(row) do
          row[k] = v / math.sqrt(sum)
        end
      end
      near(want, result[1], 1e-6)
      assert.is_true(result[1]:equals(result[2]))
    end
  end)

  it("of zeros is zeros", function()
    local y = outputs(2, 20)
    operator.run("unit", { x = tensor.new("F32", { 2, 20 }), y = y })
    assert.same(tensor.new("F32", { 2, 20 }):totable(), y:totable())
  end)
end)

describe("values out of the ordinary", function()
  -- Rows with NaN, infinities, denormals and huge numbers at many places, others ordinary.
  local ODD = { 0 / 0, 1 / 0, -1 / 0, 1e-40, -1e-45, 3e38, -3e38, -0.0 }
  local function odd(rows, width, seed)
    local x = engine.matrix(rows, width, seed)
    for i, v in ipairs(ODD) do
      for t = i, rows, 11 do
        x[t][1 + (t * 7 + i) % width] = v
      end
    end
    x[rows - 1]:set(3e38)
    x[rows]:set(1e-40)
    return x
  end

  -- What is NaN is so everywhere; which one is not said.
  local function one_nan(t)
    return t.dtype == "F32" and t:put(t:numbers()) or t
  end

  it("give the same bits on every ISA and number of threads", function()
    local batch, T = batch_of(LENGTHS)
    local H = 48
    local x, y, qkv = odd(T, H, 1), odd(T, H, 2), odd(T, 3 * H, 3)
    local w, f = packed.new(engine.matrix(70, H, 4)), packed.new(engine.matrix(70, H, 4), { dtype = "f32" })
    local gamma, beta = engine.vector(H, 5), engine.vector(H, 6)
    local range = quant.range(-2, 3)
    engine.same_everywhere(function()
      local normed, attended, pooled, unit = outputs(T, H), outputs(T, H), outputs(#LENGTHS, H), outputs(T, H)
      operator.run("norm", { x = x, residual = y, gamma = gamma, beta = beta, eps = 1e-12, y = normed })
      operator.run("attention", { qkv = qkv, heads = 4, scale = 0.3, y = attended }, batch)
      operator.run("pool", { x = x, mode = "mean", y = pooled }, batch)
      operator.run("unit", { x = x, y = unit })
      local token, sequence = quant.quantize(x, { symmetric = false }), quant.quantize(x, { per = "sequence", batch = batch })
      local static = quant.quantize(x, range)
      local list = { normed, attended, pooled, unit, token.q, token.scale, token.zero, sequence.q, sequence.scale, static.q }
      for _, activation in ipairs { "identity", "gelu", "gelu_tanh", "relu", "tanh", "quick_gelu", "silu" } do
        list[#list + 1] = linear(x, f, { activation = activation })
        list[#list + 1] = linear(x, f, { activation = activation, requantize = range }).q
        list[#list + 1] = linear(token, w, { activation = activation })
      end
      for i, t in ipairs(list) do
        list[i] = one_nan(t)
      end
      return list
    end)
  end)
end)

describe("pgee_run", function()
  it("refuses operators that are none, and args that are not there", function()
    assert.equal(P.PGEE_ARGUMENT, P.pgee_run(99, nil, nil))
    assert.equal(P.PGEE_ARGUMENT, P.pgee_run(-1, nil, nil))
    assert.equal(P.PGEE_ARGUMENT, P.pgee_run(P.PGEE_UNIT, nil, nil))
  end)

  it("refuses a plan's buffers", function()
    local x = plan.new():buffer("F32", "tokens", 3)
    assert.error_matches(function() operator.run("unit", { x = x, y = outputs(2, 3) }) end,
      "unit: x is a plan's buffer, which has memory only in a workspace")
  end)

  it("refuses to write to a file", function()
    local path = files.write(files.pack { { "a", "F32", { 1, 2 }, ("\0"):rep(8) } })
    local a = safetensors.open(path):tensor "a"
    files.clean()
    assert.error_matches(function() operator.run("unit", { x = outputs(1, 2), y = a }) end, "unit: y is part of a")
  end)
end)
