--- Tune: finds the fastest settings whose loss stays within a budget. It prints itself: the settings as a recipe that can be
-- edited, the Pareto front of loss against predicted time, and the loss on inputs that it was not tuned on.
--
--   local t = model:tune { stats = stats, data = perigee.evaluate.read "dev.tsv", max_drop = 0.5 }
--   t.settings      the settings; t.recipe is their Lua text
--   t.met           whether the loss on the inputs of the tuning stays within the budget
--   t.judged        of the other inputs: { n =, metric =, fp32 =, int8 =, loss = in points, interval = { low, high } of the
--                   loss }; without labels { n =, metric =, loss = }
--   t.candidates    all that was tried: { name =, settings =, loss =, share =, time =, front = true or nil }
--
-- The data are split: inputs at odd places choose the settings, inputs at even places judge the result.
--
-- The loss is in points: with a labelled set 100 times the drop of the metric against FP32; with a list of inputs 100 times the
-- share of labels that differ (classifiers), 1 - the mean cosine (embedding models), or the power of the error of the hidden
-- states relative to their own (other tasks). time is relative to FP32.
--
-- Starting points are static and dynamic activations, with the default alphas and with searched ones, and the range "mse". In
-- each, sites become FP32 one by one until the loss is within the budget. The first is the site with the largest noise, as
-- sensitivity.lua measures it, for each multiply-add.
local compare = require "perigee.evaluate.compare"
local distance = require "perigee.evaluate.distance"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local sensitivity = require "perigee.tune.sensitivity"
local settings = require "perigee.quantize.settings"
local split = require "perigee.tune.split"
local text_table = require "perigee.show.table"

local Tune = {}
Tune.__index = Tune

local KNOWN = { stats = true, data = true, max_drop = true, metric = true, samples = true, progress = true }

local STARTS = {
  { "static", { activations = "static" } },
  { "static, alpha auto", { activations = "static", alpha = "auto" } },
  { "static, alpha auto, range mse", { activations = "static", alpha = "auto", range = "mse" } },
  { "dynamic", { activations = "dynamic" } },
  { "dynamic, alpha auto", { activations = "dynamic", alpha = "auto" } },
}

---- Loss --------------------------------------------------------------------------------------------------------------

local function value_of(run, metric)
  local names = {}
  for i, score in ipairs(run.scores) do
    names[i] = score.metric
    if metric == nil or score.metric == metric then
      return score
    end
  end
  error(("tune: the metric is %s, expected %s"):format(pgee.describe(metric), table.concat(names, " or ")), 0)
end

-- The metric of one model on a labelled part.
local function metric_of(c, encoder, part)
  local result = compare.run({ { "model", encoder } }, part, { resamples = 0, progress = false }, "run")
  return value_of(result.runs[1], c.metric).value
end

-- Compares q with FP32 on a labelled part, with an interval.
local function judge_labelled(c, q, part)
  local result = compare.run({ { "FP32", c.model }, { "INT8", q } }, part, { progress = false }, "compare")
  local fp32, int8 = value_of(result.runs[1], c.metric), value_of(result.runs[2], c.metric)
  local between = int8.interval
  return {
    n = result.n, metric = fp32.metric, fp32 = fp32.value, int8 = int8.value, loss = 100 * (fp32.value - int8.value),
    interval = between and { 0 - 100 * between[2], 0 - 100 * between[1] } or nil,
  }
end

-- The loss of q on a part without labels.
local function judge_agreement(c, q, part)
  local d = distance(c.model, q, part.texts)
  if d.agreement then
    return { n = d.n, metric = "labels that differ", loss = 100 * (1 - d.agreement) }
  elseif d.vectors then
    return { n = d.n, metric = "1 - cosine", loss = 100 * (1 - d.vectors.mean) }
  end
  return { n = d.n, metric = "relative error", loss = 100 * 10 ^ (-d.sqnr / 10) }
end

---- Time --------------------------------------------------------------------------------------------------------------

local ROUNDS = 3

