--- How embed is judged: pairs of texts with scores, texts with labels (the job embed), and retrieval.
local shared = require "perigee.evaluate.tasks.shared"

local by_score, differ, fail, map = shared.by_score, shared.differ, shared.fail, shared.map
local first_differs, need, numbers = shared.first_differs, shared.need, shared.numbers
local metrics = require "perigee.evaluate.metrics"

local OF_EMBED = { prompt = { "other", help = "Text to put before each input, or the name of one of the checkpoint's prompts" } }
local OF_RETRIEVAL = {
  query_prompt = { "other", help = "Text to put before each query, or the name of one of the checkpoint's prompts" },
  document_prompt = { "other", help = "Text to put before each document, or the name of one of the checkpoint's prompts" },
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

-- Scores pairs by the cosine of their vectors.
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

-- Gives each text the label of the nearest other text.
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

-- The job embed. Of pairs with scores, the metrics are the correlations of scores and cosines, and before them the average
-- precision if all scores are 0 or 1. Of texts with labels, the metric is how often the nearest other text has the same label.
-- options: prompt.
local function embed(set, _, opts)
  need(set, "embed", "score", "label")
  if set.kind == "score" then
    return similarity(set, opts)
  end
  return neighbours(set, opts)
end

---- Retrieval ---------------------------------------------------------------------------------------------------------

local DEPTH = 100 -- how many documents are ranked for each query

-- The numbers of the best documents of a query, by the cosine, best first. If two are equal, the earlier one is first.
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

-- The job retrieval: finds documents for queries by the cosine of their vectors. Metrics: nDCG@10, recall@10, recall@100, and the
-- mean reciprocal rank among the first 100. options: query_prompt, document_prompt.
local function retrieval(set, _, opts)
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
      while at <= #some do -- texts with the same prompt are one call
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
    metrics = shared.by_ranking(set.labels, set.names, { "nDCG@10", "recall@10", "recall@100", "MRR" }),
    changed = first_differs,
  }
end

return {
  embed = { run = embed, options = OF_EMBED }, retrieval = { run = retrieval, options = OF_RETRIEVAL, kind = "retrieval" },
}
