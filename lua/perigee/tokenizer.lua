--- Tokenizers: WordPiece as a checkpoint defines it, with the ids of the reference library.
--
--   local tokenizer = require "perigee.tokenizer"
--   local t = tokenizer.load "path/to/checkpoint"
--   local e = t:encode("A text", "its pair", { max_tokens = 128 })
--   e.ids, e.types              -- { 101, 1037, 3793, 102, ... }, { 0, 0, 0, 0, 1, ... }
--   e.offsets[2]                -- { 0, 1 }: text:sub(0 + 1, 1) is what the second token comes from
--   e.dropped                   -- tokens that max_tokens cut off
--   t:decode(e.ids)             -- "a text its pair"
--   t:piece(1037), t:id "text"  -- "a", 3793
--   t.size, t.cls, t.sep, t.unk, t.pad, t.mask
--
-- tokenizer.json says everything itself, but its own truncation and padding are ignored; where there is none, vocab.txt counts,
-- with tokenizer_config.json and its companions. What is not WordPiece as BERT uses it is an error that names the component.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local checkpoint = require "perigee.checkpoint"
local options = require "perigee.options"
local wordpiece = require "perigee.wordpiece"
local C, check = pgee.C, pgee.check

local M = {}
local Tokenizer = {}
Tokenizer.__index = Tokenizer

local handles = pgee.class("tokenizer", "pgee_tokenizer", "pgee_tokenizer_free", {})
local out = pgee.out "pgee_tokenizer *"
local int32s = ffi.typeof "int32_t[?]"
local NO_LIMIT = 2 ^ 31 - 1

local function fail(...)
  error(string.format(...), 0)
end

-- Raises the library's message about a file.
local function try(path, status)
  if status ~= C.PGEE_OK then
    fail("'%s': %s", path, ffi.string(C.pgee_message()))
  end
end

-- ---- From a definition to a tokenizer --------------------------------------------------------------------------------------

-- An id that is given, or that of a text.
local function id_of(d, added, token)
  return type(token) == "number" and token or d.vocab[token] or added[token]
end

