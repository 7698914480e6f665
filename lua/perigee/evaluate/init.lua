--- Judging a model: labelled files, the metrics over what the model answers, and models side by side.
--
--   local set = evaluate.read "labelled.tsv"
--   print(evaluate.run(model, set).value)
--   print(evaluate.compare({ { "FP32", model }, { "INT8", q } }, set))
--
-- evaluate/*: read (files), tasks (what is run and judged), checked (the metrics that are offered), comparison, bootstrap.
local bootstrap = require "perigee.evaluate.bootstrap"
local checked = require "perigee.evaluate.checked"
local Comparison = require "perigee.evaluate.comparison"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local read = require "perigee.evaluate.read"
local sample = require "perigee.evaluate.sample"
local tasks = require "perigee.evaluate.tasks"
local C, raise, error = pgee.C, pgee.raise, pgee.error

local evaluate = {}

for name, metric in pairs(checked) do -- pearson, spearman, accuracy, cosine ...
  evaluate[name] = metric
end

---- Arguments ------------------------------------------------------------------------------------------------------

local function check_model(model, what)
  if type(model) ~= "table" or type(model.model) ~= "table" then
    error(("evaluate.%s: the model is %s, expected one that load or quantize gave"):format(what, pgee.describe(model)), 0)
  end
end

local function check_set(set, what)
  if type(set) ~= "table" or type(set.texts) ~= "table" or type(set.labels) ~= "table" then
    error(("evaluate.%s: the set is %s, expected what evaluate.read returned"):format(what, pgee.describe(set)), 0)
  end
end

local function check_sample(what, from, without, single)
  check_set(from, what)
  if type(without) ~= "nil" then
    check_set(without, what)
  end
  options.boolean(single, ("evaluate.%s: single"):format(what))
end

---- Labelled files ----------------------------------------------------------------------------------------------------

--- The set of a labelled file, or of several: tables (TSV, CSV, JSON lines) of texts or pairs with labels or scores, questions
-- with answers, words with tags, documents with queries and judgements. evaluate/read.lua has the options. Errors name file and
-- line.
function evaluate.read(paths, given)
  local set = raise(read, paths, given)
  return set
end

--- sample(from, count, without, single): takes up to `count` inputs of the set `from` for calibration, evenly spaced. without:
-- a set whose inputs are left out, because the model is evaluated on it; or nil. single: each pair becomes two texts, which is
-- the input of an embedding model. Returns a list for model:calibrate. If no input is left, that is an error.
function evaluate.sample(from, count, without, single)
  raise(check_sample, "sample", from, without, single)
  raise(options.given, count, "evaluate.sample: count", "an integer of at least 1")
  raise(options.integer, count, 1, 2 ^ 31, "evaluate.sample: count")
  local list = raise(sample.take, from, count, without, single)
  return list
end

--- candidates(from, without, single): what sample chooses from: { all = how many inputs, out = how many are left out }.
function evaluate.candidates(from, without, single)
  raise(check_sample, "candidates", from, without, single)
  local list, out = raise(sample.candidates, from, without, single)
  return { all = #list, out = out }
end

---- Judging -----------------------------------------------------------------------------------------------------------

-- The options that do not depend on the task.
local COMMON = {
  task = { "text" }, progress = { "other" }, resamples = { "integer", 0, 1e6 }, seed = { "integer", -2 ^ 31, 2 ^ 32 - 1 },
  level = { "number", 0, 1 }, chunk = { "integer", 1 },
}

local KNOWN = {} -- all options, with the tasks that have them
for name in pairs(COMMON) do
  KNOWN[name] = {}
end
for _, task in ipairs(options.names(tasks.options)) do
  for name in pairs(tasks.options[task]) do
    KNOWN[name] = KNOWN[name] or {}
    table.insert(KNOWN[name], task)
  end
end

-- The task's name and its options, checked; what: the function's name.
local function options_of(set, encoder, given, what)
  given = options.check(given, KNOWN, what)
  local task = options.choice(given.task == nil and tasks.of(set, encoder) or given.task, tasks.jobs, what .. ": task")
  local own, common = {}, {}
  for name, value in pairs(given) do
    if not COMMON[name] and not tasks.options[task][name] then
      error(("%s: %s has no effect with the task %s, only with %s"):format(what, name, task, table.concat(KNOWN[name], ", ")), 0)
    end
    (COMMON[name] and common or own)[name] = value
  end
  local all = options.read(common, COMMON, what)
  for name, value in pairs(options.read(own, tasks.options[task], what)) do
    all[name] = value
  end
  return task, all
end

-- Runs all units on all encoders, which take turns, some units at a time, so that what slows the machine down slows all of them.
-- Returns for each what came out and the seconds that it took.
local function run_all(job, encoders, given)
  local chunk, show = given.chunk or 64, progress.of(given.progress, "evaluating")
  local out, seconds = {}, {}
  for k, encoder in ipairs(encoders) do
    out[k], seconds[k] = {}, 0
    job.run(encoder, { job.units[1] }) -- what is made on first use takes no time below
  end
  for first = 1, #job.units, chunk do
    local some = {}
    for i = first, math.min(first + chunk - 1, #job.units) do
      some[#some + 1] = job.units[i]
    end
    for k, encoder in ipairs(encoders) do
      local began = C.pgee_seconds()
      local came = job.run(encoder, some)
      seconds[k] = seconds[k] + C.pgee_seconds() - began
      for i = 1, #some do
        out[k][first + i - 1] = came[i]
      end
    end
    show(math.min(first + chunk - 1, #job.units), #job.units)
  end
  return out, seconds
end

-- How many answers differ, and, of numbers, by how much on average.
local function compare_answers(job, own, reference)
  local changed, distance = 0, 0
  for i = 1, #own do
    if job.changed then
      changed = changed + (job.changed(own[i], reference[i]) and 1 or 0)
    else
      distance = distance + math.abs(own[i] - reference[i]) / #own
    end
  end
  return job.changed and changed or nil, not job.changed and distance or nil
end

-- The intervals of all differences from the first encoder's scores: [encoder][metric] = { low, high } or false.
local function intervals(scorers, n, given)
  local function differences(weights)
    local list = {}
    local first = {}
    for m, scorer in ipairs(scorers[1]) do
      first[m] = scorer[2](weights)
    end
    for k = 2, #scorers do
      for m, scorer in ipairs(scorers[k]) do
        list[#list + 1] = scorer[2](weights) - first[m]
      end
    end
    return list
  end
  local flat, found, width = bootstrap.intervals(differences, n, given), {}, #scorers[1]
  for k = 2, #scorers do
    found[k] = { unpack(flat, (k - 2) * width + 1, (k - 1) * width) }
  end
  return found
end

local function check(model, set, given)
  check_model(model, "check")
  check_set(set, "check")
  local task, all = options_of(set, model, given, "evaluate.check")
  local job = tasks.jobs[task](set, model, all, task)
  job.run(model, { job.units[1] })
end

--- An error if this model cannot be judged on this set; options as those of compare. It runs the set's first item.
function evaluate.check(model, set, given)
  raise(check, model, set, given)
end

local function compare(list, set, given, what)
  check_set(set, what)
  if type(list) ~= "table" or #list == 0 then
    error(("evaluate.compare: got %s, expected a list of { name, model }"):format(pgee.describe(list)), 0)
  end
  local encoders = {}
  for i, entry in ipairs(list) do
    check_model(type(entry) == "table" and entry[2], what)
    encoders[i] = entry[2]
  end
  local task
  task, given = options_of(set, encoders[1], given, "evaluate." .. what)
  if what == "run" and given.progress == nil then
    given.progress = false
  end
  local job = tasks.jobs[task](set, encoders[1], given, task)
  local out, seconds = run_all(job, encoders, given)
  local answers, scorers = {}, {}
  for k, came in ipairs(out) do
    answers[k] = job.answers and job.answers(came) or came
    scorers[k] = job.metrics(answers[k])
  end
  local result = {
    task = task, files = set.files or { set.path }, form = set.form, n = #answers[1], units = #job.units, runs = {},
  }
  result.skipped = set.skipped and set.skipped > 0 and set.skipped or nil
  local between = #list > 1 and given.resamples ~= 0 and intervals(scorers, result.n, given) or {}
  for k, entry in ipairs(list) do
    local run = { name = entry[1], seconds = seconds[k], per_second = #job.units / seconds[k], scores = {} }
    for m, scorer in ipairs(scorers[k]) do
      run.scores[m] = { metric = scorer[1], value = scorer[2]() }
      if k > 1 then
        run.scores[m].difference = run.scores[m].value - result.runs[1].scores[m].value
        run.scores[m].interval = between[k] and between[k][m] or nil
      end
    end
    if k > 1 then
      run.changed, run.distance = compare_answers(job, answers[k], answers[1])
    end
    result.runs[k] = run
  end
  return setmetatable(result, Comparison), answers
end

--- Runs models over a set and compares them with the first. list: { { name, model }... }. Returns a table that prints itself:
--   task, n (items), units (what was run), form, files, skipped
--   runs   of each model: name, seconds, per_second (units), scores = list of { metric =, value = 0 to 1 (correlations -1 to
--          1), difference = from the first model's, interval = { low, high } of the difference }, changed = how many answers
--          differ from the first model's, or, if answers are numbers, distance = their mean distance from the first model's
-- Second result: the answers of each model. Options:
--   task        classify, pairs, regression, embed, qa, ner, retrieval, rerank or zeroshot; default: the one for this set and
--               model
--   resamples   default 1000; 0: no intervals
--   seed        default 1
--   level       of the intervals, default 0.95
--   chunk       units run at once, default 64
--   progress, and the options of the task (evaluate/tasks.lua)
function evaluate.compare(list, set, given)
  local result, answers = raise(compare, list, set, given, "compare")
  return result, answers
end

local function run(model, set, given)
  check_model(model, "run")
  local result, answers = compare({ { "model", model } }, set, given, "run")
  local own = result.runs[1]
  return {
    task = result.task, n = result.n, metric = own.scores[1].metric, value = own.scores[1].value, scores = own.scores,
    seconds = own.seconds, per_second = own.per_second, answers = answers[1],
  }
end

--- Runs one model over a set: { task =, metric =, value =, n =, scores = all metrics', answers =, seconds =, per_second = }. Its
-- options are those of compare.
function evaluate.run(model, set, given)
  local result = raise(run, model, set, given)
  return result
end

---- Distance from FP32 ------------------------------------------------------------------------------------------------

-- Cosines of rows of two matrices with each other: mean and least.
local function cosines(a, b)
  local sum, least = 0, math.huge
  for i = 1, #a do
    local cosine = evaluate.cosine(a, i, b, i)
    sum, least = sum + cosine, math.min(least, cosine)
  end
  return { mean = sum / #a, least = least }
end

-- How often two classifiers name the same label.
local function agreement(model, q, inputs)
  local reference, test = {}, {}
  for i, answer in ipairs((model:classify(inputs))) do
    reference[i] = answer.label
  end
  for i, answer in ipairs((q:classify(inputs))) do
    test[i] = answer.label
  end
  return evaluate.accuracy(test, reference)
end

--- How far a quantized model is from its FP32 model on a list of inputs:
--   n, truncated  inputs, and how many of them the limit cut
--   sqnr          of the last hidden states, in dB
--   tokens        cosines of each token's hidden state with FP32's: { mean =, least = }
--   vectors       of an embedder: the same of the inputs' vectors
--   agreement     of a classifier: how often both name the same label
function evaluate.distance(model, q, inputs)
  raise(check_model, model, "distance")
  raise(check_model, q, "distance")
  local reference, batch = model:hidden(inputs)
  local test = q:hidden(inputs)
  local result = {
    n = #inputs, truncated = #batch.truncated, sqnr = reference:sqnr(test), tokens = cosines(reference, test),
  }
  reference:release()
  test:release()
  if model.task == "embed" then
    local a, b = model:embed(inputs), q:embed(inputs)
    result.vectors = cosines(a, b)
    a:release()
    b:release()
  elseif model.task == "classify" and model.config.problem ~= "regression" then
    result.agreement = agreement(model, q, inputs)
  end
  return result
end

return evaluate
