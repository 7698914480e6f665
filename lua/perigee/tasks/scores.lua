--- Scores: functions that several tasks use to make probabilities, best lists and places in a text from logits.
local utf8 = require "perigee.base.utf8"
local scores = {}

--- Help texts for options that several tasks have.
scores.TOP_K = "How many answers, best first. Default: of rerank and zeroshot all, of fill_mask 5, else 1"
scores.THRESHOLD = "Only answers with at least this score"

--- The softmax of a list of logits: a list of probabilities whose sum is 1. It is computed in double precision, and the largest
-- logit is subtracted first, so that exp cannot overflow.
function scores.softmax(logits)
  local most, sum, p = -math.huge, 0, {}
  for i = 1, #logits do
    most = math.max(most, logits[i])
  end
  for i = 1, #logits do
    p[i] = math.exp(logits[i] - most)
    sum = sum + p[i]
  end
  for i = 1, #p do
    p[i] = p[i] / sum
  end
  return p
end

--- The sigmoid of each logit of a list: a list of independent probabilities.
function scores.sigmoid(logits)
  local p = {}
  for i = 1, #logits do
    p[i] = 1 / (1 + math.exp(-logits[i]))
  end
  return p
end

--- The index of the largest entry of a list (the first one of equal entries), and its value.
function scores.best(list)
  local best = 1
  for i = 2, #list do
    best = list[i] > list[best] and i or best
  end
  return best, list[best]
end

--- Returns an object that keeps the `count` items with the largest values.
--   best:put { value =, key = }   adds an item. The caller may skip an item whose value is not larger than best.min
--   best:sorted()                 returns the list of at most `count` items, largest value first. Of items with equal values the
--                                 one that was put first comes first. Of items with the same `key` only the best one is in the
--                                 list; items without a key are all different.
-- The time is at most that of sorting all items, however large `count` is.
function scores.keep(count)
  local best, list = { min = -math.huge }, {}
  local function before(a, b)
    if a.value ~= b.value then
      return a.value > b.value
    end
    return a.order < b.order
  end
  function best:sorted()
    table.sort(list, before)
    local kept, seen = {}, {}
    for _, item in ipairs(list) do
      if #kept < count and not (item.key and seen[item.key]) then
        kept[#kept + 1] = item
        seen[item.key or item] = true
      end
    end
    self.min = #kept == count and kept[count].value or self.min
    list = kept
    return kept
  end
  local puts = 0
  function best:put(item)
    puts = puts + 1
    item.order, list[#list + 1] = puts, item
    if #list >= 2 * count + 16 then
      self:sorted()
    end
  end
  return best
end

--- The mean of rows `first` to `last`, lists of one length. A row's weight is the number of tokens of its sequence. starts: the
-- batch's `starts`.
function scores.mean(rows, first, last, starts)
  local mean, all = {}, starts[last] - starts[first - 1]
  for k = 1, #rows[first] do
    local sum = 0
    for s = first, last do
      sum = sum + rows[s][k] * (starts[s] - starts[s - 1])
    end
    mean[k] = sum / all
  end
  return mean
end

-- The text with "?" for each byte that is not UTF-8: tokenizers count such a byte as one character.
local function well_formed(text)
  return utf8.repair(text, "?")
end

-- The number of characters that begin in bytes `first` to `last` (from 1) of a text.
local function beginnings(text, first, last)
  local count = 0
  for i = first, last do
    local byte = text:byte(i)
    count = count + ((byte < 0x80 or byte >= 0xC0) and 1 or 0)
  end
  return count
end

--- Returns a function of a byte offset into a text (from 0) that returns how many characters begin before the offset. Offsets may
-- come in any order. All calls together read the text once, and each call reads less than `step` bytes more.
function scores.characters(text)
  local step, before, known = 64, { [0] = 0 }, 0 -- before[k]: characters before byte k * step
  text = well_formed(text)
  return function(offset)
    local k = math.floor(offset / step)
    for block = known + 1, k do
      before[block] = before[block - 1] + beginnings(text, (block - 1) * step + 1, block * step)
    end
    known = math.max(known, k)
    return before[k] + beginnings(text, k * step + 1, offset)
  end
end

--- Returns a function of first and last, two byte positions in `text` (from 0, last excluded). It describes the text between
-- them:
--   text                    this text, equal to text:sub(first_byte, last_byte)
--   start, end              its characters (Unicode code points) from 0, end excluded, as other libraries count
--   first, last             the same characters from 1, both included
--   first_byte, last_byte   its bytes from 1, both included
-- A byte that is not part of valid UTF-8 counts as a character.
function scores.spans(text)
  local characters = scores.characters(text)
  return function(from, to)
    local first, last = characters(from), characters(to)
    return {
      text = text:sub(from + 1, to), start = first, ["end"] = last, first = first + 1, last = last, first_byte = from + 1,
      last_byte = to,
    }
  end
end

return scores
