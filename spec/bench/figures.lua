--- Figures: measures the tables of lua/FIGURES.md about the accuracy of settings and the time of changing them.
--
--   luajit spec/bench/figures.lua [attention] [changes] [call] [sample] [ranges] [shift] [outliers]   (`make figures`)
--
-- Without arguments it measures all of them. Tables of fine-tuned checkpoints need the data sets and checkpoints of ../shared.
-- Only the figures of `changes` and `call` depend on the machine.
local here = arg[0]:match "^(.*)/spec/bench/[^/]*$" or "."
package.path = ("@/lua/?.lua;@/lua/?/init.lua;@/?.lua;"):gsub("@", { ["@"] = here }) .. package.path
local attention = require "perigee.graph.passes.attention"
local evaluate = require "perigee.evaluate"
local files = require "spec.support.files"
local inputs = require "perigee.run.inputs"
local make_outliers = require "spec.support.make_outliers"
local models = require "spec.support.models"
local perigee = require "perigee"
local random = require "perigee.checkpoint.random"
local ranges = require "perigee.quantize.ranges"

local TEXTS = "recipes/data/calibration.txt"
local QUIET = { progress = false }

-- Loads the demo's checkpoint or a fine-tuned one. It is an error if it is not on this machine.
local function load(name)
  local path, why
  if name == "all-MiniLM-L6-v2" then
    path, why = models.demo()
  else
    path, why = models.tuned(name)
  end
  return perigee.load(path or error(name .. ": " .. why, 0))
end

local function release(...)
  for _, object in ipairs { ... } do
    object:release()
  end
end

-- Calls f(quantized model), and releases the quantized model afterwards.
local function with(model, settings, f)
  local q = model:quantize(settings)
  local result = { f(q) }
  q:release()
  return unpack(result)
end

local function db(q)
  return q:sqnr()
end

local function print_row(...)
  print("| " .. table.concat({ ... }, " | ") .. " |")
end

local figures = {}

---- INT8 attention ----------------------------------------------------------------------------------------------------

local JUDGED = { -- name, task, what it is judged by, what calibrates
  { "all-MiniLM-L6-v2", "embed", "stsb/sts-test.csv", "stsb/sts-train.csv" },
  { "minilm-stsb", "regression", "stsb/sts-test.csv", "stsb/sts-train.csv" },
  { "minilm-sst2", "classify", "sst2/sentiment-dev", "sst2/sentiment-train" },
  { "minilm-nli", "pairs", "checkpoints/minilm-nli/eval.jsonl", "snli/s1.dev" },
}

-- Calls f while all scales of INT8 attention are multiplied by a factor.
local function with_scales(times, f)
  local right = attention.scales
  local function larger(t)
    local copy = t:copy()
    for i = 1, #t do
      copy[i] = t[i] * times
    end
    return copy
  end
  attention.scales = function(seen, heads)
    local wrong = { min = larger(seen.min), max = larger(seen.max) }
    local scales = right(wrong, heads)
    release(wrong.min, wrong.max)
    return scales
  end
  local ok, result = pcall(f)
  attention.scales = right
  return ok and result or error(result, 0)
end

-- Returns the range over the layers of a model, such as "31 to 37 dB".
local function layers(stats)
  local least, most = math.huge, -math.huge
  for _, seen in pairs(stats.attention) do
    least, most = math.min(least, seen.sqnr), math.max(most, seen.sqnr)
  end
  return ("%.0f to %.0f dB"):format(least, most)
end

