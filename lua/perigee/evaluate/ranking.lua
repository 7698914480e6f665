--- Ranking: metrics of an order of documents, best first, by judgements { [document] = grade }. As in trec_eval, a document
-- without a judgement, or with a grade below 1, is not relevant.
local ranking = {}

local function grade(judgements, document)
  return math.max(judgements[document] or 0, 0)
end

local function gains(grades, k)
  local sum = 0
  for i = 1, math.min(k, #grades) do
    sum = sum + grades[i] * math.log(2) / math.log(i + 1)
  end
  return sum
end

--- Normalized discounted cumulative gain of the first k (Järvelin and Kekäläinen 2002). The gain of a document is its grade. 0 if
-- no document is relevant. order: the list of documents, best first.
function ranking.ndcg(order, judgements, k)
  local got, ideal = {}, {}
  for i = 1, math.min(k, #order) do
    got[i] = grade(judgements, order[i])
  end
  for document in pairs(judgements) do
    ideal[#ideal + 1] = grade(judgements, document)
  end
  table.sort(ideal, function(a, b) return a > b end)
  local best = gains(ideal, k)
  return best > 0 and gains(got, k) / best or 0
end

--- The fraction of the relevant documents that are among the first k; 0 if no document is relevant.
function ranking.recall(order, judgements, k)
  local found, all = 0, 0
  for document in pairs(judgements) do
    all = all + (grade(judgements, document) > 0 and 1 or 0)
  end
  for i = 1, math.min(k, #order) do
    found = found + (grade(judgements, order[i]) > 0 and 1 or 0)
  end
  return all > 0 and found / all or 0
end

--- One over the rank of the first relevant document, 0 if there is none among the first k (default: all).
function ranking.reciprocal(order, judgements, k)
  for i = 1, math.min(k or #order, #order) do
    if grade(judgements, order[i]) > 0 then
      return 1 / i
    end
  end
  return 0
end

return ranking
