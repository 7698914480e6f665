--- classify: the label of a text or of a pair of texts, by the checkpoint's sequence classification head.
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local scores = require "perigee.tasks.scores"

local classify = {
  doc = "the label of a text or of a pair of texts, by the checkpoint's head",
  forms = { "text", "pair", "ids" },
  architectures = { "ForSequenceClassification" },
  head = {
    needs = "labels", outputs = function(model) return { logits = { "sequences", #model.config.labels } } end,
  },
  evaluate = "perigee.evaluate.tasks.classify",
}

--- For modules: returns the logits of each input, a list of lists, and the batch. The logits of a text that was cut into windows
-- are the mean over its windows, weighted by their numbers of tokens. opts: the options of a batch (run/batch.lua).
function classify.logits(encoder, given, what, opts)
  local parts, batch = encoder:gather("classify", given, what, opts)
  local rows, list = parts.logits:totable(), {}
  parts.logits:release()
  for input, first, last in batch:groups() do
    list[input] = first == last and rows[first] or scores.mean(rows, first, last, batch.starts)
  end
  return list, batch
end

---- Scores ------------------------------------------------------------------------------------------------------------

local APPLY = { softmax = scores.softmax, sigmoid = scores.sigmoid, none = function(logits) return { unpack(logits) } end }

-- The name of the function from logits to scores if the caller names none, as in transformers' text-classification pipeline:
-- "none" if config.json says that the model is a regression; "sigmoid" if several labels may be right or there is only one label;
-- else "softmax".
local function default(config)
  if config.json.problem_type == "regression" then
    return "none"
  end
  return (config.problem == "multi_label_classification" or #config.labels == 1) and "sigmoid" or "softmax"
end

-- The function from logits to scores. how: the name that the user gave, or nil.
local function apply_of(config, how)
  if how == "softmax" and #config.labels == 1 then
    error("classify: apply is softmax, which is always 1 for the one label of this checkpoint; expected sigmoid or none", 0)
  end
  return APPLY[how or default(config)]
end

-- The scores by label. If two labels have the same name, the second one becomes "NAME#2", so that no score is lost.
local function by_name(labels, list)
  local named = {}
  for i, label in ipairs(labels) do
    local name, n = label, 1
    while named[name] do
      n = n + 1
      name = ("%s#%d"):format(label, n)
    end
    named[name] = list[i]
  end
  return named
end

-- At most `count` labels whose score is at least `threshold`, as { label =, score = }, best first.
local function best_labels(labels, list, count, threshold)
  local best, found = scores.keep(count or #list), {}
  for i, score in ipairs(list) do
    if score >= (threshold or -math.huge) then
      best:put { value = score, label = labels[i] }
    end
  end
  for k, item in ipairs(best:sorted()) do
    found[k] = { label = item.label, score = item.value }
  end
  return found
end

-- The answer to one input.
local function answer(logits, config, read, apply)
  local list = apply(logits)
  if read.top_k or read.threshold then
    return best_labels(config.labels, list, read.top_k, read.threshold)
  elseif config.json.problem_type == "regression" and not read.apply then
    return { score = logits[1], logits = logits, label = #logits == 1 and config.labels[1] or nil }
  end
  local best, score = scores.best(list)
  return { label = config.labels[best], score = score, scores = by_name(config.labels, list), logits = logits }
end

--- The options of classify, for options.read.
classify.options = inputs.options {
  apply = { "choice", APPLY, help = "Function that makes scores of logits. Default: as config.json's problem_type says" },
  top_k = { "integer", 1, help = scores.TOP_K },
  threshold = { "number", -math.huge, math.huge, help = scores.THRESHOLD },
}

--- model:classify(inputs, options): for each input { label =, score = its probability, scores = { label = probability }, logits
-- = { ... } }. If two labels have the same name, the second one is "NAME#2" in scores. The score of a regression is its value.
-- One input (not in a list) gives one answer. Second result: the batch. Options:
--   apply        the function that makes scores of logits: "softmax", "sigmoid", "none"; by default "none" if config.json's
--                problem_type is regression, "sigmoid" if it is multi_label_classification or if there is one label, else
--                "softmax"
--   top_k        an integer of at least 1: the answer is a list of so many { label =, score = }, best first
--   threshold    a number: the answer is such a list of the labels with at least this score; it may be empty
--   long         what happens to a long text: "truncate" (default); "error"; "windows": the text's logits are the mean over its
--                windows
--   tokens       max tokens of a sequence; default: the model's limit
--   stride       tokens that two neighbouring windows share
function classify.run(encoder, given, opts)
  options.method(encoder, "classify")
  local read = options.read(opts, classify.options, "classify")
  local list, batch = classify.logits(encoder, given, "classify", inputs.how(read, { forms = classify.forms }, "classify"))
  local config = encoder.model.config
  local apply = apply_of(config, read.apply)
  for i, logits in ipairs(list) do
    list[i] = answer(logits, config, read, apply)
  end
  return batch.single and list[1] or list, batch
end

---- What pipe.lua writes ----------------------------------------------------------------------------------------------

classify.written = { scores = { "flag", help = "The scores of all labels", unless = { "top_k", "threshold" } } }

--- The answer without its logits; of one answer { label =, score = } unless `scores` asks for all scores.
function classify.result(found, how)
  if not found.logits then
    return found -- a list of the best labels
  end
  return { label = found.label, score = found.score, scores = how.scores and found.scores or nil }
end

return classify
