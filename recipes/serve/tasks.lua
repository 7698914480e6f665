--- Entities, answers, masks and zero-shot labels, in the form of Hugging Face's inference API; and where POST / leads to.
local errors = require "serve.errors"
local fields = require "serve.fields"
local inputs = require "serve.inputs"

local object, request = fields.object, fields.request

-- The answers to a request's inputs, each made by make(value, input); one alone if one input was given.
local function each(c, task, items, single, options, make)
  local list = {}
  for i, answer in ipairs(c:answer { model = c:model(task), task = task, options = options, items = items }) do
    list[i] = make(answer.value, items[i])
  end
  return single and list[1] or list
end

-- Options of the engine by the names that requests have: { theirs = ours }.
local function take(from, options, names)
  for theirs, ours in pairs(names) do
    options[ours] = from and from[theirs]
  end
  return options
end

---- Entities ----------------------------------------------------------------------------------------------------------

local function entity(e)
  return { entity_group = e.label, score = e.score, word = e.text, start = e.start, ["end"] = e["end"] }
end

local function ner(c)
  local items, single = inputs.list(c.request.inputs)
  local options = take(c.request.parameters, c:options(), {
    aggregation_strategy = "aggregation", ignore_labels = "ignore_labels",
  })
  return each(c, "ner", items, single, options, function(entities)
    local list = {}
    for i, e in ipairs(entities) do
      list[i] = entity(e)
    end
    return list
  end)
end

---- Questions ---------------------------------------------------------------------------------------------------------

local function qa(c)
  local given = c.request.inputs
  local single = given.question ~= nil
  local options = take(c.request.parameters, { truncation_side = c:options().truncation_side }, {
    top_k = "top_k", handle_impossible_answer = "no_answer", max_answer_len = "longest", doc_stride = "stride",
  })
  return each(c, "qa", single and { given } or given, single, options, function(value)
    local list = {}
    for i, a in ipairs(value.answer and { value } or value) do
      list[i] = { answer = a.answer, score = a.score, start = a.start, ["end"] = a["end"] }
    end
    return value.answer and list[1] or list
  end)
end

---- Masks -------------------------------------------------------------------------------------------------------------

local function fill_mask(c)
  local items, single = inputs.list(c.request.inputs)
  local options = take(c.request.parameters, c:options(), { top_k = "top_k", targets = "targets" })
  return each(c, "fill_mask", items, single, options, function(masks)
    local list = {}
    for m, pieces in ipairs(masks) do
      list[m] = {}
      for i, p in ipairs(pieces) do
        list[m][i] = { score = p.score, token = p.token, token_str = p.piece, sequence = p.text }
      end
    end
    return #list == 1 and list[1] or list
  end)
end

---- Labels that the model was not trained on ----------------------------------------------------------------------------

local function zeroshot(c)
  local items, single = inputs.list(c.request.inputs)
  local p = c.request.parameters
  local options = take(p, c:options(), { candidate_labels = "labels", hypothesis_template = "template", multi_label = "multi" })
  return each(c, "zeroshot", items, single, options, function(value)
    local list = {}
    for i, label in ipairs(value.labels) do
      list[i] = { label = label, score = value.scores[i] }
    end
    return list
  end)
end

---- By the model's task ---------------------------------------------------------------------------------------------------

local OF_TASK = { embed = "/embed", classify = "/predict", ner = "/ner", qa = "/qa", fill_mask = "/fill_mask" }

--- The endpoint of a model's own task, for POST /.
local function path_of(model, asked)
  if type(asked.parameters) == "table" and asked.parameters.candidate_labels then
    return "/zeroshot"
  end
  return OF_TASK[model.task] or errors.fail("Backend", "%s has the task %s, which / does not answer", model.name, model.task)
end

local SPANS = { type = "array", items = object {
  entity_group = fields.TEXT, score = { type = "number" }, word = fields.TEXT, start = { type = "integer" },
  ["end"] = { type = "integer" },
} }
local QUESTION = object({ question = fields.TEXT, context = fields.TEXT }, { "question", "context" })
local ANSWER = object {
  answer = fields.TEXT, score = { type = "number" }, start = { type = "integer" }, ["end"] = { type = "integer" },
}
local PIECES = { type = "array", items = object {
  score = { type = "number" }, token = { type = "integer" }, token_str = fields.TEXT, sequence = fields.TEXT,
} }
local LABELS = { type = "array", items = object { label = fields.TEXT, score = { type = "number" } } }

local function one_or_many(s)
  return { anyOf = { s, { type = "array", items = s } } }
end

return {
  path_of = path_of,
  { path = "/ner", method = "POST", summary = "The entities in texts", handle = ner, response = one_or_many(SPANS),
    request = request({
      inputs = fields.STRINGS,
      parameters = object {
        aggregation_strategy = { type = "string", enum = { "none", "simple", "first", "average", "max" } },
        ignore_labels = fields.TEXTS,
      },
    }, { "inputs" }) },
  { path = "/qa", method = "POST", summary = "Answers to questions, out of their contexts", handle = qa,
    response = one_or_many(one_or_many(ANSWER)),
    request = request({
      inputs = {
        anyOf = { QUESTION, { type = "array", items = QUESTION } }, said = '{"question":, "context":} or a list of these',
      },
      parameters = object {
        top_k = fields.COUNT, handle_impossible_answer = fields.FLAG, max_answer_len = fields.COUNT, doc_stride = fields.COUNT,
      },
    }, { "inputs" }) },
  { path = "/fill_mask", other = "/fill", method = "POST", summary = "What the masks in texts may stand for", handle = fill_mask,
    response = one_or_many(one_or_many(PIECES)),
    request = request({
      inputs = fields.STRINGS, parameters = object { top_k = fields.COUNT, targets = fields.STRINGS },
    }, { "inputs" }) },
  { path = "/zeroshot", method = "POST", summary = "Labels that the model was not trained on", handle = zeroshot,
    response = one_or_many(LABELS),
    request = request({
      inputs = fields.STRINGS,
      parameters = object({
        candidate_labels = { type = "array", items = fields.TEXT, minItems = 1, said = "a list of strings" },
        hypothesis_template = fields.TEXT, multi_label = fields.FLAG,
      }, { "candidate_labels" }),
    }, { "inputs", "parameters" }) },
}
