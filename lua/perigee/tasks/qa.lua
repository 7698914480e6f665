--- qa: the answer to a question as a part of a context (SQuAD, Rajpurkar et al. 2016; "no answer": Rajpurkar et al. 2018).
--
-- The head gives each token two logits: one for the beginning of the answer, one for its end. Question and context are one
-- pair. A long context is cut into several windows (Devlin et al. 2019). In each window, a softmax makes probabilities of the
-- logits of the context's tokens and of the first token, which stands for "no answer". A span's score is the probability that
-- its first token begins the answer times the probability that its last token ends it, as in the question-answering pipeline of
-- transformers 4. If several windows have the same span, the best of its scores counts. The last releases of transformers 4 add
-- up the scores of equal texts instead.
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local scores = require "perigee.tasks.scores"
local windows = require "perigee.run.windows"

local qa = {
  doc = "the answer to a question as a part of a context",
  forms = { "question" }, pair = { "question", "context" },
  architectures = { "ForQuestionAnswering" },
  head = { outputs = function() return { logits = { "tokens", 2 } } end },
  evaluate = "perigee.evaluate.tasks.qa",
}

---- Options -----------------------------------------------------------------------------------------------------------

local BY = { probability = true, logits = true }

--- The options of qa, for options.read.
qa.options = inputs.options {
  top_k = { "integer", 1, default = 1, help = scores.TOP_K },
  longest = { "integer", 1, default = 30, help = "Max tokens of an answer. Default: 30" },
  no_answer = { "flag", default = false, help = "\"No answer\" is one of the answers" },
  whole_words = { "flag", default = false, help = "Answers begin and end with words, not with pieces of them" },
  by = { "choice", BY, default = "probability", help = "Value that orders the answers of several windows. Default: probability" },
}

---- One window --------------------------------------------------------------------------------------------------------

-- The logarithm of the sum of exp(logits[2 t]) over the context's tokens and the first token. head: the context's first token;
-- count: how many tokens it has.
local function log_sum(logits, head, count)
  local most = logits[0]
  for t = head, head + count - 1 do
    most = math.max(most, logits[2 * t])
  end
  local sum = math.exp(logits[0] - most)
  for t = head, head + count - 1 do
    sum = sum + math.exp(logits[2 * t] - most)
  end
  return most + math.log(sum)
end

-- The bytes of the context that tokens i to j of an encoding cover: from (from 0) and to (excluded). ends: what word_ends
-- returned, to extend the range to whole words; nil: no.
local function bytes_of(e, i, j, ends)
  if ends then
    return ends.first[e.words[i]], ends.last[e.words[j]]
  end
  return e.offsets[i][1], e.offsets[j][2]
end

-- The byte at which each word of the context begins and the byte behind it: { first = { [word] = }, last = { [word] = } }.
local function word_ends(e)
  local ends = { first = {}, last = {} }
  for i, word in pairs(e.words) do
    if e.sequences[i] == 2 then
      local offset = e.offsets[i]
      ends.first[word] = math.min(ends.first[word] or offset[1], offset[1])
      ends.last[word] = math.max(ends.last[word] or offset[2], offset[2])
    end
  end
  return ends
end

-- Puts every possible answer of one window into `best`. logits: [tokens][2] of the window, an array. Returns two numbers: the sum
-- of the two logits of "no answer"; and the number that is subtracted from a sum of two logits to make it the logarithm of a
-- probability.
local function search(best, window, logits, read, ends)
  local e, head, count = window.encoding, window.head, window.to - window.from + 1
  local probability = log_sum(logits, head, count) + log_sum(logits + 1, head, count)
  for i = 0, count - 1 do
    local start = logits[2 * (head + i)]
    for j = i, math.min(i + read.longest, count) - 1 do
      local sum = start + logits[2 * (head + j) + 1]
      local value = read.by == "probability" and sum - probability or sum
      if value > best.min then
        local from, to = bytes_of(e, window.from + i, window.from + j, ends)
        best:put { from = from, to = to, key = from * 2 ^ 26 + to, value = value, sum = sum, log = sum - probability }
      end
    end
  end
  return logits[0] + logits[1], probability
end

---- An input ----------------------------------------------------------------------------------------------------------

