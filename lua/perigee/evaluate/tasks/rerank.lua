--- How rerank is judged: by rows of query, document and relevance.
local metrics = require "perigee.evaluate.metrics"
local shared = require "perigee.evaluate.tasks.shared"

local first_differs, map, need, need_pairs = shared.first_differs, shared.map, shared.need, shared.need_pairs
local numbers = shared.numbers

-- The rows of query, document and relevance grouped by query, in the order of the queries: { query =, documents = } each; the
-- relevances by document; whether all relevances are 0 or 1.
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

-- The mean over the queries of the average precision of the documents' scores. It is 0 for a query without a relevant document.
local function mean_precision(orders, judgements)
  return metrics.mean(map(orders, function(order, i)
    local relevance = map(order, function(d) return judgements[i][d] end)
    local value = metrics.average_precision(order.scores, relevance)()
    return value == value and value or 0
  end))
end

-- The model puts the documents of each query in order. Metrics: the mean reciprocal rank and nDCG@10, and the mean average
-- precision if all relevances are 0 or 1.
local function rerank(set)
  need(set, "rerank", "score", "label")
  need_pairs(set, "rerank")
  local queries, judgements, binary = by_query(set)
  local ranked = shared.by_ranking(judgements, nil, { "MRR", "nDCG@10" })
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

return { rerank = { run = rerank } }
