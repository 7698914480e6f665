--- Compare: runs models over one labelled set and scores their answers.
--
--   local result, answers = compare.run({ { "FP32", model }, { "INT8", q } }, set, { resamples = 0 }, "compare")
--
-- perigee.evaluate documents the options and the result. Errors here blame nobody; perigee.evaluate blames its caller.
local bootstrap = require "perigee.evaluate.bootstrap"
local Comparison = require "perigee.evaluate.comparison"
local jobs = require "perigee.evaluate.tasks"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local C = pgee.C

local compare = {}

---- Options -----------------------------------------------------------------------------------------------------------

-- The options that do not depend on the task.
local COMMON = {
  task = { "text" }, progress = { "other" }, resamples = { "integer", 0, 1e6 }, seed = { "integer", -2 ^ 31, 2 ^ 32 - 1 },
  level = { "number", 0, 1 }, chunk = { "integer", 1 },
}

-- All options by name: { NAME = { the jobs that have it, none for those of COMMON } }.
local function known_options(all)
  local known = {}
  for name in pairs(COMMON) do
    known[name] = {}
  end
  for _, job in ipairs(options.names(all)) do
    for name in pairs(all[job].options) do
      known[name] = known[name] or {}
      table.insert(known[name], job)
    end
  end
  return known
end

-- Returns the name of the job, the checked options, and the function that makes the job. what: the name of the public function,
-- for errors.
local function options_of(set, encoder, given, what)
  local entries = jobs.all()
  local known = known_options(entries)
  given = options.check(given, known, what)
  local task = options.choice(given.task == nil and jobs.of(set, encoder) or given.task, entries, what .. ": task")
  local own, common = {}, {}
  for name, value in pairs(given) do
    if not COMMON[name] and not entries[task].options[name] then
      error(("%s: %s has no effect with the task %s, only with %s"):format(what, name, task, table.concat(known[name], ", ")), 0)
    end
    (COMMON[name] and common or own)[name] = value
  end
  local all = options.read(common, COMMON, what)
  for name, value in pairs(options.read(own, entries[task].options, what)) do
    all[name] = value
  end
  return task, all, entries[task].run
end

---- Running -----------------------------------------------------------------------------------------------------------

-- Runs all units of a job on all encoders. The encoders take turns, a chunk of units each, so that other load on the machine
-- slows all of them alike. Returns for each encoder the list of results and the seconds that it took.
local function run_all(job, encoders, given)
  local chunk, show = given.chunk or 64, progress.of(given.progress, "evaluating")
  local out, seconds = {}, {}
  for k, encoder in ipairs(encoders) do
    out[k], seconds[k] = {}, 0
    job.run(encoder, { job.units[1] }) -- makes what an encoder makes on first use, so that the time below excludes it
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

---- Scores and their differences -------------------------------------------------------------------------------------

-- Returns the number of answers that differ from the first model's, or nil; and, of answers that are numbers, their mean distance
-- from the first model's, or nil.
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

-- The intervals of all differences from the first encoder's scores: [encoder][metric] = { low, high } or false. n: the number of
-- answers.
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

-- One model's entry of the result. first: the entry of the first model, nil for that model itself. between: the model's intervals
-- by metric, nil without intervals.
local function run_of(name, scorers, seconds, units, first, between)
  local run = { name = name, seconds = seconds, per_second = units / seconds, scores = {} }
  for m, scorer in ipairs(scorers) do
    local score = { metric = scorer[1], value = scorer[2]() }
    if first then
      score.difference = score.value - first.scores[m].value
      score.interval = between and between[m] or nil
    end
    run.scores[m] = score
  end
  return run
end

---- All together ------------------------------------------------------------------------------------------------------

--- An error if the model cannot be judged on the set. It runs the set's first unit.
function compare.check(model, set, given)
  local task, all, new_job = options_of(set, model, given, "evaluate.check")
  local job = new_job(set, model, all, task)
  job.run(model, { job.units[1] })
end

--- Runs the models of `list`, { { name, model }... }, over the set. what: "compare" or "run", the public function's name. Returns
-- the result and the list of each model's answers.
function compare.run(list, set, given, what)
  local encoders = {}
  for i, entry in ipairs(list) do
    encoders[i] = entry[2]
  end
  local task, all, new_job = options_of(set, encoders[1], given, "evaluate." .. what)
  if what == "run" and all.progress == nil then
    all.progress = false
  end
  local job = new_job(set, encoders[1], all, task)
  local out, seconds = run_all(job, encoders, all)
  local answers, scorers = {}, {}
  for k, came in ipairs(out) do
    answers[k] = job.answers and job.answers(came) or came
    scorers[k] = job.metrics(answers[k])
  end
  local result = {
    task = task, files = set.files or { set.path }, form = set.form, n = #answers[1], units = #job.units, runs = {},
  }
  result.skipped = set.skipped and set.skipped > 0 and set.skipped or nil
  local between = #list > 1 and all.resamples ~= 0 and intervals(scorers, result.n, all) or {}
  for k, entry in ipairs(list) do
    result.runs[k] = run_of(entry[1], scorers[k], seconds[k], #job.units, result.runs[1], between[k])
    if k > 1 then
      result.runs[k].changed, result.runs[k].distance = compare_answers(job, answers[k], answers[1])
    end
  end
  return setmetatable(result, Comparison), answers
end

return compare
