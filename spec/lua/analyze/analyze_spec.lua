-- The arithmetic of the analysis: machines from descriptions, rooflines, ceilings, predictions. Nothing is measured here.
local ceilings = require "perigee.analyze.ceilings"
local files = require "spec.support.files"
local machine = require "perigee.analyze.machine"
local predict = require "perigee.analyze.predict"
local roofline = require "perigee.analyze.roofline"

-- Asserts that a number is the expected one within a share of it.
local function near(expected, got, tolerance)
  assert.is_true(math.abs(got / expected - 1) <= (tolerance or 1e-9), ("expected %g, got %g"):format(expected, got))
end

-- A machine of round numbers: 2 cores; balance points of 100 (FP32) and 400 (INT8) operations a byte of memory.
local function plain(changes)
  local m = {
    name = "plain", isa = "avx512vnni", cores = 2, peak = { f32 = 1e12, int8 = 4e12 },
    bandwidth = { l2 = 4e11, l3 = 1e11, memory = 1e10 }, cache = { l2 = 1e6, l3 = 1e7 },
  }
  for key, value in pairs(changes or {}) do
    m[key] = value
  end
  return m
end

describe("a described machine", function()
  it("has the peaks and bandwidths that its specification gives", function()
    local ice = machine.load "icelake-8380"
    assert.are.same({ 40, "avx512vnni", false }, { ice.cores, ice.isa, ice.measured })
    near(40 * 2.3e9 * 64, ice.peak.f32)
    near(4, ice.peak.int8 / ice.peak.f32)
    assert.is_nil(ice.peak.bf16)
    near(0.8 * 204.8e9, ice.bandwidth.memory) -- 8 channels of 25.6 GB/s
    local granite = machine.load "granite-rapids-6980p"
    near(128 * 2e9 * 2048, granite.peak.int8)
    near(16, granite.peak.bf16 / granite.peak.f32)
    near(0.8 * 844.8e9, granite.bandwidth.memory)
    near(3.2 / 2, machine.load("granite-rapids-6980p", "turbo").peak.int8 / granite.peak.int8)
  end)

  it("is read from a file of one's own, which is checked", function()
    local function load(text)
      local path = files.write(text)
      os.rename(path, path .. ".lua")
      local ok, result = pcall(machine.load, path .. ".lua")
      os.remove(path .. ".lua")
      return ok, result
    end
    local text = [[return { name = "mine", isa = "avx2", cores = %s,
      clock = { base = 3e9 }, per_cycle = { f32 = 32, int8 = 64 },
      cache = { l2 = 1e6, l3 = 1e7 }, bytes_per_cycle = { l2 = 32, l3 = 8 }, memory = { channels = 2, transfers = 3.2e9 }%s }]]
    local ok, mine = load(text:format("4", ""))
    assert.is_true(ok, tostring(mine))
    near(4 * 3e9 * 32, mine.peak.f32)
    for expected, given in pairs {
      ["cores is the string 'four', expected a number"] = { "'four'", "" },
      ["cores is nil, expected a number"] = { "nil", "" },
      ["has no option speed"] = { "4", ", speed = 1" },
      ["efficiency.int8 is 2, expected a number from 0.001 to 1"] = { "4", ", efficiency = { int8 = 2 }" },
      ["fails"] = { "os.exit(1)", "" },
    } do
      local fine, why = load(text:format(unpack(given)))
      assert.is_false(fine)
      assert.matches(expected, why, 1, true)
    end
  end)

  it("has a name or is a file", function()
    assert.has_error(function() machine.load "sapphire" end,
      "the machine is the string 'sapphire', expected this, icelake-8380, granite-rapids-6980p, "
      .. "or a file whose name ends in .lua")
    assert.has_error(function() machine.load "none/such.lua" end)
  end)

  it("is divided among processes", function()
    local part = machine.part(plain(), 1, 2)
    assert.are.same({ 1, 5e11, 2e12 }, { part.cores, part.peak.f32, part.peak.int8 })
    assert.are.same({ l2 = 2e11, l3 = 5e10, memory = 5e9 }, part.bandwidth)
    assert.are.equal(1e7, part.cache.l3) -- the weights are shared
  end)
end)

