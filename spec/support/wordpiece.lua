--- Tokenizers through the C functions, for specs. Arrays have exactly the size that perigee.h demands, with guards behind them.
--
--   local t = wordpiece.new({ "[UNK]", "a", "b" }, { lowercase = true }, { { "[SEP]", 3 }, { "<x>", 4, lstrip = true } })
--   local e = t:encode("a b", nil, 8)   -- e.ids, e.types, e.offsets: int32 arrays; e.length, e.dropped
--   t:ids "a b"                         -- "1 2 0 3"
--   t:offsets "a b"                     -- "0-1 2-3", without those of special tokens
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = pgee.C

local M = {}
local Tokenizer = {}
Tokenizer.__index = Tokenizer
local int32s = ffi.typeof "int32_t[?]"
local GUARD, GUARDS = -77, 4

local function string_of(text, held)
  held[#held + 1] = text
  return text
end

-- BERT's special tokens.
local function template(list)
  local array = ffi.new("pgee_template_piece[?]", #list)
  for i, piece in ipairs(list) do
    array[i - 1].id, array[i - 1].type = piece[1], piece[2]
  end
  return array
end

local function added_tokens(added, held)
  local array = ffi.new("pgee_added_token[?]", #added + 1)
  for i, a in ipairs(added) do
    local to = array[i - 1]
    to.text, to.bytes, to.id = string_of(a[1], held), #a[1], a[2]
    for _, key in ipairs { "normalized", "single_word", "lstrip", "rstrip" } do
      to[key] = a[key] and 1 or 0
    end
  end
  return array
end

--- Returns the definition of which `new` makes a tokenizer, and the objects that must stay alive as long as it is used.
function M.definition(pieces, given, added, ids)
  local o = {
    clean_text = 1, handle_chinese_chars = 1, strip_accents = 1, lowercase = 1, max_word_chars = 100, unk = 0, cls = 1, sep = 2,
    prefix = "##",
  }
  for key, value in pairs(given or {}) do
    o[key] = type(value) == "boolean" and (value and 1 or 0) or value
  end
  local held, size = {}, 0
  local d, numbers, ends = ffi.new "pgee_tokenizer_definition", int32s(#pieces + 1), ffi.new("int64_t[?]", #pieces + 1)
  for i = 1, #pieces do
    size = size + #pieces[i]
    numbers[i - 1], ends[i - 1] = ids and ids[i] or i - 1, size
  end
  d.model, d.pieces, d.ends, d.ids, d.count = C.PGEE_WORDPIECE, string_of(table.concat(pieces), held), ends, numbers, #pieces
  d.unk, d.max_word_chars, d.prefix = o.unk, o.max_word_chars, string_of(o.prefix, held)
  local normalizer = ffi.new("pgee_tokenizer_step[1]")
  normalizer[0].kind = C.PGEE_STEP_BERT_NORMALIZER
  normalizer[0].a, normalizer[0].b, normalizer[0].c, normalizer[0].d = o.clean_text, o.handle_chinese_chars, o.strip_accents,
    o.lowercase
  local pre_tokenizer, decoder = ffi.new "pgee_tokenizer_step[1]", ffi.new "pgee_tokenizer_step[1]"
  pre_tokenizer[0].kind, decoder[0].kind, decoder[0].a = C.PGEE_STEP_BERT_PRE_TOKENIZER, C.PGEE_STEP_DECODE_WORDPIECE, 1
  decoder[0].text, decoder[0].text_bytes = string_of(o.prefix, held), #o.prefix
  d.normalizers, d.pre_tokenizers, d.decoders = normalizer, pre_tokenizer, decoder
  d.normalizer_count, d.pre_tokenizer_count, d.decoder_count = 1, 1, 1
  local A, B, cls, sep = C.PGEE_TEXT_A, C.PGEE_TEXT_B, o.cls, o.sep
  local single = template { { cls, 0 }, { A, 0 }, { sep, 0 } }
  local pair = template { { cls, 0 }, { A, 0 }, { sep, 0 }, { B, 1 }, { sep, 1 } }
  local tokens = added_tokens(added or {}, held)
  d.single, d.single_count, d.pair, d.pair_count, d.added, d.added_count = single, 3, pair, 5, tokens, #(added or {})
  for _, x in ipairs { numbers, ends, normalizer, pre_tokenizer, decoder, single, pair, tokens } do
    held[#held + 1] = x
  end
  return d, held
end

--- pieces: texts; ids from 0, or as `ids` says. given: options of BERT's normalizer, max_word_chars, prefix, ids, over [UNK] 0,
-- [CLS] 1, [SEP] 2, all else as the uncased BERT's. added: { text, id, normalized =, single_word =, lstrip =, rstrip = } each.
function M.new(pieces, given, added, ids)
  local out = pgee.out "pgee_tokenizer *"
  local d, held = M.definition(pieces, given, added, ids)
  pgee.check(C.pgee_tokenizer_new(out, d), 0)
  held.done = true
  return M.wrap(out[0])
end

function M.wrap(handle)
  return setmetatable({ handle = ffi.gc(handle, C.pgee_tokenizer_free) }, Tokenizer)
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

--- capacity is the size of the arrays, by default what perigee.h demands.
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

--- Returns the offsets of the tokens that come from a text.
function Tokenizer:offsets(...)
  local e, list = self:encode(...), {}
  for i = 0, e.length - 1 do
    if e.offsets[2 * i + 1] > 0 then
      list[#list + 1] = ("%d-%d"):format(e.offsets[2 * i], e.offsets[2 * i + 1])
    end
  end
  return table.concat(list, " ")
end

--- Adds an encoding to a digest, as golden.py does.
function M.digest(d, e)
  local head = int32s(2)
  head[0], head[1] = e.length, e.dropped
  return d:bytes(head, 8):bytes(e.ids, 4 * e.length):bytes(e.types, 4 * e.length):bytes(e.offsets, 8 * e.length)
end

return M
