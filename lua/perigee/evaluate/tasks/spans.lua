--- Tasks whose answers are parts of texts: qa, ner.
local entities = require "perigee.evaluate.entities"
local metrics = require "perigee.evaluate.metrics"
local shared = require "perigee.evaluate.tasks.shared"
local squad = require "perigee.evaluate.squad"

local differ, map, need = shared.differ, shared.map, shared.need

local tasks = {}

-- The options of each task. help: what the recipe evaluate.lua says about one.
local OPTIONS = {
  qa = {
    language = { "text", help = "Compare answers as MLQA does for that language, such as de. Default: as SQuAD does" },
    tokens = { "integer", 2, help = "Tokens of a window. Default: 384" },
    stride = { "integer", 0, help = "Tokens that two windows have in common. Default: 128" },
    longest = { "integer", 1, help = "Most tokens of an answer. Default: 30" },
  },
  ner = {
    strict = { "flag", help = "Entities as in strict IOB2: only B- opens one" },
    aggregation = {
      "choice", { first = true, average = true, max = true }, help = "Which of a word's tokens decide. Default: first",
    },
  },
}

--- Answers to questions: SQuAD's F1 and exact match. The answer has the best sum of logits over windows of 384 tokens with a
-- stride of 128, and at most 30 tokens. If the file has questions without an answer, "no answer" is a possible answer. options:
-- language, tokens, stride, longest.
function tasks.qa(set, _, opts)
  need(set, "qa", "qa")
  local unanswered = false
  for _, references in ipairs(set.labels) do
    unanswered = unanswered or #references == 0
  end
  local how = {
    by = "logits", tokens = opts.tokens, stride = opts.stride, longest = opts.longest, no_answer = unanswered,
  }
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:qa(units, how), function(answer) return answer.answer end)
    end,
    metrics = function(answers)
      local exact, f1 = {}, {}
      for i, answer in ipairs(answers) do
        exact[i], f1[i] = squad.compare(answer, set.labels[i], opts.language)
      end
      return { { "F1", metrics.mean(f1) }, { "exact match", metrics.mean(exact) } }
    end,
    changed = differ,
  }
end

local function same_tags(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

--- A tag for each word: F1, precision and recall of entities over all sentences together, and the accuracy of tags. options:
-- strict (entities as in seqeval's strict IOB2), aggregation (of a word's tokens: "first").
function tasks.ner(set, _, opts)
  need(set, "ner", "tags")
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:ner(units, { aggregation = opts.aggregation, long = "windows" }), function(words)
        return map(words, function(word) return word.label end)
      end)
    end,
    metrics = function(answers)
      local right, answered, there, tags, same = {}, {}, {}, {}, {}
      for i, answer in ipairs(answers) do
        right[i], answered[i], there[i] = entities.count(answer, set.labels[i], opts.strict)
        tags[i], same[i] = #answer, 0
        for w, tag in ipairs(answer) do
          same[i] = same[i] + (tag == set.labels[i][w] and 1 or 0)
        end
      end
      local precision, recall, f1 = metrics.found(right, answered, there)
      return {
        { "entity F1", f1 }, { "precision", precision }, { "recall", recall }, { "tags", (metrics.found(same, tags, tags)) },
      }
    end,
    changed = function(a, b) return not same_tags(a, b) end,
  }
end

return { jobs = tasks, options = OPTIONS }
