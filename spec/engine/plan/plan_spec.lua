-- Plans and workspaces: building, running, where memory lies, threads, processes, interrupts.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local plan = require "perigee.plan"
local quant = require "perigee.quant"
local observer = require "perigee.observer"
local live = require "spec.support.live"
local engine = require "spec.support.engine"
local P = pgee.C
local C = require("spec.support.native").cdef [[
  int spec_callers(pgee_workspace **workspaces, int count, const pgee_batch *batch, const pgee_tensor *output,
                   const float *expected, int runs);
  int fork(void);
  int waitpid(int pid, int *status, int options);
  void _exit(int status);
]]

local WORDS, POSITIONS, H, I, HEADS = 50, 512, 48, 80, 4

-- Weights of a small encoder layer.
local weights = {
  word = engine.matrix(WORDS, H, 1), position = engine.matrix(POSITIONS, H, 2), type = engine.matrix(2, H, 3),
  gamma = engine.vector(H, 4, 0.2, 1), beta = engine.vector(H, 5, 0.1),
  qkv = engine.matrix(3 * H, H, 6, 0.3), up = engine.matrix(I, H, 8, 0.3), down = engine.matrix(H, I, 9, 0.3),
  bias = engine.vector(I, 10, 0.1),
}

-- A plan of one layer with every kind of step. mode: "static", "token" or "sequence"; or "int8", static with INT8 attention.
-- Returns it, its hidden states and vectors.
local function encoder(mode)
  local p, int8 = plan.new(), mode == "int8"
  mode = int8 and "static" or mode
  local scale = 0.03
  local function buffers(width)
    return { q = p:buffer("U8", "tokens", width), row_scale = p:buffer("F32", "tokens"), row_zero = p:buffer("I32", "tokens") }
  end
  local function quantizer(b, width)
    if mode == "static" then
      return { mode = "static", symmetric = false, zero = 120, m = quant.multiplier(scale, width), q = b.q }
    end
    return { mode = mode, symmetric = mode == "token", q = b.q, row_scale = b.row_scale, row_zero = b.row_zero }
  end
  local function input(b, w)
    if mode == "static" then
      return { x = b.q, w = w, scale = w:multiplier(scale), zero = 120 }
    end
    return { x = b.q, w = w, scale = w.scales, row_scale = b.row_scale, row_zero = b.row_zero }
  end
  local function linear(b, W, fields)
    for key, value in pairs(input(b, packed.new(W))) do
      fields[key] = value
    end
    return p:linear(fields)
  end
  local x, y = p:buffer("F32", "tokens", H), p:buffer("F32", "tokens", H)
  local qkv, inner = p:buffer("F32", "tokens", 3 * H), p:buffer("F32", "tokens", I)
  local x8, inner8 = buffers(H), buffers(I)
  local vectors = p:buffer("F32", "sequences", H)
  p:embed { word = weights.word, position = weights.position, type = weights.type, y = x }
  p:quantize { x = x, quantize = quantizer(x8, H) }
  if int8 then
    local qkv8 = p:buffer("U8", "tokens", 3 * H)
    linear(x8, weights.qkv, {
      quantize = { mode = "static", symmetric = true, zero = 128, m = quant.multiplier(0.05, 3 * H), q = qkv8 },
    })
    p:attention {
      qkv = qkv8, heads = HEADS, scale = (H / HEADS) ^ -0.5, y = y, qk_scale = engine.vector(HEADS, 1, 0, 0.0025),
      v_scale = engine.vector(HEADS, 1, 0, 0.05),
    }
  else
    linear(x8, weights.qkv, { y = qkv })
    p:attention { qkv = qkv, heads = HEADS, scale = (H / HEADS) ^ -0.5, y = y }
  end
  if mode == "sequence" then
    p:norm { x = y, residual = x, gamma = weights.gamma, beta = weights.beta, eps = 1e-12, y = y }
    p:quantize { x = y, quantize = quantizer(x8, H) }
  else
    p:norm { x = y, residual = x, gamma = weights.gamma, beta = weights.beta, eps = 1e-12, y = y, quantize = quantizer(x8, H) }
  end
  linear(x8, weights.up, { bias = weights.bias, activation = "gelu", y = inner })
  p:quantize { x = inner, quantize = quantizer(inner8, I) }
  linear(inner8, weights.down, { residual = y, y = y })
  p:pool { x = y, mode = "mean", y = vectors }
  p:unit { x = vectors, y = vectors }
  p:seal { y, vectors }
  return p, y, vectors
