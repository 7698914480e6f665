--- The models as the event loop sees them: their names and properties, and their tokenizers. The engine has its own (engine.lua).
local config = require "serve.config"
local ffi = require "ffi"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

local models = {}

local opened = {}

--- Opens the artifact of a model. The master process does so before it starts workers: a file that cannot be opened stops the
-- server, or keeps the old workers when it is reloaded.
function models.open(model)
  opened[model.path] = opened[model.path] or perigee.open(model.path)
  return opened[model.path]
end

--- The tokenizer of a model.
function models.tokenizer(model)
  return models.open(model):tokenizer()
end

--- What a request may know of an artifact: what config.models has of it.
function models.describe(name, path)
  local m = perigee.open(path)
  local tasks, labels = { m.task }, nil
  if m.task == "classify" then
    labels = m.config.labels
    tasks[2] = #(labels or {}) <= 1 and "rerank" or nil
    for _, label in ipairs(labels or {}) do
      if label:lower():find "^entail" then
        tasks[#tasks + 1] = "zeroshot"
      end
    end
  end
  local prompts, default = m:prompts()
  prompts = prompts or {}
  local described = {
    name = name, path = path, task = m.task, tasks = tasks, limit = m.limit, vocabulary = m.vocabulary, labels = labels,
    type = m.config.model_type, width = m.config.hidden_size, prompts = next(prompts) and prompts or nil,
    prompted = default ~= nil,
    pooling = m.task == "embed" and m:pooling().modes[1] or nil, int8 = m.file:metadata "settings" ~= nil,
  }
  m:release()
  return described
end

--- The names of a model's prompts, in words.
function models.prompt_names(model)
  local names = {}
  for name in pairs(model.prompts or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  return #names > 0 and "the prompts " .. table.concat(names, ", ") or "no prompts"
end

--- About a model, as GET /info of text-embeddings-inference says it.
function models.info(model)
  local kind = { embedding = { pooling = model.pooling } }
  if model.task == "classify" then
    local ids, of = {}, {}
    for i, label in ipairs(model.labels or {}) do
      ids[tostring(i - 1)], of[label] = label, i - 1
    end
    kind = { [model.labels and #model.labels > 1 and "classifier" or "reranker"] = { id2label = ids, label2id = of } }
  elseif model.task ~= "embed" then
    kind = { [model.task] = { architecture = model.type } }
  end
  return {
    model_id = model.name, model_dtype = model.int8 and "int8" or "float32", model_type = kind, max_input_length = model.limit,
    max_concurrent_requests = config.limits.queue, max_batch_tokens = config.limits.batch_tokens,
    max_client_batch_size = config.limits.texts, auto_truncate = true, version = perigee.version, router = "perigee",
  }
end

local function sigmoid(x)
  return 1 / (1 + math.exp(-x))
end

--- Documents by how well they answer a query: { { index = from 0, score = }... }, best first. raw: scores are logits.
function models.rerank(c, query, documents, raw)
  local model = c:model "rerank"
  local items, list = {}, {}
  for i, document in ipairs(documents) do
    items[i] = { query = query, documents = { document } }
  end
  for i, answer in ipairs(c:answer { model = model, task = "rerank", options = c:options(), items = items }) do
    local logit = answer.value[1].logit
    list[i] = { index = i - 1, score = raw and logit or sigmoid(logit) }
  end
  table.sort(list, function(a, b)
    if a.score ~= b.score then
      return a.score > b.score
    end
    return a.index < b.index
  end)
  return list
end

--- Floats in a string of their bytes, as a list.
function models.floats(bytes)
  local n = #bytes / 4
  local numbers, list = pgee.numbers(ffi.cast("const void *", bytes), pgee.C.PGEE_F32, n), {}
  for k = 1, n do
    list[k] = numbers[k - 1]
  end
  return list
end

--- The tokens of a text, as /tokenize shows them. special: with the special tokens around it.
function models.tokens(tokenizer, text, special)
  local e, list = tokenizer:encode(text, nil, { special = special, offsets = "characters" }), {}
  for i, id in ipairs(e.ids) do
    local added = e.sequences[i] == 0
    list[i] = {
      id = id, text = tokenizer:piece(id), special = added, start = not added and e.offsets[i][1] or nil,
      stop = not added and e.offsets[i][2] or nil,
    }
  end
  return list
end

return models
