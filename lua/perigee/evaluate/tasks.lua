--- Tasks: which inputs of a set a model is given, how its answers are formed, and which metrics are computed.
--
-- The module has three fields. jobs: functions by the names of tasks. options: the options of each task, as perigee.options
-- describes them. of: a function of a set and a model that returns the name of the task that fits them. A job is called with
-- (set, encoder, options, name), where name is the task that the caller asked for, for use in errors. A job returns a table:
--   units           the list of inputs to run
--   run             (encoder, units) -> the results, one for each unit
--   answers         (results of all units) -> the answers, one for each item of the set; without it, the results are the
--                   answers
--   metrics         (answers) -> list of { name, scorer }, the main metric first
--   changed         (answer, other) -> whether they differ; nil if answers are numbers: then their mean distance is reported
--
-- tasks/*: labels (classify, pairs, regression, zeroshot), vectors (embed, retrieval, rerank), spans (qa, ner); shared.
local tasks = { jobs = {}, options = {} }

for _, module in ipairs {
  require "perigee.evaluate.tasks.labels", require "perigee.evaluate.tasks.vectors", require "perigee.evaluate.tasks.spans",
} do
  for name, job in pairs(module.jobs) do
    tasks.jobs[name], tasks.options[name] = job, module.options[name] or {}
  end
end

--- The task that a set and a model suggest.
function tasks.of(set, encoder)
  local by_kind = { qa = "qa", tags = "ner", retrieval = "retrieval" }
  return encoder.task == "classify" and "classify" or by_kind[set.kind] or "embed"
end

return tasks
