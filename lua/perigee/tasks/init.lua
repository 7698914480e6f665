--- Tasks: what a model does for people, by name, for whoever lets a user choose: perigee.tasks.qa.run(model, inputs, options).
--
-- Each is { run = function(model, given, options) -> answers, batch; forms = the forms of input that it takes; method = what
-- the model's method is called; options = its options, as options.read describes them }. `given` is one input or a list of
-- inputs, of the forms of run/inputs.lua: "text", "pair", "ids", "question", "words"; or "query", { query =, documents = { ...
-- } }, which is rerank's alone.
local pgee = require "perigee.ffi"
local raise = pgee.raise
local rerank = require "perigee.tasks.rerank"

-- rerank, over one or a list of { query =, documents = }.
local function run_rerank(model, given, opts)
  if type(given) ~= "table" then
    error(("rerank: expected { query =, documents = { ... } }, or a list of these; got %s"):format(pgee.describe(given)), 0)
  elseif given.query ~= nil or given.documents ~= nil then
    return rerank.run(model, given.query, given.documents, opts)
  end
  return rerank.many(model, given, opts)
end

-- The same function whose errors blame its caller.
local function public(run)
  return function(model, given, opts)
    local answers, batch = raise(run, model, given, opts)
    return answers, batch
  end
end

local tasks = { rerank = { run = public(run_rerank), forms = rerank.forms, method = "rerank", options = rerank.options } }

for name, method in pairs { embed = "embed", classify = "classify", zeroshot = "zeroshot", qa = "qa", ner = "ner",
  fill_mask = "fill_mask" } do
  local task = require("perigee.tasks." .. method)
  tasks[name] = { run = public(task.run), forms = task.forms, method = method, options = task.options }
end

return tasks
