--- zeroshot: labels that the model was not trained on, by natural language inference (Yin et al. 2019). A label fits a text as
-- far as the text entails "This example is LABEL.". For checkpoints that classify pairs and have a label "entailment".
local classify = require "perigee.tasks.classify"
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local scores = require "perigee.tasks.scores"

local zeroshot = {
  doc = "given labels in the order in which they fit a text, by a model of natural language inference",
  forms = { "text" },
  head = "classify",
  evaluate = "perigee.evaluate.tasks.zeroshot",
}

-- The index of the first label whose name begins with `beginning`, in any case; nil if there is none.
local function find(labels, beginning)
  for i, label in ipairs(labels) do
    if label:lower():sub(1, #beginning) == beginning then
      return i
    end
  end
end

-- The index of the label for entailment: by label2id, as in transformers, else by the labels' names; nil if there is none.
local function entailment(config)
  local ids = config.json.label2id
  for label, id in pairs(type(ids) == "table" and ids or {}) do
    if type(label) == "string" and label:lower():find "^entail" and config.labels[type(id) == "number" and id + 1] then
      return id + 1
    end
  end
  return find(config.labels, "entail")
end

-- The indices of the labels for entailment and for contradiction. If no label's name begins with "contra", the contradiction is
-- chosen as in transformers: it is the first label, or the last label if the first one is the entailment.
local function places(config)
  local entails = entailment(config)
  if not entails then
    error(("zeroshot: none of the labels %s of '%s' begins with \"entail\": it is not a model of natural language inference")
      :format(table.concat(config.labels, ", "), config.path), 0)
  elseif #config.labels < 2 then
    error("zeroshot: the checkpoint has one label, expected entailment and contradiction", 0)
  end
  local named = find(config.labels, "contra")
  return entails, named ~= entails and named or entails == 1 and #config.labels or 1
end

--- The options of zeroshot, for options.read.
zeroshot.options = inputs.options {
  labels = { "texts", required = "a list of texts", help = "Labels to choose from" },
  template = { "text", default = "This example is {}.", help = "Sentence with {} in the place of the label" },
  multi = { "flag", default = false, help = "Several labels may fit: each label is scored by itself" },
  top_k = { "integer", 1, help = scores.TOP_K },
}

local function read_options(given)
  local read = options.read(given, zeroshot.options, "zeroshot")
  if not read.template:find("{}", 1, true) then
    error(("zeroshot: template is %q, expected a text with {} in the place of the label"):format(read.template), 0)
  end
  return read
end

-- One pair for each text and label.
local function pairs_of(texts, read)
  local list = {}
  options.list(texts, "zeroshot: expected a list of texts")
  for i = 1, #texts do
    local text = texts[i]
    if type(text) ~= "string" then
      error(("zeroshot: input %d is %s, expected a text"):format(i, pgee.describe(text)), 0)
    end
    for _, label in ipairs(read.labels) do
      list[#list + 1] = { text, (read.template:gsub("{}", function() return label end)) }
    end
  end
  return list
end

-- The score of each label of one text. list[first + 1] and so on: the logits of its pairs, one for each label.
local function judge(list, first, read, entails, contradicts)
  local entailments = {}
  for l = 1, #read.labels do
    local logits = list[first + l]
    if read.multi or #read.labels == 1 then
      entailments[l] = scores.softmax({ logits[contradicts], logits[entails] })[2]
    else
      entailments[l] = logits[entails]
    end
  end
  return (read.multi or #read.labels == 1) and entailments or scores.softmax(entailments)
end

-- The `count` best labels and their scores, best first.
local function sorted(labels, list, count)
  local order, answer = {}, { labels = {}, scores = {} }
  for i = 1, #labels do
    order[i] = i
  end
  table.sort(order, function(a, b)
    if list[a] ~= list[b] then
      return list[a] > list[b]
    end
    return a < b
  end)
  for i = 1, math.min(count or #order, #order) do
    answer.labels[i], answer.scores[i] = labels[order[i]], list[order[i]]
  end
  return answer
end

--- model:zeroshot(texts, { labels = { ... }, ... }): for each text { labels = best first, scores = }. One text (not in a list)
-- gives one answer. Second result: the batch, which has one pair for each text and label. An entry of its `truncated` and
-- `windows` has the index of the text, `input`, and of the label, `label`. Options:
--   labels     the labels to choose from, a list of texts; must be given
--   template   the sentence that is made of a label, with {} in its place; default "This example is {}."
--   top_k      how many labels; default all
--   multi      false (default): one label fits, and the scores add up to 1. true: each label is scored by itself, entailment
--              against contradiction
--   long       what happens to a long text: "truncate" (default), "error", "windows". Labels are never cut
--   tokens     max tokens of a sequence; default: the model's limit
--   stride     tokens that two neighbouring windows share
function zeroshot.run(encoder, given, opts)
  options.method(encoder, "zeroshot")
  local read, single = read_options(opts), type(given) == "string"
  if not single and type(given) ~= "table" then
    error(("zeroshot: expected a text or a list of texts; got %s"):format(pgee.describe(given)), 0)
  end
  encoder:runner "classify" -- errors come first if there is no such head
  local entails, contradicts = places(encoder.model.config)
  local texts = single and { given } or given
  local list, batch = classify.logits(encoder, pairs_of(texts, read), "zeroshot", inputs.how(read, {
    name = function(i)
      return ("zeroshot: input %d, label %d"):format(math.floor((i - 1) / #read.labels) + 1, (i - 1) % #read.labels + 1)
    end,
    cut = "first",
  }, "zeroshot"))
  for _, report in ipairs { batch.truncated, batch.windows } do
    for _, entry in ipairs(report) do
      entry.input, entry.label = math.floor((entry.input - 1) / #read.labels) + 1, (entry.input - 1) % #read.labels + 1
    end
  end
  local answers = {}
  for i = 1, #texts do
    answers[i] = sorted(read.labels, judge(list, (i - 1) * #read.labels, read, entails, contradicts), read.top_k)
  end
  return single and answers[1] or answers, batch
end

return zeroshot