describe("the roofline", function()
  it("says where weights lie", function()
    assert.are.same({ "l2", "l3", "memory" }, {
      roofline.level(plain(), 2e6), roofline.level(plain(), 1e7), roofline.level(plain(), 1e7 + 1),
    })
    assert.are.equal("memory", roofline.level(plain { cache = {}, bandwidth = { memory = 1e10 } }, 1))
  end)

  it("of weights in memory is memory-bound below the balance point and compute-bound above", function()
    local narrow = roofline.linear(plain(), { M = 10, N = 1000, K = 1000 }, "int8", 1e8)
    assert.are.same({ "memory", "memory", 2e7, 1e6 }, { narrow.bound, narrow.level, narrow.operations, narrow.bytes })
    near(20, narrow.intensity)
    near(400, narrow.balance)
    near(1e6 / 1e10, narrow.seconds)
    near(20 * 1e10, narrow.operations_per_second)
    local wide = roofline.linear(plain(), { M = 400, N = 1000, K = 1000 }, "int8", 1e8)
    assert.are.equal("compute", wide.bound)
    near(4e12, wide.operations_per_second)
  end)

  it("counts rows and results where they do not fit a nearer cache than the weights", function()
    local l = roofline.linear(plain(), { M = 10, N = 100, K = 100 }, "f32") -- all in L2
    assert.are.same({ "l2", 4 * (100 * 100 + 10 * 100 + 10 * 100) }, { l.level, l.bytes })
    local long = roofline.linear(plain(), { M = 1e6, N = 1000, K = 1000 }, "f32", 1e6) -- weights in L2, rows in memory
    assert.are.equal("compute", long.bound)
    local thin = roofline.linear(plain(), { M = 1e6, N = 10, K = 1000 }, "f32", 1e6)
    assert.are.same({ "memory", "memory", "l2" }, { thin.bound, thin.level, thin.weights })
    near(4e6 * 1010 / 1e10, thin.seconds)
  end)

  it("bounds the speed-up: by the peaks if compute-bound, by the bytes if memory-bound", function()
    local list = {
      { name = "a", M = 1000, N = 1000, K = 1000, steps = 24 }, { name = "b", M = 1, N = 1000, K = 1000, steps = 24 },
    }
    local bounds = roofline.linears(plain(), list)
    near(4, bounds[1].speedup.int8)
    near(4, bounds[2].speedup.int8) -- a quarter of the bytes
    assert.are.same({ "compute", "memory" }, { bounds[1].f32.bound, bounds[2].int8.bound })
    assert.is_nil(bounds[1].bf16)
    assert.is_nil(bounds[1].speedup.bf16)
    near(24 * (bounds[1].int8.seconds + bounds[2].int8.seconds), roofline.seconds(bounds, "int8"))
    -- INT8 weights fit the cache, FP32 weights do not: the speed-up exceeds the quarter of the bytes.
    local fits = roofline.linears(plain(), { { name = "b", M = 1, N = 1000, K = 1000, steps = 8 } })
    near(40, fits[1].speedup.int8)
  end)
end)

describe("ceilings", function()
  it("follow Amdahl's law", function()
    near(1, ceilings.amdahl { { share = 1, speedup = 1 } })
    near(1.6, ceilings.amdahl { { share = 0.5, speedup = 4 }, { share = 0.5, speedup = 1 } })
    assert.has_error(function() ceilings.amdahl { { share = 0.5, speedup = 4 } } end, "the shares add up to 0.5, expected 1")
    assert.has_error(function() ceilings.amdahl { { share = 1, speedup = 0 } } end)
  end)

  it("are the published ones within 3 %, and higher if attention is INT8", function()
    for _, p in ipairs(ceilings.PUBLISHED) do
      near(p.stated, ceilings.linears(p.linear, p.speedup, p.rest), 0.03)
      local more = ceilings.with_attention(p.linear, p.attention, p.speedup, p.speedup, p.rest)
      assert.is_true(more > p.stated and more < p.speedup)
    end
    local ice, granite = unpack(ceilings.PUBLISHED)
    near(3.91, ceilings.with_attention(ice.linear, ice.attention, ice.speedup, ice.speedup, ice.rest), 0.01)
    near(10.63, ceilings.with_attention(granite.linear, granite.attention, granite.speedup, granite.speedup, granite.rest), 0.02)
  end)

  it("of a measured model rise with each part that becomes faster", function()
    local c = ceilings.measured({ linear = 8, attention = 1, rest = 1 }, { linear = 2, attention = 0.25 }, { rest = 0.5 })
    near(10 / 4, c.linears)
    near(10 / 3.25, c.attention)
    near(10 / 2.75, c.rest)
  end)
end)

