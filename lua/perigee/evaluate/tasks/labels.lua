--- Tasks whose answers are labels or numbers of texts and pairs: classify, pairs, regression, zeroshot.
local shared = require "perigee.evaluate.tasks.shared"

local by_label, by_score, differ, fail = shared.by_label, shared.by_score, shared.differ, shared.fail
local map, need, need_pairs, numbers = shared.map, shared.need, shared.need_pairs, shared.numbers

local tasks = {}

-- The options of each task. help: what the recipe evaluate.lua says about one.
local OPTIONS = {
  zeroshot = {
    labels = { "texts", help = "Labels to choose from. Default: the file's" },
    template = { "text", help = "The hypothesis. Default: 'This example is {}.'" },
  },
}

-- The set's labels by the model's names. A file may name a label in upper or lower case, or give its number from 0.
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

-- The checkpoint's labels, an error if it has no head for them.
local function labels_of(encoder)
  if not encoder.config.labels then
    encoder:classify {} -- says what head there is
  end
  return encoder.config.labels
end

local function classify(set, encoder)
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

local function regression(set, encoder, task)
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

--- classify gives one of the model's labels for each text or pair. Metrics: accuracy; if there are two labels, F1 of the second
-- one and Matthews' correlation, else macro F1. A regression gives a number: see regression.
function tasks.classify(set, encoder, _, task)
  need(set, task, "label", "score")
  return (encoder.config.problem == "regression" and regression or classify)(set, encoder, task)
end

--- classify for pairs only.
function tasks.pairs(set, encoder, opts, task)
  need(set, task, "label", "score")
  need_pairs(set, task)
  return tasks.classify(set, encoder, opts, task)
end

--- A number for each text, or pair: Spearman's and Pearson's correlation. A classifier of several labels is refused.
function tasks.regression(set, encoder, _, task)
  need(set, task, "label", "score")
  return regression(set, encoder, task)
end

--- Gives each text one of the labels, by a model of natural language inference. options: labels (default: the file's),
-- template.
function tasks.zeroshot(set, _, opts)
  need(set, "zeroshot", "label")
  local labels, seen = {}, {}
  for _, label in ipairs(opts.labels or set.labels) do
    labels[#labels + 1] = not seen[label] and label or nil
    seen[label] = true
  end
  for _, label in ipairs(set.labels) do
    if not seen[label] then
      fail(set, "label %s is none of those to choose from: %s", label, table.concat(labels, ", "))
    end
  end
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:zeroshot(units, { labels = labels, template = opts.template }), function(answer) return answer.labels[1] end)
    end,
    metrics = function(answers) return by_label(answers, set.labels, labels) end,
    changed = differ,
  }
end

return { jobs = tasks, options = OPTIONS }
