--- classify: what the sequence classification head of the checkpoint says about a text or a pair of texts.
local options = require "perigee.options"

local classify = {}

function classify.head(g, x, model, weights)
  if not model.config.labels then
    model.config:read_head()
  end
  g:output("logits", model.definition.classifier(g, model.config, weights, x))
end

local function softmax(logits)
  local most, sum, p = -math.huge, 0, {}
  for _, v in ipairs(logits) do
    most = math.max(most, v)
  end
  for i, v in ipairs(logits) do
    p[i] = math.exp(v - most)
    sum = sum + p[i]
  end
  for i = 1, #p do
    p[i] = p[i] / sum
  end
  return p
end

local function sigmoid(logits)
  local p = {}
  for i, v in ipairs(logits) do
    p[i] = 1 / (1 + math.exp(-v))
  end
  return p
end

-- problem_type of config.json, or what transformers takes in its place: one label is a regression, more are one choice.
local function answer(logits, config)
  if config.problem == "regression" then
    return { score = logits[1], logits = logits, label = #logits == 1 and config.labels[1] or nil }
  end
  local p = config.problem == "multi_label_classification" and sigmoid(logits) or softmax(logits)
  local best, scores = 1, {}
  for i, name in ipairs(config.labels) do
    scores[name] = p[i]
    best = p[i] > p[best] and i or best
  end
  return { label = config.labels[best], score = p[best], scores = scores, logits = logits }
end

--- encoder:classify(inputs): for each input { label =, score = its probability, scores = { label = probability }, logits = {
-- ... } }. A regression has its value as score. One input (not in a list) gives one answer. Second result: the batch.
function classify.run(encoder, given)
  options.method(encoder, "classify")
  local parts, batch = encoder:gather("classify", given, "classify", { forms = { "text", "pair", "ids" } })
  local rows = parts.logits:totable()
  parts.logits:release()
  for i, logits in ipairs(rows) do
    rows[i] = answer(logits, encoder.model.config)
  end
  return batch.single and rows[1] or rows, batch
end

return classify
