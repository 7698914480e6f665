--- Judging a model: labelled files, and the metrics over what the model answers.
local lines = require "perigee.lines"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

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

-- Two lists of one length, of numbers if `kind` says so.
local function same_length(a, b, kind)
  for _, list in ipairs { a or false, b or false } do
    if type(list) ~= "table" then
      error(("expected two lists of one length, at least 1; got %s and %s"):format(pgee.describe(a), pgee.describe(b)), 3)
    end
    for i, v in ipairs(list) do
      if kind and type(v) ~= kind then
        error(("expected two lists of %ss; entry %d is %s"):format(kind, i, pgee.describe(v)), 3)
      end
    end
  end
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
  same_length(a, b, "number")
  return correlation(a, b)
end

--- Spearman's rank correlation; NaN if one list is constant.
function evaluate.spearman(a, b)
  same_length(a, b, "number")
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

-- Blames the caller of the function that calls this.
local function check_row(t, i, what)
  tensor.handle(t, what, 2)
  if t.dtype ~= "F32" or #t.shape ~= 2 then
    error(("%s is a %s, expected F32 [rows][width]"):format(what, tostring(t):match "^[^\n]*"), 3)
  elseif type(i) ~= "number" or i % 1 ~= 0 or i < 1 or i > #t then
    error(("%s has rows 1 to %d, not %s"):format(what, #t, pgee.describe(i)), 3)
  end
end

--- Cosine of row i of matrix a with row j of matrix b, F32 tensors of one width; in double.
function evaluate.cosine(a, i, b, j)
  check_row(a, i, "cosine: a")
  check_row(b, j, "cosine: b")
  if a.shape[2] ~= b.shape[2] then
    error(("cosine: rows of %d and of %d numbers"):format(a.shape[2], b.shape[2]), 2)
  end
  local x, x_stride = a:pointer()
  local y, y_stride = b:pointer()
  x, y = x + (i - 1) * x_stride, y + (j - 1) * y_stride
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
-- file and line. given: an iterator over the file's lines, for who has them already.
function evaluate.read(path, given)
  local set = { path = path, texts = {}, labels = {} }
  local form
  local n = 0
  for line in given or lines(path) do
    n = n + 1
    if line ~= "" then
      local fields = split(line)
      if not form then
        for _, candidate in ipairs(forms) do
          form = form or (candidate.fits(fields) and candidate) or nil
        end
        if not form then
          error(("%s, line %d: has %d tab-separated fields%s, expected text TAB label, text TAB text TAB score, or STS-B's seven")
            :format(path, n, #fields, fields[#fields] == "" and ", the last one empty" or ""), 2)
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
  if type(set.texts[1]) ~= "string" then
    error(set.path .. ": has labels for pairs of texts, which only a classifier answers", 3)
  end
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
  return "nearest text has the same label", right / #set.texts
end

-- A file's label is the label's name or its number. (Three columns whose last is a number were read as scores.)
local function label_names(model, set)
  local known, names = {}, {}
  for i, name in ipairs(model.model.config.labels) do
    known[tostring(i - 1)] = name
  end
  for _, name in ipairs(model.model.config.labels) do
    known[name] = name
  end
  for i, label in ipairs(set.labels) do
    names[i] = known[type(label) == "number" and ("%g"):format(label) or label]
    if not names[i] then
      error(("%s: label %s is none of the model's: %s"):format(set.path, label, table.concat(model.model.config.labels, ", ")), 3)
    end
  end
  return names
end

local function regression(model, set)
  local answers, scores = {}, {}
  for i, label in ipairs(set.labels) do
    scores[i] = tonumber(label)
    if not scores[i] then
      error(("%s: the model is a regression and needs scores, not labels such as %q"):format(set.path, label), 3)
    end
  end
  for i, answer in ipairs((model:classify(set.texts))) do
    answers[i] = answer.score
  end
  return "Spearman", evaluate.spearman(answers, scores)
end

local function classification(model, set)
  local answers, labels = {}, label_names(model, set)
  for i, answer in ipairs((model:classify(set.texts))) do
    answers[i] = answer.label
  end
  return "accuracy", evaluate.accuracy(answers, labels)
end

local function similarity(model, set)
  local a, b = embed_sides(model, set)
  local cosines = {}
  for i = 1, #set.texts do
    cosines[i] = evaluate.cosine(a, i, b, i)
  end
  a:release()
  b:release()
  return "Spearman", evaluate.spearman(cosines, set.labels)
end

-- Blames the caller of the function that calls this.
local function check_model(model, what)
  if type(model) ~= "table" or type(model.model) ~= "table" then
    error(("evaluate.%s: the model is %s, expected one that load or quantize gave"):format(what, pgee.describe(model)), 3)
  end
end

--- Runs the model over what evaluate.read returned. Returns { metric =, value =, n = }. What is measured:
--   a classifier  accuracy
--   a regression  Spearman of its score
--   an embedder   pairs with scores: Spearman of the cosine of their vectors; texts with labels: how often the nearest other text
--                 has the same label
function evaluate.run(model, set)
  check_model(model, "run")
  if type(set) ~= "table" or type(set.texts) ~= "table" or type(set.labels) ~= "table" then
    error(("evaluate.run: the set is %s, expected what evaluate.read returned"):format(pgee.describe(set)), 2)
  end
  local measure = set.kind == "score" and similarity or neighbours
  if model.model.task == "classify" then
    measure = model.model.config.problem == "regression" and regression or classification
  end
  local metric, value = measure(model, set)
  return { metric = metric, value = value, n = #set.texts }
end

---- Distance from FP32 ------------------------------------------------------------------------------------------------

-- Cosines of rows of two matrices with each other: mean and least.
local function cosines(a, b)
  local sum, least = 0, math.huge
  for i = 1, #a do
    local cosine = evaluate.cosine(a, i, b, i)
    sum, least = sum + cosine, math.min(least, cosine)
  end
  return { mean = sum / #a, least = least }
end

-- How often two classifiers name the same label.
local function agreement(model, q, inputs)
  local reference, test = {}, {}
  for i, answer in ipairs((model:classify(inputs))) do
    reference[i] = answer.label
  end
  for i, answer in ipairs((q:classify(inputs))) do
    test[i] = answer.label
  end
  return evaluate.accuracy(test, reference)
end

--- How far a quantized model is from its FP32 model on a list of inputs:
--   n, truncated  inputs, and how many of them the limit cut
--   sqnr          of the last hidden states, in dB
--   tokens        cosines of each token's hidden state with FP32's: { mean =, least = }
--   vectors       of an embedder: the same of the inputs' vectors
--   agreement     of a classifier: how often both name the same label
function evaluate.distance(model, q, inputs)
  check_model(model, "distance")
  check_model(q, "distance")
  local reference, batch = model:hidden(inputs)
  local test = q:hidden(inputs)
  local result = {
    n = #inputs, truncated = #batch.truncated, sqnr = reference:sqnr(test), tokens = cosines(reference, test),
  }
  reference:release()
  test:release()
  if model.task == "embed" then
    local a, b = model:embed(inputs), q:embed(inputs)
    result.vectors = cosines(a, b)
    a:release()
    b:release()
  elseif model.config.problem ~= "regression" then
    result.agreement = agreement(model, q, inputs)
  end
  return result
end

return evaluate