-- Least seconds of each model over the texts that calibration kept. The models take turns.
local function seconds_of(list, inputs)
  local least = {}
  for round = 0, ROUNDS do
    for i, encoder in ipairs(list) do
      local began = pgee.C.pgee_seconds()
      encoder:hidden(inputs):release()
      local seconds = pgee.C.pgee_seconds() - began
      least[i] = round > 0 and math.min(least[i] or math.huge, seconds) or nil -- the first round makes what is made on first use
    end
  end
  return least
end

-- Multiply-adds of a site for one token: { [name] = count }, and of all sites together.
local function work_of(model)
  local work, all = {}, 0
  for _, node in ipairs(model:graph("hidden").nodes) do
    if node.op == "linear" and node.site then
      local own = node.width * node.inputs[1].width
      work[node.site.name] = (work[node.site.name] or 0) + own
      all = all + own
    end
  end
  return work, all
end

---- Candidates --------------------------------------------------------------------------------------------------------

-- The sites in the order in which they become FP32.
local function ladder(q, work)
  local s = sensitivity.run(q, { without = false, progress = false })
  local list = {}
  for _, item in ipairs(s.items) do
    if item.kind == "site" and work[item.name] then
      list[#list + 1] = { name = item.name, by = 10 ^ (-item.alone / 10) / work[item.name] }
    end
  end
  table.sort(list, function(a, b) return a.by > b.by or a.by == b.by and a.name < b.name end)
  return list
end

-- Tries the start with its first `count` sites of the ladder in FP32, and returns the candidate.
local function try(c, start, q, rungs, count)
  local skip, int8 = {}, c.work_all
  for i = 1, count do
    skip[i] = rungs[i].name
    int8 = int8 - c.work[rungs[i].name]
  end
  q:set { skip = skip }
  local loss
  if c.tuning.labels then
    c.fp32 = c.fp32 or metric_of(c, c.model, c.tuning)
    loss = 100 * (c.fp32 - metric_of(c, q, c.tuning))
  else
    loss = judge_agreement(c, q, c.tuning).loss
  end
  local share = int8 / c.work_all
  local candidate = {
    name = start.name .. (count > 0 and (", %d of %d sites FP32"):format(count, #rungs) or ""), settings = q.settings,
    loss = loss, share = share, time = 1 - share * (1 - start.time), sites = count,
  }
  table.insert(c.candidates, candidate)
  c.tell()
  return candidate
end

-- The candidates of one start. If the loss without FP32 sites is beyond the budget, the search halves the number of FP32 sites,
-- as if the loss fell with each site.
local function explore(c, start, q)
  local first = try(c, start, q, {}, 0)
  if first.loss <= c.max_drop then
    return
  end
  local rungs = ladder(q, c.work)
  local low, high = 0, #rungs - 1
  if high < 1 or try(c, start, q, rungs, high).loss > c.max_drop then
    return
  end
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if try(c, start, q, rungs, middle).loss <= c.max_drop then
      high = middle
    else
      low = middle
    end
  end
end

-- Marks the candidates to which no other is better or equal in loss and in time.
local function mark_front(candidates)
  table.sort(candidates, function(a, b)
    if a.time ~= b.time then
      return a.time < b.time
    end
    return a.loss < b.loss or a.loss == b.loss and a.name < b.name
  end)
  local least = math.huge
  for _, candidate in ipairs(candidates) do
    candidate.front = candidate.loss < least or nil
    least = math.min(least, candidate.loss)
  end
end

-- The fastest candidate within the budget, else the one that loses least.
local function choose(candidates, max_drop)
  local best
  for _, candidate in ipairs(candidates) do -- the fastest first
    if candidate.loss <= max_drop then
      return candidate, true
    end
    best = (not best or candidate.loss < best.loss) and candidate or best
  end
  return best, false
end

---- The run -----------------------------------------------------------------------------------------------------------

local tune = {}

local function recipe_of(chosen)
  local default, lines = settings.new { activations = chosen.activations }, {}
  for _, key in ipairs(settings.KEYS) do
    local value = settings.literal(chosen, key)
    if key == "activations" or value ~= settings.literal(default, key) then
      lines[#lines + 1] = ("  %s = %s,"):format(key, value)
    end
  end
  return "local q = model:quantize {\n  stats = stats,\n" .. table.concat(lines, "\n") .. "\n}"
end

local function read(model, given)
  given = options.check(given, KNOWN, "tune")
  options.number(given.max_drop, 0, 100, "tune: max_drop")
  options.integer(given.samples, 4, 2 ^ 31 - 1, "tune: samples")
  options.text(given.metric, "tune: metric")
  local stats = given.stats
  if type(stats) ~= "table" or type(stats.can_judge) ~= "function" or not stats:can_judge() then
    error(("tune: stats is %s, expected what model:calibrate returns"):format(pgee.describe(stats)), 0)
  end
  local tuning, judging = split(given.data, given.samples or 1000)
  local work, all = work_of(model)
  return {
    model = model, stats = stats, metric = given.metric, max_drop = given.max_drop or 0.5, tuning = tuning, judging = judging,
    work = work, work_all = all, candidates = {}, models = {},
    show = progress.of(given.progress, "tuning"),
  }
end

local function run(c)
  local done, total = 0, 8 * #STARTS
  function c.tell()
    done = done + 1
    c.show(math.min(done, total - 1), total)
  end
  for i, start in ipairs(STARTS) do
    local own = { stats = c.stats }
    for key, value in pairs(start[2]) do
      own[key] = value
    end
    local q = c.model:quantize(own)
    c.models[1] = q
    local seconds = seconds_of({ c.model, q }, c.stats.kept.inputs)
    explore(c, { name = start[1], time = seconds[2] / seconds[1] }, q)
    c.models[1] = nil
    q:release()
    c.show(math.floor(total * i / (#STARTS + 1)), total)
  end
  mark_front(c.candidates)
  local best, met = choose(c.candidates, c.max_drop)
  local own = { stats = c.stats }
  for _, key in ipairs(settings.KEYS) do
    own[key] = best.settings[key]
  end
  c.models[1] = c.model:quantize(own)
  local judged = (c.judging.labels and judge_labelled or judge_agreement)(c, c.models[1], c.judging)
  c.show(total, total)
  return setmetatable({
    settings = best.settings, recipe = recipe_of(best.settings), chosen = best, met = met, judged = judged,
    candidates = c.candidates, max_drop = c.max_drop, tuned_on = #c.tuning.texts, given = own,
  }, Tune)
end

--- For Model:tune. Options:
--   stats     what model:calibrate returned
--   data      a labelled set (perigee.evaluate.read), or a list of inputs, which are judged by agreement with FP32
--   max_drop  the budget, in points. Default: 0.5
--   metric    the name of one of the task's metrics. Default: the main one
--   samples   at most so many inputs of the data are used, taken evenly. Default: 1000
--   progress  as for calibrate
function tune.run(model, given)
  local c = read(model, given)
  local ok, result = pcall(run, c)
  for _, q in pairs(c.models) do
    q:release()
  end
  if not ok then
    error(result, 0)
  end
  return result
end

---- The result --------------------------------------------------------------------------------------------------------

local function text_of(self, columns)
  local rows = { { "", "settings ", "loss", "INT8 %", "time" } }
  for _, one in ipairs(self.candidates) do
    if one.front or one == self.chosen then
      rows[#rows + 1] = {
        one == self.chosen and ">" or "", one.name, ("%.2f"):format(one.loss), ("%.1f"):format(100 * one.share),
        ("%.2f"):format(one.time),
      }
    end
  end
  local j = self.judged
  local interval = j.interval and (" (interval %.2f to %.2f)"):format(j.interval[1], j.interval[2]) or ""
  return table.concat({
    ("%d candidates, judged on %d inputs; the budget is %g points%s"):format(#self.candidates, self.tuned_on, self.max_drop,
      self.met and "" or "; no candidate keeps it, so this is the one that loses least"),
    "The front (loss in points, time relative to FP32):",
    text_table(rows, columns),
    ("On %d other inputs: %s, loss %.2f points%s"):format(j.n, j.metric, j.loss, interval),
    "",
    self.recipe,
  }, "\n")
end

--- How a prompt prints it.
function Tune:__show(style)
  return text_of(self, style and style.columns)
end

function Tune:__tostring()
  return text_of(self)
end

return tune
