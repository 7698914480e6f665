--- Shared: functions for the modules of this folder: checks of sets, labels as numbers, metrics of labels, scores and rankings.
local metrics = require "perigee.evaluate.metrics"
local ranking = require "perigee.evaluate.ranking"

local shared = {}

local NEEDS = {
  label = "texts with labels", score = "pairs with scores", text = "texts without labels",
  qa = "questions with contexts and answers", tags = "words with tags", retrieval = "documents, queries and judgements",
}

--- fail(set, format, ...): raises an error that names the set's file.
function shared.fail(set, ...)
  error(("%s: "):format(set.path) .. string.format(...), 0)
end

--- need(set, task, kind...): raises an error unless the set is of one of the kinds. task: the name of the job, for the error.
function shared.need(set, task, ...)
  local names = {}
  for i, kind in ipairs { ... } do
    if set.kind == kind then
      return
    end
    names[i] = NEEDS[kind]
  end
  shared.fail(set, "has %s, and %s is judged by %s", NEEDS[set.kind] or "no labels", task, table.concat(names, ", or "))
end

--- Raises an error unless the set has pairs of texts. task: the name of the job, for the error.
function shared.need_pairs(set, task)
  if type(set.texts[1]) ~= "table" then
    shared.fail(set, "has single texts, and %s is judged by pairs; %stext and %spair say which columns they are", task,
      set.called or "", set.called or "")
  end
end

--- Whether two answers differ.
function shared.differ(a, b)
  return a ~= b
end

--- The list of f(value, index) over a list.
function shared.map(list, f)
  local mapped = {}
  for i, value in ipairs(list) do
    mapped[i] = f(value, i)
  end
  return mapped
end

--- The metrics of answers that are labels. classes: the list of all labels.
function shared.by_label(answers, labels, classes)
  local list = { { "accuracy", metrics.accuracy(answers, labels) } }
  if #classes == 2 then
    list[2] = { "F1 of " .. classes[2], metrics.f1(answers, labels, classes[2]) }
    list[3] = { "Matthews", metrics.matthews(answers, labels) }
  else
    list[2] = { "macro F1", metrics.macro_f1(answers, labels) }
  end
  return list
end

--- The metrics of answers that are numbers.
function shared.by_score(answers, scores)
  return { { "Spearman", metrics.spearman(answers, scores) }, { "Pearson", metrics.pearson(answers, scores) } }
end

--- The set's labels as numbers. Second result: true if all of them are 0 or 1 and both occur.
function shared.numbers(set, task)
  local seen, others = {}, false
  local list = shared.map(set.labels, function(label)
    local score = tonumber(label)
    if not (score and score - score == 0) then
      shared.fail(set, "%s needs scores, not labels such as %q", task, tostring(label))
    end
    seen[score], others = true, others or score ~= 0 and score ~= 1
    return score
  end)
  return list, not others and seen[0] and seen[1]
end

--- A function from the orders of documents, one for each query, to the metrics of these names. judgements: relevances by
-- document, one table for each query. names: what the judgements call document 1, 2 and so on; nil: by number.
function shared.by_ranking(judgements, names, list)
  return function(orders)
    local found = {}
    for _, name in ipairs(list) do
      local metric, k = name:match "^(%a+)@?(%d*)$"
      local values = shared.map(orders, function(order, i)
        return ranking[({ nDCG = "ndcg", recall = "recall", MRR = "reciprocal" })[metric]](
          names and shared.map(order, function(d) return names[d] end) or order, judgements[i], tonumber(k))
      end)
      found[#found + 1] = { name, metrics.mean(values) }
    end
    return found
  end
end

--- Whether the first entries of two orders differ.
function shared.first_differs(a, b)
  return a[1] ~= b[1]
end

return shared
