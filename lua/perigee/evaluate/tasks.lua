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
local entities = require "perigee.evaluate.entities"
local metrics = require "perigee.evaluate.metrics"
local ranking = require "perigee.evaluate.ranking"
local squad = require "perigee.evaluate.squad"

local tasks = {}

-- The options of each task. help: what the recipe evaluate.lua says about one.
local OPTIONS = {
  embed = { prompt = { "other", help = "A text that goes before each, or a prompt's name in the checkpoint" } },
  retrieval = {
    query_prompt = { "other", help = "What goes before each query: a text, or a prompt's name in the checkpoint" },
    document_prompt = { "other", help = "The same for documents" },
  },
  zeroshot = {
    labels = { "texts", help = "Labels to choose from. Default: the file's" },
    template = { "text", help = "The hypothesis. Default: 'This example is {}.'" },
  },
  qa = {
    language = { "text", help = "Compare answers as MLQA does for that language, such as de. Default: as SQuAD does" },
    tokens = { "integer", 2, help = "Tokens of a window. Default: 384" },
    stride = { "integer", 0, help = "Tokens that two windows have in common. Default: 128" },
    longest = { "integer", 1, help = "Most tokens of an answer. Default: 30" },
  },
  ner = {
    strict = { "flag", help = "Entities as in strict IOB2: only B- opens one" },
    aggregation = {
      "choice", { first = true, average = true, max = true }, help = "Which of a word's tokens decide. Default: first",
    },
  },
  classify = {}, pairs = {}, regression = {}, rerank = {},
}

local NEEDS = {
  label = "texts with labels", score = "pairs with scores", text = "texts without labels",
  qa = "questions with contexts and answers", tags = "words with tags", retrieval = "documents, queries and judgements",
}

local function fail(set, ...)
  error(("%s: "):format(set.path) .. string.format(...), 0)
end

local function need(set, task, ...)
  local names = {}
  for i, kind in ipairs { ... } do
    if set.kind == kind then
      return
    end
    names[i] = NEEDS[kind]
  end
  fail(set, "has %s, and %s is judged by %s", NEEDS[set.kind] or "no labels", task, table.concat(names, ", or "))
end

local function need_pairs(set, task)
  if type(set.texts[1]) ~= "table" then
    fail(set, "has single texts, and %s is judged by pairs; %stext and %spair say which columns they are", task,
      set.called or "", set.called or "")
  end
end

local function differ(a, b)
  return a ~= b
end

local function map(list, f)
  local mapped = {}
  for i, value in ipairs(list) do
    mapped[i] = f(value, i)
  end
  return mapped
end

---- Labels ------------------------------------------------------------------------------------------------------------

-- What a file calls a label, as the model does: its name, in whatever case, or its number from 0.
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

local function by_label(answers, labels, classes)
  local list = { { "accuracy", metrics.accuracy(answers, labels) } }
  if #classes == 2 then
    list[2] = { "F1 of " .. classes[2], metrics.f1(answers, labels, classes[2]) }
    list[3] = { "Matthews", metrics.matthews(answers, labels) }
  else
    list[2] = { "macro F1", metrics.macro_f1(answers, labels) }
  end
  return list
end

local function by_score(answers, scores)
  return { { "Spearman", metrics.spearman(answers, scores) }, { "Pearson", metrics.pearson(answers, scores) } }
end

-- The labels as numbers; true if all of them are 0 or 1 and both occur.
local function numbers(set, task)
  local seen, others = {}, false
  local list = map(set.labels, function(label)
    local score = tonumber(label)
    score = score and score - score == 0 and score or fail(set, "%s needs scores, not labels such as %q", task, tostring(label))
    seen[score], others = true, others or score ~= 0 and score ~= 1
    return score
  end)
  return list, not others and seen[0] and seen[1]
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

--- One of the model's labels for each text, or pair: accuracy; F1 of the second label and Matthews' correlation where there are
-- two, else macro F1. Of a regression its number: see regression.
function tasks.classify(set, encoder, _, task)
  need(set, task, "label", "score")
  return (encoder.config.problem == "regression" and regression or classify)(set, encoder, task)
end

--- The same of pairs alone.
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

--- Texts put into one of the labels by a model of inference. options: labels (those of the file), template.
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

---- Vectors -----------------------------------------------------------------------------------------------------------

-- Of each input its vector, of length 1.
local function vectors_of(encoder, texts, prompt)
  local matrix = encoder:embed(texts, { prompt = prompt })
  local width = matrix.shape[2]
  local list = map(texts, function(_, i)
    local v, square = matrix[i]:numbers(), 0
    for k = 0, width - 1 do
      square = square + v[k] * v[k]
    end
    local scale = square > 0 and 1 / math.sqrt(square) or 0
    for k = 0, width - 1 do
      v[k] = v[k] * scale
    end
    return v
  end)
  matrix:release()
  return list, width
