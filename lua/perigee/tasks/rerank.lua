--- rerank: documents by how well they answer a query, as a cross-encoder judges each pair (Nogueira and Cho 2019). For
-- checkpoints that classify pairs with one label.
local json = require "perigee.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local scores = require "perigee.tasks.scores"

local rerank = { forms = { "query" } }

-- What sentence-transformers wrote about scores in config.json, at one of two places; without it a single label has a sigmoid.
local function activation(config)
  local inside = config.json.sentence_transformers
  local name = type(inside) == "table" and inside.activation_fn or config.json.sbert_ce_default_activation_function
  if name == nil or name == json.null then
    return scores.sigmoid
  end
  local class = type(name) == "string" and name:match "[^.]*$"
  if class == "Sigmoid" then
    return scores.sigmoid
  elseif class == "Identity" then
    return function(logits) return { unpack(logits) } end
  end
  error(("rerank: '%s' has the activation %s, which is not supported, only Sigmoid and Identity"):format(config.path,
    json.describe(name)), 0)
end

local function check(query, documents)
  if type(query) ~= "string" then
    error(("rerank: the query is %s, expected a text"):format(pgee.describe(query)), 0)
  elseif type(documents) ~= "table" then
    error(("rerank: the documents are %s, expected a list of texts"):format(pgee.describe(documents)), 0)
  end
  for key in pairs(documents) do
    if type(key) ~= "number" or key < 1 or key > #documents then
      error(("rerank: expected a list of texts, found the key %s"):format(tostring(key)), 0)
    end
  end
  local list = {}
  for i, text in ipairs(documents) do
    if type(text) ~= "string" then
      error(("rerank: document %d is %s, expected a text"):format(i, pgee.describe(text)), 0)
    end
    list[i] = { query, text }
  end
  return list
end

-- The logit of each document: of several windows the best counts.
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

local KNOWN = { best = true, long = true, tokens = true, stride = true }

--- encoder:rerank(query, documents, options): a list of { index = place in documents, score =, logit =, text = }, best first. The
-- score is what sentence-transformers' CrossEncoder gives: the logit's sigmoid, unless config.json says otherwise. Second result:
-- the batch. Options:
--   best       how many documents; all
--   long       what becomes of long pairs: "truncate" (default), "error", "windows" of the document, of which the best counts
--   tokens, stride   of windows: tokens of each at most, and those that two have in common
function rerank.run(encoder, query, documents, opts)
  options.method(encoder, "rerank")
  opts = options.check(opts, KNOWN, "rerank", -2)
  local best = options.integer(opts.best, 1, 2 ^ 31, "rerank: best", -2)
  local given, model = check(query, documents), encoder.model
  model:graph "classify" -- errors come first if there is no such head
  if #model.config.labels ~= 1 then
    error(("rerank: the checkpoint has %d labels, expected one, the score"):format(#model.config.labels), 0)
  end
  local apply = activation(model.config)
  local parts, batch = encoder:gather("classify", given, "rerank", {
    cut = opts.long == "windows" and "second" or nil, long = opts.long, tokens = opts.tokens, stride = opts.stride,
  })
  local logits, list = best_logits(parts.logits:totable(), batch), {}
  parts.logits:release()
  for i, logit in ipairs(logits) do
    list[i] = { index = i, score = apply({ logit })[1], logit = logit, text = documents[i] }
  end
  table.sort(list, function(a, b)
    if a.logit ~= b.logit then
      return a.logit > b.logit
    end
    return a.index < b.index
  end)
  for i = #list, (best or #list) + 1, -1 do
    list[i] = nil
  end
  return list, batch
end

return rerank