local function special_ids(d, added)
  local ids, missing = {}, {}
  for _, key in ipairs { "unk", "cls", "sep", "pad", "mask" } do
    ids[key] = id_of(d, key ~= "unk" and added or {}, d[key])
    if not ids[key] and key ~= "pad" and key ~= "mask" then
      missing[#missing + 1] = tostring(d[key])
    end
  end
  if #missing > 0 then
    fail("'%s': the vocabulary has no %s", d.path, table.concat(missing, ", "))
  end
  return ids
end

-- The pieces one after another, as C takes them, and their ids.
local function flatten(d)
  local texts, ids = {}, {}
  for piece, id in pairs(d.vocab) do
    if not piece:find("%z") then
      texts[#texts + 1] = piece
      ids[#texts] = id
    elseif not d.options.clean_text then -- what is cleaned has no zero byte: such a piece never occurs in it
      fail("'%s': a piece with U+0000 is not supported where the normalizer does not clean the text", d.path)
    end
  end
  texts[#texts + 1] = ""
  return table.concat(texts, "\0"), int32s(#ids + 1, ids), #ids
end

local function new_handle(d, ids)
  local o = d.options
  local pieces, piece_ids, count = flatten(d)
  local settings = ffi.new("pgee_wordpiece_options", o.clean_text, o.handle_chinese_chars, o.strip_accents, o.lowercase,
    o.max_word_chars, ids.unk, ids.cls, ids.sep, o.prefix)
  try(d.path, C.pgee_wordpiece_new(out, pieces, piece_ids, count, settings))
  local handle = handles.wrap(out[0])
  for _, a in ipairs(d.added) do
    try(d.path, C.pgee_tokenizer_add(handle.handle, a.content, a.id, a.normalized, a.single_word, a.lstrip, a.rstrip))
  end
  return handle
end

local function build(d)
  local t = {
    path = d.path, vocab = d.vocab, options = d.options, cleanup = d.cleanup, added = {}, special = {}, pieces = {}, size = 0,
  }
  for piece, id in pairs(d.vocab) do
    t.pieces[id] = piece
    t.size = t.size + 1
  end
  for _, a in ipairs(d.added) do
    t.added[a.content] = a.id
    t.special[a.content] = a.special or nil
    t.pieces[a.id] = a.content
    t.size = t.size + (d.vocab[a.content] and 0 or 1)
  end
  local ids = special_ids(d, t.added)
  for key, id in pairs(ids) do
    t[key] = id
  end
  t.handle = new_handle(d, ids)
  return setmetatable(t, Tokenizer)
end

--- The tokenizer of a checkpoint: what perigee.checkpoint opened, or the path of a folder, which need hold no model.
-- Errors: neither tokenizer.json nor vocab.txt; a component that is not WordPiece as BERT uses it; no [UNK], [CLS] or [SEP] in
-- the vocabulary. A vocabulary may lack [PAD] and [MASK]: then pad and mask are nil.
function M.load(from)
  if type(from) ~= "string" and (type(from) ~= "table" or not from.tokenizer_files) then
    error(("load: argument 1 is %s, expected a checkpoint or the path of its folder"):format(pgee.describe(from)), 2)
  end
  local c = type(from) == "string" and checkpoint.tokenizer(from) or from
  return build(wordpiece.read(c))
end

-- ---- What a tokenizer does ---------------------------------------------------------------------------------------------------

local function check_text(value, position, name)
  if type(value) ~= "string" then
    error(("%s: argument %d is %s, expected a string"):format(name, position, pgee.describe(value)), 3)
  end
end

local encoding = ffi.new "pgee_encoding"

local function encode_into(t, ids, types, capacity, max_tokens, a, b, offsets)
  encoding.ids, encoding.types, encoding.offsets, encoding.capacity = ids, types, offsets, capacity
  check(C.pgee_tokenizer_encode(handles.handle(t.handle, "tokenizer", 2), encoding, a, #a, b, b and #b or 0, max_tokens), 2)
  return tonumber(encoding.length), tonumber(encoding.dropped)
end

local function check_limit(max_tokens, name)
  if max_tokens ~= nil and (type(max_tokens) ~= "number" or max_tokens % 1 ~= 0 or max_tokens < 0 or max_tokens > NO_LIMIT) then
    error(("%s: max_tokens is %s, expected an integer"):format(name, pgee.describe(max_tokens)), 3)
  end
  return max_tokens or NO_LIMIT
end

--- For modules: encodes into int32 arrays that the caller has, at least `limit` long: ids, types, and offsets (two a token)
-- unless nil. Returns how many tokens there are and how many were dropped.
function Tokenizer:encode_into(ids, types, limit, a, b, offsets)
  check_text(a, 4, "encode_into")
  if b ~= nil then
    check_text(b, 5, "encode_into")
  end
  local length, dropped = encode_into(self, ids, types, limit, limit, a, b, offsets)
  return length, dropped
end

local known = { max_tokens = true }

--- Encodes a text, or a pair of texts, with the special tokens around them. max_tokens counts these; default: no limit. What is
-- too many is dropped from the end of the longer text until both are equal, then from both, as in the reference library.
-- Returns { ids = list, types = list, offsets = list of { begin, end } in bytes of the token's text from 0, end excluded (0, 0
-- for the special tokens around the texts), dropped = how many tokens were dropped }.
function Tokenizer:encode(text, pair, opts)
  check_text(text, 1, "encode")
  if pair ~= nil then
    check_text(pair, 2, "encode")
  end
  local limit = check_limit(options.check(opts, known, "encode").max_tokens, "encode")
  local capacity = math.min(limit, #text + (pair and #pair or 0) + 3)
  local ids, types, offsets = int32s(capacity), int32s(capacity), int32s(2 * capacity)
  local length, dropped = encode_into(self, ids, types, capacity, limit, text, pair, offsets)
  local e = { ids = {}, types = {}, offsets = {}, dropped = dropped }
  for i = 1, length do
    e.ids[i], e.types[i] = ids[i - 1], types[i - 1]
    e.offsets[i] = { offsets[2 * i - 2], offsets[2 * i - 1] }
  end
  return e
end

--- The piece or added token with that id; nil if there is none.
function Tokenizer:piece(id)
  return self.pieces[id]
end

--- The id of a piece or added token; nil if there is none.
function Tokenizer:id(piece)
  return self.added[piece] or self.vocab[piece]
end

-- The reference's repairs, in its order. It makes them in each piece alone.
local REPAIRS = {
  { " %.", "." }, { " %?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" }, { " n't", "n't" }, { " 'm", "'m" },
  { " do not", " don't" }, { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
}

local function join_piece(t, piece, first)
  local prefix = t.options.prefix
  if not first and piece:sub(1, #prefix) == prefix then
    piece = piece:sub(#prefix + 1)
  elseif not first then
    piece = " " .. piece
  end
  for _, repair in ipairs(t.cleanup and REPAIRS or {}) do
    piece = piece:gsub(repair[1], repair[2])
  end
  return piece
end

--- The text of a list (or int32 array) of ids: pieces joined, special tokens left out. Lower case and spaces stay lost.
function Tokenizer:decode(ids)
  if type(ids) ~= "table" and type(ids) ~= "cdata" then
    error(("decode: argument 1 is %s, expected a list of ids"):format(pgee.describe(ids)), 2)
  elseif self.cleanup == nil then
    error(("'%s': its decoder is not supported, expected WordPiece"):format(self.path), 2)
  end
  local array = type(ids) == "cdata"
  local parts = {}
  for i = 1, array and ffi.sizeof(ids) / 4 or #ids do
    local id = ids[array and i - 1 or i]
    local piece = self.pieces[id]
    if not piece then
      error(("decode: id %d is %s, which the vocabulary does not have"):format(i, pgee.describe(id)), 2)
    elseif not self.special[piece] then
      parts[#parts + 1] = join_piece(self, piece, #parts == 0)
    end
  end
  return table.concat(parts)
end

--- Frees what C holds. Twice does no harm.
function Tokenizer:release()
  handles.release(self.handle)
end

function Tokenizer:__tostring()
  return ("tokenizer WordPiece, %d pieces%s%s"):format(self.size, self.options.lowercase and ", lower case" or "",
    self.options.strip_accents and ", without accents" or "")
end

return M
