--- How ner is judged: by words with tags.
local entities = require "perigee.evaluate.entities"
local metrics = require "perigee.evaluate.metrics"
local shared = require "perigee.evaluate.tasks.shared"

local map, need = shared.map, shared.need

local OPTIONS = {
  strict = { "flag", help = "Entities as in strict IOB2: only B- begins one" },
  aggregation = {
    "choice", { first = true, average = true, max = true }, help = "How a word's label is made from its tokens. Default: first",
  },
}

local function same_tags(a, b)
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

-- The model gives each word a tag. Metrics: F1, precision and recall of entities over all sentences together, and the accuracy of
-- tags. options: strict (entities as in seqeval's strict IOB2), aggregation (see tasks/ner.lua; default "first").
local function ner(set, _, opts)
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

return { ner = { run = ner, options = OPTIONS, kind = "tags" } }
