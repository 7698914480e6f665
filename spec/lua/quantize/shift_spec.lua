-- Per-channel shift: what it gains, what "auto" decides, and that settings, recipes and artifacts carry it.
local artifacts = require "spec.support.artifacts"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

local inputs, others = models.random_inputs(12, 30, 97, 1), models.random_inputs(7, 30, 97, 2)
local SITE = "encoder.layer.0.intermediate.dense"
local model, stats

setup(function()
  model = perigee.load(models.path "gelu")
  stats = model:calibrate(inputs, { progress = false })
end)

teardown(function()
  stats:release()
  model:release()
end)

local function quantized(chosen)
  chosen.stats = stats
  return model:quantize(chosen)
end

local function shifted_rows(q)
  local list = {}
  for _, row in ipairs(q:explain().rows) do
    list[row.name] = row.shift or false
  end
  return list
end

describe("a shift", function()
  after_each(files.clean)

  it("keeps the model near FP32", function()
    for _, alpha in ipairs { false, 0.75 } do
      local q = quantized { shift = true, alpha = alpha }
      local reference, test = model:hidden(others), q:hidden(others)
      local db = reference:sqnr(test)
      assert.is_true(db > 12, ("SQNR %.1f dB"):format(db))
      q:release()
    end
  end)

  it("gains much where channels lie far from 0", function()
    local large = perigee.load(require "spec.support.make_outliers"(files.folder {}, 30))
    local seen = large:calibrate(models.texts("recipes/data/calibration.txt", 24), { progress = false })
    local q = large:quantize { stats = seen, alpha = false, attention = "f32" }
    local plain = q:sqnr(SITE)[SITE]
    q.shift = true
    local db = q:sqnr(SITE)[SITE]
    assert.is_true(db > plain + 5, ("%.1f dB, with a shift %.1f"):format(plain, db))
    q:release()
    seen:release()
    large:release()
  end)

  it("is chosen by auto where the site's SQNR is higher with it", function()
    local mixed = perigee.load(models.path "relu") -- its sites differ
    local seen = mixed:calibrate(inputs, { progress = false })
    local function of(shift)
      return mixed:quantize { stats = seen, shift = shift }
    end
    local with, without, auto, again = of(true), of(false), of "auto", of "auto"
    local a, b, best, rows, kinds = with:sqnr "*", without:sqnr "*", auto:sqnr "*", shifted_rows(auto), {}
    for name, db in pairs(best) do
      assert.equal(math.max(a[name], b[name]), db, name)
      assert.equal(a[name] > b[name], rows[name], name)
      kinds[tostring(rows[name])] = true
    end
    assert.same({ ["true"] = true, ["false"] = true }, kinds)
    assert.same(rows, shifted_rows(again))
    assert.is_true(auto:hidden(others):equals(again:hidden(others)))
    for _, object in ipairs { with, without, auto, again, seen, mixed } do
      object:release()
    end
  end)

  it("of a site can be set, undone, shown and made again by the recipe", function()
    local q = quantized {}
    local before = q:hidden(others)
    q:set(SITE, { shift = true })
    local after, rows = q:hidden(others), shifted_rows(q)
    assert.is_false(before:equals(after))
    assert.is_true(rows[SITE])
    assert.is_false(rows["encoder.layer.0.attention.self.qkv"])
    assert.matches("0.75, shifted", tostring(q:explain()), 1, true)
    assert.matches("shifted", tostring(q:plot(SITE)), 1, true)
    local again = loadstring(q:recipe())(inputs)
    assert.is_true(after:equals(again:hidden(others)))
    again:release()
    assert.matches("shift true -> false", tostring(q:undo()), 1, true)
    assert.is_true(before:equals(q:hidden(others)))
    q:release()
  end)

  it("works with every range method, and with linears that are not shifted beside it", function()
    for _, range in ipairs { "minmax", "percentile", "mse" } do
      local q = quantized { shift = true, range = range, sites = { ["*.output.dense"] = { shift = false } } }
      assert.is_true(q:sqnr(SITE)[SITE] > 20, range)
      q:release()
    end
  end)

  it("is in an artifact, which has the same bits and says which sites are shifted", function()
    local q = quantized { shift = "auto" }
    local path = artifacts.save(q)
    local a = perigee.open(path)
    assert.is_true(q:hidden(others):equals(a:hidden(others)))
    assert.same(shifted_rows(q), shifted_rows(a))
    assert.equal("auto", a:settings().shift)
    a:release()
    q:release()
  end)

  it("is refused for dynamic activations", function()
    assert.matches("shift is true, but activations are dynamic, expected false: it is for static activations",
      failure(model.quantize, model, { stats = stats, activations = "dynamic", shift = true }), 1, true)
    local q = quantized { shift = true }
    q.activations = "dynamic"
    assert.is_false(q.shift)
    q:release()
  end)
end)
