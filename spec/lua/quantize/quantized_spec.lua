-- Quantized models: calibration, settings at work, what is remade after a change. Their bits are spec/golden's.
local failure = require "spec.support.failure"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local ffi = require "ffi"

local inputs, others = models.random_inputs(12, 30, 97, 1), models.random_inputs(7, 30, 97, 2)
local model, stats

setup(function()
  model = perigee.load(models.path "gelu")
  stats = model:calibrate(inputs, { progress = false })
end)

teardown(function()
  stats:release()
  model:release()
end)

describe("the setting tables", function()
  local tensor_bytes = { F32 = 4, F16 = 2, I8 = 1 }

  it("makes F16 and INT8 tables, and goes back", function()
    local q = model:quantize { activations = "dynamic" }
    local own, held = q:hidden(others), q:memory().tables
    for setting, dtype in pairs { f16 = "F16", int8 = "I8" } do
      q.tables = setting
      local embed = q:runner("hidden").lowered.embeds[1]
      local bytes = 0
      for _, key in ipairs { "word", "position", "type" } do
        local t, scales = embed[key], embed[key .. "_scales"]
        assert.equal(dtype, t.dtype)
        assert.same(dtype == "I8" and { t.shape[1] } or nil, scales and scales.shape)
        bytes = bytes + t.shape[1] * t.shape[2] * tensor_bytes[dtype] + (scales and 4 * t.shape[1] or 0)
      end
      assert.equal(bytes, q:memory().tables)
      assert.is_true(bytes <= held) -- the checkpoint has F16
      assert.matches("embedding tables: " .. setting, table.concat(q:explain().notes, " "), 1, true)
      local changed = q:hidden(others)
      assert.is_true(changed:sqnr(own) > 20)
      changed:release()
      q:undo()
      assert.is_true(q:hidden(others):equals(own))
    end
    own:release()
    q:release()
  end)

  it("is saved and opened with the same bits, the tied decoder included", function()
    local m = perigee.load "spec/golden/tasks/mlm"
    for _, setting in ipairs { "f16", "int8" } do
      for _, floats in ipairs { "f32", "bf16" } do
        local q = m:quantize { activations = "dynamic", tables = setting, floats = floats }
        local path = os.tmpname()
        q:save(path)
        local a = perigee.open(path, { verify = true })
        assert.are.same(q:fill_mask "the [MASK] and [MASK]", a:fill_mask "the [MASK] and [MASK]")
        assert.equal(setting, a.tables)
        os.remove(path)
        a:release()
        q:release()
      end
    end
    m:release()
  end)

  it("refuses what it is not", function()
    assert.matches('tables is "int4", expected "f32" or "f16" or "int8"', failure(model.quantize, model, { tables = "int4" }), 1,
      true)
  end)
end)

