-- alpha = "auto": what the search finds, and that it finds the same with every instruction set.
local cpu = require "perigee.cpu"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local live = require "spec.support.live"
local make_outliers = require "spec.support.make_outliers"
local measure = require "perigee.quantize.measure"
local models = require "spec.support.models"
local perigee = require "perigee"
local search = require "perigee.tune.search"
local settings = require "perigee.quantize.settings"

local DENSE = "encoder.layer.1.output.dense"

describe('alpha = "auto"', function()
  local model, stats

  setup(function()
    model = perigee.load(models.path "gelu", { kernel = "native" })
    stats = model:calibrate(models.random_inputs(40, 60, 97, 5), { progress = false })
  end)

  teardown(function()
    stats:release()
    model:release()
  end)

  after_each(files.clean)

  local function best_by_sweep(q, site, default)
    local list, best = { settings.at(q.settings, { site }, { alpha = default }) }, 1
    for i, alpha in ipairs(search.GRID) do
      list[i + 1] = settings.at(q.settings, { site }, { alpha = alpha })
    end
    local sqnr = measure.site(q, site, list)
    for i in ipairs(list) do
      best = sqnr[i] > sqnr[best] and i or best
    end
    return best == 1 and default or search.GRID[best - 1]
  end

  it("is the alpha of each site with the highest SQNR, and the default where none is higher", function()
    for _, activations in ipairs { "static", "dynamic" } do
      local plain = model:quantize { stats = stats, activations = activations }
      local q = model:quantize { stats = stats, activations = activations, alpha = "auto" }
      for _, site in ipairs(measure.sites(q)) do
        assert.are.equal(best_by_sweep(plain, site, settings.ALPHA[activations]), settings.of(q.settings, site).alpha)
        assert.is_true(q:sqnr(site.name)[site.name] >= plain:sqnr(site.name)[site.name])
      end
      assert.are.equal("table", type(q.alpha))
      for _, row in ipairs(q:explain().rows) do
        assert.are.equal(q.alpha[row.name] or q.alpha[row.name] == nil and settings.ALPHA[activations] or nil, row.alpha)
      end
      plain:release()
      q:release()
    end
  end)

  it("holds for the sites that it is given to; others keep what they have", function()
    local q = model:quantize { stats = stats, alpha = 0.4 }
    q:set(DENSE, { alpha = "auto" })
    assert.are.equal(0.4, q.alpha)
    local of = q.settings.sites[DENSE]
    assert.are.equal(best_by_sweep(q, { name = DENSE, linears = { DENSE }, width = 64 }, 0.75), of and of.alpha or 0.4)
    q:undo()
    assert.is_nil(next(q.settings.sites))
    q.alpha = { [DENSE] = "auto", ["encoder.layer.0.*"] = false }
    for _, site in ipairs(measure.sites(q)) do
      local alpha = settings.of(q.settings, site).alpha
      if site.name:find "^encoder.layer.0" then
        assert.is_false(alpha)
      elseif site.name ~= DENSE then
        assert.are.equal(0.75, alpha)
      end
    end
    q:release()
  end)

  it("is written out: the recipe and the artifact have the alphas, and a diff resolves it", function()
    local q = model:quantize { stats = stats, alpha = "auto" }
    assert.is_nil(tostring(q.settings):find('alpha = "auto"', 1, true))
    assert.is_truthy(q:recipe():find("alpha = { [", 1, true))
    local same = model:quantize { stats = stats, alpha = q.alpha }
    assert.are.equal(tostring(q.settings), tostring(same.settings))
    assert.are.equal("no difference", tostring(q:diff { alpha = "auto" }))
    local path = files.folder {} .. "/auto.safetensors"
    q:save(path, { tokenizer = false })
    local opened = perigee.open(path)
    assert.are.same(q.alpha, opened.settings.alpha)
    opened:release()
    q:release()
    same:release()
  end)

  it("finds the same with every instruction set, and the artifacts have equal bytes", function()
    local first
    local inputs = models.random_inputs(12, 30, 97, 5)
    for number, isa in ipairs(cpu.isa_names()) do
      if not cpu.isa_reason(number - 1) then
        cpu.with_isa(isa, function()
          local own = perigee.load(models.path "gelu", { kernel = "native" })
          local seen = own:calibrate(inputs, { progress = false, rows = 64 })
          local q = own:quantize { stats = seen, alpha = "auto" }
          local path = files.folder {} .. "/auto.safetensors"
          q:save(path, { tokenizer = false })
          first = first or { tostring(q.settings), models.read(path) }
          assert.are.equal(first[1], tostring(q.settings), isa)
          assert.is_true(first[2] == models.read(path), isa)
          q:release()
          seen:release()
          own:release()
        end)
      end
    end
  end)

  it("recovers planted outliers as the best common alpha does", function()
    local own = perigee.load(make_outliers(files.folder {}, 30))
    local seen = own:calibrate(models.texts("recipes/data/calibration.txt", 48), { progress = false })
    local q = own:quantize { stats = seen, attention = "f32" }
    local sweep = q:sweep { alpha = { 0, 1, 0.1 }, progress = false }
    q.alpha = "auto"
    local best = sweep.output[math.floor(sweep.best * 10 + 1.5)]
    assert.is_true(q:sqnr() > best - 0.5, ("auto %.2f, best %.2f"):format(q:sqnr(), best))
    q:release()
    seen:release()
    own:release()
  end)

  it("needs statistics, and leaves the model as it is without them", function()
    local q = model:quantize { activations = "dynamic" }
    local before = tostring(q.settings)
    assert.is_truthy(failure(function() q.alpha = "auto" end):find("alpha is \"auto\", which is searched on the sample", 1, true))
    assert.are.equal(before, tostring(q.settings))
    assert.is_truthy(failure(model.quantize, model, { activations = "dynamic", alpha = "auto" }):find("give stats", 1, true))
    q:release()
  end)

  it("keeps the default where nothing can be measured, and holds no memory", function()
    local q = model:quantize { stats = stats, activations = "dynamic", per = "sequence" }
    q.alpha = "auto"
    assert.are.equal(0.6, q.alpha)
    q:release()
    local function quantize()
      model:quantize({ stats = stats, alpha = "auto" }):release()
    end
    quantize()
    local before = live()
    quantize()
    assert.is_true(live() <= before)
  end)
end)
