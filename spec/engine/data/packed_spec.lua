-- Packed weights: what is quantized, and where the bytes lie. Oracles are doubles over unpacked rows.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local linear = require "perigee.linear"
local packed = require "perigee.packed"
local quant = require "perigee.quant"
local engine = require "spec.support.engine"
local live = require "spec.support.live"
local C = pgee.C
local float, rne = engine.float, engine.rne

-- q and scale of one row of numbers that are floats.
local function quantize_row(row, absmax)
  if not absmax then
    absmax = 0
    for _, v in ipairs(row) do
      absmax = math.max(absmax, math.abs(v))
    end
  end
  local scale = float(absmax / 127)
  if scale < 2^-126 then
    scale = 1
  end
  local q = {}
  for k, v in ipairs(row) do
    q[k] = rne(float(v / scale))
  end
  return q, scale
end

local function sum(list)
  local total = 0
  for _, v in ipairs(list) do
    total = total + v
  end
  return total
end

local function check_rows(w, rows, absmax)
  local q, scales, sums = w:unpack(), w.scales, w.sums
  for n, row in ipairs(rows) do
    local want, scale = quantize_row(row, absmax and absmax[n])
    assert.equal(scale, scales[n])
    assert.same(want, q[n]:totable())
    assert.equal(sum(want), sums[n])
  end
end

-- The bytes of the layout as kernels.h draws it.
local function bytes_of(w)
  local out = ffi.new "pgee_tensor *[1]"
  assert.equal(0, C.pgee_packed_read(packed.handle(w), nil, nil, out))
  return tensor.wrap(out[0])
end

local SHAPES = { { 1, 1 }, { 63, 65 }, { 64, 64 }, { 65, 63 }, { 3, 127 }, { 130, 129 }, { 257, 67 } }

