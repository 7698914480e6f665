--- How classify is judged: labels or numbers of texts and of pairs of texts.
local shared = require "perigee.evaluate.tasks.shared"

local by_label, by_score, differ, fail = shared.by_label, shared.by_score, shared.differ, shared.fail
local map, need, need_pairs, numbers = shared.map, shared.need, shared.need_pairs, shared.numbers

local jobs = {}

-- The set's labels as the model calls them. A file may write a label in upper or lower case, or as its number from 0.
local function names_of(set, labels)
  local known = {}
  for i, name in ipairs(labels) do
    known[tostring(i - 1)] = name
  end
  for _, name in ipairs(labels) do
    known[name:lower()] = name
  end
  for _, name in ipairs(labels) do
    known[name] = name
  end
  return map(set.labels, function(label)
    local text = type(label) == "number" and ("%g"):format(label) or label
    return known[text] or known[text:lower()]
      or fail(set, "label %s is none of the model's: %s", text, table.concat(labels, ", "))
  end)
end

-- The checkpoint's labels. A checkpoint without a head for them is an error.
local function labels_of(encoder)
  if not encoder.config.labels then
    encoder:classify {} -- raises the error, which says what head there is
  end
  return encoder.config.labels
end

local function of_labels(set, encoder)
  local classes = labels_of(encoder)
  local labels = names_of(set, classes)
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:classify(units), function(answer) return answer.label end)
    end,
    metrics = function(answers) return by_label(answers, labels, classes) end,
    changed = differ,
  }
end

local function of_numbers(set, encoder, task)
  local classes = labels_of(encoder)
  if #classes > 1 and encoder.config.problem ~= "regression" then
    error(("%s: the model is a classifier with %d labels (%s), expected one that gives a number; the task classify judges labels")
      :format(task, #classes, table.concat(classes, ", ")), 0)
  end
  local scores = numbers(set, task)
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:classify(units, { apply = "none" }), function(answer) return answer.score end)
    end,
    metrics = function(answers) return by_score(answers, scores) end,
  }
end

-- The job classify: the model gives each text or pair one of its labels. Metrics: accuracy; with two labels also F1 of the second
-- one and Matthews' correlation, else macro F1. A model that is a regression is judged as by the job regression.
local function classify(set, encoder, _, task)
  need(set, task, "label", "score")
  return (encoder.config.problem == "regression" and of_numbers or of_labels)(set, encoder, task)
end

-- The job pairs: classify, but the set must have pairs of texts.
local function of_pairs(set, encoder, opts, task)
  need(set, task, "label", "score")
  need_pairs(set, task)
  return classify(set, encoder, opts, task)
end

-- The job regression: the model gives each text or pair a number. Metrics: Spearman's and Pearson's correlation. A classifier
-- with several labels is an error.
local function regression(set, encoder, _, task)
  need(set, task, "label", "score")
  return of_numbers(set, encoder, task)
end

jobs.classify = { run = classify, default = true }
jobs.pairs = { run = of_pairs }
jobs.regression = { run = regression }

return jobs
