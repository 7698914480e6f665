--- Tokenizers through the C surface, for specs: arrays that hold just what the contract asks for, with guards behind them.
--
--   local t = wordpiece.new({ "[UNK]", "a" }, { lowercase = true }, { { "[SEP]", 3 }, { "<x>", 4, lstrip = true } })
--   local e = t:encode("a b", nil, 8)   -- e.ids, e.types, e.offsets: int32 arrays; e.length, e.dropped
--   t:ids "a b"                         -- "1 2 0 3": with spaces between; t:offsets "a b" -- "0-1 2-3", of the texts' own tokens
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = pgee.C

local M = {}
local Tokenizer = {}
Tokenizer.__index = Tokenizer
local int32s = ffi.typeof "int32_t[?]"
local GUARD, GUARDS = -77, 4

--- pieces: texts; ids from 0, or as `ids` says. given: fields of pgee_wordpiece_options over [UNK] 0, [CLS] 1, [SEP] 2, all else
-- as the uncased BERT's. added: { text, id, normalized =, single_word =, lstrip =, rstrip = } each.
function M.new(pieces, given, added, ids)
  local o = {
    clean_text = 1, handle_chinese_chars = 1, strip_accents = 1, lowercase = 1, max_word_chars = 100, unk = 0, cls = 1, sep = 2,
    prefix = "##",
  }
  for key, value in pairs(given or {}) do
    o[key] = type(value) == "boolean" and (value and 1 or 0) or value
  end
  local numbers = int32s(#pieces + 1)
  for i = 1, #pieces do
    numbers[i - 1] = ids and ids[i] or i - 1
  end
  local out = pgee.out "pgee_tokenizer *"
  local settings = ffi.new("pgee_wordpiece_options", o)
  pgee.check(C.pgee_wordpiece_new(out, table.concat(pieces, "\0") .. "\0", numbers, #pieces, settings), 0)
  local t = setmetatable({ handle = ffi.gc(out[0], C.pgee_tokenizer_free) }, Tokenizer)
  for _, a in ipairs(added or {}) do
    t:add(a[1], a[2], a)
  end
  return t
end

function Tokenizer:add(text, id, flags)
  local function bit_of(name)
    return flags and flags[name] and 1 or 0
  end
  local normalized, single_word = bit_of "normalized", bit_of "single_word"
  pgee.check(C.pgee_tokenizer_add(self.handle, text, id, normalized, single_word, bit_of "lstrip", bit_of "rstrip"), 0)
end

function Tokenizer:free()
  C.pgee_tokenizer_free(ffi.gc(self.handle, nil))
  self.handle = nil
end

local function guarded(n)
  local array = int32s(n + GUARDS)
  for i = 0, GUARDS - 1 do
    array[n + i] = GUARD
  end
  return array
end

local function check_guard(array, n)
  for i = 0, GUARDS - 1 do
    assert(array[n + i] == GUARD, "written past the capacity")
  end
end

--- capacity: what the arrays hold, default what the contract asks for.
function Tokenizer:encode(a, b, max_tokens, capacity)
  max_tokens = max_tokens or 2 ^ 31 - 1
  local n = capacity or math.max(math.min(max_tokens, #a + #(b or "") + 3), 0)
  local e = ffi.new("pgee_encoding", { capacity = n, length = -1, dropped = -1 })
  local arrays = { ids = guarded(n), types = guarded(n), offsets = guarded(2 * n) }
  e.ids, e.types, e.offsets = arrays.ids, arrays.types, arrays.offsets
  local status = C.pgee_tokenizer_encode(self.handle, e, a, #a, b, b and #b or 0, max_tokens)
  arrays.length, arrays.dropped = tonumber(e.length), tonumber(e.dropped)
  check_guard(arrays.ids, n)
  check_guard(arrays.types, n)
  check_guard(arrays.offsets, 2 * n)
  if status ~= C.PGEE_OK then
    assert(arrays.length == -1 and arrays.dropped == -1, "results changed by a failure")
  end
  pgee.check(status, 0)
  return arrays
end

function Tokenizer:ids(...)
  local e, list = self:encode(...), {}
  for i = 1, e.length do
    list[i] = e.ids[i - 1]
  end
  return table.concat(list, " ")
end

--- Of the tokens that come from a text.
function Tokenizer:offsets(...)
  local e, list = self:encode(...), {}
  for i = 0, e.length - 1 do
    if e.offsets[2 * i + 1] > 0 then
      list[#list + 1] = ("%d-%d"):format(e.offsets[2 * i], e.offsets[2 * i + 1])
    end
  end
  return table.concat(list, " ")
end

--- Takes an encoding into a digest, as golden.py does.
function M.digest(d, e)
  local head = int32s(2)
  head[0], head[1] = e.length, e.dropped
  return d:bytes(head, 8):bytes(e.ids, 4 * e.length):bytes(e.types, 4 * e.length):bytes(e.offsets, 8 * e.length)
end

return M