describe("a packed weight", function()
  it("has rows of s8, a scale and a sum each", function()
    for _, shape in ipairs(SHAPES) do
      local W = engine.matrix(shape[1], shape[2], 7, 3)
      local w = packed.new(W)
      assert.same({ shape[1], shape[2], "s8" }, { w.N, w.K, w.dtype })
      check_rows(w, W:totable())
    end
  end)

  it("lies in the layout that the kernels read, zeros around it", function()
    for _, shape in ipairs(SHAPES) do
      local N, K = shape[1], shape[2]
      local w = packed.new(engine.matrix(N, K, 3))
      local bytes, q = bytes_of(w), w:unpack()
      local kblocks = math.ceil(K / 64)
      assert.equal(math.ceil(N / 64) * kblocks * 4096, #bytes)
      assert.equal(0, tonumber(ffi.cast("intptr_t", (bytes:pointer()))) % 64)
      local p, at = bytes:pointer(), 0
      for panel = 0, math.ceil(N / 64) - 1 do
        for block = 0, kblocks - 1 do
          for group = 0, 15 do
            for channel = 0, 63 do
              for input = 0, 3 do
                local n, k = panel * 64 + channel, block * 64 + group * 4 + input
                local want = n < N and k < K and q[n + 1][k + 1] or 0
                if p[at] ~= want then
                  error(("N %d, K %d: W[%d][%d] is %d in the bytes, %d in the matrix"):format(N, K, n, k, p[at], want))
                end
                at = at + 1
              end
            end
          end
        end
      end
    end
  end)

  it("keeps F32 as it is, K padded to 16", function()
    for _, shape in ipairs(SHAPES) do
      local N, K = shape[1], shape[2]
      local W = engine.matrix(N, K, 5)
      local w = packed.new(W, { dtype = "f32" })
      assert.is_true(w:unpack():equals(W))
      assert.same({ N, K, "f32" }, { w.N, w.K, w.dtype })
      assert.is_nil(w.scales)
      assert.is_nil(w.sums)
      local p, K16 = bytes_of(w):numbers(), math.ceil(K / 16) * 16
      assert.equal(math.ceil(N / 64) * K16 * 64, #bytes_of(w))
      for n = 0, math.ceil(N / 64) * 64 - 1 do
        for k = 0, K16 - 1 do
          local want = n < N and k < K and W[n + 1][k + 1] or 0
          assert(p[math.floor(n / 64) * K16 * 64 + k * 64 + n % 64] == want)
        end
      end
    end
  end)

  it("rounds to BF16 in pairs, K padded to 32", function()
    for _, shape in ipairs(SHAPES) do
      local N, K = shape[1], shape[2]
      local W = engine.matrix(N, K, 5)
      local w = packed.new(W, { dtype = "bf16" })
      local rounded, p, blocks = w:unpack():f32(), bytes_of(w):numbers(), math.ceil(K / 32)
      assert.same({ N, K, "bf16" }, { w.N, w.K, w.dtype })
      assert.is_nil(w.scales)
      assert.equal(math.ceil(N / 64) * blocks * 32 * 64, #bytes_of(w))
      for n = 0, math.ceil(N / 64) * 64 - 1 do
        for k = 0, blocks * 32 - 1 do
          local inside = n < N and k < K
          local at = ((math.floor(n / 64) * blocks + math.floor(k / 32)) * 16 + math.floor(k / 2) % 16) * 128 + n % 64 * 2 + k % 2
          assert(p[at] == (inside and rounded[n + 1][k + 1] or 0))
          assert(not inside or math.abs(rounded[n + 1][k + 1] - W[n + 1][k + 1]) <= math.abs(W[n + 1][k + 1]) / 256)
        end
      end
      assert.is_true(packed.over({ N = N, K = K, bytes = w:parts().bytes }):unpack():equals(w:unpack()))
    end
    local ties = packed.new({ { 1, 1 + 2^-8, 1 + 3 * 2^-8, 2 - 2^-9 } }, { dtype = "bf16" })
    assert.same({ { 1, 1, 1.015625, 2 } }, ties:unpack():totable())
  end)

  it("is smoothed before it is quantized", function()
    local W, s = engine.matrix(5, 9, 11), engine.vector(9, 2, 0.5, 1)
    local rows = W:totable()
    for _, row in ipairs(rows) do
      for k = 1, 9 do
        row[k] = float(row[k] * s[k])
      end
    end
    check_rows(packed.new(W, { smooth = s }), rows)
  end)

  it("has one scale for each of the stacked weights if told so", function()
    local A, B = engine.matrix(70, 10, 1, 2), engine.matrix(3, 10, 2, 5)
    local rows, absmax = {}, {}
    for _, W in ipairs { A, B } do
      local most = 0
      for _, row in ipairs(W:totable()) do
        rows[#rows + 1] = row
        for _, v in ipairs(row) do
          most = math.max(most, math.abs(v))
        end
      end
      for _ = 1, #W do
        absmax[#absmax + 1] = most
      end
    end
    check_rows(packed.new({ A, B }, { per = "tensor" }), rows, absmax)
  end)

  it("stacks weights: the same rows as each alone", function()
    local list = { engine.matrix(70, 33, 1), engine.matrix(1, 33, 2), engine.matrix(64, 33, 3) }
    for _, dtype in ipairs { "s8", "bf16", "f32" } do
      local all, at = packed.new(list, { dtype = dtype }):unpack(), 1
      for _, W in ipairs(list) do
        local one = packed.new(W, { dtype = dtype }):unpack()
        assert.is_true(all:rows(at, at + #W - 1):copy():equals(one))
        at = at + #W
      end
    end
  end)

  it("takes F16 and BF16 as the floats they are", function()
    for _, dtype in ipairs { "F16", "BF16" } do
      local H = tensor.from({ { 1.5, -2, 0.25 }, { 6.103515625e-05, 0, -3 } }, dtype)
      assert.is_true(packed.new(H, { dtype = "f32" }):unpack():equals(H:f32()))
      assert.is_true(packed.new(H):unpack():equals(packed.new(H:f32()):unpack()))
    end
  end)

  it("has scale 1 where there is nothing, or too little to divide by", function()
    local w = packed.new { { 0, 0 }, { 1e-40, -1e-42 }, { 126 * 2^-126, 0 }, { 127 * 2^-126, 0 }, { 3e38, -3e38 } }
    assert.same({ { 0, 0 }, { 0, 0 }, { 0, 0 }, { 127, 0 }, { 127, -127 } }, w:unpack():totable())
    assert.same({ 1, 1, 1, 2^-126, float(float(3e38) / 127) }, w.scales:totable())
  end)

  it("rounds halves to even and never beyond 127", function()
    local w = packed.new { { 127, 0.5, 1.5, 2.5, -0.5, -1.5, -126.5, -127 } }
    assert.same({ { 127, 0, 2, 2, 0, -2, -126, -127 } }, w:unpack():totable())
    local next_number = engine.random(9)
    for _ = 1, 2000 do
      local most = next_number() * 10 ^ (next_number() * 30)
      local row = packed.new({ { most, -most } }):unpack()[1]
      assert.equal(127, math.abs(row[1]))
      assert.equal(-row[1], row[2])
    end
  end)

  it("is the same bytes with 1, 2 and 7 threads", function()
    local W, s = engine.matrix(300, 70, 4), engine.vector(70, 3, 0.4, 1)
    for _, options in ipairs { { smooth = s }, { per = "tensor" }, { dtype = "bf16" }, { dtype = "f32" } } do
      local want
      for _, threads in ipairs { 1, 2, 7 } do
        local got = engine.with_threads(threads, function() return bytes_of(packed.new({ W, W }, options)) end)
        want = want or got
        assert.is_true(want:equals(got))
      end
    end
  end)

  it("tells which value is not finite", function()
    local W = engine.matrix(70, 5)
    W[66][3] = 0 / 0
    local V = engine.matrix(2, 5)
    V[2][5] = -1 / 0
    assert.error_matches(function() packed.new(W) end, "weight 1, row 66, column 3 (counted from 1) is NaN", 1, true)
    assert.error_matches(function() packed.new({ engine.matrix(1, 5), V }, { dtype = "f32" }) end,
      "weight 2, row 2, column 5 (counted from 1) is minus infinite", 1, true)
    assert.error_matches(function() packed.new({ { 1, 1e30 } }, { smooth = tensor.from { 1, 1e10 } }) end,
      "weight 1, row 1, column 2 (counted from 1) is infinite when smoothed", 1, true)
  end)

  it("refuses what is no weight", function()
    local W = engine.matrix(2, 3)
    local function refuses(message, ...)
      local arguments = { ... }
      assert.error_matches(function() packed.new(unpack(arguments)) end, message, 1, true)
    end
    refuses("0 weights, expected at least one", {})
    refuses("weight 2 is F32 [2][4], expected a tensor [rows][3]", { W, engine.matrix(2, 4) })
    refuses("weight 1 is U8, expected F32, F16 or BF16", tensor.new("U8", { 2, 3 }))
    refuses("weight 1 is [0][3], expected [N][K]", tensor.new("F32", { 0, 3 }))
    refuses("weight 1 is [1][32769], expected [N][K] with N of 1 or more and K of 1 to 32768",
      tensor.new("F32", { 1, 32769 }))
    refuses("s is F32 [2], expected F32 [3]", W, { smooth = engine.vector(2) })
    refuses("packed: per is the string 'column', expected one of row, tensor", W, { per = "column" })
    refuses("packed: dtype is the string 's4', expected one of bf16, f32, s8", W, { dtype = "s4" })
    refuses("packed has no option smoth, only dtype, in_place, pages, per, scales, smooth", W, { smoth = 1 })
    refuses("packed: in_place is for a tensor [N][K] as it is", { W }, { in_place = true })
    refuses("packed: in_place is for a tensor [N][K] as it is", W, { in_place = true, dtype = "f32" })
    refuses("weight 1 is U8, expected F32, F16 or BF16", tensor.new("U8", { 2, 3 }), { in_place = true })
    assert.error_matches(function() packed.over { N = 3, K = 3, bytes = W } end, "bytes is [2][3], expected [3][3]", 1, true)
    refuses("packed: smooth is for s8 only", W, { dtype = "f32", smooth = engine.vector(3) })
    refuses("weights are nil, expected a tensor", nil)
  end)

  it("gives multipliers, views and its size", function()
    local w = packed.new { { 1, 2 }, { 4, 8 } }
    local m = w:multiplier(0.1)
    assert.same({ float(float(0.1) * w.scales[1]), float(float(0.1) * w.scales[2]) }, m:totable())
    assert.equal(4096 + 2 * 12, w.bytes)
    assert.equal("packed weight s8 [2][2], 4120 bytes", tostring(w))
    assert.error_matches(function() w:multiplier(0) end, "x_scale is 0, expected a positive number")
    assert.error_matches(function() packed.new({ { 1 } }, { dtype = "f32" }):multiplier(1) end, "FP32 weight has no multiplier")
  end)

  it("in place multiplies as if it was packed, and holds no copy", function()
    for _, shape in ipairs { { 1, 1 }, { 63, 5 }, { 64, 16 }, { 129, 70 }, { 200, 33 } } do
      local N, K = unpack(shape)
      for _, dtype in ipairs { "F32", "F16", "BF16" } do
        local W, x = tensor.from(engine.matrix(N, K, N):totable(), dtype), engine.matrix(13, K, 9)
        local own, place = packed.new(W, { dtype = "f32" }), packed.new(W, { in_place = true })
        assert.equal("f32", place.dtype)
        assert.is_true(place:unpack():equals(W:f32()))
        assert.equal(4 * N, place.bytes)
        assert.is_true(place:parts().bytes:pointer() == W:pointer())
        local y = engine.same_everywhere(function()
          return { linear(x, place), linear(x:rows(4, 4), place, { bias = engine.vector(N), activation = "gelu" }) }
        end)
        assert.is_true(y[1]:equals(linear(x, own)))
        assert.is_true(y[2]:equals(linear(x:rows(4, 4), own, { bias = engine.vector(N), activation = "gelu" })))
        W:release() -- the weight holds it
        assert.is_true(linear(x, place):equals(y[1]))
      end
    end
    assert.error_matches(function()
      linear(engine.matrix(1, 3), packed.new(engine.matrix(2, 3), { in_place = true }), { kernel = "onednn" })
    end, "oneDNN", 1, true)
  end)

  it("in place reads a table of type I8 with scales as the floats it stands for", function()
    for _, shape in ipairs { { 1, 1 }, { 63, 5 }, { 64, 16 }, { 129, 70 }, { 200, 33 } } do
      local N, K = unpack(shape)
      local table, scales = quant.table(engine.matrix(N, K, N), "int8")
      local wide = tensor.new("F32", { N, K })
      for n = 1, N do
        for k = 1, K do
          wide[n][k] = float(table[n][k] * scales[n])
        end
      end
      local place, own, x = packed.new(table, { in_place = true, scales = scales }), packed.new(wide, { dtype = "f32" }),
        engine.matrix(13, K, 9)
      assert.equal("f32", place.dtype)
      assert.is_true(place:unpack():equals(wide))
      assert.equal(4 * N, place.bytes)
      local parts = place:parts()
      assert.is_true(parts.bytes:equals(table) and parts.scales:equals(scales) and parts.sums == nil)
      local y = engine.same_everywhere(function() return { linear(x, place) } end)
      assert.is_true(y[1]:equals(linear(x, own)))
    end
  end)

  it("refuses scales that a table does not have", function()
    local table, scales = quant.table(engine.matrix(2, 3), "int8")
    local function refuses(message, ...)
      local arguments = { ... }
      assert.error_matches(function() packed.new(unpack(arguments)) end, message, 1, true)
    end
    refuses("scales is missing, expected F32 [2], one scale for each row of bytes, which is I8", table, { in_place = true })
    refuses("scales is F32 [3], expected F32 [2]", table, { in_place = true, scales = engine.vector(3) })
    refuses("an FP32 weight has no scales", engine.matrix(2, 3), { in_place = true, scales = scales })
    refuses("packed: scales is for in_place = true with a table of type I8 only", engine.matrix(2, 3), { scales = scales })
    assert.error_matches(function()
      packed.over { N = 2, K = 3, bytes = table, scales = scales, sums = tensor.new("I32", { 2 }) }
    end, "a table of type I8 has no sums", 1, true)
    assert.error_matches(function() packed.over { N = 3, K = 3, bytes = table, scales = scales } end,
      "bytes is I8 [2][3], expected", 1, true)
  end)

  it("is freed by name, views keep what they see, and nothing is left", function()
    local before = live()
    local W = engine.matrix(100, 50)
    local w = packed.new(W)
    local scales = w.scales
    local first = scales[1]
    w:release()
    w:release()
    assert.equal(first, scales[1])
    assert.error_matches(function() w:unpack() end, "this packed weight was released")
    assert.equal("packed weight (released)", tostring(w))
    scales:release()
    W:release()
    assert.equal(before, live())
  end)
end)
