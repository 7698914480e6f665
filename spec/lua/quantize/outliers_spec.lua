-- The planted outliers of spec/support/make_outliers.lua: plain W8A8 loses, an alpha in the middle recovers, the extremes lose
-- again. lua/FIGURES.md has the figures.
local files = require "spec.support.files"
local make = require "spec.support.make_outliers"
local models = require "spec.support.models"
local perigee = require "perigee"

describe("planted outliers", function()
  local texts = models.texts("recipes/data/calibration.txt", 48)

  after_each(files.clean)

  for strength, most in pairs { [20] = 20, [30] = 14.5, [40] = 10.5 } do
    it(("of strength %d are lost by plain W8A8 and by the extremes, and recovered in the middle"):format(strength), function()
      local model = perigee.load(make(files.folder {}, strength))
      local stats = model:calibrate(texts, { progress = false })
      local q = model:quantize { stats = stats, alpha = false, attention = "f32" }
      local channel, usual = stats.sites["encoder.layer.2.intermediate.dense"].max, 0
      for k = 1, 32 do
        usual = math.max(usual, channel[k])
      end
      assert.is_true(channel[38] > strength and channel[38] > 3 * usual, "the channel is not large")

      local plain = q:sqnr()
      local sweep = q:sweep { alpha = { 0, 1, 0.1 }, progress = false }
      local best = sweep.output[math.floor(sweep.best * 10 + 1.5)]
      local told = ("plain %.1f, 0: %.1f, best %.1f at %g, 1: %.1f"):format(plain, sweep.output[1], best, sweep.best,
        sweep.output[11])
      assert.is_true(plain < most and best > plain + 7, told)
      assert.is_true(sweep.best >= 0.4 and sweep.best <= 0.9, told)
      assert.is_true(sweep.output[1] < best - 3, told)
      assert.is_true(sweep.output[11] < best - 0.7, told)
      q:release()
      stats:release()
      model:release()
    end)
  end

  it("are the same files each time", function()
    local a, b = make(files.folder {}, 30), make(files.folder {}, 30)
    for _, name in ipairs { "config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors" } do
      assert.is_true(models.read(a .. "/" .. name) == models.read(b .. "/" .. name), name)
    end
  end)
end)
