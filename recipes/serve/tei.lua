--- Endpoints as text-embeddings-inference has them.
local config = require "serve.config"
local errors = require "serve.errors"
local fields = require "serve.fields"
local inputs = require "serve.inputs"
local metrics = require "serve.metrics"
local models = require "serve.models"

local object, request = fields.object, fields.request

---- Vectors -----------------------------------------------------------------------------------------------------------

-- The engine's options of embed. ids: how many of the inputs are token ids, before which no prompt can stand.
local function embed_options(c, model, items, ids)
  local r, options = c.request, c:options()
  if ids > 0 and (r.prompt_name or model.prompted and ids < #items) then
    errors.fail("Validation", "inputs has token ids, and a prompt goes before texts only; send texts, or token ids alone")
  end
  options.prompt = ids == 0 and nil -- false: not even the model's default
  if r.prompt_name then
    options.prompt = (model.prompts or {})[r.prompt_name]
      or errors.fail("Validation", "prompt_name is '%s'; %s has %s", r.prompt_name, model.name, models.prompt_names(model))
  end
  options.dimensions, options.normalize = r.dimensions, r.normalize ~= false
  return options
end

-- Values of answers as one JSON list.
local function joined(answers)
  local parts = {}
  for i, answer in ipairs(answers) do
    parts[i] = answer.value
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

local function embed(c)
  local model = c:model "embed"
  local items, ids, characters = inputs.read(c.request.inputs, model)
  c.characters = characters
  metrics.count("te_embed_count", nil, #items)
  local options = embed_options(c, model, items, ids)
  return joined(c:answer { model = model, task = "embed", options = options, format = "json", items = items })
end

local function embed_all(c)
  local model = c:model "embed"
  local items, _, characters = inputs.read(c.request.inputs, model)
  c.characters = characters
  local options = { truncation_side = c:options().truncation_side }
  return joined(c:answer { model = model, task = "hidden", options = options, format = "json", items = items })
end

-- The cosine of each vector with the first; all as bytes of floats.
local function similarities(answers)
  local numbers = models.floats
  local first, list = numbers(answers[1].value), {}
  for i = 2, #answers do
    local other, dot, a, b = numbers(answers[i].value), 0, 0, 0
    for k = 1, #first do
      dot, a, b = dot + first[k] * other[k], a + first[k] * first[k], b + other[k] * other[k]
    end
    list[i - 1] = dot / math.max(math.sqrt(a) * math.sqrt(b), 1e-12)
  end
  return list
end

local function similarity(c)
  local r = c.request
  local items = { r.inputs.source_sentence }
  for i, sentence in ipairs(r.inputs.sentences) do
    items[i + 1] = sentence
  end
  c.request = r.parameters or {}
  c.request.model = r.model
  local model = c:model "embed"
  local options = embed_options(c, model, items, 0)
  return similarities(c:answer { model = model, task = "embed", options = options, format = "bytes", items = items })
end

---- Classes and ranks -------------------------------------------------------------------------------------------------

-- predict's inputs: a text; { a } or { a, b }, one text or a pair; a list of such lists. Returns a list, and whether it was one.
local function predict_inputs(given)
  local function one(input)
    return #input == 2 and { input[1], input[2] } or input[1]
  end
  if type(given) == "string" then
    return { given }, true
  elseif type(given[1]) == "string" then
    return { one(given) }, true
  end
  local list = {}
  for i, input in ipairs(given) do
    list[i] = type(input) == "string" and input or one(input)
  end
  return list, false
end

-- Labels with their scores, best first.
local function ranked(scores)
  local list = {}
  for label, score in pairs(scores) do
    list[#list + 1] = { label = label, score = score }
  end
  table.sort(list, function(a, b)
    if a.score ~= b.score then
      return a.score > b.score
    end
    return a.label < b.label
  end)
  return list
end

local function predict(c)
  local model = c:model "classify"
  local items, single = predict_inputs(c.request.inputs)
  local options = c:options()
  options.apply = c.request.raw_scores and "none" or nil
  metrics.count("te_predict_count", nil, #items)
  local list = {}
  for i, answer in ipairs(c:answer { model = model, task = "classify", options = options, items = items }) do
    list[i] = ranked(answer.value.scores or { [answer.value.label or "LABEL_0"] = answer.value.score })
  end
  return single and list[1] or list
end

local function rerank(c)
  local r = c.request
  local list = models.rerank(c, r.query, r.texts, r.raw_scores)
  for _, entry in ipairs(list) do
    entry.text = r.return_text and r.texts[entry.index + 1] or nil
  end
  return list
end

---- Tokens ------------------------------------------------------------------------------------------------------------

-- Tokenizing and decoding take place in the event loop, so what they take is small, and other requests get their turn.
local BYTES, IDS = 131072, 65536

local function check_small(count, limit, what)
  if count > limit then
    errors.fail("Validation", "the request has %d %s, at most %d are taken", count, what, limit)
  end
end

local function tokenize(c)
  local model = c:model()
  local list, own, bytes = {}, models.tokenizer(model), 0
  local texts = inputs.list(c.request.inputs)
  check_small(#texts, config.limits.texts, "inputs")
  for _, text in ipairs(texts) do
    bytes = bytes + #text
  end
  check_small(bytes, BYTES, "bytes of text")
  for i, text in ipairs(texts) do
    if i % 32 == 0 then
      ngx.sleep(0)
    end
    list[i] = models.tokens(own, text, c.request.add_special_tokens ~= false)
  end
  return list
end

local function decode(c)
  local model = c:model()
  local own, list = models.tokenizer(model), {}
  local given = type(c.request.ids[1]) == "number" and { c.request.ids } or c.request.ids
  check_small(#given, config.limits.texts, "lists")
  local count = 0
  for _, ids in ipairs(given) do
    count = count + #ids
  end
  check_small(count, IDS, "ids")
  for i, ids in ipairs(given) do
    if i % 32 == 0 then
      ngx.sleep(0)
    end
    local ok, text = pcall(own.decode, own, ids, { special = c.request.skip_special_tokens == false })
    list[i] = ok and text or errors.fail("Validation", "ids[%d]: %s", i - 1, text)
  end
  return list
end

---- About the server --------------------------------------------------------------------------------------------------

local function health(c)
  if config.broken then
    errors.fail("Unhealthy", "the models cannot be opened: %s", config.broken)
  elseif not config.ready then
    errors.fail("Unhealthy", "the models are being opened")
  end
  c.status = 200
  return "", "text/plain"
end

local function info(c)
  return models.info(c:model())
end

local SCORES = { type = "array", items = object { label = fields.TEXT, score = { type = "number" } } }
local PAIR = { type = "array", items = fields.TEXT, minItems = 1, maxItems = 2, said = "one text, or two that are a pair" }
local PREDICTED = { anyOf = { SCORES, { type = "array", items = SCORES } } }

return {
  { path = "/embed", method = "POST", summary = "One vector for each input", handle = embed, response = fields.VECTORS,
    request = request({
      inputs = fields.INPUTS, normalize = fields.FLAG, prompt_name = fields.TEXT, dimensions = fields.COUNT,
    }, { "inputs" }) },
  { path = "/embed_all", method = "POST", summary = "A vector for each token of each input", handle = embed_all,
    response = { type = "array", items = fields.VECTORS }, request = request({ inputs = fields.INPUTS }, { "inputs" }) },
  { path = "/similarity", method = "POST", summary = "The cosines of a sentence with others", handle = similarity,
    response = fields.NUMBERS, request = object({
      inputs = object({
        source_sentence = fields.TEXT,
        sentences = { type = "array", items = fields.TEXT, minItems = 1, said = "a list of strings" },
      }, { "source_sentence", "sentences" }),
      parameters = object { truncate = fields.FLAG, truncation_direction = fields.SIDE, prompt_name = fields.TEXT },
      model = fields.MODEL,
    }, { "inputs" }) },
  { path = "/predict", method = "POST", summary = "Labels with their scores", handle = predict, response = PREDICTED,
    request = request({
      raw_scores = fields.FLAG,
      inputs = {
        said = 'a string, ["a", "b"] for a pair, or a list of such lists',
        anyOf = { fields.TEXT, PAIR, { type = "array", items = PAIR } },
      },
    }, { "inputs" }) },
  { path = "/rerank", method = "POST", summary = "Texts by how well they answer a query", handle = rerank,
    response = { type = "array", items = object {
      index = { type = "integer" }, score = { type = "number" }, text = fields.TEXT,
    } },
    request = request({
      query = fields.TEXT, texts = { type = "array", items = fields.TEXT, minItems = 1, said = "a list of strings" },
      raw_scores = fields.FLAG, return_text = fields.FLAG,
    }, { "query", "texts" }) },
  { path = "/tokenize", method = "POST", summary = "The tokens of texts", handle = tokenize,
    response = { type = "array", items = { type = "array", items = object {
      id = { type = "integer" }, text = fields.TEXT, special = fields.FLAG, start = { type = "integer" },
      stop = { type = "integer" },
    } } },
    request = object({ inputs = fields.STRINGS, add_special_tokens = fields.FLAG, model = fields.MODEL }, { "inputs" }) },
  { path = "/decode", method = "POST", summary = "The texts of token ids", handle = decode, response = fields.TEXTS,
    request = object({
      ids = {
        anyOf = { fields.IDS, { type = "array", items = fields.IDS } }, said = "a list of token ids, or a list of such lists",
      },
      skip_special_tokens = fields.FLAG, model = fields.MODEL,
    }, { "ids" }) },
  { path = "/info", method = "GET", summary = "About the model", handle = info, response = { type = "object", properties = {} } },
  { path = "/health", method = "GET", open = true, summary = "Whether the server answers", handle = health },
  { path = "/ping", method = "GET", open = true, summary = "Whether the server answers", handle = health },
  { path = "/metrics", method = "GET", summary = "Counters for Prometheus",
    handle = function() return metrics.text(), "text/plain; version=0.0.4" end },
}