describe("calibration", function()
  local function same(a, b)
    for name, seen in pairs(a.sites) do
      for _, key in ipairs { "min", "max", "sample" } do
        assert.is_true(seen[key]:equals(b.sites[name][key]), name .. " " .. key)
      end
    end
    for name, seen in pairs(a.attention) do
      local other = b.attention[name]
      assert.is_true(seen.min:equals(other.min) and seen.max:equals(other.max) and seen.sqnr == other.sqnr, name)
    end
  end

  it("sees every site once", function()
    local names = {}
    for name in pairs(stats.sites) do
      names[#names + 1] = name
    end
    assert.are.equal(8, #names)
    assert.are.equal(12, stats.texts)
    assert.are.same({ 64 }, stats.sites["encoder.layer.1.attention.self.qkv"].min.shape)
    assert.are.same({ 222, 150 }, stats.sites["encoder.layer.0.output.dense"].sample.shape)
    local attention = stats.attention["encoder.layer.1.attention.self"]
    assert.are.same({ 192 }, attention.min.shape)
    assert.is_true(attention.sqnr > 20 and attention.sqnr < 60, attention.sqnr)
  end)

  it("does not depend on how texts are batched or on threads", function()
    local threads = perigee.threads()
    for _, budget in ipairs { 1, 64 } do
      perigee.threads(budget == 1 and 1 or 3)
      local again = model:calibrate(inputs, { progress = false, budget = budget })
      same(stats, again)
      again:release()
    end
    perigee.threads(threads)
  end)

  it("takes an iterator, and as many texts as asked for", function()
    local i = 0
    local again = model:calibrate(function()
      i = i + 1
      return inputs[i]
    end, { progress = false, samples = 5 })
    assert.are.same({ 5, 5 }, { i, again.texts })
    local first = model:calibrate({ unpack(inputs, 1, 5) }, { progress = false })
    same(first, again)
  end)

  it("reports progress", function()
    local seen = {}
    local function progress(done, total)
      seen[#seen + 1] = done .. "/" .. total
    end
    model:calibrate(inputs, { budget = 1, progress = progress, samples = 3 })
    assert.are.same({ "1/3", "2/3", "3/3" }, seen)
  end)

  it("says what it cannot use", function()
    assert.matches("no text to calibrate on", failure(model.calibrate, model, {}))
    assert.matches("expected a list of texts, such as perigee.texts%(path%), or an iterator; got the string 'a'",
      failure(model.calibrate, model, "a"))
    assert.matches("calibrate: expected a list of texts, found the key ids",
      failure(model.calibrate, model, { ids = { 1, 2 } }))
    assert.matches("calibrate: samples is 0, expected an integer of at least 1",
      failure(model.calibrate, model, inputs, { samples = 0 }))
    assert.matches("calibrate has no option sample, only", failure(model.calibrate, model, inputs, { sample = 2 }))
    assert.matches("calibrate: input 2 is 7, expected a text", failure(model.calibrate, model, { { ids = { 1 } }, 7 }))
  end)
end)

describe("quantize", function()
  it("refuses what it cannot do", function()
    for _, case in ipairs {
      { {}, "static activations need statistics" },
      { { activations = "dynamic", alpha = 0.5 }, "quantize: alpha is 0.5, but smoothing needs statistics: give stats = " },
      { { activations = "dynamic", alpha = require("perigee.quantize.settings").ALPHA.dynamic },
        "but smoothing needs statistics" },
      { { activations = "dynamic", alpha = { ["*"] = 0.5 } }, "quantize: alpha is 0.5, but smoothing needs statistics" },
      { { activations = "dynamic", sites = { ["*.0.*"] = { alpha = 0.5 } } }, "quantize: alpha is 0.5, but smoothing needs" },
      { { stats = 7 }, "stats is 7, expected what model:calibrate returns" },
      { { stats = { sites = {} } }, "stats is a table, expected what model:calibrate returns" },
      { { stats = stats, alpha = 1.5 }, "alpha is 1.5, expected a number from 0 to 1" },
      { { stats = stats, skip = { "*" } }, "quantize matched no linear" },
      { { stats = stats, skip = { "encoder.layer.7.*" } }, 'skip pattern "encoder.layer.7.*" matches no linear' },
      { { activations = "dynamic", attention = "int8" }, "INT8 attention needs statistics: stats = model:calibrate(texts)" },
      { { stats = stats, alhpa = 0.5 }, 'there is no "alhpa" (did you mean "alpha"?)' },
    } do
      assert.matches(case[2], failure(model.quantize, model, case[1]), 1, true)
    end
    assert.matches("expected a table of settings, got nil", failure(model.quantize, model))
  end)

  it("refuses statistics of another model", function()
    local other = perigee.load(models.path "tiny")
    local foreign = other:calibrate({ { ids = { 1, 2, 3 } } }, { progress = false })
    assert.matches("saw 15 channels at the site encoder.layer.0.attention.self.qkv, which has 64",
      failure(model.quantize, model, { stats = foreign }))
    foreign.sites["encoder.layer.0.attention.self.qkv"] = nil
    assert.matches("nothing about the site encoder.layer.0.attention.self.qkv",
      failure(model.quantize, model, { stats = foreign }))
    local none = model:calibrate(inputs, { progress = false })
    none.attention["encoder.layer.1.attention.self"] = nil
    assert.matches("nothing about the attention encoder.layer.1.attention.self of width 64",
      failure(model.quantize, model, { stats = none }))
    model:quantize({ stats = none, attention = "f32" }):release()
    none:release()
  end)

  for name, chosen in pairs {
    static = { activations = "static" },
    ["static, symmetric, weights per tensor"] = { activations = "static", symmetric = true, weights = "tensor" },
    ["static, not smoothed"] = { activations = "static", alpha = false },
    ["dynamic per token"] = { activations = "dynamic" },
    ["dynamic per sequence, asymmetric"] = { activations = "dynamic", per = "sequence", symmetric = false },
    ["static, attention FP32"] = { activations = "static", attention = "f32" },
    ["static, attention INT8"] = { activations = "static", attention = "int8" },
    ["dynamic per token, attention INT8"] = { activations = "dynamic", attention = "int8" },
    ["dynamic per sequence, attention INT8"] = { activations = "dynamic", per = "sequence", attention = "int8" },
    ["static, half of it skipped"] = { activations = "static", skip = { "encoder.layer.0.*" } },
  } do
    it("is near FP32: " .. name, function()
      chosen.stats = stats
      local q = model:quantize(chosen)
      local reference, test = model:hidden(others), q:hidden(others)
      local db = reference:sqnr(test)
      assert.is_true(db > 15 and db < 80, ("SQNR %.1f dB"):format(db))
      q:release()
    end)
  end

  it("without statistics is dynamic and not smoothed, and says so", function()
    local q = model:quantize { activations = "dynamic" }
    local explained = q:explain()
    assert.matches("no statistics: nothing is smoothed", tostring(explained), 1, true)
    assert.is_nil(explained.rows[1].alpha)
    local unsmoothed = model:quantize { activations = "dynamic", stats = stats, alpha = false, attention = "f32" }
    assert.is_true(q:hidden(others):equals(unsmoothed:hidden(others)))
  end)

  it("gives the same bits however inputs are batched, and with any number of threads", function()
    local threads = perigee.threads()
    for _, activations in ipairs { "static", "dynamic" } do
      local q = model:quantize { activations = activations, stats = stats }
      local all, batch = q:hidden(others)
      for _, n in ipairs { 1, 2, 5 } do
        perigee.threads(n)
        for i, input in ipairs(others) do
          assert.is_true(q:hidden(input):equals(all:rows(batch.starts[i - 1] + 1, batch.starts[i])))
        end
      end
      q:release()
    end
    perigee.threads(threads)
  end)
end)

describe("a quantized model", function()
  it("outlives its statistics, as long as its settings stay", function()
    local own = model:calibrate(inputs, { progress = false })
    local q = model:quantize { stats = own }
    own:release()
    assert.are.same({ 64 }, q:embed({ ids = { 1, 2 } }).shape)
    assert.are.same({ 2, 64 }, q:hidden({ ids = { 1, 2 } }).shape)
    assert.matches("the statistics were released: SQNR is not known", tostring(q:explain()), 1, true)
    assert.matches("the statistics were released", failure(q.set, q, { alpha = 0.2 }))
    q:release()
  end)

  it("can be released and used again", function()
    local q = model:quantize { stats = stats }
    local hidden = q:hidden(others)
    q:release()
    assert.is_true(q:hidden(others):equals(hidden))
    q:release()
  end)

  it("tells the model's limit, config and task", function()
    local q = model:quantize { stats = stats }
    assert.are.same({ 64, 2, "embed" }, { q.limit, q.config.num_hidden_layers, q.task })
    q:release()
  end)
end)

describe("settings of a quantized model", function()
  local q

  before_each(function() q = model:quantize { stats = stats, alpha = { ["*"] = 0.5 } } end)
  after_each(function() q:release() end)

  local function fresh(chosen)
    chosen.stats = stats
    local other = model:quantize(chosen)
    local hidden = other:hidden(others)
    other:release()
    return hidden
  end

  it("are read and set by name, with the bits of a model made anew", function()
    assert.are.same({ "static", "row" }, { q.activations, q.weights })
    q.alpha = 0.8
    assert.are.equal(0.8, q.alpha)
    assert.is_true(q:hidden(others):equals(fresh { alpha = 0.8 }))
    q.activations = "dynamic"
    assert.is_true(q:hidden(others):equals(fresh { alpha = 0.8, activations = "dynamic" }))
  end)

  it("change only what depends on them", function()
    local before = q.memo.made
    q:set { alpha = { ["*"] = 0.5, ["encoder.layer.1.output.dense"] = 0.9 } }
    assert.are.equal(4, q.memo.made - before) -- factors, quantizer, packed, multiplier of one site
    assert.is_true(q:hidden(others):equals(fresh { alpha = { ["*"] = 0.5, ["encoder.layer.1.output.dense"] = 0.9 } }))
  end)

  it("that are refused change nothing", function()
    local hidden, made = q:hidden(others), q.memo.made
    for _, change in ipairs { { alpha = 2 }, { skip = { "*" } }, { skip = { "nothing" } }, { activations = "x" }, { z = 1 } } do
      failure(q.set, q, change)
    end
    assert.has_error(function() q.alpha = 0 / 0 end)
    assert.has_error(function() q.alhpa = 1 end)
    for _, name in ipairs { "stats", "model", "memo", "settings" } do
      assert.matches('there is no "' .. name .. '"', failure(function() q[name] = {} end))
    end
    assert.are.equal(made, q.memo.made)
    assert.are.same({ 0.5 }, { q.alpha["*"] })
    assert.is_true(q:hidden(others):equals(hidden))
  end)

  it("free what they no longer need", function()
    q:hidden(others):release()
    q.alpha = 0.1
    q:hidden(others):release()
    local first = live()
    for i = 2, 9 do
      q.alpha = i / 10
      q:hidden(others):release()
    end
    assert.are.equal(first, live())
  end)
end)

describe("attention", function()
  local function precisions(q)
    local list = {}
    for i, row in ipairs(q:explain().attention) do
      list[i] = row.precision
    end
    return list
  end

  it("is INT8 where statistics say that it keeps enough, and the linear before it is INT8", function()
    local q = model:quantize { stats = stats }
    assert.are.same({ "int8", "int8" }, precisions(q))
    q:release()
    q = model:quantize { stats = stats, activations = "dynamic" }
    assert.are.same({ "int8", "int8" }, precisions(q))
    q:release()
    q = model:quantize { activations = "dynamic" }
    assert.are.same({ "f32", "f32" }, precisions(q))
    q:release()
    for _, attention in ipairs { "auto", "int8" } do
      q = model:quantize { stats = stats, attention = attention, skip = "encoder.layer.0.attention.self.key" }
      assert.are.same({ "f32", "int8" }, precisions(q))
      q:release()
    end
    assert.are.same({ "f32", "f32" }, { model:explain().attention[1].precision, model:explain().attention[2].precision })
  end)

  it("stays FP32 below the least SQNR, unless INT8 is asked for", function()
    local other = model:calibrate(inputs, { progress = false })
    other.attention["encoder.layer.1.attention.self"].sqnr = 19.9
    other.attention["encoder.layer.0.attention.self"].sqnr = 0 / 0
    local q = model:quantize { stats = other }
    assert.are.same({ "f32", "f32" }, precisions(q))
    assert.are.equal(19.9, q:explain().attention[2].sqnr)
    q.attention = "int8"
    assert.are.same({ "int8", "int8" }, precisions(q))
    q.attention = "f32"
    assert.are.same({ "f32", "f32" }, precisions(q))
    q:release()
    other:release()
  end)

  it("is left as it is when the statistics are released", function()
    local other = model:calibrate(inputs, { progress = false })
    local q = model:quantize { stats = other }
    local before = q:hidden(others)
    other:release()
    assert.are.equal(3, #q:layers(others))
    assert.is_true(before:equals(q:hidden(others)))
    q:release()
  end)

  it("of a head that saw nothing, or next to nothing, is quantized like any other", function()
    local attention = require "perigee.graph.passes.attention"
    local function seen(values)
      return { min = perigee.tensor.new("F32", #values), max = perigee.tensor.from(values) }
    end
    local scales = attention.scales(seen { 0, 254, 1e-30, 1e-30, 1e38, 127 }, 2)
    local function near(want, got)
      assert.is_true(math.abs(got / want - 1) < 1e-6, ("%g, expected %g"):format(got, want))
    end
    near(1e-15, scales.qk[1])
    near(2e-15, scales.qk[2])
    near(1e15, scales.v[1])
    near(1, scales.v[2])
    near(1, scales.m[1])
    near(0.5, scales.m[2])
    near(1e15, scales.m[3])
    scales:release()
  end)

  it("is explained: heads, scales and SQNR", function()
    local q = model:quantize { stats = stats }
    local row = q:explain().attention[1]
    assert.are.same({ "encoder.layer.0.attention.self", "int8" }, { row.name, row.precision })
    assert.are.equal(64, row.heads * row.D)
    assert.is_true(row.qk[1] > 0 and row.qk[1] <= row.qk[2] and row.v[1] > 0 and row.sqnr > 20)
    assert.matches("encoder.layer.0.attention.self +%d+ x %d+ +int8", tostring(q:explain()))
    q:release()
  end)
end)

describe("explain", function()
  it("says for each linear what runs and how well", function()
    local q = model:quantize { stats = stats, alpha = 0.6, skip = { "encoder.layer.1.output.dense" } }
    local explained = q:explain()
    assert.are.equal(8, #explained.rows)
    local row = explained.rows[1]
    assert.are.equal("encoder.layer.0.attention.self.qkv", row.name)
    assert.are.same({ 192, 64, "int8", 0.6 }, { row.N, row.K, row.precision, row.alpha })
    assert.are.same({ "encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.key",
      "encoder.layer.0.attention.self.value" }, row.linears)
    assert.is_true(row.scale > 0 and row.zero >= 0 and row.zero <= 255)
    assert.is_true(row.sqnr > 20 and row.sqnr < 70)
    assert.matches("%w", row.kernel)
    local skipped = explained.rows[8]
    assert.are.same({ "encoder.layer.1.output.dense", "f32" }, { skipped.name, skipped.precision, skipped.alpha, skipped.sqnr })
    local isa = ffi.new "int[1]"
    pgee.check(pgee.C.pgee_isa(isa))
    local text = tostring(explained)
    assert.matches("kernels: " .. ffi.string(pgee.C.pgee_isa_name(isa[0])), text, 1, true)
    for _, word in ipairs { "alpha = 0.6", "SQNR dB", "192 x 64", "encoder.layer.0.intermediate.dense" } do
      assert.matches(word, text, 1, true)
    end
    q:release()
  end)

  it("explains the FP32 model too", function()
    local explained = model:explain()
    assert.are.same({ 8, "f32" }, { #explained.rows, explained.rows[1].precision, explained.rows[1].sqnr })
  end)
end)