describe("a prediction", function()
  -- 24 layers; linears at half of their roofline on `plain`.
  local M, N, K = 400, 1000, 1000
  local function profile()
    local bound = roofline.linear(plain(), { M = M, N = N, K = K }, "int8", 24e6)
    return {
      { op = "linear", name = "a", N = N, K = K, precision = "int8", steps = 24, seconds = 24 * bound.seconds * 2,
        work = 24 * M * N * K },
      { op = "attention", name = "attention", precision = "int8", steps = 24, seconds = 1e-3, work = 1e9 },
      { op = "norm", name = "norm", steps = 48, seconds = 2e-4, work = 0 },
    }
  end

  it("on the same machine is what was measured", function()
    local groups = profile()
    local shares, mean = predict.efficiencies(plain(), groups, M)
    near(0.5, shares.a)
    near(0.5, mean)
    local sum = predict.seconds(plain(), plain(), groups, M)
    near(groups[1].seconds, sum.linear)
    near(1e-3, sum.attention)
    near(2e-4, sum.rest)
    near(groups[1].seconds + 1.2e-3, sum.all)
  end)

  it("on a machine with twice the INT8 peak halves what is bound by it, and nothing else", function()
    local twice = plain { peak = { f32 = 1e12, int8 = 8e12 } }
    local before, after = predict.seconds(plain(), plain(), profile(), M), predict.seconds(plain(), twice, profile(), M)
    near(before.linear / 2, after.linear)
    near(before.rest, after.rest)
    near(1e-3 - 2e9 / 2e12 / 2, after.attention)
  end)

  it("counts a barrier after each step, by the logarithm of the threads", function()
    local slow = plain { barrier = 1e-4 }
    local before, after = predict.seconds(plain(), plain(), profile(), M), predict.seconds(plain(), slow, profile(), M)
    near(96e-4, after.barriers)
    near(before.all + after.barriers, after.all)
    assert.are.equal(0, machine.part(slow, 1, 2).barrier)
    near(1e-4 / 2, machine.part(plain { cores = 16, barrier = 1e-4 }, 4, 4).barrier)
  end)

  it("takes what the description says of the linears' share", function()
    local known = plain { efficiency = { int8 = 0.25 } }
    near(2 * predict.seconds(plain(), plain(), profile(), M).linear, predict.seconds(plain(), known, profile(), M).linear)
  end)

  it("of instances trades latency for texts a second", function()
    local rows = predict.instances(plain(), machine.load "icelake-8380", profile(), M, 4)
    assert.are.same({ 1, 40, 40, 1 }, { rows[1].instances, rows[1].threads, rows[#rows].instances, rows[#rows].threads })
    assert.are.equal(8, #rows) -- the divisors of 40
    for i = 2, #rows do
      assert.is_true(rows[i].seconds > rows[i - 1].seconds)
    end
    for _, row in ipairs(rows) do
      near(row.instances * 4 / row.seconds, row.texts_per_second)
    end
    assert.is_true(rows[1].best and rows[#rows].best and rows[#rows].texts_per_second > rows[1].texts_per_second)
  end)

  it("needs a peak of each type that the profile has", function()
    local none = plain { name = "none", peak = { f32 = 1e12 } }
    assert.has_error(function() predict.seconds(plain(), none, profile(), M) end, "none has no peak of int8")
  end)
end)
