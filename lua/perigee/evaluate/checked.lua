--- Checked: the metrics of perigee.evaluate. Each checks its arguments; its errors blame the caller.
local entities = require "perigee.evaluate.entities"
local metrics = require "perigee.evaluate.metrics"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local ranking = require "perigee.evaluate.ranking"
local squad = require "perigee.evaluate.squad"
local tensor = require "perigee.tensor"
local raise, error = pgee.raise, pgee.error

local checked = {}

-- An error unless a and b are lists of the same length, at least 1. kind: the Lua type of their entries; nil: any. what: the
-- function's name.
local function same_length(what, a, b, kind)
  for _, list in ipairs { a or false, b or false } do
    if type(list) ~= "table" then
      error(("evaluate.%s: expected two lists of one length, at least 1; got %s and %s"):format(what, pgee.describe(a),
        pgee.describe(b)))
    end
    for i, v in ipairs(list) do
      if kind and type(v) ~= kind then
        error(("evaluate.%s: expected two lists of %ss; entry %d is %s"):format(what, kind, i, pgee.describe(v)))
      end
    end
  end
  if #a ~= #b or #a == 0 then
    error(("evaluate.%s: expected two lists of one length, at least 1; got %d and %d"):format(what, #a, #b))
  end
end

--- Pearson's correlation; NaN if one list is constant.
function checked.pearson(a, b)
  same_length("pearson", a, b, "number")
  return metrics.pearson(a, b)()
end

--- Spearman's rank correlation; NaN if one list is constant or has a NaN, which has no rank.
function checked.spearman(a, b)
  same_length("spearman", a, b, "number")
  return metrics.spearman(a, b)()
end

--- Average precision of scores by labels, 0 or 1, as scikit-learn computes it; NaN if no label is 1 or a score is NaN.
function checked.average_precision(scores, labels)
  same_length("average_precision", scores, labels, "number")
  for i, label in ipairs(labels) do
    if label ~= 0 and label ~= 1 then
      error(("evaluate.average_precision: label %d is %s, expected 0 or 1"):format(i, pgee.describe(label)))
    end
  end
  return metrics.average_precision(scores, labels)()
end

--- The fraction of equal entries.
function checked.accuracy(answers, labels)
  same_length("accuracy", answers, labels)
  return metrics.accuracy(answers, labels)()
end

--- F1 of one class; without it the mean over all classes that occur (macro).
function checked.f1(answers, labels, positive)
  same_length("f1", answers, labels)
  return (positive ~= nil and metrics.f1(answers, labels, positive) or metrics.macro_f1(answers, labels))()
end

--- Matthews' correlation of any number of classes.
function checked.matthews(answers, labels)
  same_length("matthews", answers, labels)
  return metrics.matthews(answers, labels)()
end

--- F1, precision and recall of entities. answers, labels: lists of tags, one list a sentence. strict: entities as in seqeval's
-- strict IOB2.
function checked.entities(answers, labels, strict)
  same_length("entities", answers, labels, "table")
  local right, answered, there = {}, {}, {}
  for i = 1, #answers do
    same_length("entities", answers[i], labels[i], "string")
    right[i], answered[i], there[i] = entities.count(answers[i], labels[i], strict)
  end
  local precision, recall, f1 = metrics.found(right, answered, there)
  return f1(), precision(), recall()
end

--- SQuAD's exact match (0 or 1) and F1 of an answer to a list of references: squad.lua. language: MLQA's rules for it.
function checked.answer(answer, references, language)
  options.text(raise(options.given, answer, "evaluate.answer: the answer", "a text"), "evaluate.answer: the answer")
  options.text(language, "evaluate.answer: language")
  if type(references) ~= "table" then
    error(("evaluate.answer: the references are %s, expected a list of texts"):format(pgee.describe(references)))
  end
  for i, reference in ipairs(references) do
    options.text(reference, ("evaluate.answer: reference %d"):format(i))
  end
  local exact, f1 = squad.compare(answer, references, language)
  return exact, f1
end

-- Checks a list of documents, best first, and their relevance grades; what: the function's name.
local function check_order(what, order, judgements, k)
  if type(order) ~= "table" or type(judgements) ~= "table" then
    error(("%s: expected a list of documents, best first, and { [document] = grade }; got %s and %s"):format(what,
      pgee.describe(order), pgee.describe(judgements)))
  end
  for document, grade in pairs(judgements) do
    if type(grade) ~= "number" then
      error(("%s: the grade of %s is %s, expected a number"):format(what, pgee.describe(document), pgee.describe(grade)))
    end
  end
  options.integer(k, 1, 2 ^ 31, what .. ": k")
end

--- Normalized discounted cumulative gain of an order of documents, best first, by judgements { [document] = grade }, of the
-- first k (default: all): ranking.lua.
function checked.ndcg(order, judgements, k)
  check_order("evaluate.ndcg", order, judgements, k)
  return ranking.ndcg(order, judgements, k or #order)
end

--- The share of the relevant documents, those with a grade of at least 1, that are among the first k (default: all).
function checked.recall(order, judgements, k)
  check_order("evaluate.recall", order, judgements, k)
  return ranking.recall(order, judgements, k or #order)
end

--- One over the rank of the first relevant document; 0 if there is none among the first k (default: all).
function checked.reciprocal_rank(order, judgements, k)
  check_order("evaluate.reciprocal_rank", order, judgements, k)
  return ranking.reciprocal(order, judgements, k)
end

-- Blames the caller of the function that calls this.
local function check_row(t, i, what)
  tensor.handle(t, what)
  if t.dtype ~= "F32" or #t.shape ~= 2 then
    error(("%s is a %s, expected F32 [rows][width]"):format(what, tostring(t):match "^[^\n]*"))
  elseif type(i) ~= "number" or i % 1 ~= 0 or i < 1 or i > #t then
    error(("%s has rows 1 to %d, not %s"):format(what, #t, pgee.describe(i)))
  end
end

--- Cosine of row i of matrix a with row j of matrix b, F32 tensors of one width; in double.
function checked.cosine(a, i, b, j)
  check_row(a, i, "cosine: a")
  check_row(b, j, "cosine: b")
  if a.shape[2] ~= b.shape[2] then
    error(("cosine: rows of %d and of %d numbers"):format(a.shape[2], b.shape[2]))
  end
  local x, y = a[i]:numbers(), b[j]:numbers()
  local xy, xx, yy = 0, 0, 0
  for k = 0, a.shape[2] - 1 do
    xy, xx, yy = xy + x[k] * y[k], xx + x[k] * x[k], yy + y[k] * y[k]
  end
  if xx == 0 or yy == 0 then
    return xx == yy and 1 or 0
  end
  return xy / math.sqrt(xx * yy)
end

return checked
