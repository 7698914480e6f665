-- SQNR from what calibration kept, against full runs; sweeps; plots; recipes.
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local linear = require "perigee.linear"
local live = require "spec.support.live"
local lower = require "perigee.graph.passes.lower"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local plot = require "perigee.show.plot"
local quant = require "perigee.quant"

local TEXTS = "recipes/data/calibration.txt"
local DENSE = "encoder.layer.1.output.dense"

-- dB of every linear of a model over all rows that it reads in FP32, its own quantizers and weights applied one by one.
local function full_run(model, q, everything)
  local found = {}
  for _, entry in ipairs(q:runner(q.model.task).lowered.linears) do
    local node = entry.node
    if node.precision == "int8" then
      local x = everything:site(node.site).sample
      local weights, bias = lower.packed_f32(model.memo, node.parts), lower.bias(model.memo, node.parts)
      local x8 = quant.quantize(x, {
        symmetric = entry.quantize.symmetric, scale = entry.quantize.scale, zero = entry.quantize.zero,
        smooth = node.factors or nil,
      })
      local reference, test = linear(x, weights, { bias = bias }), linear(x8, node.packed, { bias = bias })
      found[node.site.name] = reference:sqnr(test)
    end
  end
  return found
end

describe("SQNR", function()
  local function check(model, texts, rows)
    local stats = model:calibrate(texts, { progress = false, rows = rows })
    local everything = model:calibrate(texts, { progress = false, rows = 10 ^ 5 })
    for _, chosen in ipairs {
      { alpha = 0.7 }, { alpha = false }, { alpha = 0.5, symmetric = true, weights = "tensor" }, { activations = "dynamic" },
      { range = "mse" },
    } do
      chosen.stats = stats
      local q = model:quantize(chosen)
      local full, quick = full_run(model, q, everything), q:sqnr "*"
      local count = 0
      for name, db in pairs(full) do
        count = count + 1
        assert.is_true(math.abs(quick[name] - db) < 1,
          ("%s: %.2f of a full run, %.2f of the sample"):format(name, db, quick[name]))
      end
      assert.is_true(count >= 8)
      q:release()
    end
    everything:release()
    stats:release()
  end

  it("of a site is within 1 dB of a full run's, from the sample", function()
    check(perigee.load(models.path "gelu"), models.random_inputs(40, 60, 97, 5))
  end)

  it("of a site is within 1 dB of a full run's, of a trained model", function()
    local path, why = models.demo()
    if not path then
      pending(why)
      return
    end
    check(perigee.load(path), models.texts(TEXTS, 40))
  end)

  it("of the output is that of the hidden states over the first texts", function()
    local model, inputs = perigee.load(models.path "gelu"), models.random_inputs(30, 20, 97, 7)
    for _, budget in ipairs { 1, 100, 1000 } do
      local stats = model:calibrate(inputs, { progress = false, budget = budget })
      assert.are.equal(16, #stats.kept.inputs)
      local q = model:quantize { stats = stats, alpha = 0.4 }
      local first = { unpack(inputs, 1, 16) }
      local plain = perigee.load(models.path "gelu", { kernel = "native" })
      assert.are.equal(plain:hidden(first):sqnr(q:hidden(first)), q:sqnr())
      q.alpha = 0.9
      assert.are.equal(plain:hidden(first):sqnr(q:hidden(first)), q:sqnr())
      q:release()
      stats:release()
    end
  end)

  it("keeps no more texts than 2048 tokens, but one", function()
    local model = perigee.load(models.path "long")
    local long = {}
    for i = 1, 500 do
      long[i] = i % 90
    end
    local input = { ids = long }
    local stats = model:calibrate({ input, input, input, input, input }, { progress = false })
    assert.are.same({ 4, 2000 }, { #stats.kept.inputs, stats.kept.tokens })
    assert.are.same({ 2000, 16 }, stats.kept.hidden.shape)
  end)

  it("is not known without statistics", function()
    local model = perigee.load(models.path "gelu")
    local q = model:quantize { activations = "dynamic" }
    assert.matches("sqnr: the output is judged by texts that calibration kept, and there are none", failure(q.sqnr, q))
    assert.matches("sweep: there are no statistics to measure by", failure(q.sweep, q))
    assert.matches("plot: there are no statistics", failure(q.plot, q, DENSE))
    assert.are.same({}, q:sqnr(DENSE))
  end)
end)

describe("with a model", function()
  local model, stats, q

  setup(function()
    model = perigee.load(models.path "embedder")
    stats = model:calibrate(models.texts(TEXTS, 20), { progress = false })
  end)
  before_each(function() q = model:quantize { stats = stats } end)
  after_each(function() q:release() end)
  teardown(function()
    stats:release()
    model:release()
  end)

  describe("a sweep", function()
    it("measures every site and the output at every alpha, and changes nothing", function()
      local before, text = q:hidden "a text", tostring(q:settings())
      local held = live()
      local sweep = q:sweep { alpha = { 0, 1, 0.25 }, progress = false }
      assert.are.equal(held, live())
      assert.are.same({ 0, 0.25, 0.5, 0.75, 1 }, sweep.alpha)
      assert.are.same({ 8, 5 }, { #sweep.sites, #sweep.output })
      assert.are.equal(text, tostring(q:settings()))
      assert.is_true(q:hidden("a text"):equals(before))
      for i, alpha in ipairs(sweep.alpha) do
        q.alpha = alpha
        assert.are.equal(q:sqnr(), sweep.output[i])
        assert.are.equal(q:sqnr(DENSE)[DENSE], sweep.sites[8].sqnr[i])
      end
    end)

    it("that is interrupted leaves nothing behind", function()
      local before, held = tostring(q:settings()), live()
      for _, at in ipairs { 3, 10 } do
        local message = failure(q.sweep, q, {
          alpha = { 0.01, 0.91, 0.1 }, progress = function(done) pgee.C.pgee_interrupt(done >= at and 1 or 0) end,
        })
        pgee.C.pgee_interrupt(0)
        assert.matches("interrupt", message)
        assert.are.same({ before, held }, { tostring(q:settings()), live() })
      end
    end)

    it("says which alpha is best, for all and for each site", function()
      local sweep = q:sweep { progress = false }
      assert.are.equal(21, #sweep.alpha)
      q.alpha = sweep.best
      local best = q:sqnr()
      for _, db in ipairs(sweep.output) do
        assert.is_true(db <= best)
      end
      q.alpha = sweep:alphas()
      for i, site in ipairs(sweep.sites) do
        for _, db in ipairs(site.sqnr) do
          assert.is_true(db <= q:sqnr(site.name)[site.name], i)
        end
      end
    end)

    it("can be of some sites, without the output", function()
      local seen = {}
      local sweep = q:sweep {
        alpha = { 0.2, 0.4, 0.1 }, sites = "*.1.output.dense", output = false,
        progress = function(done, total) seen[#seen + 1] = done .. "/" .. total end,
      }
      assert.are.same({ { 0.2, 0.3, 0.4 }, { "1/1" }, 1, DENSE }, { sweep.alpha, seen, #sweep.sites, sweep.sites[1].name })
      assert.is_nil(sweep.output)
      assert.matches(DENSE, tostring(sweep), 1, true)
      local with_output = q:sweep { alpha = { 0.2, 0.4, 0.1 }, sites = DENSE, progress = false }
      q:set(DENSE, { alpha = 0.4 })
      assert.are.equal(q:sqnr(), with_output.output[3])
    end)

    it("prints as a table and a curve", function()
      local sweep = q:sweep { alpha = { 0, 1, 0.1 }, progress = false }
      local text = tostring(sweep)
      assert.matches("site +now +best +dB +0 +0.3 +0.5 +0.8 +1\n", text)
      assert.matches("\noutput +", text)
      assert.matches("SQNR over alpha", text)
      local two = sweep:plot(DENSE):text { columns = 60, utf8 = false }
      assert.matches("* output   o " .. DENSE, two, 1, true)
      assert.matches('plot: the string \'x\' matches no site of the sweep', failure(sweep.plot, sweep, "x"))
    end)

    it("refuses what it cannot go through", function()
      for _, case in ipairs {
        { { alpha = 0.5 }, "alpha is what to go through, { from, to, step }" },
        { { alpha = { 0, 1 } }, "alpha is what to go through, { from, to, step }" },
        { { alpha = { 0, 2, 0.5 } }, "each from 0 to 1" },
        { { alpha = { 0, 0.3, 0.5, 0.8 } }, "alpha is what to go through, { from, to, step }" },
        { { alpha = { 0 / 0, 1, 0.5 } }, "each from 0 to 1" },
        { { alpha = { 1, 0, 0.1 } }, "expected upwards" },
        { { alpha = { 0, 1, 0 } }, "expected upwards" },
        { { alpha = { 0, 1, 1e-9 } }, "expected upwards" },
        { { sites = "nothing" }, '"nothing" matches no linear' },
        { { alphas = {} }, "sweep has no option alphas" },
      } do
        assert.matches(case[2], failure(q.sweep, q, case[1]), 1, true)
      end
      q:set("*.0.intermediate.dense", { skip = true })
      assert.matches("sweep: nothing can be measured: the sites are FP32",
        failure(q.sweep, q, { sites = "*.0.intermediate.dense", output = false }), 1, true)
      q:undo()
      local s = q:sweep { alpha = { 0, 1, 1 }, sites = "*.0.intermediate.dense", output = false }
      assert.matches("plot: the pattern is 3, expected", failure(s.plot, s, 3), 1, true)
    end)
  end)

  describe("a plot", function()
    it("shows each channel's largest magnitude, before and after smoothing", function()
      q.alpha = 0.6
      local drawn, real = nil, plot.ranges
      plot.ranges = function(...)
        drawn = { ... }
        return real(...)
      end
      local ok, drawing = pcall(q.plot, q, DENSE)
      plot.ranges = real
      assert.is_true(ok, drawing)
      local seen, factors = stats.sites[DENSE], q:runner("embed").lowered.linears[8].node.factors
      for k, before in ipairs(drawn[1]) do
        assert.are.equal(math.max(-seen.min[k], seen.max[k]), before)
        assert.are.equal(before / factors[k], drawn[2][k])
      end
      assert.are.equal(64, #drawn[1])
      assert.matches(DENSE .. ", alpha 0.6\n", tostring(drawing), 1, true)
      q.alpha = false
      assert.matches(DENSE .. ", not smoothed\n", tostring(q:plot(DENSE)), 1, true)
    end)

    it("is of one site", function()
      assert.matches('plot: "%*" matches 8 sites, from encoder.layer.0.attention.self.qkv to ' .. DENSE, failure(q.plot, q, "*"))
      assert.matches("did you mean", failure(q.plot, q, DENSE .. "s"))
      assert.matches("encoder.layer.0.attention.self.qkv, alpha", tostring(q:plot "encoder.layer.0.attention.self.key"), 1, true)
    end)
  end)

  describe("a recipe", function()
    local modules = package.path
    after_each(files.clean)
    after_each(function() package.path = modules end) -- a recipe begins with the modules that it was written by

    local function made_again(text, ...)
      local again = assert(loadstring(text))(...)
      return again
    end

    it("makes the model again, bit for bit, from the file of its texts", function()
      local own = model:calibrate(perigee.lines(TEXTS), { progress = false, samples = 12, rows = 50 })
      local turned = model:quantize { stats = own, alpha = 0.3, skip = { "encoder.layer.0.output.dense" } }
      turned:set(DENSE, { activations = "dynamic", alpha = 0.1234567890123 })
      turned:set("*.query", { range = "mse", weights = "tensor" })
      turned.attention = "f32"
      local text = turned:recipe()
      assert.is_nil(text:find("loadstring", 1, true))
      local again = made_again(text)
      assert.are.equal(tostring(turned:settings()), tostring(again:settings()))
      assert.is_true(turned:hidden("a text, another"):equals(again:hidden "a text, another"))
      assert.are.equal("no difference", tostring(turned:diff(again)))
      assert.are.equal(text, again:recipe())
      turned:release()
      again:release()
    end)

    it("does in a process of its own", function()
      local own = model:calibrate(perigee.lines(TEXTS), { progress = false, samples = 5 })
      local turned = model:quantize { stats = own, alpha = 0.4 }
      local path = files.write(turned:recipe())
      local command = [[cd / && luajit -e 'io.write(("%%.17g"):format(dofile("%s"):embed("a text")[1]))' 2>&1]]
      local pipe = io.popen(command:format(path))
      assert.are.equal(("%.17g"):format(turned:embed("a text")[1]), pipe:read "*a")
      pipe:close()
      turned:release()
    end)

    it("takes the texts where they came from no file, and checks them", function()
      local texts = models.texts(TEXTS, 20)
      q.alpha = 0.2
      local again = made_again(q:recipe(), texts)
      assert.is_true(q:hidden("a text"):equals(again:hidden "a text"))
      again:release()
      assert.matches("give the recipe the 20 texts to calibrate on", failure(made_again, q:recipe()))
      texts[7] = texts[7] .. " and more"
      assert.matches("these are not the texts that calibration had", failure(made_again, q:recipe(), texts))
    end)

    it("does without statistics, and keeps options of load", function()
      local short = perigee.load(models.path "embedder", { max_tokens = 9, budget = 33 })
      local plain = short:quantize { activations = "dynamic", per = "sequence" }
      local again = made_again(plain:recipe())
      assert.are.same({ 9, 33 }, { again.limit, again.model.budget })
      assert.is_true(plain:hidden("a text"):equals(again:hidden "a text"))
      plain:release()
      again:release()
    end)

    it("does of random weights", function()
      local own = perigee.load(require("perigee.checkpoint.random").checkpoint "minilm")
      local turned = own:quantize { activations = "dynamic" }
      local input = { ids = { 5, 6, 7 } }
      local again = made_again(turned:recipe())
      assert.is_true(turned:hidden(input):equals(again:hidden(input)))
      turned:release()
      again:release()
    end)
  end)
end)
