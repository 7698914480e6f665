--- fill_mask: the pieces of the vocabulary that fit in the place of each mask of a text (Devlin et al. 2019, masked language
-- model).
--
-- The head gives each mask one logit for every piece of the vocabulary. A piece's score is the softmax of these logits. Each mask
-- is scored by itself, as in the fill-mask pipeline of transformers.
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local scores = require "perigee.tasks.scores"
local windows = require "perigee.run.windows"

local fill_mask = {
  doc = "for each mask of a text the pieces of the vocabulary that fit best",
  forms = { "text", "pair", "ids" },
  architectures = { "ForMaskedLM", "ForPreTraining" },
  head = { outputs = function(model) return { logits = { "marked", model.vocabulary } } end, optional = true },
}

---- Masks -------------------------------------------------------------------------------------------------------------

-- The positions of masks in an encoding.
local function masks_of(e, mask)
  local list = {}
  for i = 1, #e.ids do
    list[#list + 1] = e.ids[i] == mask and i or nil
  end
  return list
end

-- Adds the masks of one input to `marks`, each as { input =, token = its position in the batch, encoding =, place = its position
-- in the encoding }. If a mask is in several windows, it is added once, from the window in which it has most context. first,
-- last: the input's sequences. Returns how many masks were added.
local function add_masks(marks, batch, mask, input, first, last)
  local parts, before = {}, #marks
  for s = first, last do
    parts[#parts + 1] = batch.parts[s] or nil
  end
  for s = first, last do
    local part = parts[s - first + 1]
    for token = batch.starts[s - 1], batch.starts[s] - 1 do
      local place = part and windows.source(part, token - batch.starts[s - 1])
      if batch.ids[token] == mask and (not part or windows.widest(parts, place) == s - first + 1) then
        marks[#marks + 1] = { input = input, token = token, encoding = part and part.encoding, place = place }
      end
    end
  end
  return #marks - before
end

local function find_masks(batch, tokenizer)
  local marks, mask, whole = {}, tokenizer.mask, {}
  for _, cut in ipairs(batch.truncated) do
    whole[cut.input] = true
  end
  for input, first, last in batch:groups() do
    local found = add_masks(marks, batch, mask, input, first, last)
    local all, part = found, batch.parts[first]
    if whole[input] then
      all = #masks_of(tokenizer:encode(part.encoding.texts[1], part.encoding.texts[2]), mask)
    end
    if found == 0 and all == 0 then
      error(("fill_mask: input %d has no %s"):format(input, tokenizer:piece(mask)), 0)
    elseif found < all then
      error(('fill_mask: input %d: %d of %d masks lie beyond the limit; long = "windows" finds them all'):format(input,
        all - found, all), 0)
    end
  end
  return marks
end

---- Pieces ------------------------------------------------------------------------------------------------------------

-- The `count` largest of V logits with their probabilities among all V, as { token =, score = }, best first. among: a list of
-- tokens, to choose among these alone; nil: all.
local function best_of(logits, V, count, among)
  local most, sum, best = -math.huge, 0, scores.keep(count)
  for v = 0, V - 1 do
    most = math.max(most, logits[v])
  end
  for v = 0, V - 1 do
    sum = sum + math.exp(logits[v] - most)
  end
  for k = 1, among and #among or V do
    local v = among and among[k] or k - 1
    if logits[v] > best.min then
      best:put { token = v, key = v, value = logits[v] }
    end
  end
  local list = best:sorted()
  for i, item in ipairs(list) do
    list[i] = { token = item.token, score = math.exp(item.value - most) / sum }
  end
  return list
end

-- Whether a piece continues the word before it; and, of a WordPiece, the piece without its prefix. In a WordPiece vocabulary, a
-- piece with the prefix ("##ing") continues a word. In other vocabularies, pieces that begin a word are marked: by
-- SentencePiece's U+2581, or by the letter that GPT-2 writes for a space.
local function goes_on(tokenizer, piece)
  local prefix = tokenizer.prefix
  if prefix then
    return #piece > #prefix and piece:sub(1, #prefix) == prefix, piece:sub(#prefix + 1)
  end
  return piece:sub(1, 3) ~= "\226\150\129" and piece:sub(1, 2) ~= "\196\160"
end

-- The text with a piece in place of the mask, which is at bytes `from` (from 0) to `to` (excluded).
local function filled(tokenizer, text, from, to, token)
  local piece = tokenizer:piece(token)
  local joins, rest = goes_on(tokenizer, piece)
  local word = joins and rest or tokenizer:decode({ token }):gsub("^ ", "")
  word = word ~= "" and word or piece
  local before = text:sub(1, from)
  if joins then
    before = before:gsub("%s+$", "")
  elseif text:find("^%s", from + 1) then
    before = before .. " "
  end
  return before .. word .. text:sub(to + 1)
end

local function describe(tokenizer, mark, list)
  local e = mark.encoding
  for _, item in ipairs(list) do
    item.piece = tokenizer:piece(item.token)
    if e then
      local offset = e.offsets[mark.place]
      item.text = item.piece and filled(tokenizer, e.texts[e.sequences[mark.place]], offset[1], offset[2], item.token)
    end
  end
  return list
end

---- The task ----------------------------------------------------------------------------------------------------------

-- The token ids of a list of pieces, nil for nil. V: how many tokens the model has logits for.
local function tokens_of(tokenizer, list, V)
  local tokens = list and {}
  for i, piece in ipairs(list or {}) do
    tokens[i] = tokenizer:id(piece)
      or error(("fill_mask: targets[%d] is %q, which is no piece of the vocabulary"):format(i, piece), 0)
    if tokens[i] >= V then
      error(("fill_mask: targets[%d] is %q, the token %d, but the model has logits for tokens 0 to %d"):format(i, piece,
        tokens[i], V - 1), 0)
    end
  end
  return tokens
end

--- The options of fill_mask, for options.read.
fill_mask.options = inputs.options {
  top_k = { "integer", 1, default = 5, help = scores.TOP_K },
  targets = { "texts", help = "Only these pieces of the vocabulary" },
}

--- model:fill_mask(texts, options): for each mask of a text, in order, a list of { token =, piece =, score =, text = the text
-- with the piece in the mask's place }, best first. One text (not in a list) gives one list of masks. If the input is { ids = },
-- the answers have no `text`. A text without a mask is an error. Second result: the batch. Options:
--   top_k     how many pieces for each mask; default 5
--   targets   a list of pieces: only these are answers. Their scores are still probabilities among all pieces
--   long      what happens to a long text: "truncate" (default; it is an error if a mask is cut off); "error"; "windows"
--   tokens    max tokens of a sequence; default: the model's limit
--   stride    tokens that two neighbouring windows share
function fill_mask.run(encoder, given, opts)
  options.method(encoder, "fill_mask")
  local read = options.read(opts, fill_mask.options, "fill_mask")
  local model = encoder.model
  local V = encoder:runner("fill_mask"):width("logits", "fill_mask")
  local tokenizer = model:tokenizer()
  if not tokenizer.mask then
    error("fill_mask: the tokenizer has no mask token; expected the tokenizer of a masked language model", 0)
  end
  local targets = tokens_of(tokenizer, read.targets, V)
  local batch = inputs.batch(model, given, "fill_mask", inputs.how(read, { forms = fill_mask.forms, keep = true }, "fill_mask"))
  local marks, rows, list = find_masks(batch, tokenizer), {}, {}
  for i, mark in ipairs(marks) do
    rows[i] = mark.token
  end
  encoder:runner("fill_mask"):run(batch:mark(rows), function(output, _, _, _, before)
    local logits = output "logits"
    local numbers = logits:numbers(nil, V)
    for r = 0, #logits - 1 do
      local mark = marks[before + r + 1]
      list[mark.input] = list[mark.input] or {}
      table.insert(list[mark.input], describe(tokenizer, mark, best_of(numbers + r * V, V, read.top_k, targets)))
    end
    logits:release()
  end)
  return batch.single and list[1] or list, batch
end

return fill_mask
