--- Tasks: what a model is given of a set, what its answers are, and which metrics judge them.
--
-- The module has jobs, functions by the names of tasks; options, which options each task has, as perigee.options describes them;
-- and of, a function of a set and a model that gives the task that they suggest. A job's function (set, encoder, options, name),
-- where name is the task that was asked for, for errors, gives a table:
--   units           what is run, a list
--   run             (encoder, units) -> for each unit what came out
--   answers         (what came out of all units) -> for each item of the set its answer; without it, what came out
--   metrics         (answers) -> list of { name, scorer }, the one that counts first
--   changed         (answer, other) -> whether they differ; nil for numbers, of which the mean distance is told instead
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
