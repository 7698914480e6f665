--- kept_texts: the first texts of calibration, as token ids, with the last hidden states of FP32. The output of an INT8
-- model is judged by these texts without running FP32 again.
local ffi = require "ffi"
local tensor = require "perigee.tensor"

local Kept = {}
Kept.__index = Kept

local TEXTS, TOKENS = 16, 2048 -- at most so many are kept

--- An empty collection.
function Kept.new()
  return setmetatable({ inputs = {}, tokens = 0, rows = {}, open = true }, Kept)
end

local function ids_of(batch, i)
  local ids, types = {}, {}
  for t = batch.starts[i], batch.starts[i + 1] - 1 do
    ids[#ids + 1], types[#types + 1] = batch.ids[t], batch.types[t]
  end
  return { ids = ids, types = types }
end

--- Takes sequences of a batch, in order, until there is no room. The first sequence always has room. Returns the number of tokens
-- taken.
function Kept:take(batch)
  local before = self.tokens
  for i = 0, batch.n - 1 do
    local length = batch.starts[i + 1] - batch.starts[i]
    self.open = self.open and #self.inputs < TEXTS and (self.tokens == 0 or self.tokens + length <= TOKENS)
    if not self.open then
      break
    end
    table.insert(self.inputs, ids_of(batch, i))
    self.tokens = self.tokens + length
  end
  return self.tokens - before
end

--- Adds hidden states of a batch, F32 [rows][H], of which the batch's first `wanted` rows are kept. token: how many rows of the
-- batch came before.
function Kept:add(hidden, token, wanted)
  local count = math.min(#hidden, wanted - token)
  if count > 0 then
    local view = hidden:rows(1, count)
    table.insert(self.rows, view:copy())
    view:release()
  end
end

--- Ends the collection. Returns { inputs =, tokens =, hidden = F32 [tokens][H] }.
function Kept:close()
  local H = self.rows[1].shape[2]
  local hidden, at = tensor.new("F32", { self.tokens, H }), 0
  local to = hidden:pointer()
  for _, rows in ipairs(self.rows) do
    ffi.copy(to + at * H, (rows:pointer()), #rows * H * 4)
    at = at + #rows
  end
  self:release()
  return { inputs = self.inputs, tokens = self.tokens, hidden = hidden }
end

--- Frees the hidden states that were added.
function Kept:release()
  for _, rows in ipairs(self.rows) do
    rows:release()
  end
  self.rows = {}
end

return Kept
