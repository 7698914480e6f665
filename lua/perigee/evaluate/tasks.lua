--- Jobs: how perigee.evaluate judges tasks. A job says which inputs of a set a model gets, how answers are made of its results,
-- and which metrics are computed.
--
-- The tasks (tasks/init.lua) declare their jobs in the field `evaluate`: { JOB = entry }. evaluate/tasks/NAME.lua has those of
-- the task NAME. An entry is a table:
--   run       (set, encoder, options, name) -> a job. name: the name of the job, for errors
--   options   the options of the job, as perigee.options describes them
--   kind      the kind of sets that the job is for, if no other is asked for
--   default   true: the job is for every set if the checkpoint is for this task
-- A job is a table:
--   units     the list of inputs to run
--   run       (encoder, units) -> the results, one for each unit
--   answers   (results of all units) -> the answers, one for each item of the set; without it, the results are the answers
--   metrics   (answers) -> list of { name, scorer }, the main metric first
--   changed   (answer, other) -> whether they differ; nil if answers are numbers: then their mean distance is reported
local tasks = require "perigee.tasks"

local jobs = {}

--- All jobs: { JOB = entry }; entry.task is the name of the task that declares the job.
function jobs.all()
  local all = {}
  for task, declaration in pairs(tasks.all()) do
    local own = declaration.evaluate or {}
    for name, entry in pairs(type(own) == "string" and require(own) or own) do
      all[name] = { run = entry.run, options = entry.options or {}, kind = entry.kind, default = entry.default, task = task }
    end
  end
  return all
end

--- The options of all jobs: { JOB = options }.
function jobs.options()
  local all = {}
  for name, entry in pairs(jobs.all()) do
    all[name] = entry.options
  end
  return all
end

--- The name of the job that a set and a model suggest.
function jobs.of(set, encoder)
  local fitting = tasks.DEFAULT
  for name, entry in pairs(jobs.all()) do
    if entry.default and entry.task == encoder.task then
      return name
    elseif entry.kind == set.kind then
      fitting = name
    end
  end
  return fitting
end

return jobs
