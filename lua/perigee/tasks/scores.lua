--- Scores: what tasks make of logits.
local scores = {}

--- Probabilities of one choice among all: a list. In double; the largest logit is taken off first.
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

--- A probability for each, on its own: a list.
function scores.sigmoid(logits)
  local p = {}
  for i = 1, #logits do
    p[i] = 1 / (1 + math.exp(-logits[i]))
  end
  return p
end

--- The place of the largest, the first of equals, and its value.
function scores.best(list)
  local best = 1
  for i = 2, #list do
    best = list[i] > list[best] and i or best
  end
  return best, list[best]
end

--- The mean of rows first to last, lists of one length, each counting as much as it has tokens; starts: a batch's.
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

--- A function of a byte offset into a text (from 0): how many characters begin before it. It counts on from the last call, so
-- offsets in order cost one pass over the text.
function scores.characters(text)
  local at, count = 0, 0
  return function(offset)
    if offset < at then
      at, count = 0, 0
    end
    for i = at + 1, offset do
      local byte = text:byte(i)
      count = count + ((byte < 0x80 or byte >= 0xC0) and 1 or 0)
    end
    at = offset
    return count
  end
end

--- A function that makes of bytes first to last (from 0, last excluded) of a text { text =, first =, last = (characters from 1,
-- both included), first_byte =, last_byte = }: text:sub(first_byte, last_byte) is the text.
function scores.spans(text)
  local characters = scores.characters(text)
  return function(from, to)
    local first = characters(from)
    return {
      text = text:sub(from + 1, to), first = first + 1, last = characters(to), first_byte = from + 1, last_byte = to,
    }
  end
end

return scores