end

local function dot(a, b, width)
  local sum = 0
  for k = 0, width - 1 do
    sum = sum + a[k] * b[k]
  end
  return sum
end

-- Pairs by the cosine of their vectors.
local function similarity(set, opts)
  local scores, binary = numbers(set, "embed")
  return {
    units = set.texts,
    run = function(e, units)
      local sides = { {}, {} }
      for i, pair in ipairs(units) do
        sides[1][i], sides[2][i] = pair[1], pair[2]
      end
      local a, width = vectors_of(e, sides[1], opts.prompt)
      local b = vectors_of(e, sides[2], opts.prompt)
      return map(a, function(v, i) return dot(v, b[i], width) end)
    end,
    metrics = function(answers)
      local list = by_score(answers, scores)
      if binary then
        table.insert(list, 1, { "average precision", metrics.average_precision(answers, scores) })
      end
      return list
    end,
  }
end

-- Texts by the label of the nearest other text.
local function neighbours(set, opts)
  if type(set.texts[1]) ~= "string" then
    fail(set, "has labels for pairs of texts, which only a classifier answers")
  end
  local labels, width = map(set.labels, tostring), nil
  return {
    units = set.texts,
    run = function(e, units)
      local list
      list, width = vectors_of(e, units, opts.prompt)
      return list
    end,
    answers = function(vectors)
      return map(vectors, function(v, i)
        local best, label = -2, nil
        for j, other in ipairs(vectors) do
          local cosine = j ~= i and dot(v, other, width) or -3
          if cosine > best then
            best, label = cosine, labels[j]
          end
        end
        return label
      end)
    end,
    metrics = function(answers) return { { "nearest text has the same label", metrics.accuracy(answers, labels) } } end,
    changed = differ,
  }
end

--- Vectors. Pairs with scores: the correlations of their cosines, and before them the average precision if all scores are 0 or
-- 1; texts with labels: how often the nearest other text has the same label. options: prompt.
function tasks.embed(set, _, opts)
  need(set, "embed", "score", "label")
  if set.kind == "score" then
    return similarity(set, opts)
  end
  return neighbours(set, opts)
end

---- Rankings ----------------------------------------------------------------------------------------------------------

