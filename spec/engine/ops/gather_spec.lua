-- Rows of some tokens: the first of each sequence, or those that a batch marks; plans whose last steps run on these rows alone.
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local plan = require "perigee.plan"
local tensor = require "perigee.tensor"
local engine = require "spec.support.engine"

local H, N, WORDS = 24, 40, 50
local LENGTHS = { 3, 17, 1, 40, 8, 5 }
local MARKS = { { 1, 3 }, {}, { 1 }, { 2, 7, 8, 40 }, { 8 }, {} }

local function sequences()
  local ids = {}
  for b, length in ipairs(LENGTHS) do
    ids[b] = {}
    for i = 1, length do
      ids[b][i] = (7 * b + 3 * i * i) % WORDS
    end
  end
  return ids
end

-- The tokens that are wanted, counted from 1 over the batch.
local function wanted(mode)
  local list, start = {}, 0
  for b, length in ipairs(LENGTHS) do
    for _, place in ipairs(mode == "first" and { 1 } or MARKS[b]) do
      list[#list + 1] = start + place
    end
    start = start + length
  end
  return list
end

local batch = plan.batch(sequences(), nil, MARKS)

local function refuses(message, f, ...)
  local ok, said = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, said, 1, true)
end

describe("gather", function()
  it("copies the rows of the first or the marked tokens, of matrices and vectors of each type", function()
    assert.equal(8, batch.R)
    for _, mode in ipairs { "first", "marked" } do
      local rows = wanted(mode)
      for dtype, most in pairs { F32 = 1000, U8 = 200, I32 = 1000 } do
        for _, width in ipairs { 0, 1, 7, 24 } do
          local function shape(n)
            return width == 0 and { n } or { n, width }
          end
          local x, want = tensor.new(dtype, shape(batch.T)), tensor.new(dtype, shape(#rows))
          local from, stride = x:pointer()
          for i = 0, batch.T - 1 do
            for j = 0, math.max(width, 1) - 1 do
              from[i * stride + j] = (31 * i + j) % most
            end
          end
          local to, step = want:pointer()
          for i, row in ipairs(rows) do
            for j = 0, math.max(width, 1) - 1 do
              to[(i - 1) * step + j] = from[(row - 1) * stride + j]
            end
          end
          local got = engine.same_everywhere(function()
            local y = tensor.new(dtype, shape(#rows))
            operator.run("gather", { x = x, mode = mode, y = y }, batch)
            return { y }
          end)
          assert.is_true(want:equals(got[1]), mode .. " " .. dtype .. " " .. width)
        end
      end
    end
  end)

  it("refuses rows that do not fit, other types, other batches", function()
    local x, y = engine.matrix(batch.T, H), tensor.new("F32", { batch.B, H })
    refuses("gather: mode is the string 'last', expected one of first, marked", operator.run, "gather",
      { x = x, mode = "last", y = y }, batch)
    refuses("gather: y has 6 rows, expected 8: one for each of the batch's marked tokens",
      operator.run, "gather", { x = x, mode = "marked", y = y }, batch)
    refuses("gather: y is F32 [5][24], expected I32", operator.run, "gather",
      { x = tensor.new("I32", { batch.T, H }), mode = "first", y = tensor.new("F32", { 5, H }) }, batch)
    refuses("gather: x is F64 of 2 dimensions, expected F32, U8 or I32", operator.run, "gather",
      { x = tensor.new("F64", { batch.T, H }), mode = "first", y = y }, batch)
    refuses("gather: x has 3 rows, expected 74: one for each token of the batch", operator.run, "gather",
      { x = engine.matrix(3, H), mode = "first", y = y }, batch)
    refuses("gather: no batch was given", operator.run, "gather", { x = x, mode = "first", y = y })
    refuses("gather: y shares memory with x", operator.run, "gather", { x = x, mode = "first", y = x:rows(1, 6) }, batch)
    local p = plan.new()
    local tokens, marked = p:buffer("F32", "tokens", H), p:buffer("F32", "marked", H)
    p:embed { word = engine.matrix(WORDS, H), y = tokens }
    refuses("gather: y has a row for each marked token, expected a row for each sequence", p.gather, p,
      { x = tokens, mode = "first", y = marked })
    p:gather { x = tokens, mode = "marked", y = marked }
    refuses("gather: x has a row for each marked token, expected a row for each token", p.gather, p,
      { x = marked, mode = "marked", y = p:buffer("F32", "marked", H) })
    refuses("attention: qkv has a row for each marked token", p.attention, p, { qkv = marked, heads = 2, y = marked })
    refuses("pool: x or y has other rows than pooling takes",
      p.pool, p, { x = marked, mode = "mean", y = p:buffer("F32", "sequences", H) })
    refuses("quantize: x has rows of sequences or marked tokens, expected a row for each token",
      p.quantize, p, { x = marked, quantize = { mode = "sequence" } })
    refuses("norm: y is F32 [R][23], expected F32 [rows][24]", p.norm, p, {
      x = marked, gamma = engine.vector(H), beta = engine.vector(H), y = p:buffer("F32", "marked", 23),
    })
  end)
end)

describe("attention of some queries", function()
  local HEADS, D = 3, 20
  local qkv, q8 = engine.matrix(batch.T, 3 * HEADS * D, 9), tensor.new("U8", { batch.T, 3 * HEADS * D })
  operator.run("quantize", { x = qkv, quantize = {
    mode = "static", symmetric = true, zero = 128, m = engine.vector(3 * HEADS * D, 1, 0, 120), q = q8,
  } })

  local function attend(x, queries, rows, quantized, bias)
    local args = { qkv = x, heads = HEADS, scale = D ^ -0.5, queries = queries, bias = bias }
    if x.dtype == "U8" then
      args.qk_scale, args.v_scale = engine.vector(HEADS, 2, 0.001, 0.01), engine.vector(HEADS, 3, 0.001, 0.01)
    end
    local y = tensor.new(quantized and "U8" or "F32", { rows, HEADS * D })
    if quantized then
      args.quantize = { mode = "static", symmetric = false, zero = 100, m = engine.vector(HEADS * D, 4, 20, 200), q = y }
    else
      args.y = y
    end
    operator.run("attention", args, batch)
    return y
  end

  it("gives the rows that it gives among all", function()
    local bias = engine.matrix(HEADS, 2 * batch.S - 1, 8)
    for _, case in ipairs {
      { qkv, false }, { qkv, true }, { q8, false }, { q8, true }, { qkv, false, bias }, { q8, true, bias },
    } do
      local x, quantized, own = unpack(case, 1, 3)
      local whole = attend(x, "all", batch.T, quantized, own):totable()
      for _, queries in ipairs { "first", "marked" } do
        local want = {}
        for i, row in ipairs(wanted(queries)) do
          want[i] = whole[row]
        end
        local got = engine.same_everywhere(function() return { attend(x, queries, #want, quantized, own) } end)
        assert.same(want, got[1]:totable())
      end
    end
  end)

  it("is divided evenly, and counted", function()
    for _, case in ipairs { { "first", 3 + 17 + 1 + 40 + 8 + 5 }, { "marked", 2 * 3 + 1 + 4 * 40 + 8 } } do
      local queries, pairs_of_tokens = unpack(case)
      local p = plan.new()
      local x = p:buffer("F32", "tokens", 3 * HEADS * D)
      local y = p:buffer("F32", queries == "first" and "sequences" or "marked", HEADS * D)
      p:embed { word = engine.matrix(WORDS, 3 * HEADS * D), y = x }
      p:attention { qkv = x, heads = HEADS, scale = 1, queries = queries, y = y }
      p:seal { y }
      for _, threads in ipairs { 1, 2, 7 } do
        local sum = 0
        for _, work in ipairs(p:work(batch, threads)) do
          sum = sum + work
        end
        assert.equal(pairs_of_tokens * 2 * HEADS * D, sum)
      end
    end
  end)

  it("refuses results of other rows", function()
    local args = { qkv = qkv, heads = HEADS, scale = 1, queries = "first", y = tensor.new("F32", { batch.T, HEADS * D }) }
    refuses("attention: y has 74 rows, expected one for each query, 6", operator.run, "attention", args, batch)
    args.queries = "last"
    refuses("queries is the string 'last', expected one of all, first, marked", operator.run, "attention", args, batch)
    refuses("attention: quantize.q is missing", operator.run, "attention", {
      qkv = qkv, heads = HEADS, scale = 1, queries = "first", quantize = { mode = "static", m = engine.vector(HEADS * D) },
    }, batch)
    local p = plan.new()
    local x, y = p:buffer("F32", "tokens", 3 * H), p:buffer("F32", "tokens", H)
    p:embed { word = engine.matrix(WORDS, 3 * H), y = x }
    refuses("attention: y has a row for each token, expected a row for each sequence", p.attention, p,
      { qkv = x, heads = 2, scale = 1, queries = "first", y = y })
    refuses("attention: quantize.q has a row for each token, expected a row for each marked token", p.attention, p, {
      qkv = x, heads = 2, scale = 1, queries = "marked",
      quantize = { mode = "static", m = engine.vector(H), q = p:buffer("U8", "tokens", H) },
    })
  end)
end)

describe("marks of a batch", function()
  it("ascend within their sequences", function()
    local ids = { { 1, 2, 3 }, { 4, 5 } }
    for _, marks in ipairs { { { 2, 2 }, {} }, { { 3, 1 }, {} }, { {}, { 3 } }, { { 0 }, {} }, { { 1.5 }, {} } } do
      refuses("expected ascending places in a sequence of", plan.batch, ids, nil, marks)
    end
    refuses("expected a list of places for each sequence", plan.batch, ids, nil, { {} })
  end)

  it("are looked at before a run", function()
    local x, y = engine.matrix(5, H), tensor.new("F32", { 2, H })
    local own = plan.batch({ { 1, 2, 3 }, { 4, 5 } }, nil, { { 1 }, { 2 } })
    for _, bad in ipairs { { 4, 4 }, { 4, 1 }, { 3, 5 }, { -1, 3 } } do
      own.rows[0], own.rows[1] = bad[1], bad[2]
      refuses("expected ascending numbers below 5", operator.run, "gather", { x = x, mode = "marked", y = y }, own)
    end
    own.c.rows = nil
    refuses("the batch has 2 marked tokens but no rows", operator.run, "gather", { x = x, mode = "marked", y = y }, own)
    own.c.R = 6
    refuses("6 tokens of 5 are marked", operator.run, "gather", { x = x, mode = "marked", y = y }, own)
  end)
end)

describe("a plan with marked rows", function()
  local word, gamma, beta = engine.matrix(WORDS, H, 1), engine.vector(H, 4, 0.2, 1), engine.vector(H, 5, 0.1)
  local W, V = packed.new(engine.matrix(N, H, 6)), packed.new(engine.matrix(H, N, 7), { dtype = "f32" })

  -- Embedding, dynamic quantization, two linears, a norm; the rows of `mode` are taken before them, or after, where it is nil.
  local function build(mode)
    local p, rows = plan.new(), mode == "first" and "sequences" or mode or "tokens"
    local x = p:buffer("F32", "tokens", H)
    p:embed { word = word, y = x }
    if mode then
      local all = x
      x = p:buffer("F32", rows, H)
      p:gather { x = all, mode = mode, y = x }
    end
    local q, scale, zero = p:buffer("U8", rows, H), p:buffer("F32", rows), p:buffer("I32", rows)
    local inner, y = p:buffer("F32", rows, N), p:buffer("F32", rows, H)
    p:quantize { x = x, quantize = { mode = "token", q = q, row_scale = scale, row_zero = zero } }
    p:linear { x = q, w = W, scale = W.scales, row_scale = scale, row_zero = zero, activation = "gelu", y = inner }
    p:linear { x = inner, w = V, residual = x, y = y }
    p:norm { x = y, gamma = gamma, beta = beta, eps = 1e-12, y = y }
    p:seal { y }
    return p, y
  end

  local function run(p, y, given)
    local w = p:workspace { tokens = given.T, sequences = given.B, longest = given.S, marked = given.R }
    local result = w:run(given):output(y):copy()
    w:release()
    return result
  end

  it("computes those rows as they are among all", function()
    local p, y = build()
    local whole = run(p, y, batch):totable()
    for _, mode in ipairs { "first", "marked" } do
      local some, out = build(mode)
      local want = {}
      for i, row in ipairs(wanted(mode)) do
        want[i] = whole[row]
      end
      local got = engine.same_everywhere(function() return { run(some, out, batch) } end)
      assert.same(want, got[1]:totable())
    end
  end)

  it("runs without a mark, and says how many there is room for", function()
    local p, y = build "marked"
    assert.same({ 0, H }, run(p, y, plan.batch(sequences())).shape)
    local w = p:workspace { tokens = batch.T, sequences = batch.B, longest = batch.S, marked = 7 }
    refuses("a batch with 8 marked tokens in a workspace for 7", w.run, w, batch)
    local room = { tokens = 64, sequences = 2, longest = 64 }
    local before = p:bytes(room)
    room.marked = 64
    assert.is_true(p:bytes(room) >= before + 64 * (H + N) * 4)
  end)
end)
