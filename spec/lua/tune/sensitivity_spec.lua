-- q:sensitivity: its partial runs against whole runs of models that are quantized in the same way.
local failure = require "spec.support.failure"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

describe("sensitivity", function()
  local function each(name, f)
    local model = perigee.load(models.path(name), { kernel = "native" })
    local stats = model:calibrate(models.random_inputs(20, 20, math.min(model.vocabulary, 90), 5), { progress = false })
    f(model, stats)
    stats:release()
    model:release()
  end

  -- dB of a model that is quantized by these settings, over all texts that were kept.
  local function whole(model, stats, given)
    given.stats = stats
    local q = model:quantize(given)
    local db = q:sqnr()
    q:release()
    return db
  end

  local function check(model, stats, chosen)
    local q = model:quantize { stats = stats, activations = chosen, attention = "f32" }
    local s = q:sensitivity { tokens = 2048, progress = false }
    assert.are.equal(q:sqnr(), s.int8)
    assert.are.equal(16, s.texts)
    local names = {}
    for _, item in ipairs(s.items) do
      names[#names + 1] = item.kind == "site" and item.name or nil
    end
    for i, item in ipairs(s.items) do
      if item.kind == "site" and (i % 3 == 1 or #s.items < 15) then
        local others = {}
        for _, name in ipairs(names) do
          others[#others + 1] = name ~= item.name and name or nil
        end
        assert.are.equal(whole(model, stats, { activations = chosen, skip = others, attention = "f32" }), item.alone)
        assert.are.equal(whole(model, stats, { activations = chosen, skip = { item.name }, attention = "f32" }), item.without)
        assert.are.equal(q:sqnr(item.name)[item.name], item.sqnr)
      else
        assert.is_true(item.kind == "site" or item.without == nil and item.alone > 0)
      end
      assert.is_true(i == 1 or s.items[i - 1].alone <= item.alone)
    end
    q:release()
  end

  for _, name in ipairs { "gelu", "distilbert", "xlmr", "mpnet", "electra" } do
    it("has the bits of whole runs: " .. name, function()
      each(name, function(model, stats)
        check(model, stats, "static")
        check(model, stats, "dynamic")
      end)
    end)
  end

  it("knows attentions that are INT8, and prints a table", function()
    each("gelu", function(model, stats)
      local q = model:quantize { stats = stats, attention = "int8", skip = "encoder.layer.1.output.dense" }
      local s = q:sensitivity { tokens = 2048, progress = false }
      assert.are.equal(q:sqnr(), s.int8)
      for _, item in ipairs(s.items) do
        assert.are.equal(item.name ~= "encoder.layer.1.output.dense", item.without ~= nil)
        assert.is_truthy(tostring(s):find(item.name, 1, true))
        if item.kind == "attention" then
          assert.are.equal(stats.attention[item.name].sqnr, item.sqnr)
        end
      end
      assert.is_nil(q:sensitivity { without = false, progress = false }.items[1].gain)
      q:release()
    end)
  end)

  it("stops at an interrupt, and goes on from there; nothing is measured twice", function()
    each("gelu", function(model, stats)
      local q, steps = model:quantize { stats = stats }, 0
      local message = failure(q.sensitivity, q, { progress = function(done)
        steps = done
        if done == 4 then
          pgee.C.pgee_interrupt(1)
        end
      end })
      pgee.C.pgee_interrupt(0)
      assert.is_truthy(message:find "interrupted")
      assert.is_true(steps < 10)
      local known = {}
      for key, db in pairs(q.measured) do
        known[key] = db
      end
      local s = q:sensitivity { progress = false }
      for key, db in pairs(known) do
        assert.are.equal(db, q.measured[key])
      end
      local began = pgee.C.pgee_seconds()
      assert.are.equal(tostring(s), tostring(q:sensitivity { progress = false }))
      assert.is_true(pgee.C.pgee_seconds() - began < 1)
      q:release()
    end)
  end)

  it("holds no memory, and needs the kept texts", function()
    each("gelu", function(model, stats)
      local q = model:quantize { stats = stats }
      q:sensitivity { progress = false }
      local before = live()
      q:sensitivity { progress = false, tokens = 100 }
      assert.is_true(live() <= before)
      q:release()
      local dynamic = model:quantize { activations = "dynamic" }
      assert.is_truthy(failure(dynamic.sensitivity, dynamic):find("there are none: give stats", 1, true))
      assert.is_truthy(failure(dynamic.sensitivity, dynamic, { token = 3 }):find("no option token, only", 1, true))
      dynamic:release()
    end)
  end)
end)
