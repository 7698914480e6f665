--- Evaluation: reads labelled files, scores a model's answers with metrics, and compares models.
--
--   local set = evaluate.read "labelled.tsv"
--   print(evaluate.run(model, set).value)
--   print(evaluate.compare({ { "FP32", model }, { "INT8", q } }, set))
--
-- evaluate/*: read (files to sets), sample (inputs for calibration), compare (runs and scores models), tasks (what is run and how
-- it is scored), checked (the metrics that are offered), distance.
local checked = require "perigee.evaluate.checked"
local compare = require "perigee.evaluate.compare"
local distance = require "perigee.evaluate.distance"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local read = require "perigee.evaluate.read"
local sample = require "perigee.evaluate.sample"
local raise, error = pgee.raise, pgee.error

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

--- Reads a labelled file, or several, as a set: tables (TSV, CSV, JSON lines) of texts or pairs with labels or scores, questions
-- with answers, words with tags, documents with queries and judgements. evaluate/read.lua has the options. Errors name the file
-- and the line.
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

--- candidates(from, without, single): counts the inputs among which sample chooses: { all = their number, out = the number of
-- inputs that are left out }.
function evaluate.candidates(from, without, single)
  raise(check_sample, "candidates", from, without, single)
  local list, out = raise(sample.candidates, from, without, single)
  return { all = #list, out = out }
end

---- Judging -----------------------------------------------------------------------------------------------------------

local function check(model, set, given)
  check_model(model, "check")
  check_set(set, "check")
  compare.check(model, set, given)
end

--- An error if the model cannot be evaluated on the set. given: the options of compare. It runs the first input of the set.
function evaluate.check(model, set, given)
  raise(check, model, set, given)
end

local function compare_all(list, set, given)
  check_set(set, "compare")
  if type(list) ~= "table" or #list == 0 then
    error(("evaluate.compare: got %s, expected a list of { name, model }"):format(pgee.describe(list)), 0)
  end
  for _, entry in ipairs(list) do
    check_model(type(entry) == "table" and entry[2], "compare")
  end
  return compare.run(list, set, given, "compare")
end

--- Runs models over a set and compares them with the first. list: { { name, model }... }. Returns a table that prints itself:
--   task, form, files   the task, the form and the files of the set
--   n, units            the number of answers, and of inputs that were run
--   skipped             the number of rows whose annotators did not agree; nil for 0
--   runs                a list, for each model { name =, seconds =, per_second = units per s, scores =, changed = or distance = }
--                       scores: a list of { metric =, value = 0 to 1 (correlations -1 to 1), difference = from the first model,
--                       interval = { low, high } of the difference }. changed: the number of answers that differ from the
--                       first model's. distance: for answers that are numbers, the mean distance from the first model's
-- The second result is the list of each model's answers. Options:
--   task        classify, pairs, regression, embed, qa, ner, retrieval, rerank or zeroshot; default: the one for this set and
--               model
--   resamples   default 1000; 0: no intervals
--   seed        default 1
--   level       of the intervals, default 0.95
--   chunk       the number of units that one model runs before the next model's turn, default 64
--   progress, and the options of the task (evaluate/tasks.lua)
function evaluate.compare(list, set, given)
  local result, answers = raise(compare_all, list, set, given)
  return result, answers
end

local function run(model, set, given)
  check_model(model, "run")
  check_set(set, "run")
  local result, answers = compare.run({ { "model", model } }, set, given, "run")
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

--- How far a quantized model is from its FP32 model on a list of inputs, without labels. Returns
--   n, truncated  the number of inputs, and of inputs that the token limit cut
--   sqnr          the SQNR of the last hidden states, in dB
--   tokens        cosines between each token's hidden states of both models: { mean =, min = }
--   vectors       for an embedding model: the same for the inputs' vectors
--   agreement     for a classifier: the fraction of inputs that get the same label from both models
function evaluate.distance(model, q, inputs)
  raise(check_model, model, "distance")
  raise(check_model, q, "distance")
  return distance(model, q, inputs)
end

return evaluate
