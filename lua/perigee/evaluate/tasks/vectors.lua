--- Tasks of vectors and of orders: embed, retrieval, rerank.
local metrics = require "perigee.evaluate.metrics"
local ranking = require "perigee.evaluate.ranking"
local shared = require "perigee.evaluate.tasks.shared"

local by_score, differ, fail, map = shared.by_score, shared.differ, shared.fail, shared.map
local need, need_pairs, numbers = shared.need, shared.need_pairs, shared.numbers

local tasks = {}

-- The options of each task. help: what the recipe evaluate.lua says about one.
local OPTIONS = {
  embed = { prompt = { "other", help = "A text that goes before each, or a prompt's name in the checkpoint" } },
  retrieval = {
    query_prompt = { "other", help = "What goes before each query: a text, or a prompt's name in the checkpoint" },
    document_prompt = { "other", help = "What goes before each document: a text, or a prompt's name in the checkpoint" },
  },
}

---- Vectors -----------------------------------------------------------------------------------------------------------

-- One vector of length 1 for each input.
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

return { jobs = tasks, options = OPTIONS }
