--- Judging a model: labelled files, and the metrics over what the model answers.
local lines = require "perigee.lines"

local evaluate = {}

---- Metrics -----------------------------------------------------------------------------------------------------------

--- Ranks from 1, ties sharing the mean of their ranks.
local function ranks(values)
  local order = {}
  for i = 1, #values do
    order[i] = i
  end
  table.sort(order, function(a, b)
    if values[a] ~= values[b] then
      return values[a] < values[b]
    end
    return a < b
  end)
  local rank, i = {}, 1
  while i <= #order do
    local j = i
    while j < #order and values[order[j + 1]] == values[order[i]] do
      j = j + 1
    end
    for k = i, j do
      rank[order[k]] = (i + j) / 2
    end
    i = j + 1
  end
  return rank
end

local function same_length(a, b)
  if #a ~= #b or #a == 0 then
    error(("expected two lists of one length, at least 1; got %d and %d"):format(#a, #b), 3)
  end
end

local function correlation(a, b)
  local n, mean_a, mean_b = #a, 0, 0
  for i = 1, n do
    mean_a, mean_b = mean_a + a[i] / n, mean_b + b[i] / n
  end
  local ab, aa, bb = 0, 0, 0
  for i = 1, n do
    local x, y = a[i] - mean_a, b[i] - mean_b
    ab, aa, bb = ab + x * y, aa + x * x, bb + y * y
  end
  return ab / math.sqrt(aa * bb)
end

--- Pearson's correlation; NaN if one list is constant.
function evaluate.pearson(a, b)
  same_length(a, b)
  return correlation(a, b)
end

--- Spearman's rank correlation; NaN if one list is constant.
function evaluate.spearman(a, b)
  same_length(a, b)
  for i = 1, #a do
    if a[i] ~= a[i] or b[i] ~= b[i] then
      return 0 / 0 -- NaN has no rank
    end
  end
  return correlation(ranks(a), ranks(b))
end

--- The fraction of equal entries.
function evaluate.accuracy(answers, labels)
  same_length(answers, labels)
  local right = 0
  for i = 1, #answers do
    if answers[i] == labels[i] then
      right = right + 1
    end
  end
  return right / #answers
end

--- Cosine of row i of matrix a with row j of matrix b, F32 tensors of one width; in double.
function evaluate.cosine(a, i, b, j)
  local x, y = a:row_pointer(i), b:row_pointer(j)
  local xy, xx, yy = 0, 0, 0
  for k = 0, a.shape[2] - 1 do
    xy, xx, yy = xy + x[k] * y[k], xx + x[k] * x[k], yy + y[k] * y[k]
  end
  if xx == 0 or yy == 0 then
    return xx == yy and 1 or 0
  end
  return xy / math.sqrt(xx * yy)
end

---- Labelled files ----------------------------------------------------------------------------------------------------

local function split(line)
  local fields = {}
  for field in (line .. "\t"):gmatch "([^\t]*)\t" do
    fields[#fields + 1] = field
  end
  return fields
end

local function number(text)
  return text:match "^%s*[-+]?%.?%d" and tonumber(text)
end

-- How each form of file is told apart, by its fields, and read. The first that fits the first line decides for the file.
local forms = {
  {
    name = "STS-B (score in column 5, texts in 6 and 7)",
    fits = function(f)
      return #f >= 7 and number(f[5])
    end,
    read = function(f)
      return { f[6], f[7] }, number(f[5])
    end,
    kind = "score",
  },
  {
    name = "text TAB text TAB score",
    fits = function(f)
      return #f == 3 and number(f[3])
    end,
    read = function(f)
      return { f[1], f[2] }, number(f[3])
    end,
    kind = "score",
  },
  {
    name = "text TAB text TAB label",
    fits = function(f)
      return #f == 3 and f[3] ~= ""
    end,
    read = function(f)
      return { f[1], f[2] }, f[3]
    end,
    kind = "label",
  },
  {
    name = "text TAB label",
    fits = function(f)
      return #f == 2 and f[2] ~= ""
    end,
    read = function(f)
      return f[1], f[2]
    end,
    kind = "label",
  },
}

--- Reads `text TAB label`, `text TAB text TAB label`, `text TAB text TAB score`, or an STS-B file (tab-separated, no quoting).
-- Returns { path=, kind = "score" or "label", texts = { text or pair... }, labels = { number or string... } }. Errors name
-- file and line.
function evaluate.read(path)
  local set = { path = path, texts = {}, labels = {} }
  local form
  local n = 0
  for line in lines(path) do
    n = n + 1
    if line ~= "" then
      local fields = split(line)
      if not form then
        for _, candidate in ipairs(forms) do
          form = form or (candidate.fits(fields) and candidate) or nil
        end
        if not form then
          error(("%s, line %d: has %d tab-separated fields, expected text TAB label, text TAB text TAB score, or STS-B's seven")
            :format(path, n, #fields), 2)
        end
      end
      if not form.fits(fields) then
        error(("%s, line %d: expected %s as in the lines before"):format(path, n, form.name), 2)
      end
      set.texts[#set.texts + 1], set.labels[#set.labels + 1] = form.read(fields)
    end
  end
  if not form then
    error(path .. ": no lines to evaluate on", 2)
  end
  set.kind, set.form = form.kind, form.name
  return set
end

---- Tasks -------------------------------------------------------------------------------------------------------------

local function embed_sides(model, set)
  local sides = { {}, {} }
  for i, pair in ipairs(set.texts) do
    sides[1][i], sides[2][i] = pair[1], pair[2]
  end
  return model:embed(sides[1]), model:embed(sides[2])
end

-- The fraction of texts whose nearest other text has the same label.
local function neighbours(model, set)
  local vectors, right = model:embed(set.texts), 0
  for i = 1, #set.texts do
    local best, label = -2, nil
    for j = 1, #set.texts do
      if j ~= i then
        local cosine = evaluate.cosine(vectors, i, vectors, j)
        if cosine > best then
          best, label = cosine, set.labels[j]
        end
      end
    end
    right = right + (label == set.labels[i] and 1 or 0)
  end
  vectors:release()
  return right / #set.texts
end

-- A file's label is the label's name or its number.
local function label_names(model, set)
  local known, names = {}, {}
  for i, name in ipairs(model.config.labels) do
    known[name], known[tostring(i - 1)] = name, known[tostring(i - 1)] or name
  end
  for i, label in ipairs(set.labels) do
    names[i] = known[label]
    if not names[i] then
      error(("%s: label %q is none of the model's: %s"):format(set.path, label, table.concat(model.config.labels, ", ")), 3)
    end
  end
  return names
end

--- Runs the model over what evaluate.read returned. Returns { metric =, value =, n = }:
--   a classifier and labels: accuracy; a regression and scores: Spearman of its logit; no classifier and pairs with scores:
--   Spearman of the cosine of the embeddings; no classifier and labels: how often the nearest other text has the same label.
function evaluate.run(model, set)
  local value, metric
  if model.task == "classify" then
    local answers, given = {}, set.labels
    if model.config.regression then
      if set.kind ~= "score" then
        error(set.path .. ": has labels, but the model is a regression and needs scores", 2)
      end
      for i, answer in ipairs(model:classify(set.texts)) do
        answers[i] = answer.score
      end
      metric, value = "Spearman", evaluate.spearman(answers, given)
    else
      if set.kind == "score" then -- labels that are numbers look like scores
        given = {}
        for i, score in ipairs(set.labels) do
          given[i] = ("%g"):format(score)
        end
      end
      given = label_names(model, { path = set.path, labels = given })
      for i, answer in ipairs(model:classify(set.texts)) do
        answers[i] = answer.label
      end
      metric, value = "accuracy", evaluate.accuracy(answers, given)
    end
  elseif set.kind == "score" then
    local a, b = embed_sides(model, set)
    local cosines = {}
    for i = 1, #set.texts do
      cosines[i] = evaluate.cosine(a, i, b, i)
    end
    a:release()
    b:release()
    metric, value = "Spearman", evaluate.spearman(cosines, set.labels)
  else
    metric, value = "nearest neighbour has the same label", neighbours(model, set)
  end
  return { metric = metric, value = value, n = #set.texts }
end

return evaluate
