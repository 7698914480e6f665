--- Windows: cuts a text that is longer than a model takes into several sequences that overlap.
--
-- One of the texts of an encoding (what a tokenizer's encode returns, not truncated) is cut. Each window has a part of this
-- text's tokens. The special tokens and the other text are whole in every window, so that a window looks like a whole input to
-- the model. As in transformers, a window begins `stride` tokens before the end of the one before it.
--
-- A window is a table: encoding; from, to = the tokens of the encoding that it has of the cut text; head, tail = how many tokens
-- it has before and after these. windows.source says which token of the encoding is at a position of the window.
local windows = {}

-- The first and the last token of a text of the encoding; nil if it has none. All tokens between them are the text's, too.
local function run_of(e, text)
  local first, last
  for i = 1, #e.ids do
    if e.sequences[i] == text then
      first, last = first or i, i
    end
  end
  return first, last
end

--- The number of tokens of text 1 or 2 of an encoding.
function windows.length(e, text)
  local first, last = run_of(e, text)
  return first and last - first + 1 or 0
end

--- Which text "longest", "first" or "second" means: 1 or 2. If both are equally long, "longest" is the first one.
function windows.text(e, which)
  if which == "longest" then
    return windows.length(e, 2) > windows.length(e, 1) and 2 or 1
  end
  return which == "second" and 2 or 1
end

--- The encoding as one window.
function windows.whole(e)
  return { encoding = e, head = 0, from = 1, to = #e.ids, tail = 0 }
end

--- Cuts text 1 or 2 of an encoding into windows of at most `limit` tokens, in the order of the text.
--   stride   tokens that a window shares with the one before it; it is reduced to half of the text's tokens in a window if
--            larger
--   how      { fixed = how many tokens at the text's beginning every window repeats (a prompt), left = true: the first window
--            may be short and the last one is full; otherwise the last window may be short and the first one is full }; nil:
--            neither
-- Returns the list of windows and the stride. If a window has no place for a token of the text, or the text has no token to
-- cut, it returns nil and the number of places for the text's tokens (0 or less).
function windows.cut(e, text, limit, stride, how)
  local first, last = run_of(e, text)
  first = first and first + (how and how.fixed or 0)
  if not first or first > last then
    return nil, 0
  end
  local head, tail = first - 1, #e.ids - last
  local room = limit - head - tail
  if room < 1 then
    return nil, room
  end
  stride = math.min(stride, math.floor(room / 2))
  local step, count = room - stride, 1
  if last - first + 1 > room then
    count = 1 + math.ceil((last - first + 1 - room) / step)
  end
  local list, shift = {}, 0
  if how and how.left then
    shift = math.min(last - first + 1 - room - (count - 1) * step, 0) -- the first window is short by so much
  end
  for k = 1, count do
    local from = first + shift + (k - 1) * step
    list[k] = { encoding = e, head = head, from = math.max(from, first), to = math.min(from + room - 1, last), tail = tail }
  end
  return list, stride
end

--- The number of tokens of a window.
function windows.size(window)
  return window.head + window.to - window.from + 1 + window.tail
end

--- The token of the encoding (from 1) that is at a position (from 0) of the window.
function windows.source(window, position)
  local e, inside = window.encoding, position - window.head
  if inside < 0 then
    return position + 1
  elseif inside <= window.to - window.from then
    return window.from + inside
  end
  return #e.ids - windows.size(window) + position + 1
end

--- The index of the window in which token `i` of the encoding has most context: the window in which the distance from the token
-- to the nearer end of the cut text is largest. list: the windows over one text. Of equal windows, and for a token that every
-- window has, the first window.
function windows.widest(list, i)
  local first, best, most = list[1], 1, nil
  local step = #list > 1 and math.max(list[2].from - first.from, list[2].to - first.to) or 1
  local from = math.max(math.ceil((i - first.to) / step) + 1, 1) -- windows before this one have ended
  for k = from, #list do
    local window = list[k]
    if i < window.from then
      break
    elseif i <= window.to then
      local context = math.min(i - window.from, window.to - i)
      if not most or context > most then
        best, most = k, context
      end
    end
  end
  return best
end

return windows
