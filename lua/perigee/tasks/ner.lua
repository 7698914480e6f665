--- ner: the entities that a text names, or one tag for each given word (token classification).
--
-- The head gives each token one logit for each label. Labels follow BIO: B-PER begins a person, I-PER continues a person, O is
-- outside of any entity. A label without prefix continues. `aggregation` says how tokens become entities, as in transformers'
-- token-classification pipeline:
--   none      each token that is not outside is an entity
--   simple    neighbouring tokens of one kind are one entity (default)
--   first     neighbouring words of one kind are one entity; a word's label is that of its first token
--   average   the same; a word's label is that of the mean of its tokens' probabilities
--   max       the same; a word's label is that of its token with the highest probability
-- An entity's score is the mean of its tokens' or words' scores. The unknown token is always a word by itself. If the
-- vocabulary marks continuations (WordPiece's prefix), every other token without the prefix begins a word. If the vocabulary
-- has no such prefix, a token begins a word when there is a space before it.
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local scores = require "perigee.tasks.scores"
local windows = require "perigee.run.windows"

local ner = {
  doc = "the entities that a text names, or one tag for each given word",
  forms = { "text", "words" },
  architectures = { "ForTokenClassification" },
  head = { needs = "labels", outputs = function(model) return { logits = { "tokens", #model.config.labels } } end },
  evaluate = "perigee.evaluate.tasks.ner",
}

---- Tokens ------------------------------------------------------------------------------------------------------------

-- Returns an input's encoding and the probabilities of its tokens, { [position in the encoding] = list }. Special tokens have
-- none. A token in several windows has the probabilities of the window in which it has most context. logits: [T][labels] of the
-- batch, an array; first, last: the input's sequences.
local function probabilities(batch, logits, labels, first, last)
  local parts, list = {}, {}
  for s = first, last do
    parts[#parts + 1] = batch.parts[s]
  end
  local e = parts[1].encoding
  for k, part in ipairs(parts) do
    for t = 0, windows.size(part) - 1 do
      local i = windows.source(part, t)
      if e.sequences[i] ~= 0 and (#parts == 1 or windows.widest(parts, i) == k) then
        local row, own = logits + (batch.starts[first + k - 2] + t) * labels, {}
        for l = 1, labels do
          own[l] = row[l - 1]
        end
        list[i] = scores.softmax(own)
      end
    end
  end
  return e, list
end

-- Whether token i continues the word of the token before it.
local function continues(tokenizer, e, i)
  local prefix = tokenizer.prefix
  if e.ids[i] == tokenizer.unk then
    return false
  elseif prefix then
    local piece = tokenizer:piece(e.ids[i])
    return #piece > #prefix and piece:sub(1, #prefix) == prefix
  end
  local text, from = e.texts[1], e.offsets[i][1]
  return from > 0 and text:byte(from) ~= 32 and text:byte(from + 1) ~= 32
end

-- The tokens of a text that have probabilities, as a list of { label =, score =, from =, to = (bytes), p =, token = }.
local function tokens_of(e, p, labels)
  local list = {}
  for i = 1, #e.ids do
    if p[i] then
      local best, score = scores.best(p[i])
      list[#list + 1] = {
        label = labels[best], score = score, from = e.offsets[i][1], to = e.offsets[i][2], p = p[i], token = i,
      }
    end
  end
  return list
end

---- Words -------------------------------------------------------------------------------------------------------------

-- The probabilities of a word by those of its tokens: one function for each aggregation by words.
local decide = {}

function decide.first(tokens)
  return tokens[1].p
end

function decide.max(tokens)
  local best = tokens[1]
  for _, token in ipairs(tokens) do
    best = token.score > best.score and token or best
  end
  return best.p
end

function decide.average(tokens)
  local mean = {}
  for l = 1, #tokens[1].p do
    local sum = 0
    for _, token in ipairs(tokens) do
      sum = sum + token.p[l]
    end
    mean[l] = sum / #tokens
  end
  return mean
end

-- The word that several tokens make, as { label =, score =, from =, to = }. how: a key of decide.
local function word_of(tokens, how, labels)
  local best, score = scores.best(decide[how](tokens))
  return { label = labels[best], score = score, from = tokens[1].from, to = tokens[#tokens].to }
end

-- The words of a list of tokens. continued(i): whether token i continues the word before it.
local function words_of(tokens, continued, how, labels)
  local list, word = {}, nil
  for _, token in ipairs(tokens) do
    if word and continued(token.token) then
      word[#word + 1] = token
    else
      list[#list + 1] = word and word_of(word, how, labels)
      word = { token }
    end
  end
  list[#list + 1] = word and word_of(word, how, labels)
  return list
end

---- Entities ----------------------------------------------------------------------------------------------------------

-- The kind of a label, and whether the label begins an entity: "PER", true of "B-PER".
local function kind_of(label)
  local prefix, kind = label:match "^([BI])%-(.*)$"
  return kind or label, prefix == "B"
end

-- Joins neighbouring items of one kind.
local function group(items)
  local list, open = {}, nil
  for _, item in ipairs(items) do
    local kind, begins = kind_of(item.label)
    if open and open.kind == kind and not begins then
      open.sum, open.count, open.to = open.sum + item.score, open.count + 1, item.to
    else
      open = {
        kind = kind, label = item.label:match "^[^-]*%-(.*)$" or item.label, sum = item.score, count = 1,
        from = item.from, to = item.to,
      }
      list[#list + 1] = open
    end
  end
  return list
end

-- The answer to a text: its items as entities with places in the text. read: the options.
local function entities(items, text, read)
  local list, spans, ignored = {}, scores.spans(text), {}
  for _, label in ipairs(read.ignore_labels) do
    ignored[label] = true
  end
  for _, item in ipairs(read.aggregation == "none" and items or group(items)) do
    local score = item.sum and item.sum / item.count or item.score
    if not ignored[item.label] and score >= (read.threshold or 0) then
      local entity = spans(item.from, item.to)
      entity.label, entity.score, entity.token = item.label, score, item.token
      list[#list + 1] = entity
    end
  end
  return list
end

---- Inputs ------------------------------------------------------------------------------------------------------------

-- The entities of a text.
local function of_text(model, e, p, read)
  local labels, tokenizer = model.config.labels, model:tokenizer()
  local items = tokens_of(e, p, labels)
  if decide[read.aggregation] then
    items = words_of(items, function(i) return continues(tokenizer, e, i) end, read.aggregation, labels)
  end
  return entities(items, e.texts[1], read)
end

-- One tag for each of `count` words: { label =, score = }. A word has no token if the tokenizer dropped it or truncation cut it
-- off; its tag is "O" with the score 0.
local function of_words(model, e, p, aggregation, count)
  local labels, tokens, list = model.config.labels, {}, {}
  for _, token in ipairs(tokens_of(e, p, labels)) do
    local word = e.words[token.token]
    tokens[word] = tokens[word] or {}
    table.insert(tokens[word], token)
  end
  for word = 1, count do
    local own = tokens[word] and word_of(tokens[word], aggregation, labels) or { label = "O", score = 0 }
    list[word] = { label = own.label, score = own.score }
  end
  return list
end

---- The task ----------------------------------------------------------------------------------------------------------

local AGGREGATIONS = { none = true, simple = true, first = true, average = true, max = true }

-- The labels to leave out: the list of texts that the user gave, which may be empty, or the default.
local function ignored_of(list)
  if type(list) == "table" and next(list) == nil then
    return list
  end
  return options.texts(list, "ner: ignore_labels") or { "O" }
end

-- Raises an error if an option was given that has no effect on an input of words, because each word has a tag.
local function check_words(read)
  if read.aggregation and not decide[read.aggregation] then
    error(("ner: words take the aggregation first, average or max, not %s"):format(read.aggregation), 0)
  elseif read.ignore_labels or read.threshold then
    error(("ner: %s leaves out entities of texts, but words have a tag each"):format(
      read.threshold and "threshold" or "ignore_labels"), 0)
  end
end

--- The options of ner, for options.read.
ner.options = inputs.options {
  aggregation = { "choice", AGGREGATIONS, help = "How tokens become entities. Default: simple; of words first" },
  ignore_labels = { "other", list = true, help = "Labels to leave out. Default: O" },
  threshold = { "number", 0, 1, help = scores.THRESHOLD },
}

--- model:ner(texts, options): for each text the list of its entities in order, { label =, score =, text =, start =, end =
-- (characters from 0, end excluded), first =, last = (characters from 1, both included), first_byte =, last_byte = }. A character
-- is a Unicode code point. With the aggregation "none" an entity also has `token`, its position in the encoding. For an input
-- { words = { ... } } the answer is a list of one { label =, score = } for each word. One input (not in a list) gives one such
-- list. Second result: the batch. Options:
--   aggregation    none, simple (default), first, average or max; for words as input: first (default), average or max
--   ignore_labels  labels of entities that are left out; default { "O" }; {}: none. Not for words as input
--   threshold      0 to 1: entities with a lower score are left out; default 0. Not for words as input
--   long           what happens to a long text: "truncate" (default), "error", "windows"
--   tokens         max tokens of a sequence; default: the model's limit
--   stride         tokens that two neighbouring windows share
function ner.run(encoder, given, opts)
  options.method(encoder, "ner")
  local read = options.read(opts, ner.options, "ner")
  local words = { aggregation = read.aggregation, ignore_labels = read.ignore_labels, threshold = read.threshold }
  read.ignore_labels, read.aggregation = ignored_of(read.ignore_labels), read.aggregation or "simple"
  local model = encoder.model
  local batch = inputs.batch(model, given, "ner", inputs.how(read, { forms = ner.forms, keep = true }, "ner"))
  for _, part in ipairs(batch.parts) do
    if part.encoding.list then
      check_words(words)
    end
  end
  local parts = encoder:run("ner", batch)
  local labels, list = #model.config.labels, {}
  local logits = parts.logits:numbers(batch.T, labels)
  for input, first, last in batch:groups() do
    local e, p = probabilities(batch, logits, labels, first, last)
    if e.list then
      list[input] = of_words(model, e, p, words.aggregation or "first", #e.list)
    else
      list[input] = of_text(model, e, p, read)
    end
  end
  parts.logits:release()
  return batch.single and list[1] or list, batch
end

return ner