-- The answer "no answer". null: { log =, sum =, value = } of the window in which it is least likely. The score is 0 if no window
-- has a token of the context.
local function null_answer(null)
  return { answer = "", start = 0, ["end"] = 0, score = math.exp(null.log), logits = null.sum, value = null.value }
end

-- Unicode's white space in UTF-8.
local SPACES = {
  "%s+", "\194[\133\160]", "\225\154\128", "\226\128[\128-\138\168\169\175]", "\226\129\159", "\227\128\128",
}

-- Whether a text is empty or has only white space, that of Unicode included.
local function is_blank(text)
  for _, space in ipairs(SPACES) do
    text = text:gsub(space, "")
  end
  return text == ""
end

local function answer_of(candidate, spans)
  local answer = spans(candidate.from, candidate.to)
  answer.answer, answer.text = answer.text, nil
  answer.score, answer.logits, answer.value = math.exp(candidate.log), candidate.sum, candidate.value
  return answer
end

-- Inserts "no answer" into a list of answers, before the first answer with a smaller value.
local function insert_null(list, null)
  local at = 1
  while at <= #list and list[at].value >= null.value do
    at = at + 1
  end
  table.insert(list, at, null)
end

-- The window over the context's tokens: the part itself if the input was cut; if the whole input fits in one sequence, a window
-- that is made here. nil if the context has no token.
local function of_context(part)
  if #part.encoding.ids > part.to - part.from + 1 then
    return part
  end
  local list = windows.cut(part.encoding, 2, #part.encoding.ids, 0)
  return list and list[1]
end

-- The answers to one question. first, last: its sequences in the batch; logits: [T][2] of the batch, an array.
local function answers(batch, logits, first, last, read)
  local e, best = batch.parts[first].encoding, scores.keep(read.top_k)
  local ends, null = read.whole_words and word_ends(e) or nil, { log = -math.huge, value = math.huge }
  local blank = not e.texts[2]:find "[%w%p]" and is_blank(e.texts[2])
  for s = first, last do
    local window, at = of_context(batch.parts[s]), logits + 2 * batch.starts[s - 1]
    if window and not blank then
      local sum, probability = search(best, window, at, read, ends)
      local value = read.by == "probability" and sum - probability or sum
      if value < null.value then
        null = { sum = sum, log = sum - probability, value = value }
      end
    end
  end
  local spans, found = scores.spans(e.texts[2]), {}
  for i, candidate in ipairs(best:sorted()) do
    found[i] = answer_of(candidate, spans)
  end
  if read.no_answer or #found == 0 then
    insert_null(found, null_answer(null))
    found[read.top_k + 1] = nil
  end
  for _, answer in ipairs(found) do
    answer.value = nil
  end
  return read.top_k == 1 and found[1] or found
end

--- model:qa({ question =, context = }, options): { answer =, score =, logits = sum of the two logits, start =, end = (characters
-- of the context from 0, end excluded), first =, last = (the same from 1, both included), first_byte =, last_byte = }; of a list
-- of inputs, a list. A character is a Unicode code point. "No answer" is the answer "" with start and end 0 and without the other
-- places. A context that is empty or has only spaces has no answer: its score is 0, and it has no logits. Options:
--   top_k        how many answers, best first; default 1. If more than 1, each input has
--                a list of answers
--   tokens       max tokens of a window, the question included; default 384, or the model's limit if that is less
--   stride       tokens that two neighbouring windows share; default 128
--   longest      max tokens of an answer; default 30
--   no_answer    whether "no answer" is one of the answers; false
--   whole_words  whether answers begin and end with words, not pieces of them; false
--   by           the value that orders the answers of several windows: "probability" (default), or "logits", the sum of the two
--                logits
--   long         what happens to a long context: "windows" (default), "truncate", "error"
function qa.run(encoder, given, opts)
  options.method(encoder, "qa")
  local read = options.read(opts, qa.options, "qa")
  local parts, batch = encoder:gather("qa", given, "qa", inputs.how(read, { forms = qa.forms, keep = true }, "qa"))
  local list, logits = {}, parts.logits:numbers(batch.T, 2)
  for input, first, last in batch:groups() do
    list[input] = answers(batch, logits, first, last, read)
  end
  parts.logits:release()
  return batch.single and list[1] or list, batch
end

return qa
