--- Inputs: what a user gives, as one packed batch of token ids.
--
-- An input is a text, a pair of texts { "a", "b" }, or { ids = { ... }, types = { ... } } with the special tokens in it, lists or
-- tensors.
-- Functions that take inputs take one, or a list of them. A text longer than the limit is truncated, and the batch says so;
-- ids are taken as they are, up to the positions that the model has.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local Batch = {}
Batch.__index = Batch

function Batch:__tostring()
  return ("batch of %d inputs, %d tokens%s"):format(self.n, self.T,
    #self.truncated > 0 and (", %d truncated"):format(#self.truncated) or "")
end

local int32s = ffi.typeof "int32_t[?]"

---- Growing arrays ----------------------------------------------------------------------------------------------------

local function new_batch(model)
  return setmetatable({
    model = model, -- limit, positions, vocabulary, types, tokenizer()
    n = 0, T = 0, longest = 0, single = false,
    starts = int32s(2), starts_room = 2,
    ids = int32s(512), types = int32s(512), room = 512,
    truncated = {},
  }, Batch)
end

local function grown(array, used, room)
  local larger = int32s(room)
  ffi.copy(larger, array, used * 4)
  return larger
end

-- Room for `count` more tokens and one more sequence.
local function reserve(batch, count)
  if batch.T + count > batch.room then
    batch.room = math.max(batch.room * 2, batch.T + count)
    batch.ids, batch.types = grown(batch.ids, batch.T, batch.room), grown(batch.types, batch.T, batch.room)
  end
  if batch.n + 2 > batch.starts_room then
    batch.starts_room = batch.starts_room * 2
    batch.starts = grown(batch.starts, batch.n + 1, batch.starts_room)
  end
end

local function finish(batch, length)
  batch.n = batch.n + 1
  batch.T = batch.T + length
  batch.longest = math.max(batch.longest, length)
  batch.starts[batch.n] = batch.T
end

---- One input ---------------------------------------------------------------------------------------------------------

local function fail(where, ...)
  error(("%s: "):format(where) .. string.format(...), 0)
end

local function add_text(batch, a, b, where)
  local model = batch.model
  local tokenizer = model:tokenizer()
  reserve(batch, model.limit)
  local length, dropped = tokenizer:encode_into(batch.ids + batch.T, batch.types + batch.T, model.limit, a, b)
  if dropped > 0 then
    table.insert(batch.truncated, { input = batch.n + 1, dropped = dropped, where = where })
  end
  if model.types == 1 then -- a model with one type has none for the second text
    ffi.fill(batch.types + batch.T, length * 4)
  end
  finish(batch, length)
end

local function check_integers(list, what, limit, where)
  for i = 1, #list do
    local v = tonumber(list[i])
    if not v or v % 1 ~= 0 or v < 0 or v >= limit then
      fail(where, "%s[%d] is %s, expected an integer from 0 to %d", what, i, tostring(list[i]), limit - 1)
    end
  end
end

local function add_ids(batch, input, where)
  for key in pairs(input) do
    if key ~= "ids" and key ~= "types" then
      fail(where, "unknown key %q beside ids; expected ids and types", tostring(key))
    end
  end
  local model, ids, types = batch.model, input.ids, input.types
  for name, list in pairs(input) do
    if type(list) ~= "table" and not tensor.is(list) then
      fail(where, "%s is %s, expected a list of integers", name, pgee.describe(list))
    end
  end
  if #ids < 1 or #ids > model.positions then
    fail(where, "ids has %d tokens, expected 1 to %d", #ids, model.positions)
  end
  if types and #types ~= #ids then
    fail(where, "types has %d entries, ids has %d", #types, #ids)
  end
  check_integers(ids, "ids", model.vocabulary, where)
  check_integers(types or {}, "types", model.types, where)
  reserve(batch, #ids)
  for i = 1, #ids do
    batch.ids[batch.T + i - 1] = tonumber(ids[i])
    batch.types[batch.T + i - 1] = types and tonumber(types[i]) or 0
  end
  finish(batch, #ids)
end

local function add(batch, input, where)
  if type(input) == "string" then
    return add_text(batch, input, nil, where)
  elseif type(input) == "table" and input.ids ~= nil then
    return add_ids(batch, input, where)
  elseif type(input) == "table" and #input == 2 and type(input[1]) == "string" and type(input[2]) == "string" then
    return add_text(batch, input[1], input[2], where)
  end
  error(("%s is %s, expected a text, a pair of texts { a, b }, or { ids = { ... } }"):format(where, pgee.describe(input)), 0)
end

---- Batches -----------------------------------------------------------------------------------------------------------

--- Adds one input. `where` names it in errors: "input 3".
function Batch:add(input, where)
  add(self, input, where or ("input %d"):format(self.n + 1))
end

--- Sequences first to last (from 0, last excluded) as runs of at most `budget` tokens, or one sequence where that alone is
-- longer.
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

local inputs = {}

--- An empty batch for a model.
inputs.new = new_batch

--- All inputs as one batch. Its `single` tells that one input was given, not a list.
function inputs.batch(model, given, what)
  local batch = new_batch(model)
  local single = type(given) == "string" or (type(given) == "table" and given.ids ~= nil)
  if single then
    batch.single = true
    batch:add(given, what)
    return batch
  end
  if type(given) ~= "table" then
    error(("%s: expected a text, { ids = ... }, or a list of inputs; got %s"):format(what, pgee.describe(given)), 0)
  end
  for key in pairs(given) do
    if type(key) ~= "number" or key < 1 or key > #given then
      error(("%s: expected a list of inputs, found the key %s"):format(what, tostring(key)), 0)
    end
  end
  for i = 1, #given do
    batch:add(given[i], ("%s: input %d"):format(what, i))
  end
  return batch
end

return inputs
