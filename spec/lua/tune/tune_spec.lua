-- model:tune: what it chooses, that it judges on other inputs, and planted outliers, on which plain W8A8 fails.
local evaluate = require "perigee.evaluate"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local make_outliers = require "spec.support.make_outliers"
local models = require "spec.support.models"
local perigee = require "perigee"
local split = require "perigee.tune.split"

describe("tune", function()
  after_each(files.clean)

  it("splits data into items at odd and at even places", function()
    local set = { path = "x", texts = { "a", "b", "c", "d", "e" }, labels = { 1, 2, 3, 4, 5 } }
    local tuning, judging = split(set, 100)
    assert.are.same({ { "a", "c", "e" }, { 1, 3, 5 } }, { tuning.texts, tuning.labels })
    assert.are.same({ { "b", "d" }, { 2, 4 }, "x" }, { judging.texts, judging.labels, judging.path })
    local list = {}
    for i = 1, 100 do
      list[i] = "text " .. i
    end
    tuning, judging = split(list, 10)
    assert.are.same({ "text 1", "text 21", "text 41", "text 61", "text 81" }, tuning.texts)
    assert.are.same({ "text 11", "text 31", "text 51", "text 71", "text 91" }, judging.texts)
    assert.is_nil(judging.labels)
    for _, case in ipairs {
      { nil, "data is nil, expected" }, { { "a", "b" }, "the data have 2 items, expected at least 4" },
      { { texts = { "a" }, labels = {}, documents = {} }, "cannot be split" }, { { a = 1 }, "found the key a" },
    } do
      assert.is_truthy(failure(split, case[1], 10):find(case[2], 1, true))
    end
  end)

  local texts = models.texts("recipes/data/calibration.txt", 96)
  local calibration, data = { unpack(texts, 1, 48) }, { unpack(texts, 49, 96) }

  for strength, budget in pairs { [30] = 0.25, [40] = 0.4 } do
    local title = "keeps planted outliers of strength %d within %g points, with 80 %% of the multiply-adds in INT8"
    it(title:format(strength, budget), function()
      local model = perigee.load(make_outliers(files.folder {}, strength), { kernel = "native" })
      local stats = model:calibrate(calibration, { progress = false })
      local plain = model:quantize { stats = stats, alpha = false }
      local before = 100 * (1 - evaluate.distance(model, plain, data).vectors.mean)
      local t = model:tune { stats = stats, data = data, max_drop = budget, progress = false }
      local told = ("plain %.2f, %s"):format(before, tostring(t))
      assert.is_true(before > 4 * budget, told)
      assert.is_true(t.met and t.judged.loss <= budget * 1.25 and t.chosen.share >= 0.8, told)
      assert.are.equal(24, t.tuned_on)
      assert.are.equal(24, t.judged.n)
      plain:release()
      stats:release()
      model:release()
    end)
  end

  it("keeps sites in FP32 if the budget asks for it, prints a front and a recipe that makes the settings", function()
    local model = perigee.load(make_outliers(files.folder {}, 40), { kernel = "native" })
    local stats = model:calibrate(calibration, { progress = false })
    local loose = model:tune { stats = stats, data = data, max_drop = 100, progress = false }
    local tight = model:tune { stats = stats, data = data, max_drop = loose.judged.loss / 4, progress = false }
    assert.are.equal(1, loose.chosen.share)
    assert.is_true(tight.chosen.share < 1 and #tight.settings.skip > 0, tostring(tight))
    assert.is_true(tight.judged.loss < loose.judged.loss)
    local last
    for _, one in ipairs(tight.candidates) do
      if one.front then
        assert.is_true(not last or one.loss < last.loss and one.time >= last.time)
        last = one
      end
    end
    local make = assert(loadstring("local model, stats = ...\n" .. tight.recipe .. "\nreturn q"))
    local q = make(model, stats)
    assert.are.equal(tostring(tight.settings), tostring(q.settings))
    assert.is_truthy(tostring(tight):find(tight.recipe, 1, true))
    assert.is_truthy(tostring(tight):find("On 24 other inputs", 1, true))
    local none = model:tune { stats = stats, data = data, max_drop = 0, progress = false }
    assert.is_false(none.met)
    assert.is_truthy(tostring(none):find("no candidate keeps it", 1, true))
    q:release()
    stats:release()
    model:release()
  end)

  it("takes the metric of a labelled set", function()
    local model = perigee.load("spec/golden/tasks/nli", { kernel = "native" })
    local lines = {}
    for i = 1, 40 do
      lines[i] = ("%s\t%s\t%d"):format(data[i], data[41 - i], i % 3)
    end
    local set = evaluate.read(files.write(table.concat(lines, "\n") .. "\n"))
    local stats = model:calibrate({ unpack(calibration, 1, 8) }, { progress = false })
    local t = model:tune { stats = stats, data = set, max_drop = 100, progress = false }
    assert.are.equal("accuracy", t.judged.metric)
    assert.are.equal(20, t.judged.n)
    assert.are.equal(100 * (t.judged.fp32 - t.judged.int8), t.judged.loss)
    assert.is_true(t.judged.interval[1] <= t.judged.loss and t.judged.loss <= t.judged.interval[2])
    for _, case in ipairs {
      { { stats = stats, data = set, metric = "x", progress = false }, "expected accuracy" },
      { { data = set }, "expected what model:calibrate returns" },
      { { stats = stats, data = 3 }, "expected what perigee.evaluate.read returns" },
      { { stats = stats, data = set, max_drop = -1 }, "max_drop is -1" },
    } do
      assert.is_truthy(failure(model.tune, model, case[1]):find(case[2], 1, true))
    end
    stats:release()
    model:release()
  end)
end)
