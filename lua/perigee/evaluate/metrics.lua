--- Metrics as scorers: a scorer is made once from the answers and labels, and then scores many samples of them.
--
--   local score = metrics.accuracy(answers, labels)
--   score()          -- of all items
--   score(weights)   -- of a sample that has item i weights[i] times: what a bootstrap draws
--
-- The lists have equal lengths; the caller checks that. The scores are those of scikit-learn and scipy up to rounding
-- (spec/golden/metrics.json).
local pgee = require "perigee.ffi"

local metrics = {}

local function ones()
  return 1
end

-- A function from an item's index to its weight; 1 for all items if there are no weights.
local function by(weights)
  return weights and function(i) return weights[i] end or ones
end

--- The mean of a value that each item has.
function metrics.mean(values)
  return function(weights)
    local w, sum, n = by(weights), 0, 0
    for i = 1, #values do
      sum, n = sum + w(i) * values[i], n + w(i)
    end
    return sum / n
  end
end

--- The fraction of equal entries.
function metrics.accuracy(answers, labels)
  local right = {}
  for i = 1, #answers do
    right[i] = answers[i] == labels[i] and 1 or 0
  end
  return metrics.mean(right)
end

---- Of classes --------------------------------------------------------------------------------------------------------

-- A function of weights that returns { [class] = { right =, answered =, there = } } for the classes that occur, the number of
-- items, and the number of right ones.
local function counter(answers, labels)
  return function(weights)
    local w, classes, n, right = by(weights), {}, 0, 0
    local function of(name)
      if name ~= name then
        pgee.error "a label is NaN, expected a text or a number"
      end
      classes[name] = classes[name] or { right = 0, answered = 0, there = 0 }
      return classes[name]
    end
    for i = 1, #answers do
      local count = w(i)
      if count > 0 then
        local answer, label = of(answers[i]), of(labels[i])
        answer.answered, label.there, n = answer.answered + count, label.there + count, n + count
        if answers[i] == labels[i] then
          label.right, right = label.right + count, right + count
        end
      end
    end
    return classes, n, right
  end
end

local function f1_of(class)
  return 2 * class.right / (class.answered + class.there)
end

--- F1 of one class; 0 if the class is neither among the labels nor among the answers.
function metrics.f1(answers, labels, positive)
  local count = counter(answers, labels)
  return function(weights)
    local class = count(weights)[positive]
    return class and f1_of(class) or 0
  end
end

--- The mean F1 of the classes that are among the labels or the answers.
function metrics.macro_f1(answers, labels)
  local count = counter(answers, labels)
  return function(weights)
    local sum, n = 0, 0
    for _, class in pairs(count(weights)) do
      sum, n = sum + f1_of(class), n + 1
    end
    return sum / n
  end
end

--- Matthews' correlation of any number of classes (Gorodkin 2004); 0 if the answers or the labels are all of one class.
function metrics.matthews(answers, labels)
  local count = counter(answers, labels)
  return function(weights)
    local classes, n, right = count(weights)
    local both, answered, there = 0, 0, 0
    for _, c in pairs(classes) do
      both, answered, there = both + c.answered * c.there, answered + c.answered ^ 2, there + c.there ^ 2
    end
    local scale = math.sqrt((n * n - answered) * (n * n - there))
    return scale > 0 and (right * n - both) / scale or 0
  end
end

---- Of numbers --------------------------------------------------------------------------------------------------------

local function correlation(a, b, weights)
  local w, n, mean_a, mean_b = by(weights), 0, 0, 0
  for i = 1, #a do
    n, mean_a, mean_b = n + w(i), mean_a + w(i) * a[i], mean_b + w(i) * b[i]
  end
  mean_a, mean_b = mean_a / n, mean_b / n
  local ab, aa, bb = 0, 0, 0
  for i = 1, #a do
    local x, y = a[i] - mean_a, b[i] - mean_b
    ab, aa, bb = ab + w(i) * x * y, aa + w(i) * x * x, bb + w(i) * y * y
  end
  return ab / math.sqrt(aa * bb)
end

--- Pearson's correlation; NaN if one list is constant.
function metrics.pearson(a, b)
  return function(weights)
    return correlation(a, b, weights)
  end
end

local function order_of(values)
  local order = {}
  for i = 1, #values do
    order[i] = i
  end
  table.sort(order, function(x, y)
    if values[x] ~= values[y] then
      return values[x] < values[y]
    end
    return x < y
  end)
  return order
end

-- Ranks from 1 in a sample. Equal values share the mean of their ranks. The copies of an item that is drawn several times are
-- equal values.
local function ranks(values, order, weights)
  local w, rank, before, i = by(weights), {}, 0, 1
  while i <= #order do
    local j, count = i, w(order[i])
    while j < #order and values[order[j + 1]] == values[order[i]] do
      j = j + 1
      count = count + w(order[j])
    end
    for k = i, j do
      rank[order[k]] = before + (count + 1) / 2
    end
    before, i = before + count, j + 1
  end
  return rank
end

local function has_nan(list)
  for i = 1, #list do
    if list[i] ~= list[i] then
      return true
    end
  end
  return false
end

--- Spearman's rank correlation; NaN if one list is constant or has a NaN, which has no rank.
function metrics.spearman(a, b)
  local none = has_nan(a) or has_nan(b)
  local order_a, order_b = not none and order_of(a), not none and order_of(b)
  return function(weights)
    return none and 0 / 0 or correlation(ranks(a, order_a, weights), ranks(b, order_b, weights), weights)
  end
end

--- Average precision of scores by labels 0 and 1: the mean, over the items labelled 1, of the precision among the items with at
-- least their score (scikit-learn's average_precision_score). NaN if no item is labelled 1, or a score is NaN.
function metrics.average_precision(scores, labels)
  local none = has_nan(scores)
  local order = not none and order_of(scores)
  return function(weights)
    local w, there, right, sum, i = by(weights), 0, 0, 0, #scores
    while not none and i >= 1 do
      local found, j = 0, i
      repeat -- items with equal scores come at once
        there, found = there + w(order[j]), found + w(order[j]) * labels[order[j]]
        j = j - 1
      until j < 1 or scores[order[j]] ~= scores[order[i]]
      right = right + found
      sum, i = sum + (found > 0 and found * right / there or 0), j
    end
    return right > 0 and sum / right or 0 / 0
  end
end

---- Of counts ---------------------------------------------------------------------------------------------------------

--- Precision, recall and F1 of things found in items, summed over all items: three scorers. right, answered, there: for each item
-- the number of things found that are right, of things found, of things to find.
function metrics.found(right, answered, there)
  local function share(f)
    return function(weights)
      local w, r, a, t = by(weights), 0, 0, 0
      for i = 1, #right do
        r, a, t = r + w(i) * right[i], a + w(i) * answered[i], t + w(i) * there[i]
      end
      return f(r, a, t)
    end
  end
  local function ratio(x, y)
    return y > 0 and x / y or 0
  end
  return share(function(r, a) return ratio(r, a) end), share(function(r, _, t) return ratio(r, t) end),
    share(function(r, a, t) return ratio(2 * r, a + t) end)
end

return metrics