function figures.attention()
  local folder = (models.shared() or error("../shared is not there", 0)) .. "/data/"
  print "INT8 attention with scales 1, 2, 4 ... 32 times what they should be: dB of the layers, score; static"
  for _, row in ipairs(JUDGED) do
    local model, task = load(row[1]), row[2]
    local set = evaluate.read(folder .. row[3])
    local texts = evaluate.sample(evaluate.read(folder .. row[4], { plain = true }), 256, set, model.task == "embed")
    local function score(q)
      return ("%.2f"):format(100 * evaluate.run(q, set, { task = task, progress = false }).value)
    end
    local stats = model:calibrate(texts, QUIET)
    print_row(row[1], "FP32 " .. score(model), "FP32 attention " .. with(model, { stats = stats, attention = "f32" }, score))
    for _, times in ipairs { 1, 2, 4, 8, 16, 32 } do
      with_scales(times, function()
        local own = model:calibrate(texts, QUIET)
        print_row("  " .. times, layers(own), with(model, { stats = own, attention = "int8" }, score))
        own:release()
        return true
      end)
    end
    local dynamic = {}
    for i, kind in ipairs { "f32", "int8" } do
      dynamic[i] = with(model, { stats = stats, activations = "dynamic", attention = kind }, score)
    end
    print_row("  dynamic", "FP32 attention " .. dynamic[1], "INT8 " .. dynamic[2])
    release(stats, model)
  end
  for _, name in ipairs { "minilm-qa", "minilm-ner" } do
    local model = load(name)
    local stats = model:calibrate(perigee.lines(TEXTS), QUIET)
    print_row(name, ("FP32 attention %.2f dB"):format(with(model, { stats = stats, attention = "f32" }, db)),
      ("INT8 %.2f dB"):format(with(model, { stats = stats, attention = "int8" }, db)))
    release(stats, model)
  end
end

---- What a change costs -----------------------------------------------------------------------------------------------

-- Returns the seconds of CPU time of one thread that f takes. Other processes disturb it little.
local function timed(f, ...)
  local began = os.clock()
  f(...)
  return os.clock() - began
end

-- Each function returns the seconds of the i-th try.
local CHANGES = {
  { "alpha of the whole model", function(q, i) return timed(q.set, q, { alpha = i / 10 }) end },
  { "alpha of one layer", function(q, i)
    return timed(q.set, q, "encoder.layer.2.*", { alpha = i / 10 + 0.02 })
  end },
  { "alpha of one site", function(q, i)
    return timed(q.set, q, "encoder.layer.3.output.dense", { alpha = i / 10 + 0.03 })
  end },
  { "weights per tensor, per row", function(q, i)
    return timed(q.set, q, { weights = i % 2 == 1 and "tensor" or "row" })
  end },
  { "q:sqnr()", function(q, i)
    q:set { alpha = i / 10 + 0.05 } -- else it is known
    return timed(q.sqnr, q)
  end },
  { "SQNR of every site before and after", function(q, i)
    return timed(tostring, q:set { alpha = i / 10 + 0.01 })
  end },
}

function figures.changes()
  perigee.threads(1)
  local given, tokens = {}, 0
  for i = 1, 8 do
    given[i] = models.random_inputs(1, 128, 30522, i)[1]
    tokens = tokens + #given[i].ids
  end
  print(("What a change costs, milliseconds of CPU time, the least of eight, one thread; 8 inputs of %d tokens"):format(tokens))
  for _, name in ipairs { "minilm", "bert-large" } do
    local model = perigee.load(random.checkpoint(name))
    local stats = model:calibrate(given, QUIET)
    local q = model:quantize { stats = stats }
    for _, change in ipairs(CHANGES) do
      local least = math.huge
      for i = 1, 8 do
        least = math.min(least, change[2](q, i))
      end
      print_row(name, change[1], ("%.1f ms"):format(1000 * least))
    end
    release(q, stats, model)
  end
end

---- The Lua side of a call -----------------------------------------------------------------------------------------------

function figures.call()
  perigee.threads(1)
  local model = load "all-MiniLM-L6-v2"
  local q = model:quantize { activations = "dynamic" }
  local text, calls = "a text of a few words, not more than these", 50
  local batch, least, steps = inputs.batch(q, text, "figures"), math.huge, math.huge
  for _ = 1, 20 do
    least = math.min(least, timed(function()
      for _ = 1, calls do
        q:hidden(text):release()
      end
    end) / calls)
    for _ = 1, calls do
      local sum = 0
      for _, seconds in ipairs((q:runner("hidden"):profile(batch))) do
        sum = sum + seconds
      end
      steps = math.min(steps, sum)
    end
  end
  print(("A call with a text of %d tokens: %.0f us, %.0f of them outside of the plan's steps"):format(batch.T, least * 1e6,
    (least - steps) * 1e6))
  release(q, model)
