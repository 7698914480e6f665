--- Batch: token ids of many sequences, one sequence after another without padding, as models run them; and which inputs the
-- sequences are made of.
--
-- Fields:
--   n, T       how many sequences and how many tokens
--   starts     sequence i (from 1) has the tokens starts[i - 1] (from 0) to starts[i] - 1. An array of C, as are ids and types
--   ids, types the tokens' ids and types
--   count      how many inputs. n is larger if an input was cut into several windows
--   of         of[i]: the input that sequence i belongs to
--   single     whether one input was given, not a list
--   truncated  the inputs that were truncated: { { input =, dropped = tokens, where = }... }
--   windows    the inputs that were cut into several windows: { { input =, windows = how many, stride =, where = }... }
--   parts      with the option `keep`: parts[i] is the window (run/windows.lua) that sequence i is; false of an input of ids
--   R, rows    how many tokens are marked (batch:mark), and their positions in the batch, ascending
local ffi = require "ffi"
local options = require "perigee.options"
local windows = require "perigee.run.windows"

local Batch = {}
Batch.__index = Batch

function Batch:__tostring()
  local function also(list, what)
    return #list > 0 and (", %d %s"):format(#list, what) or ""
  end
  return ("batch of %d inputs, %d tokens%s%s"):format(self.count, self.T, also(self.truncated, "truncated"),
    also(self.windows, "in windows"))
end

local int32s = ffi.typeof "int32_t[?]"

--- The values of the option `long`: what happens to an input that has too many tokens.
Batch.LONG = { truncate = true, error = true, windows = true }

--- The values of the option `truncation_side`: the side on which a long text is cut off.
Batch.SIDES = { left = true, right = true }

local CUT = { longest = true, first = true, second = true }

--- An empty batch for a model. opts:
--   long     "truncate" (default), "error" or "windows" (default for questions)
--   cut      which text of a pair is cut: "longest" (the tokens are taken one by one from the text that is longer then, as
--            tokenizers does), "first" or "second"
--   truncation_side   the side on which a text is cut off: "right" (its end) or "left" (its beginning); default: as the
--                     tokenizer's files say. If a text is cut into windows, the window on this side may be the short one
--   tokens   max tokens of a sequence; default: the model's limit
--   stride   tokens that two neighbouring windows share; default 128, but at most a quarter of `tokens`
--   keep     true: the batch has `parts`
--   prompt   a text to put before every text
-- Questions are cut into windows of 384 tokens with a stride of 128 unless the options say otherwise.
function Batch.new(model, opts)
  opts = opts or {}
  return setmetatable({
    model = model, -- limit, positions, vocabulary, types, tokenizer()
    long = opts.long ~= nil and options.choice(opts.long, Batch.LONG, "long") or nil,
    cut = options.choice(opts.cut or "longest", CUT, "cut"),
    limit = math.min(options.integer(opts.tokens, 2, 2 ^ 31 - 1, "tokens") or model.limit, model.limit),
    side = opts.truncation_side and options.choice(opts.truncation_side, Batch.SIDES, "truncation_side") or nil,
    tokens = opts.tokens, stride = options.integer(opts.stride, 0, 2 ^ 31 - 1, "stride"),
    keep = opts.keep, prompt = opts.prompt,
    n = 0, count = 0, T = 0, longest = 0, single = false, of = {},
    starts = int32s(2), starts_room = 2,
    ids = int32s(512), types = int32s(512), room = 512,
    truncated = {}, windows = {}, parts = opts.keep and {} or nil,
    R = 0, rows = nil,
  }, Batch)
end

local function grown(array, used, room)
  local larger = int32s(room)
  ffi.copy(larger, array, used * 4)
  return larger
end

--- For run/inputs.lua: makes the arrays large enough for `count` more tokens and one more sequence.
function Batch.reserve(batch, count)
  if batch.T + count > batch.room then
    batch.room = math.max(batch.room * 2, batch.T + count)
    batch.ids, batch.types = grown(batch.ids, batch.T, batch.room), grown(batch.types, batch.T, batch.room)
  end
  if batch.n + 2 > batch.starts_room then
    batch.starts_room = batch.starts_room * 2
    batch.starts = grown(batch.starts, batch.n + 1, batch.starts_room)
  end
end

-- Raises an error if the model has no embedding for one of the last `length` tokens: a tokenizer's files may name tokens that the
-- model was not trained with.
local function check_ids(batch, length)
  local ids, vocabulary = batch.ids + batch.T, batch.model.vocabulary
  for t = 0, length - 1 do
    if ids[t] >= vocabulary then
      local piece = tostring(batch.model:tokenizer():piece(ids[t]))
      error(("the tokenizer gives '%s' the id %d, but the model has embeddings for the ids 0 to %d alone; the tokenizer's files "
        .. "name a token that the checkpoint was not trained with"):format(piece, ids[t], vocabulary - 1), 0)
    end
  end
end

--- For run/inputs.lua: makes the `length` tokens that were written behind the last sequence a sequence. part: its window.
function Batch.finish(batch, length, part)
  check_ids(batch, length)
  if batch.model.types == 1 then -- a model with one type has none for the second text
    ffi.fill(batch.types + batch.T, length * 4)
  end
  batch.n = batch.n + 1
  batch.T = batch.T + length
  batch.longest = math.max(batch.longest, length)
  batch.starts[batch.n] = batch.T
  batch.of[batch.n] = batch.count
  if batch.parts then
    batch.parts[batch.n] = part or false
  end
end

--- For run/inputs.lua: adds a window (run/windows.lua) as the next sequence.
function Batch.put(batch, window)
  local e, length = window.encoding, windows.size(window)
  batch:reserve(length)
  local ids, types = batch.ids + batch.T, batch.types + batch.T
  for t = 0, length - 1 do
    local i = windows.source(window, t)
    ids[t], types[t] = e.ids[i], e.types[i]
  end
  batch:finish(length, window)
end

--- Marks tokens. rows: the list of their positions in the batch, from 0, ascending. Returns the batch.
function Batch:mark(rows)
  self.R, self.rows = #rows, int32s(#rows, rows)
  return self
end

--- Iterates over chunks of sequences: for first, last in batch:chunks(budget) do. A chunk has the sequences first to last (from
-- 0, last excluded). It has at most `budget` tokens, or it is one sequence that is longer than that.
function Batch:chunks(budget)
  local first = 0
  return function()
    if first >= self.n then
      return nil
    end
    local from, last = first, first + 1
    while last < self.n and self.starts[last + 1] - self.starts[from] <= budget do
      last = last + 1
    end
    first = last
    return from, last
  end
end

--- Iterates over the inputs in order: for input, first, last in batch:groups() do. The input has the sequences first to last
-- (from 1, both included).
function Batch:groups()
  local next_sequence = 1
  return function()
    local first = next_sequence
    if first > self.n then
      return nil
    end
    while next_sequence <= self.n and self.of[next_sequence] == self.of[first] do
      next_sequence = next_sequence + 1
    end
    return self.of[first], first, next_sequence - 1
  end
end

return Batch
