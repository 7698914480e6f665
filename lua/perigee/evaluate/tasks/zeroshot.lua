--- How zeroshot is judged: by labels of texts, among which it chooses.
local shared = require "perigee.evaluate.tasks.shared"

local by_label, differ, fail, map, need = shared.by_label, shared.differ, shared.fail, shared.map, shared.need

local OPTIONS = {
  labels = { "texts", help = "Labels to choose from. Default: the file's" },
  template = { "text", help = "Sentence with {} in the place of the label. Default: 'This example is {}.'" },
}

-- The model gives each text one of the labels. options: labels (default: all labels of the file), template. Metrics: those of
-- classify.
local function zeroshot(set, _, opts)
  need(set, "zeroshot", "label")
  local labels, seen = {}, {}
  for _, label in ipairs(opts.labels or set.labels) do
    labels[#labels + 1] = not seen[label] and label or nil
    seen[label] = true
  end
  for _, label in ipairs(set.labels) do
    if not seen[label] then
      fail(set, "label %s is none of those to choose from: %s", label, table.concat(labels, ", "))
    end
  end
  return {
    units = set.texts,
    run = function(e, units)
      return map(e:zeroshot(units, { labels = labels, template = opts.template }), function(answer) return answer.labels[1] end)
    end,
    metrics = function(answers) return by_label(answers, set.labels, labels) end,
    changed = differ,
  }
end

return { zeroshot = { run = zeroshot, options = OPTIONS } }
