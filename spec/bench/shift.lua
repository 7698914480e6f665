--- Shift: the table of lua/FIGURES.md about the setting shift, which spec/bench/figures.lua prints. given: tools and tables of
-- figures.lua.
local evaluate = require "perigee.evaluate"
local files = require "spec.support.files"
local make_outliers = require "spec.support.make_outliers"
local models = require "spec.support.models"
local perigee = require "perigee"

return function(given)
  local load, release, print_row = given.load, given.release, given.print_row
  local JUDGED, TEXTS, QUIET = given.judged, given.texts, given.quiet

  -- What a site follows, by its name.
  local function kind_of(name)
    if name:find "attention.output.dense$" then
      return "attention"
    end
    return name:find "output.dense$" and "GELU" or "LayerNorm"
  end

  -- Which sites of a quantized model are shifted, by name.
  local function shifted_sites(q)
    local list = {}
    for _, row in ipairs(q:explain().rows) do
      list[row.name] = row.shift or false
    end
    return list
  end

  -- dB of the last hidden states of a quantized model against FP32's, over some texts.
  local function distance(model, q, texts)
    local want, got = model:hidden(texts), q:hidden(texts)
    local result = want:sqnr(got)
    release(want, got)
    return result
  end

  -- Runs f while the sites' samples in `stats` are those of `judged`. SQNR is then measured on other texts than those that the
  -- quantizers are made of.
  local function on_sample(stats, judged, f)
    local own = {}
    for name, seen in pairs(stats.sites) do
      own[name], seen.sample = seen.sample, judged.sites[name].sample
    end
    local ok, failure = pcall(f)
    for name, seen in pairs(stats.sites) do
      seen.sample = own[name]
    end
    return ok or error(failure, 0)
  end

  -- One row for each alpha: of each kind of site the mean dB without a shift, what a shift adds to it, what auto adds, and what
  -- auto adds at the worst site; then dB of the output and scores. score: function(q), or nil.
  local function shift_rows(name, model, calibration, judge, score)
    local stats, judged = model:calibrate(calibration, QUIET), model:calibrate(judge, QUIET)
    local texts = { unpack(judge, 1, 64) }
    for _, alpha in ipairs { false, 0.75 } do
      local outputs, scores, sqnr, chosen = {}, {}, {}, nil
      for i, shift in ipairs { false, true, "auto" } do
        local q = model:quantize { stats = stats, alpha = alpha, shift = shift }
        outputs[i] = ("%.2f"):format(distance(model, q, texts))
        scores[i] = score and ("%.2f"):format(score(q)) or nil
        chosen = shifted_sites(q)
        q:release()
      end
      for i, shift in ipairs { false, true } do
        local q = model:quantize { stats = stats, alpha = alpha, shift = shift }
        on_sample(stats, judged, function() sqnr[i] = q:sqnr "*" end)
        q:release()
      end
      local cells = { name, tostring(alpha or "off") }
      for _, kind in ipairs { "LayerNorm", "attention", "GELU" } do
        local sum, gain, auto, worst, count, taken = 0, 0, 0, math.huge, 0, 0
        for site, without in pairs(sqnr[1]) do
          if kind_of(site) == kind then
            local own = sqnr[2][site] - without
            local kept = chosen[site] and own or 0
            sum, gain, auto, count, taken = sum + without, gain + own, auto + kept, count + 1, taken + (chosen[site] and 1 or 0)
            worst = math.min(worst, kept)
          end
        end
        cells[#cells + 1] = ("%s %.1f, %+.1f, auto %+.1f (%d of %d sites, worst %+.2f)"):format(kind, sum / count, gain / count,
          auto / count, taken, count, worst)
      end
      cells[#cells + 1] = "output " .. table.concat(outputs, ", ")
      cells[#cells + 1] = score and "score " .. table.concat(scores, ", ") or nil
      print_row(unpack(cells))
    end
    release(stats, judged)
  end

  return function()
    print "Shift, static; dB on texts that were not calibrated on: false, true, auto"
    for _, row in ipairs(JUDGED) do
      local ok, why = pcall(function()
        local folder = (models.shared() or error("../shared is not there", 0)) .. "/data/"
        local model, set = load(row[1]), evaluate.read(folder .. row[3])
        local all = evaluate.sample(evaluate.read(folder .. row[4], { plain = true }), 512, set, model.task == "embed")
        local function score(q)
          return 100 * evaluate.run(q, set, { task = row[2], progress = false }).value
        end
        print(row[1] .. (": FP32 %.2f"):format(score(model)))
        shift_rows(row[1], model, { unpack(all, 1, 256) }, { unpack(all, 257, 512) }, score)
        model:release()
      end)
      print(ok and "" or row[1] .. " left out: " .. why)
    end
    local texts = models.texts(TEXTS, 256)
    for _, strength in ipairs { 20, 30, 40 } do
      local model = perigee.load(make_outliers(files.folder {}, strength))
      shift_rows("outliers " .. strength, model, { unpack(texts, 1, 128) }, { unpack(texts, 129, 256) })
      model:release()
      files.clean()
    end
  end
end
