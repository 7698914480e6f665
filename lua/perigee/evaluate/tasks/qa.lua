--- How qa is judged: by questions with contexts and answers.
local metrics = require "perigee.evaluate.metrics"
local shared = require "perigee.evaluate.tasks.shared"
local squad = require "perigee.evaluate.squad"

local differ, map, need = shared.differ, shared.map, shared.need

local OPTIONS = {
  language = { "text", help = "Compare answers as MLQA does for that language, such as de. Default: as SQuAD does" },
  tokens = { "integer", 2, help = "Max tokens of a window. Default: 384" },
  stride = { "integer", 0, help = "Tokens that two neighbouring windows share. Default: 128" },
  longest = { "integer", 1, help = "Max tokens of an answer. Default: 30" },
}

-- Metrics: SQuAD's F1 and exact match. As in SQuAD's reference program, the answer is the one with the largest sum of logits over
-- all windows. If the file has questions without an answer, "no answer" is a possible answer. options: language, tokens, stride,
-- longest.
local function qa(set, _, opts)
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

return { qa = { run = qa, options = OPTIONS, kind = "qa" } }