end

---- SQNR from the sample ----------------------------------------------------------------------------------------------

local FIVE = {
  {}, { alpha = false }, { symmetric = true }, { activations = "dynamic" }, { weights = "tensor", alpha = 0.5 },
}

function figures.sample()
  local model, texts = load "all-MiniLM-L6-v2", models.texts(TEXTS, 40)
  local all = model:calibrate(texts, { rows = 100000, progress = false })
  for _, rows in ipairs { 128, 256, 512 } do
    local stats, worst = model:calibrate(texts, { rows = rows, progress = false }), 0
    for _, settings in ipairs(FIVE) do
      local found = {}
      for i, of in ipairs { all, stats } do
        local copy = { stats = of }
        for key, value in pairs(settings) do
          copy[key] = value
        end
        found[i] = with(model, copy, function(q) return q:sqnr "*" end)
      end
      for site, value in pairs(found[1]) do
        worst = math.max(worst, math.abs(value - found[2][site]))
      end
    end
    print(("SQNR of a site from %d rows and from all, five settings: at most %.2f dB apart"):format(rows, worst))
    stats:release()
  end
  release(all, model)
end

---- Range methods -----------------------------------------------------------------------------------------------------

function figures.ranges()
  print "Range methods, static, 128 texts: dB of the output, and the mean over the sites in brackets"
  for _, row in ipairs {
    { "all-MiniLM-L6-v2", 0.75 }, { "all-MiniLM-L6-v2", false }, { "all-MiniLM-L6-v2", 0.75, true }, { "minilm-sst2", 0.75 },
    { "minilm-sst2", false }, { "minilm-stsb", 0.75 }, { "minilm-stsb", false },
  } do
    local model = load(row[1])
    local stats = model:calibrate(perigee.lines(TEXTS), { samples = 128, progress = false })
    local cells = { row[1] .. (row[3] and ", symmetric" or ""), tostring(row[2] or "off") }
    for _, name in ipairs(ranges.NAMES) do
      local output, sites = with(model, { stats = stats, range = name, alpha = row[2], symmetric = row[3] }, function(q)
        return q:sqnr(), q:sqnr "*"
      end)
      local sum, count = 0, 0
      for _, value in pairs(sites) do
        sum, count = sum + value, count + 1
      end
      cells[#cells + 1] = ("%s %.1f (%.1f)"):format(name, output, sum / count)
    end
    print_row(unpack(cells))
    release(stats, model)
  end
end

figures.shift = require "spec.bench.shift" {
  judged = JUDGED, texts = TEXTS, quiet = QUIET, load = load, release = release, print_row = print_row,
}

---- Planted outliers --------------------------------------------------------------------------------------------------

function figures.outliers()
  print "A random BERT with planted outliers: dB of the output, static, FP32 attention, by strength and alpha"
  for _, strength in ipairs { 20, 30, 40 } do
    local model, cells = perigee.load(make_outliers(files.folder {}, strength)), { tostring(strength) }
    local stats = model:calibrate(perigee.lines(TEXTS), QUIET)
    for _, alpha in ipairs { false, 0, 0.3, 0.5, 0.7, 1 } do
      cells[#cells + 1] = ("%s %.1f"):format(alpha or "off", with(model, { stats = stats, alpha = alpha, attention = "f32" }, db))
    end
    print_row(unpack(cells))
    release(stats, model)
    files.clean()
  end
end

local ALL = { "attention", "changes", "call", "sample", "ranges", "shift", "outliers" }

for _, name in ipairs(#arg > 0 and arg or ALL) do
  if not figures[name] then
    io.stderr:write(("figures: %s is none of %s\n"):format(name, table.concat(ALL, ", ")))
    os.exit(1)
  end
  local ok, failure = pcall(figures[name])
  print(ok and "" or "left out: " .. failure)
end
