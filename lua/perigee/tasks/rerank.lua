--- rerank: documents in the order in which they answer a query, best first (Nogueira and Cho 2019). A cross-encoder, a checkpoint
-- that classifies pairs with one label, scores each pair of query and document.
local inputs = require "perigee.run.inputs"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local prompt_of = require "perigee.tasks.prompts"
local scores = require "perigee.tasks.scores"

local rerank = {
  doc = "documents in the order in which they answer a query, by a cross-encoder",
  forms = { "query" }, pair = { "query", "documents" }, pair_list = true,
  head = "classify",
  evaluate = "perigee.evaluate.tasks.rerank",
}

-- A function of a list that returns the list of f(v).
local function each(f)
  return function(logits)
    local list = {}
    for i, v in ipairs(logits) do
      list[i] = f(v)
    end
    return list
  end
end

-- The activations that make a score of a logit, by the names of PyTorch's classes.
local ACTIVATIONS = {
  Sigmoid = scores.sigmoid,
  Identity = each(function(v) return v end),
  Tanh = each(function(v) return 2 / (1 + math.exp(-2 * v)) - 1 end),
  ReLU = each(function(v) return math.max(v, 0) end),
  Softplus = each(function(v) return math.max(v, 0) + math.log(1 + math.exp(-math.abs(v))) end),
}

-- The function from a list of logits to scores. config.json names it in one of two fields, as sentence-transformers writes them;
-- the default is the sigmoid.
local function activation(config)
  local inside = config.json.sentence_transformers
  local name = type(inside) == "table" and inside.activation_fn
  if name == nil or name == false then
    name = config.json.sbert_ce_default_activation_function
  end
  if name == nil or name == json.null then
    return scores.sigmoid
  end
  local class = type(name) == "string" and name:match "^torch%..*%.(%w+)$"
  return ACTIVATIONS[class] or error(("rerank: '%s' has the activation %s, which is not supported, only torch.nn's %s"):format(
    config.path, json.describe(name), table.concat(options.names(ACTIVATIONS), ", ")), 0)
end

-- The documents as a list of texts. documents: a list, or one text. where: the beginning of an error.
local function documents_of(documents, where)
  if type(documents) == "string" then
    return { documents }
  elseif type(documents) ~= "table" then
    error(("%s: the documents are %s, expected a list of texts"):format(where, pgee.describe(documents)), 0)
  end
  options.list(documents, where .. ": expected a list of texts")
  for i = 1, #documents do
    if type(documents[i]) ~= "string" then
      error(("%s: document %d is %s, expected a text"):format(where, i, pgee.describe(documents[i])), 0)
    end
  end
  return documents
end

-- All pairs of a list of { query =, documents = }, each as { query, document, input =, document = the places of both, where = the
-- beginning of an error }.
local function pairs_of(list)
  local all = {}
  for i, one in ipairs(list) do
    local where = list.single and "rerank" or ("rerank: input %d"):format(i)
    if type(one) ~= "table" then
      error(("%s is %s, expected { query =, documents = { ... } }"):format(where, pgee.describe(one)), 0)
    elseif type(one.query) ~= "string" then
      error(("%s: the query is %s, expected a text"):format(where, pgee.describe(one.query)), 0)
    end
    for d, text in ipairs(documents_of(one.documents, where)) do
      all[#all + 1] = { one.query, text, input = i, document = d, where = ("%s: document %d"):format(where, d) }
    end
  end
  return all
end

-- The logit of each pair. A pair with several windows has the largest of their logits.
local function best_logits(rows, batch)
  local list = {}
  for input, first, last in batch:groups() do
    local most = -math.huge
    for s = first, last do
      most = math.max(most, rows[s][1])
    end
    list[input] = most
  end
  return list
end

local function by_logit(a, b)
  if a.logit ~= b.logit then
    return a.logit > b.logit
  end
  return a.index < b.index
end

--- The options of rerank, for options.read.
rerank.options = inputs.options {
  top_k = { "integer", 1, help = scores.TOP_K },
  prompt = { "other", help = "Text to put before the query, or the name of one of the checkpoint's prompts" },
}

-- Ranks the documents of each { query =, documents = } of a list: a list of lists, and the one batch. An entry of the batch's
-- `truncated` and `windows` has the place of the query, `input`, and of the document, `document`.
local function rank(encoder, list, opts)
  options.method(encoder, "rerank")
  local read = options.read(opts, rerank.options, "rerank")
  encoder:runner "classify" -- errors come first if there is no such head
  local config = encoder.model.config
  if #config.labels ~= 1 then
    error(("rerank: the checkpoint has %d labels, expected one, the score"):format(#config.labels), 0)
  end
  local apply, all, ranked = activation(config), pairs_of(list), {}
  local parts, batch = encoder:gather("classify", all, "rerank", inputs.how(read, {
    name = function(i) return all[i].where end, cut = read.long == "windows" and "second" or nil,
    prompt = prompt_of(encoder.model, read.prompt, "rerank", "CrossEncoder"),
  }, "rerank"))
  for i = 1, #list do
    ranked[i] = {}
  end
  for i, logit in ipairs(best_logits(parts.logits:totable(), batch)) do
    local pair = all[i]
    table.insert(ranked[pair.input], { index = pair.document, score = apply({ logit })[1], logit = logit, text = pair[2] })
  end
  parts.logits:release()
  for _, own in ipairs(ranked) do
    table.sort(own, by_logit)
    for i = #own, (read.top_k or #own) + 1, -1 do
      own[i] = nil
    end
  end
  for _, report in ipairs { batch.truncated, batch.windows } do
    for _, entry in ipairs(report) do
      entry.input, entry.document = all[entry.input].input, all[entry.input].document
    end
  end
  return ranked, batch
end

--- model:rerank(query, documents, options): a list of { index = place in documents, score =, logit =, text = }, best first. The
-- score is what sentence-transformers' CrossEncoder gives: the logit's sigmoid, unless config.json says otherwise. Second result:
-- the batch. Options:
--   top_k      how many documents; default all
--   prompt     the text that goes before the query: the name of one of the checkpoint's prompts, or the text itself; false: no
--              prompt, not even the checkpoint's default
--   long       what happens to a long pair: "truncate" (default); "error"; "windows" of the document, of which the best counts
--   tokens     max tokens of a sequence; default: the model's limit
--   stride     tokens that two neighbouring windows share
function rerank.method(encoder, query, documents, opts)
  local ranked, batch = rank(encoder, { { query = query, documents = documents }, single = true }, opts)
  return ranked[1], batch
end

--- The same over one or a list of { query =, documents = }; of a list, a list of lists.
function rerank.run(encoder, given, opts)
  if type(given) ~= "table" then
    error(("rerank: expected { query =, documents = { ... } }, or a list of these; got %s"):format(pgee.describe(given)), 0)
  elseif given.query ~= nil or given.documents ~= nil then
    return rerank.method(encoder, given.query, given.documents, opts)
  end
  return rank(encoder, given, opts)
end

return rerank