end

-- Sequences of these lengths with fixed ids and types.
local function sequences(lengths)
  local ids, types, state = {}, {}, 11
  for b, length in ipairs(lengths) do
    ids[b], types[b] = {}, {}
    for i = 1, length do
      state = (state * 16807) % 2147483647
      ids[b][i], types[b][i] = state % WORDS, i > length / 2 and 1 or 0
    end
  end
  return ids, types
end

local function capacity(batch)
  return { tokens = batch.T, sequences = batch.B, longest = batch.S }
end

local function run(p, batch, ...)
  local w, results = p:workspace(capacity(batch)), {}
  w:run(batch)
  for i, b in ipairs { ... } do
    results[i] = w:output(b):copy()
  end
  w:release()
  return unpack(results)
end

local MODES = { "static", "token", "sequence", "int8" }
local LENGTHS = { 3, 17, 1, 40, 8, 5 }

describe("a plan", function()
  it("gives each text the same bits alone, in any batch, order, number of threads, and on every ISA", function()
    local ids, types = sequences(LENGTHS)
    for _, mode in ipairs(MODES) do
      local p, y, vectors = encoder(mode)
      local all = engine.same_everywhere(function() return { run(p, plan.batch(ids, types), y, vectors) } end)
      local at = 1
      for b, length in ipairs(LENGTHS) do
        local hidden, vector = run(p, plan.batch({ ids[b] }, { types[b] }), y, vectors)
        assert.is_true(all[1]:rows(at, at + length - 1):copy():equals(hidden), mode .. ", text " .. b)
        assert.is_true(all[2]:rows(b, b):copy():equals(vector))
        at = at + length
      end
      local back_ids, back_types = {}, {}
      for b = 1, #ids do
        back_ids[b], back_types[b] = ids[#ids + 1 - b], types[#ids + 1 - b]
      end
      local _, backwards = run(p, plan.batch(back_ids, back_types), y, vectors)
      for b = 1, #ids do
        assert.is_true(all[2]:rows(b, b):copy():equals(backwards:rows(#ids + 1 - b, #ids + 1 - b):copy()))
      end
    end
  end)

  it("runs one sequence of 512 tokens, 512 of one, and none", function()
    for _, mode in ipairs(MODES) do
      local p, y, vectors = encoder(mode)
      local lengths = {}
      for b = 1, 512 do
        lengths[b] = 1
      end
      for _, threads in ipairs { 1, 7 } do
        engine.with_threads(threads, function()
          for _, case in ipairs { { 512 }, lengths } do
            local ids, types = sequences(case)
            local hidden, vector = run(p, plan.batch(ids, types), y, vectors)
            assert.same({ 512, H }, hidden.shape)
            assert.same({ #case, H }, vector.shape)
            assert.is_nil(hidden:first_nonfinite())
          end
          local hidden, vector = run(p, plan.batch {}, y, vectors)
          assert.same({ { 0, H }, { 0, H } }, { hidden.shape, vector.shape })
        end)
      end
    end
  end)

  it("divides its multiply-adds so that no thread has more than 10 % above the mean", function()
    local p = encoder "static"
    for _, case in ipairs { { 128 }, { 32 }, LENGTHS, { 512 }, { 60, 1, 1, 1, 300 } } do
      local batch = plan.batch(sequences(case))
      local whole = p:work(batch, 1)[1]
      for _, threads in ipairs { 2, 3, 7 } do
        local work, total, most = p:work(batch, threads), 0, 0
        for _, v in ipairs(work) do
          total, most = total + v, math.max(most, v)
        end
        assert.equal(whole, total)
        assert.is_true(most <= 1.1 * total / threads, ("%d threads: %d of %d"):format(threads, most, total))
      end
    end
  end)

  it("counts its work: panels of 64, and attention", function()
    local p = encoder "static"
    local linears = 64 * (3 * H + 2 * H + 1 * I) -- [144][48] is 3 panels, [80][48] 2, [48][80] 1
    assert.equal(10 * linears + 2 * H * (4 * 4 + 6 * 6), p:work(plan.batch(sequences { 4, 6 }), 1)[1])
    assert.same({ 0, 0 }, p:work(plan.batch {}, 2))
  end)

  it("lists its steps and profiles them", function()
    local p = encoder "token"
    local names = { "embed", "quantize", "linear", "attention", "norm", "linear", "quantize", "linear", "pool", "unit" }
    assert.same(names, p:steps())
    assert.equal("plan of 10 steps", tostring(p))
    local batch = plan.batch(sequences(LENGTHS))
    for _, threads in ipairs { 1, 2 } do
      engine.with_threads(threads, function()
        local w = p:workspace(capacity(batch))
        local seconds = w:profile(batch)
        assert.equal(#names, #seconds)
        for _, s in ipairs(seconds) do
          assert.is_true(s > 0 and s < 10)
        end
        assert.same({ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, w:profile(plan.batch {}))
      end)
    end
  end)

  it("holds its weights: what was given to it may be freed", function()
    local p = plan.new()
    local x, y = p:buffer("F32", "tokens", 3), p:buffer("F32", "tokens", 2)
    local word, W = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }, tensor.from { { 1, 0, 1 }, { 0, 2, 0 } }
    local w, bias = packed.new(W, { dtype = "f32" }), tensor.from { 10, 20 }
    p:embed { word = word, y = x }
    p:linear { x = x, w = w, bias = bias, y = y }
    p:seal { y }
    for _, t in ipairs { word, W, w, bias } do
      t:release()
    end
    assert.same({ { 20, 30 }, { 14, 24 } }, run(p, plan.batch { { 1, 0 } }, y):totable())
  end)

  it("and its workspaces leave nothing behind", function()
    local batch = plan.batch(sequences(LENGTHS))
    local function work()
      local p, y, vectors = encoder "sequence"
      run(p, batch, y, vectors)
    end
    work()
    local before = live()
    work()
    assert.equal(before, live())
  end)
end)

describe("building a plan refuses", function()
  local function refuses(message, f, ...)
    local arguments = { ... }
    assert.error_matches(function() f(unpack(arguments)) end, message, 1, true)
  end
  local p, x, y, q, v
  before_each(function()
    p = plan.new()
    x, y, q = p:buffer("F32", "tokens", H), p:buffer("F32", "tokens", H), p:buffer("U8", "tokens", H)
    v = p:buffer("F32", "sequences", H)
  end)
  local function embed()
    p:embed { word = weights.word, y = x }
  end

  it("buffers of strange shapes", function()
    refuses("buffer: rows is the string 'words', expected one of marked, sequences, tokens", p.buffer, p, "F32", "words", 3)
    refuses("'F8', expected", p.buffer, p, "F8", "tokens", 3)
    refuses("a buffer of type 1, expected F32, U8 or I32", p.buffer, p, "F16", "tokens", 3)
    refuses("buffer: width is -1, expected an integer of at least 0", p.buffer, p, "F32", "tokens", -1)
  end)

  it("fields that are unknown, missing or of another kind", function()
    refuses("norm has no option gama, only beta, eps, gamma, quantize, residual, x, y", p.norm, p, { gama = x })
    refuses("norm: x is missing", p.norm, p, {})
    refuses("norm: x is 3, expected a tensor", p.norm, p, { x = 3 })
    refuses("norm: eps is the string 'small', expected a number", p.norm, p, { eps = "small" })
    refuses("norm: quantize has no option scale", p.norm, p, { quantize = { scale = 1 } })
    refuses("quantize: quantize: symmetric is 1, expected true or false", p.quantize, p, { quantize = { symmetric = 1 } })
    refuses("linear: w is a table, expected a packed weight", p.linear, p, { w = {} })
    refuses("observe: observer is missing", function() embed() p:observe { x = x } end)
    refuses("pool: mode is the string 'median', expected one of first, last, max, mean, mean_sqrt", p.pool, p,
      { mode = "median" })
  end)

  it("shapes that do not fit", function()
    embed()
    refuses("norm: gamma is F32 [47], expected F32 [48]", p.norm, p,
      { x = x, gamma = engine.vector(H - 1), beta = weights.beta, y = y })
    refuses("norm: y has a row for each sequence, expected a row for each token", p.norm, p,
      { x = x, gamma = weights.gamma, beta = weights.beta, y = v })
    refuses("embed: word is F32 [1][3], expected", p.embed, p, { word = engine.matrix(1, 3), y = x })
    refuses("embed: y has a row for each sequence, expected a row for each token", p.embed, p, { word = weights.word, y = v })
    refuses("linear: w is missing, expected a packed weight", p.linear, p, {})
    refuses("attention: qkv is 48 wide, expected 3 times a multiple of 5 heads", p.attention, p, { qkv = x, heads = 5, y = y })
    refuses("pool: x or y has other rows than pooling takes, expected x with a row for each token", p.pool, p,
      { x = x, mode = "mean", y = y })
  end)

  it("reading what nothing has written", function()
    refuses("unit: x is read before any step has written it", p.unit, p, { x = x, y = y })
  end)

  it("writing to a tensor of its own, or to a weight's place", function()
    embed()
    refuses("unit: y is a tensor of its own, expected a buffer of the plan", p.unit, p,
      { x = x, y = tensor.new("F32", { 3, H }) })
    local vector = p:buffer("F32", "tokens")
    p:quantize { x = x, quantize = { mode = "token", q = q, row_scale = vector, row_zero = p:buffer("I32", "tokens") } }
    refuses("norm: gamma is a plan's buffer, expected a weight", p.norm, p, { x = x, gamma = vector, beta = weights.beta, y = y })
  end)

  it("one buffer for two things", function()
    embed()
    local s = p:buffer("F32", "tokens")
    refuses("quantize.row_zero is F32 [T], expected I32 [rows]", p.quantize, p,
      { x = x, quantize = { mode = "token", q = q, row_scale = s, row_zero = s } })
    p:unit { x = x, y = x } -- allowed
    local w = packed.new(engine.matrix(H, H), { dtype = "f32" })
    refuses("linear: y shares memory with x", p.linear, p, { x = x, w = w, y = x })
  end)

  it("buffers of another plan", function()
    local other = plan.new()
    local b = other:buffer("F32", "tokens", H)
    refuses("embed: y is a buffer of another plan", p.embed, p, { word = weights.word, y = b })
    other:release()
    refuses("embed: y is a buffer of a plan that was released", p.embed, p, { word = weights.word, y = b })
  end)

  it("quantizers that contradict themselves", function()
    embed()
    local function quantizer(fields)
      return { x = x, quantize = fields }
    end
    local m, s, z = engine.vector(H, 1, 0, 1), p:buffer("F32", "tokens"), p:buffer("I32", "tokens")
    refuses("quantize.mode is 0", p.quantize, p, quantizer {})
    refuses("quantize.m is missing, expected F32 [48]", p.quantize, p, quantizer { mode = "static", q = q })
    refuses("quantize.q is missing, expected U8", p.quantize, p, quantizer { mode = "static", m = m })
    refuses("quantize.zero is 256, expected 0 to 255", p.quantize, p, quantizer { mode = "static", m = m, q = q, zero = 256 })
    refuses("quantize.zero is 3, expected 128 if symmetric", p.quantize, p,
      quantizer { mode = "static", m = m, q = q, zero = 3, symmetric = true })
    refuses("quantize.row_scale is missing, expected F32 [rows]", p.quantize, p, quantizer { mode = "token", q = q })
    refuses("quantize.zero is 3, expected 0: dynamic quantization finds its own", p.quantize, p,
      quantizer { mode = "token", q = q, row_scale = s, row_zero = z, zero = 3 })
    refuses("quantize.row_scale and row_zero are for dynamic quantization", p.quantize, p,
      quantizer { mode = "static", m = m, q = q, row_scale = s, row_zero = z })
    refuses("norm: quantize.mode is 3, which this operator does not do", p.norm, p, { x = x, gamma = weights.gamma,
      beta = weights.beta, y = y, quantize = { mode = "sequence", q = q, row_scale = s, row_zero = z } })
  end)

  it("anything once sealed, and running before", function()
    embed()
    refuses("the plan is not sealed yet", p.workspace, p, { tokens = 1, sequences = 1 })
    refuses("the plan is not sealed yet", p.bytes, p, { tokens = 1, sequences = 1 })
    refuses("output 1 (counted from 1) is written by no step", p.seal, p, { y })
    refuses("output 1 (counted from 1) is no buffer of the plan", p.seal, p, { plan.new():buffer("F32", "tokens", 1) })
    refuses("output 1 is the string 'x', expected a buffer of the plan", p.seal, p, { "x" })
    p:seal { x }
    refuses("the plan is sealed: nothing can be added", p.buffer, p, "F32", "tokens", 1)
    refuses("the plan is sealed: nothing can be added", p.unit, p, { x = x, y = y })
    refuses("the plan is sealed: nothing can be added", p.seal, p, { x })
  end)
end)

describe("a workspace", function()
  local ids, types = sequences(LENGTHS)
  local batch = plan.batch(ids, types)

  it("is as large as was said before, for any number of threads", function()
    local p = encoder "sequence"
    local sizes = { { tokens = 0, sequences = 0 }, { tokens = 1, sequences = 1 }, { tokens = 300, sequences = 20, longest = 64 } }
    for _, threads in ipairs { 1, 2, 7 } do
      engine.with_threads(threads, function()
        for _, c in ipairs(sizes) do
          local bytes, w = p:bytes(c), nil
          assert.equal(bytes, (live.during(function() w = p:workspace(c) end)))
          assert.equal(bytes, w:bytes())
          assert.equal(("workspace of %d bytes"):format(bytes), tostring(w))
          assert.equal(-bytes, (live.during(function() w:release() end)))
        end
      end)
    end
  end)

  it("allocates nothing in a run", function()
    local p, y = encoder "token"
    local w = p:workspace(capacity(batch))
    w:run(batch)
    assert.same({ 0, 0 }, { live.during(function() w:run(batch) end) })
    assert.equal(batch.T, #w:output(y))
  end)

  it("gives buffers that are not used together one place", function()
    local function bytes(layers)
      local p = plan.new()
      local x = p:buffer("F32", "tokens", 64)
      p:embed { word = engine.matrix(3, 64), y = x }
      for _ = 1, layers do
        local y = p:buffer("F32", "tokens", 64)
        p:norm { x = x, gamma = engine.vector(64), beta = engine.vector(64), y = y }
        x = y
      end
      p:seal { x }
      return p:bytes { tokens = 1000, sequences = 1 }
    end
    assert.is_true(bytes(20) - bytes(2) < 20 * 1000) -- handles and args, not 18 buffers of 256,000 bytes
    assert.is_true(bytes(20) > 2 * 256000)
  end)

  it("keeps outputs to the end, and no other buffer's value is given out", function()
    local p = plan.new()
    local list = {}
    for i = 1, 6 do
      list[i] = p:buffer("F32", "tokens", 3)
    end
    local word = tensor.from { { 1, 2, 2 }, { 3, 0, 4 } }
    p:embed { word = word, y = list[1] }
    for i = 2, 6 do
      p:unit { x = list[i - 1], y = list[i] }
    end
    p:seal { list[6], list[1] }
    local w = p:workspace { tokens = 2, sequences = 1 }
    w:run(plan.batch { { 1, 0 } })
    assert.same({ { 3, 0, 4 }, { 1, 2, 2 } }, w:output(list[1]):totable())
    assert.equal(engine.float(0.6), w:output(list[6])[1][1])
    assert.error_matches(function() w:output(list[2]) end, "no output of the plan")
    assert.error_matches(function() w:output(nil) end, "output is nil, expected a buffer of the plan")
  end)

  it("serves batches of any size up to its capacity", function()
    local p, y, vectors = encoder "static"
    local w = p:workspace { tokens = 100, sequences = 8, longest = 40 }
    local _, want = run(p, batch, y, vectors)
    for b = 1, #LENGTHS do
      w:run(plan.batch({ ids[b] }, { types[b] }))
      assert.is_true(w:output(vectors):copy():equals(want:rows(b, b):copy()))
    end
    w:run(batch)
    assert.is_true(w:output(vectors):copy():equals(want))
    w:run(plan.batch {})
    assert.same({ 0, H }, w:output(vectors).shape)
  end)

  it("refuses what is beyond its capacity, naming both", function()
    local p = encoder "static"
    local w = p:workspace { tokens = 10, sequences = 2, longest = 6 }
    local function refuses(lengths)
      assert.error_matches(function() w:run(plan.batch(sequences(lengths))) end, "in a workspace for 10 in 2 of up to 6")
    end
    refuses { 6, 5 }
    refuses { 1, 1, 1 }
    refuses { 7 }
    w:run(plan.batch(sequences { 6, 4 }))
    assert.error_matches(function() p:workspace { tokens = -1, sequences = 1 } end,
      "tokens is -1, expected an integer of at least 0", 1, true)
    assert.error_matches(function() p:workspace { token = 1 } end, "capacity has no option token, only longest, marked, seq")
    assert.error_matches(function() w:run { { 1, 2 } } end, "batch is a table, expected one that plan.batch made")
  end)

  it("refuses ids, types and lengths that the tables lack, before it runs anything", function()
    local p, y = encoder "static"
    local w = p:workspace { tokens = 1000, sequences = 4, longest = 1000 }
    w:run(plan.batch { { 1, 2 } })
    local before = w:output(y):copy()
    local function refuses(message, ...)
      local b = plan.batch(...)
      assert.error_matches(function() w:run(b) end, message, 1, true)
      assert.is_true(w:output(y):copy():equals(before))
    end
    refuses("embed: token 3 of the batch (counted from 1) has id 50, expected 0 to 49", { { 1 }, { 2, 50 } })
    refuses("embed: token 1 of the batch (counted from 1) has id -1, expected 0 to 49", { { -1 } })
    refuses("embed: token 2 of the batch (counted from 1) has type 2, expected 0 to 1", { { 1, 1 } }, { { 0, 2 } })
    local long = {}
    for i = 1, POSITIONS + 1 do
      long[i] = 1
    end
    refuses("embed: a sequence of 513 tokens, expected at most 512", { long })
  end)

  it("refuses starts that do not ascend from 0 to T", function()
    local p = encoder "static"
    local w = p:workspace { tokens = 10, sequences = 4 }
    local function refuses(message, T, starts)
      local b = plan.batch { { 1, 1, 1, 1 } }
      local array = ffi.new("int32_t[?]", #starts, starts)
      b.c.T, b.c.B, b.c.starts = T, #starts - 1, array
      assert.error_matches(function() w:run(b) end, message, 1, true)
    end
    refuses("the first sequence starts at token 1, expected 0", 4, { 1, 4 })
    refuses("sequence 2 of the batch (counted from 1) has 0 tokens, expected 1 or more", 4, { 0, 2, 2, 4 })
    refuses("sequence 2 of the batch (counted from 1) has -1 tokens", 4, { 0, 3, 2, 4 })
    refuses("the last sequence ends at token 3, but the batch has 4", 4, { 0, 3 })
    refuses("a batch of 0 tokens in 1 sequences", 0, { 0, 0 })
    refuses("a batch of -1 tokens", -1, { 0, -1 })
    assert.error_matches(function() plan.batch { { 1, "x" } } end, "ids[1][2] is the string 'x', expected an integer", 1, true)
    assert.error_matches(function() plan.batch({ { 1 } }, { { 0, 0 } }) end, "sequence 1 of the batch")
  end)

  it("runs with fewer threads than it was made for, never with more", function()
    local p, y, vectors = encoder "sequence"
    local _, want = run(p, batch, y, vectors)
    for _, made in ipairs { 1, 3, 7 } do
      local w = engine.with_threads(made, function() return p:workspace(capacity(batch)) end)
      for _, threads in ipairs { 1, 2, 7 } do
        engine.with_threads(threads, function()
          w:run(batch)
          assert.is_true(w:output(vectors):copy():equals(want))
        end)
      end
    end
  end)

  it("outlives its plan's handle, and views outlive the workspace", function()
    local p, y, vectors = encoder "static"
    local _, want = run(p, batch, y, vectors)
    local w = p:workspace(capacity(batch))
    p:release()
    w:run(batch)
    local view = w:output(vectors)
    w:release()
    assert.is_true(view:copy():equals(want))
    assert.error_matches(function() w:run(batch) end, "this workspace was released")
    assert.error_matches(function() p:steps() end, "this plan was released")
  end)

  it("of its own lets any number of OS threads run one plan at once", function()
    for _, mode in ipairs(MODES) do
      local p, y, vectors = encoder(mode)
      local _, want = run(p, batch, y, vectors)
      for _, threads in ipairs { 1, 3 } do
        engine.with_threads(threads, function()
          local own, array = {}, ffi.new "pgee_workspace *[3]"
          for i = 1, 3 do
            own[i] = p:workspace(capacity(batch))
            array[i - 1] = own[i].handle
          end
          assert.equal(0, C.spec_callers(array, 3, batch.c, vectors.handle, engine.floats(want), 10))
          want[1][1] = want[1][1] + 1 -- and the check would see it
          assert.equal(3, C.spec_callers(array, 3, batch.c, vectors.handle, engine.floats(want), 1))
          want[1][1] = want[1][1] - 1
          _, want = run(p, batch, y, vectors)
        end)
      end
    end
  end)

  it("works in a child of fork, before and after a run in the parent", function()
    local p, y, vectors = encoder "token"
    local _, want = run(p, batch, y, vectors)
    engine.with_threads(3, function()
      local w = p:workspace(capacity(batch))
      local function right()
        w:run(batch)
        return w:output(vectors):copy():equals(want)
      end
      for _ = 1, 2 do
        io.stdout:flush()
        local pid = C.fork()
        if pid == 0 then
          local ok, same = pcall(right)
          C._exit(ok and same and 0 or 1)
        end
        assert.is_true(right())
        local status = ffi.new "int[1]"
        assert.equal(pid, C.waitpid(pid, status, 0))
        assert.equal(0, status[0])
      end
    end)
  end)
end)

describe("an interrupt", function()
  after_each(function() P.pgee_interrupt(0) end)

  it("stops runs until it is withdrawn, and leaves nothing half done", function()
    local p, y, vectors = encoder "static"
    local batch = plan.batch(sequences(LENGTHS))
    local _, want = run(p, batch, y, vectors)
    local w = p:workspace(capacity(batch))
    assert.equal(0, P.pgee_interrupted())
    P.pgee_interrupt(1)
    assert.equal(1, P.pgee_interrupted())
    assert.equal(P.PGEE_INTERRUPTED, P.pgee_workspace_run(w.handle, batch.c))
    assert.error_matches(function() w:run(batch) end, "interrupted before the first step")
    assert.error_matches(function() quant.quantize { { 1 } } end, "interrupted")
    P.pgee_interrupt(0)
    w:run(batch)
    assert.is_true(w:output(vectors):copy():equals(want))
  end)

  it("by a signal's handler stops a run between two steps, with all threads", function()
    local output = engine.process({}, [[
      local ffi = require "ffi"
      package.path = "./?.lua;" .. package.path
      local plan, tensor, observer = require "perigee.plan", require "perigee.tensor", require "perigee.observer"
      local seen = observer.new(64)
      local P = require("perigee.ffi").C
      ffi.cdef "void (*signal(int, void (*)(int)))(int); unsigned alarm(unsigned); int setitimer(int, const long *, long *);"
      P.pgee_threads_set(3)
      local p = plan.new()
      local x = p:buffer("F32", "tokens", 64)
      p:embed { word = tensor.new("F32", { 2, 64 }), y = x }
      for _ = 1, 20000 do
        p:unit { x = x, y = x }
      end
      p:observe { x = x, observer = seen }
      p:seal { x }
      local w = p:workspace { tokens = 2000, sequences = 1 }
      local ids = {}
      for i = 1, 2000 do ids[i] = 1 end
      local b = plan.batch { ids }
      ffi.C.signal(14, ffi.cast("void (*)(int)", P.pgee_interrupt)) -- SIGALRM, whose number is not 0
      ffi.C.setitimer(0, ffi.new("long[4]", 0, 0, 0, 30000), nil) -- in 30 ms
      local ok, message = pcall(w.run, w, b)
      io.write(tostring(ok), " ", message, "; ", seen.count)
    ]])
    assert.matches("false .*interrupted after step %d+ of 20002; 0$", output)
  end)
end)

describe("an observer in a plan", function()
  it("sees what passes, and stops the run at what is not finite", function()
    for _, threads in ipairs { 1, 3 } do
      engine.with_threads(threads, function()
        local p, first, second = plan.new(), observer.new(2, { name = "embedding" }), observer.new(2)
        local x, z = p:buffer("F32", "tokens", 2), p:buffer("F32", "tokens", 2)
        p:embed { word = tensor.from { { 1, -2 }, { 3, 4 }, { 1 / 0, 0 } }, y = x }
        p:embed { word = tensor.new("F32", { 3, 2 }), y = z }
        p:observe { x = x, observer = first }
        p:observe { x = z, observer = second }
        p:seal {}
        local w = p:workspace { tokens = 4, sequences = 2 }
        w:run(plan.batch { { 0, 1 }, { 1 } })
        assert.same({ { 0, -2 }, { 3, 4 }, 3 }, { first.min:totable(), first.max:totable(), first.count })
        assert.error_matches(function() w:run(plan.batch { { 0, 2 } }) end, "embedding: row 2 of 2, channel 1 of 2 is infinite")
        assert.same({ 3, 3 }, { first.count, second.count })
        first:release() -- the plan holds it
        w:run(plan.batch { { 0 } })
        assert.equal(4, second.count)
      end)
    end
  end)
end)