local function by_ranking(judgements, names, list)
  return function(orders)
    local found = {}
    for _, name in ipairs(list) do
      local metric, k = name:match "^(%a+)@?(%d*)$"
      local values = map(orders, function(order, i)
        return ranking[({ nDCG = "ndcg", recall = "recall", MRR = "reciprocal" })[metric]](
          names and map(order, function(d) return names[d] end) or order, judgements[i], tonumber(k))
      end)
      found[#found + 1] = { name, metrics.mean(values) }
    end
    return found
  end
end

local function first_differs(a, b)
  return a[1] ~= b[1]
end

local DEPTH = 100 -- documents that are ranked

-- The best documents of a query, by the cosine, the earlier first where they are equal.
local function best_documents(query, documents, width)
  local cosines, order = {}, {}
  for i, document in ipairs(documents) do
    cosines[i], order[i] = dot(query, document, width), i
  end
  table.sort(order, function(a, b)
    if cosines[a] ~= cosines[b] then
      return cosines[a] > cosines[b]
    end
    return a < b
  end)
  return { unpack(order, 1, DEPTH) }
end

--- Documents found for queries by the cosine of their vectors: nDCG@10, recall@10 and @100, the mean reciprocal rank (of the
-- first 100). options: query_prompt, document_prompt.
function tasks.retrieval(set, _, opts)
  need(set, "retrieval", "retrieval")
  local units, width = {}, nil
  for _, text in ipairs(set.documents) do
    units[#units + 1] = { text, opts.document_prompt }
  end
  for _, text in ipairs(set.texts) do
    units[#units + 1] = { text, opts.query_prompt }
  end
  return {
    units = units,
    run = function(e, some)
      local list, at = {}, 1
      while at <= #some do -- runs of one prompt
        local texts, prompt = {}, some[at][2]
        while some[at] and some[at][2] == prompt do
          texts[#texts + 1] = some[at][1]
          at = at + 1
        end
        local vectors
        vectors, width = vectors_of(e, texts, prompt)
        for _, v in ipairs(vectors) do
          list[#list + 1] = v
        end
      end
      return list
    end,
    answers = function(vectors)
      local documents, orders = {}, {}
      for i = 1, #set.documents do
        documents[i] = vectors[i]
      end
      for i = 1, #set.texts do
        orders[i] = best_documents(vectors[#set.documents + i], documents, width)
      end
      return orders
    end,
    metrics = by_ranking(set.labels, set.names, { "nDCG@10", "recall@10", "recall@100", "MRR" }),
    changed = first_differs,
  }
end

-- Rows of query, document and relevance by query, in the order in which the queries come.
local function by_query(set)
  local queries, at, judgements = {}, {}, {}
  local relevance, binary = numbers(set, "rerank")
  for i, pair in ipairs(set.texts) do
    local q = at[pair[1]]
    if not q then
      q = #queries + 1
      at[pair[1]], queries[q], judgements[q] = q, { query = pair[1], documents = {} }, {}
    end
    table.insert(queries[q].documents, pair[2])
    judgements[q][#queries[q].documents] = relevance[i]
  end
  return queries, judgements, binary
end

-- The mean over queries of the average precision of the scores that a query's documents have; 0 where none is relevant.
local function mean_precision(orders, judgements)
  return metrics.mean(map(orders, function(order, i)
    local relevance = map(order, function(d) return judgements[i][d] end)
    local value = metrics.average_precision(order.scores, relevance)()
    return value == value and value or 0
  end))
end

--- Documents put in order for each query; rows of query, document and relevance: the mean reciprocal rank and nDCG@10, and the
-- mean average precision if all relevances are 0 or 1.
function tasks.rerank(set)
  need(set, "rerank", "score", "label")
  need_pairs(set, "rerank")
  local queries, judgements, binary = by_query(set)
  local ranked = by_ranking(judgements, nil, { "MRR", "nDCG@10" })
  return {
    units = queries,
    run = function(e, units)
      return map(units, function(unit)
        local found = e:rerank(unit.query, unit.documents)
        local order = map(found, function(one) return one.index end)
        order.scores = map(found, function(one) return one.score end)
        return order
      end)
    end,
    metrics = function(orders)
      local list = ranked(orders)
      list[#list + 1] = binary and { "mean average precision", mean_precision(orders, judgements) } or nil
      return list
    end,
    changed = first_differs,
  }
end

---- Parts of texts ----------------------------------------------------------------------------------------------------

--- Answers to questions: SQuAD's F1 and exact match. The best sum of logits over windows of 384 tokens with a stride of 128, at
-- most 30 tokens; "no answer" is one where the file has questions without. options: language, tokens, stride, longest.
function tasks.qa(set, _, opts)
  need(set, "qa", "qa")
  local unanswered = false
  for _, references in ipairs(set.labels) do
    unanswered = unanswered or #references == 0
  end
  local how = {
    by = "logits", tokens = opts.tokens, stride = opts.stride, longest = opts.longest, no_answer = unanswered,
  }
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:qa(units, how), function(answer) return answer.answer end)
    end,
    metrics = function(answers)
      local exact, f1 = {}, {}
      for i, answer in ipairs(answers) do
        exact[i], f1[i] = squad.compare(answer, set.labels[i], opts.language)
      end
      return { { "F1", metrics.mean(f1) }, { "exact match", metrics.mean(exact) } }
    end,
    changed = differ,
  }
end

local function same_tags(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

--- A tag for each word: F1, precision and recall of entities over all sentences together, and the accuracy of tags. options:
-- strict (entities as in seqeval's strict IOB2), aggregation (of a word's tokens: "first").
function tasks.ner(set, _, opts)
  need(set, "ner", "tags")
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:ner(units, { aggregation = opts.aggregation, long = "windows" }), function(words)
        return map(words, function(word) return word.label end)
      end)
    end,
    metrics = function(answers)
      local right, answered, there, tags, same = {}, {}, {}, {}, {}
      for i, answer in ipairs(answers) do
        right[i], answered[i], there[i] = entities.count(answer, set.labels[i], opts.strict)
        tags[i], same[i] = #answer, 0
        for w, tag in ipairs(answer) do
          same[i] = same[i] + (tag == set.labels[i][w] and 1 or 0)
        end
      end
      local precision, recall, f1 = metrics.found(right, answered, there)
      return {
        { "entity F1", f1 }, { "precision", precision }, { "recall", recall }, { "tags", (metrics.found(same, tags, tags)) },
      }
    end,
    changed = function(a, b) return not same_tags(a, b) end,
  }
end

local function suggested(set, encoder)
  local by_kind = { qa = "qa", tags = "ner", retrieval = "retrieval" }
  return encoder.task == "classify" and "classify" or by_kind[set.kind] or "embed"
end

return { jobs = tasks, options = OPTIONS, of = suggested }
