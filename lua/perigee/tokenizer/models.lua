--- The model of a tokenizer.json in the form that definition.lua gives to C: { kind =, vocab = { bytes =, ends =, ids =, scores
-- =, count = }, ... } with more fields of pgee_tokenizer_definition. Pieces are sorted by id, so that equal files give equal
-- images.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local unigram = require "perigee.tokenizer.unigram"
local C = pgee.C
local fail, given, expect, optional = read.fail, read.given, read.expect, read.optional

local M = {}

-- ---- A vocabulary from a table of ids by pieces ---------------------------------------------------------------------------

--- The vocabulary for C from a table of ids by pieces, sorted by id, then by piece. If several pieces have the same id, C shows
-- the last of them for it.
function M.vocabulary(vocab, path)
  local list = {}
  for piece, id in pairs(vocab) do
    if type(piece) ~= "string" then
      fail("'%s': the model's vocab is a list, expected an object of ids by pieces", path)
    end
    read.integer(id, path, "the id of '%s'", piece)
    list[#list + 1] = piece
  end
  table.sort(list, function(a, b)
    if vocab[a] ~= vocab[b] then
      return vocab[a] < vocab[b]
    end
    return a < b
  end)
  local ends, ids, size = ffi.new("int64_t[?]", #list + 1), ffi.new("int32_t[?]", #list + 1), 0
  for i, piece in ipairs(list) do
    size = size + #piece
    ends[i - 1], ids[i - 1] = size, vocab[piece]
  end
  return { bytes = table.concat(list), ends = ends, ids = ids, count = #list }
end

local function table_of(model, path)
  return expect(model.vocab, "table", path, "the model's vocab")
end

local function missing(path, text)
  fail("'%s': the vocabulary has no %s", path, text)
end

-- ---- WordPiece ------------------------------------------------------------------------------------------------------------

local MODELS = {}

function MODELS.WordPiece(model, path)
  local vocab = table_of(model, path)
  local unk = expect(model.unk_token, "string", path, "the model's unk_token")
  return {
    kind = C.PGEE_WORDPIECE, vocab = M.vocabulary(vocab, path), unk = vocab[unk] or missing(path, unk), unk_text = unk,
    prefix = expect(model.continuing_subword_prefix, "string", path, "the model's continuing_subword_prefix"),
    max_word_chars = read.integer(model.max_input_chars_per_word, path, "the model's max_input_chars_per_word"),
  }
end

-- ---- Byte pair encoding ---------------------------------------------------------------------------------------------------

-- A merge is "a b", or { "a", "b" }.
local function pair_of(merge, i, path)
  if type(merge) == "table" then
    merge = #merge == 2 and merge or {}
    return expect(merge[1], "string", path, "merge %d", i), expect(merge[2], "string", path, "merge %d", i)
  end
  local a, b = expect(merge, "string", path, "merge %d", i):match "^([^ ]*) ([^ ]*)$"
  if not a then
    fail("'%s': merge %d is '%s', expected two pieces with a space between", path, i, merge)
  end
  return a, b
end

-- The merges for C: for each, the ids of both pieces and of the merged piece, which is the first piece followed by the second
-- without the prefix of pieces inside a word. Also returns the number of merges.
local function merges_of(merges, vocab, prefix, path)
  local list = ffi.new("int32_t[?]", 3 * #merges + 1)
  local function id_of(piece, i)
    return vocab[piece] or fail("'%s': merge %d has the piece '%s', which is not in the vocabulary", path, i, piece)
  end
  for i, merge in ipairs(merges) do
    local a, b = pair_of(merge, i, path)
    local at = 3 * (i - 1)
    list[at], list[at + 1], list[at + 2] = id_of(a, i), id_of(b, i), id_of(a .. b:sub(#prefix + 1), i)
  end
  return list, #merges
end

function MODELS.BPE(model, path)
  local vocab = table_of(model, path)
  local function text(key)
    return optional(model[key], "string", "", path, "the model's %s", key)
  end
  local function flag(key)
    return optional(model[key], "boolean", false, path, "the model's %s", key)
  end
  local dropout = optional(model.dropout, "number", 0, path, "the model's dropout")
  if dropout ~= 0 then
    fail("'%s': the model's dropout is %g, which is not supported", path, dropout)
  end
  local unk = optional(model.unk_token, "string", nil, path, "the model's unk_token")
  local prefix, pieces = text "continuing_subword_prefix", M.vocabulary(vocab, path)
  local merges, count = merges_of(read.list(model.merges, path, "the model's merges"), vocab, prefix, path)
  return {
    kind = C.PGEE_BPE, vocab = pieces, unk = unk and (vocab[unk] or missing(path, unk)) or -1, unk_text = unk,
    prefix = prefix, suffix = text "end_of_word_suffix", byte_fallback = flag "byte_fallback", fuse_unk = flag "fuse_unk",
    ignore_merges = flag "ignore_merges", merges = merges, merge_count = count,
  }
end

-- ---- Unigram --------------------------------------------------------------------------------------------------------------

function MODELS.Unigram(model, path)
  local m = unigram.model(model, path)
  m.kind = C.PGEE_UNIGRAM
  if m.unk >= 0 then
    local v = m.vocab
    local begin = m.unk > 0 and tonumber(v.ends[m.unk - 1]) or 0
    local bytes = ffi.cast("const char *", v.bytes)
    m.unk_text = ffi.string(bytes + begin, tonumber(v.ends[m.unk]) - begin)
  end
  return m
end

--- Looks up `texts` in the vocabulary. Returns ids by text; the number of pieces; and ids by text again, which differ if
-- several pieces are equal: the first result then has the last id, the third result the first id. vocab: ids by pieces, or
-- pieces for C.
function M.ids(vocab, texts, path)
  local ids, first, count = {}, {}, 0
  expect(vocab, "table", path, "the model's vocab")
  if type(vocab.scores) ~= "cdata" then -- "scores" may be a piece
    for _ in pairs(vocab) do
      count = count + 1
    end
    for _, text in ipairs(texts) do
      ids[text] = vocab[text]
    end
    return ids, count, ids
  end
  local wanted, sizes, begin = {}, {}, 0
  for _, text in ipairs(texts) do
    wanted[text], sizes[#text] = true, true
  end
  local bytes = ffi.cast("const char *", vocab.bytes)
  for id = 0, vocab.count - 1 do
    local size = tonumber(vocab.ends[id]) - begin
    if sizes[size] then
      local text = ffi.string(bytes + begin, size)
      if wanted[text] then
        ids[text], first[text] = id, first[text] or id
      end
    end
    begin = begin + size
  end
  return ids, vocab.count, first
end

--- The type of a tokenizer.json's model. In old files, which do not name it, it is inferred from the keys; nil if it cannot be.
function M.type_of(model)
  if given(model.type) ~= nil then
    return model.type
  elseif given(model.merges) ~= nil then
    return "BPE"
  end
  return given(model.max_input_chars_per_word) ~= nil and "WordPiece" or nil
end

--- The model of a decoded tokenizer.json. Errors: a type that is not supported; a field that is missing or malformed.
function M.model(file, path)
  local model = expect(file.model, "table", path, "the model")
  local kind = M.type_of(model)
  local make = MODELS[kind] or fail("'%s': the model is of type %s, which is not supported; expected WordPiece, Unigram or BPE",
    path, type(kind) == "string" and "'" .. kind .. "'" or json.describe(kind))
  return make(model, path)
end

return M
