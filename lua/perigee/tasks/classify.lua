--- classify: what the sequence classification head of the checkpoint says about a text or a pair of texts.
local options = require "perigee.options"
local scores = require "perigee.tasks.scores"

local classify = { forms = { "text", "pair", "ids" } }

function classify.head(g, x, model, weights)
  local classifier = model:head("classifier", "classify")
  if not model.config.labels then
    model.config:read_head()
  end
  g:output("logits", classifier(g, model.config, weights, x))
end

--- For modules: the logits of each input, lists, and the batch. A text in windows has the mean of their logits, each counting as
-- much as it has tokens. opts: those of inputs.lua.
function classify.logits(encoder, given, what, opts)
  local parts, batch = encoder:gather("classify", given, what, opts)
  local rows, list = parts.logits:totable(), {}
  parts.logits:release()
  for input, first, last in batch:groups() do
    list[input] = first == last and rows[first] or scores.mean(rows, first, last, batch.starts)
  end
  return list, batch
end

local apply = { softmax = scores.softmax, sigmoid = scores.sigmoid, none = function(logits) return { unpack(logits) } end }

-- What makes scores of logits unless the caller says otherwise. As in the training of the reference library one label without a
-- problem_type is a regression (its pipeline would take the sigmoid).
local DEFAULT = {
  regression = "none", multi_label_classification = "sigmoid", single_label_classification = "softmax",
}

local function answer(logits, config, how)
  if not how and config.problem == "regression" then
    return { score = logits[1], logits = logits, label = #logits == 1 and config.labels[1] or nil }
  end
  local list, named = apply[how or DEFAULT[config.problem]](logits), {}
  for i, name in ipairs(config.labels) do
    named[name] = list[i]
  end
  local best, score = scores.best(list)
  return { label = config.labels[best], score = score, scores = named, logits = logits }
end

local KNOWN = { long = true, tokens = true, stride = true, apply = true }

--- model:classify(inputs, options): for each input { label =, score = its probability, scores = { label = probability },
-- logits = { ... } }. A regression has its value as score. One input (not in a list) gives one answer. Second result: the batch.
-- Options:
--   apply        what makes scores of logits: "softmax", "sigmoid", "none"; by default as config.json's problem_type says
--   long         what becomes of long texts: "truncate" (default), "error", "windows", whose logits' mean then counts
--   tokens, stride   of windows: tokens of each at most, and those that two have in common
function classify.run(encoder, given, opts)
  options.method(encoder, "classify")
  opts = options.check(opts, KNOWN, "classify", -2)
  local how = opts.apply ~= nil and options.choice(opts.apply, apply, "classify: apply", -2)
  local list, batch = classify.logits(encoder, given, "classify", {
    forms = classify.forms, long = opts.long, tokens = opts.tokens, stride = opts.stride,
  })
  local config = encoder.model.config
  for i, logits in ipairs(list) do
    list[i] = answer(logits, config, how)
  end
  return batch.single and list[1] or list, batch
end

return classify
