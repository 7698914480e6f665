-- Settings that are turned: of the whole model, of sites by name and pattern; records, undo, diff; memory.
local failure = require "spec.support.failure"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local settings = require "perigee.quantize.settings"

local inputs, others = models.random_inputs(12, 30, 97, 1), models.random_inputs(7, 30, 97, 2)
local QKV, DENSE = "encoder.layer.0.attention.self.qkv", "encoder.layer.1.output.dense"
local model, stats, q

setup(function()
  model = perigee.load(models.path "gelu")
  stats = model:calibrate(inputs, { progress = false })
end)

teardown(function()
  stats:release()
  model:release()
end)

before_each(function() q = model:quantize { stats = stats } end)
after_each(function() q:release() end)

-- The bits of a model made anew.
local function fresh(chosen)
  local given = { stats = stats }
  for key, value in pairs(chosen) do
    given[key] = value
  end
  local other = model:quantize(given)
  local hidden = other:hidden(others)
  other:release()
  return hidden
end

local function same_as(chosen)
  local hidden = q:hidden(others)
  return hidden:equals(fresh(chosen))
end

describe("a site's own settings", function()
  it("are set by the name of a site, of a linear, or a pattern, with the bits of a model made so", function()
    for _, name in ipairs { DENSE, "*.1.output.dense", "encoder.layer.1.output.*" } do
      q:set(name, { alpha = 0.3 })
      assert.are.same({ [DENSE] = { alpha = 0.3 } }, q.sites)
      assert.is_true(same_as { sites = { [DENSE] = { alpha = 0.3 } } })
      assert.is_true(same_as { alpha = { [DENSE] = 0.3 } })
      q:undo()
    end
  end)

  for name, own in pairs {
    dynamic = { activations = "dynamic" },
    ["dynamic per sequence"] = { activations = "dynamic", per = "sequence" },
    ["dynamic asymmetric"] = { activations = "dynamic", symmetric = false },
    symmetric = { symmetric = true }, ["weights per tensor"] = { weights = "tensor" }, ["not smoothed"] = { alpha = false },
    skipped = { skip = true }, mse = { range = "mse" }, percentile = { range = "percentile" },
  } do
    it("run beside others': " .. name, function()
      local before = q:hidden(others)
      for _, pattern in ipairs { "*.0.attention.self.key", "encoder.layer.1.intermediate.dense", "*.output.dense" } do
        q:set(pattern, own)
        local hidden = q:hidden(others)
        local db = model:hidden(others):sqnr(hidden)
        assert.is_true(db > 15 and db < 80, ("SQNR %.1f dB"):format(db))
        assert.is_true(own.range ~= nil or not hidden:equals(before)) -- of so few rows the range may be all that was seen
        q:undo()
      end
      q:set("*", own.skip and {} or own)
      if own.skip then
        assert.matches("quantize matched no linear", failure(q.set, q, "*", own))
      elseif own.activations then
        assert.is_true(same_as { activations = "dynamic", per = own.per, symmetric = own.symmetric })
      else
        assert.is_true(same_as(own))
      end
    end)
  end

  it("bring the defaults of their activations", function()
    q:set(DENSE, { activations = "dynamic" })
    local own = settings.of(q:settings(), { name = DENSE, linears = { DENSE } })
    assert.are.same({ "dynamic", true, "token", settings.ALPHA.dynamic }, { own.activations, own.symmetric, own.per, own.alpha })
    q:set(DENSE, { activations = "static" })
    assert.are.same({}, q.sites)
  end)

  it("give equal bits and equal text in whatever order they are made", function()
    local steps = {
      function() q:set("*.0.*", { alpha = 0.4 }) end,
      function() q:set(DENSE, { symmetric = true, alpha = 0.9 }) end,
      function() q:set("*.key", { range = "mse" }) end,
      function() q:set("encoder.layer.1.intermediate.dense", { activations = "dynamic" }) end,
    }
    local texts, bits = {}, {}
    for _, order in ipairs { { 1, 2, 3, 4 }, { 4, 3, 2, 1 }, { 2, 4, 1, 3 } } do
      for _, i in ipairs(order) do
        steps[i]()
      end
      texts[#texts + 1], bits[#bits + 1] = tostring(q:settings()), q:hidden(others)
      for _ = 1, 4 do
        q:undo()
      end
      assert.are.same({}, q.sites)
    end
    assert.are.same({ texts[1], texts[1], texts[1] }, texts)
    assert.is_true(bits[1]:equals(bits[2]) and bits[1]:equals(bits[3]))
  end)

  it("leave nothing behind when they are as the others again", function()
    q:set(DENSE, { alpha = 0.2, symmetric = true })
    q:set(DENSE, { alpha = q.alpha, symmetric = false })
    assert.are.same({}, q.sites)
    q:set("*", { weights = "tensor" })
    q:set { weights = "row" }
    assert.are.same({}, q.sites)
    q:set("*", { alpha = 0.1 })
    q.alpha = 0.6
    assert.are.same({}, q.sites)
    assert.is_true(same_as { alpha = 0.6 })
  end)

  it("are not brought back to defaults by the activations that are there already", function()
    q:set(DENSE, { symmetric = true })
    q:set("*", { activations = "static" })
    assert.are.same({ [DENSE] = { symmetric = true } }, q.sites)
  end)

  it("that follow from others set later are written as if set after them", function()
    q:set(DENSE, { alpha = settings.ALPHA.dynamic })
    q:set(DENSE, { activations = "dynamic" })
    assert.are.same({ [DENSE] = { activations = "dynamic" } }, q.sites)
    assert.is_true(same_as { sites = q.sites })
    q.alpha = -0
    assert.matches("alpha = 0,", tostring(q:settings()), 1, true)
  end)

  it("that cannot be are refused, with the setting, the value and what is allowed, and change nothing", function()
    q:set(DENSE, { alpha = 0.2 })
    local before, made = tostring(q:settings()), q.memo.made
    for _, case in ipairs {
      { { "encoder.layer.1.output.dens", { alpha = 0.5 } }, '"encoder.layer.1.output.dens" matches no linear (did you mean "' ..
        DENSE .. '"?)' },
      { { DENSE, { alpha = 2 } }, 'alpha is 2, expected a number from 0 to 1, false for no smoothing, or "auto"' },
      { { DENSE, { aplha = 2 } }, 'a site has no "aplha" of its own (did you mean "alpha"?)' },
      { { DENSE, { attention = "f32" } }, 'a site has no "attention" of its own' },
      { { DENSE, { per = "token" } }, 'per is "token" at ' .. DENSE .. ', expected "tensor", since its activations are static' },
      { { DENSE, { activations = "dynamic", per = "tensor" } },
        'per is "tensor" at ' .. DENSE .. ', expected "token" or "sequence"' },
      { { DENSE, { range = "mean" } }, 'range is "mean", expected "minmax" or "percentile" or "mse"' },
      { { DENSE, { skip = 1 } }, "skip is 1, expected true or false" },
      { { DENSE, 7 }, "what is to be set is 7, expected a table such as { alpha = 0.5 }" },
      { { "*", { skip = true } }, "quantize matched no linear" },
      { { 7, { alpha = 0.5 } }, "a pattern is 7, expected the name of a linear or a pattern" },
      { { "x" }, "set: expected a table of settings, got the string 'x'" },
      { { { sites = { [DENSE] = 3 } } }, 'sites["' .. DENSE .. '"] is 3, expected a table' },
      { { { sites = { nothing = { alpha = 1 } } } }, 'sites pattern "nothing" matches no linear' },
    } do
      local message = failure(q.set, q, unpack(case[1]))
      assert.matches(case[2], message, 1, true)
      assert.is_nil(message:match "lua/perigee/.-%.lua:%d+", message)
    end
    assert.are.same({ before, made }, { tostring(q:settings()), q.memo.made })
    assert.is_true(same_as { sites = { [DENSE] = { alpha = 0.2 } } })
  end)

  it("need statistics where they are static", function()
    local plain = model:quantize { activations = "dynamic" }
    assert.matches("static activations need statistics", failure(plain.set, plain, DENSE, { activations = "static" }))
    assert.matches("static activations need statistics",
      failure(model.quantize, model, { activations = "dynamic", sites = { [DENSE] = { activations = "static" } } }))
    plain:release()
  end)
end)

describe("a change", function()
  it("says which sites it touched, SQNR before and after, and the seconds", function()
    local began = pgee.C.pgee_seconds()
    local change = q:set(DENSE, { alpha = 0.1 })
    assert.is_true(change.seconds > 0 and change.seconds < pgee.C.pgee_seconds() - began)
    assert.are.equal(1, #change.sites)
    local site = change.sites[1]
    assert.are.same({ DENSE, { DENSE }, { alpha = { settings.ALPHA.static, 0.1 } } }, { site.name, site.linears, site.changed })
    assert.is_true(site.before > 15 and site.after > 15 and site.before ~= site.after)
    assert.are.equal(site.after, q:sqnr(DENSE)[DENSE])
    local text = tostring(change)
    assert.matches(("alpha %g -> 0.1, 1 site, "):format(settings.ALPHA.static), text, 1, true)
    assert.matches(("%s  +%.2f  %.2f  "):format(DENSE:gsub("%.", "%%."), site.before, site.after), text)
    assert.are.equal(8, #q:set({ alpha = 0.3 }).sites)
  end)

  it("of one linear says which others of its site it moved", function()
    local change = q:set("encoder.layer.0.attention.self.key", { alpha = 0.1 })
    assert.are.same({ QKV }, { change.sites[1].name })
    assert.are.same({ "encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.value" }, change.moved)
    assert.matches("they share a site, so these moved too: encoder.layer.0.attention.self.query, ", tostring(change), 1, true)
    assert.are.same({}, q:set(QKV, { alpha = 0.2 }).moved)
    assert.are.same({}, q:set("*.layer.0.*", { alpha = 0.3 }).moved)
  end)

  it("keeps what it measured of the settings of its time", function()
    local one = q:set(DENSE, { alpha = 0.1 })
    local two = q:set(DENSE, { alpha = 0.9 })
    assert.are.equal(one.sites[1].after, two.sites[1].before)
    assert.are.equal(two.sites[1].after, q:sqnr(DENSE)[DENSE])
  end)

  it("of nothing says so, and is not undone", function()
    assert.are.equal("nothing changed", tostring(q:set { alpha = q.alpha }))
    assert.matches("undo: nothing has been changed", failure(q.undo, q))
  end)

  it("says what it does not know", function()
    local own = model:calibrate(inputs, { progress = false })
    local other = model:quantize { stats = own, attention = "f32" }
    local change = other:set { activations = "dynamic", per = "sequence" }
    assert.are.same({ true, false }, { change.sites[1].before ~= false, change.sites[1].after })
    own:release()
    assert.is_false(other:set({ weights = "tensor", alpha = false }).sites[1].before)
    other:release()
  end)

  it("by assignment is what a prompt shows", function()
    local shown = getmetatable(q).__changed
    assert.is_nil(shown(q))
    q.alpha = 0.25
    assert.matches("alpha .* %-> 0.25", tostring(shown(q)))
  end)
end)

describe("undo", function()
  it("goes back change by change, with the bits of before", function()
    local before, text = q:hidden(others), tostring(q:settings())
    q.alpha = 0.2
    q:set(DENSE, { activations = "dynamic" })
    failure(q.set, q, { alpha = 9 })
    q.skip = { "encoder.layer.0.*" }
    local record = q:undo()
    assert.are.equal(4, #record.sites)
    assert.are.same({ true, false }, { record.sites[1].changed.skip[1], record.sites[1].changed.skip[2] })
    assert.is_true(same_as { alpha = 0.2, sites = { [DENSE] = { activations = "dynamic" } } })
    q:undo()
    q:undo()
    assert.are.equal(text, tostring(q:settings()))
    assert.is_true(q:hidden(others):equals(before))
    assert.matches("undo: nothing has been changed", failure(q.undo, q))
  end)

  it("goes back a hundred changes, and no further", function()
    for i = 0, 101 do
      q:set(DENSE, { alpha = i / 200 })
    end
    for _ = 1, 100 do
      q:undo()
    end
    assert.are.same({ [DENSE] = { alpha = 1 / 200 } }, q.sites)
    assert.matches("undo: nothing has been changed", failure(q.undo, q))
  end)
end)

describe("diff", function()
  it("names what other settings have different, whatever they are given as", function()
    local other = model:quantize { stats = stats, sites = { [DENSE] = { alpha = 0.1 } } }
    for _, given in ipairs { other, other:settings(), { sites = { [DENSE] = { alpha = 0.1 } } } } do
      local diff = q:diff(given)
      assert.are.same({ DENSE, { alpha = { settings.ALPHA.static, 0.1 } } }, { diff.sites[1].name, diff.sites[1].changed })
      assert.are.same({ 1, {} }, { #diff.sites, diff.common })
      assert.are.equal(other:sqnr(DENSE)[DENSE], diff.sites[1].after)
      assert.matches("SQNR this  other", tostring(diff))
    end
    assert.are.equal("no difference", tostring(q:diff(q)))
    assert.matches("no setting", failure(q.diff, q, { alhpa = 1 }) .. "no setting")
    local small = perigee.load(models.path "tiny")
    local foreign = small:quantize { activations = "dynamic" }
    assert.matches("diff: the other model has other sites", failure(q.diff, q, foreign))
    foreign:release()
    other:release()
  end)
end)

describe("memory", function()
  it("is what it was after a hundred changes", function()
    local function turn(i)
      q.alpha = (i % 7) / 10
      q:set(i % 2 == 0 and DENSE or "*.0.*", { symmetric = i % 3 == 0, activations = i % 5 == 0 and "dynamic" or "static" })
      q:hidden(others):release()
    end
    local function fifty()
      for i = 1, 24 do
        turn(i)
        if i % 10 == 0 then
          q:undo()
        end
      end
      turn(0)
      return live()
    end
    local first = fifty()
    assert.are.equal(first, fifty())
    assert.are.equal(first, fifty())
    for _ = 1, 3 do
      tostring(q:set { alpha = 0.3 }) -- which measures
      q:sqnr()
      q:undo()
    end
    q:hidden(others):release() -- a workspace is made by the first run
    assert.are.equal(first, live())
  end)
end)
