--- SentencePiece models (sentencepiece.bpe.model, spiece.model, tokenizer.model): read, and made into what a tokenizer.json with
-- the same tokenizer says, as the reference library converts them.
--
--   local m = sentencepiece.read "sentencepiece.bpe.model"          -- pieces and settings as they are in the file
--   local file = sentencepiece.file(m, "XLMRobertaTokenizer", {})   -- as unigram.file gives a tokenizer.json
--
-- The file is one protocol buffer (sentencepiece_model.proto). What the reader does not know it skips; what is cut short, or of
-- another kind than it should be, is an error. Only Unigram models: others are an error that names their type.
--
-- Forms, by the checkpoint's tokenizer_class:
--   XLMRobertaTokenizer  ids are fairseq's: <s> <pad> </s> <unk>, then the pieces from the fourth on, and <mask> at the end
--   CamembertTokenizer   <s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED, then the pieces from the second on, and <mask>
--   XLNetTokenizer       ids are the model's; without accents; <sep> and <cls> at the end
--   none                 ids are the model's, text is treated as the model says, and nothing is put around it
local bit = require "bit"
local ffi = require "ffi"
local foreign = require "perigee.base.foreign"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local band, bor, lshift, rshift = bit.band, bit.bor, bit.lshift, bit.rshift

local M = {}

local SPACE = "\226\150\129" -- U+2581, which stands for ' '
local NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
local MODEL_TYPES = { "UNIGRAM", "BPE", "WORD", "CHAR" }

local function fail(...)
  error(string.format(...), 0)
end

-- ---- Protocol buffers --------------------------------------------------------------------------------------------------------

-- Messages are tables by field number: { name, kind }. Kinds are wire types, or messages.
local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
local INT, BOOL, FLOAT, TEXT = "an int", "a bool", "a number", "a string"
local WIRE = { [INT] = VARINT, [BOOL] = VARINT, [FLOAT] = FIXED32, [TEXT] = BYTES }

local PIECE = { [1] = { "piece", TEXT }, [2] = { "score", FLOAT }, [3] = { "type", INT } }
local TRAINER = {
  [3] = { "model_type", INT }, [24] = { "treat_whitespace_as_suffix", BOOL }, [35] = { "byte_fallback", BOOL },
  [40] = { "unk_id", INT }, [45] = { "unk_piece", TEXT },
}
local NORMALIZER = {
  [2] = { "precompiled_charsmap", TEXT }, [3] = { "add_dummy_prefix", BOOL }, [4] = { "remove_extra_whitespaces", BOOL },
  [5] = { "escape_whitespaces", BOOL },
}
local MODEL = { [1] = { "pieces", PIECE }, [2] = { "trainer", TRAINER }, [3] = { "normalizer", NORMALIZER } }

-- A position in bytes: s[at] to s[stop - 1] are left.
local function malformed(r, ...)
  fail("'%s': byte %d: %s%s", r.path, r.at, string.format(...), foreign.hint(r.path))
end

local function truncated(r)
  malformed(r, "the file is cut short, or is no SentencePiece model")
end

-- The low 32 bits of a number, signed, and whether there are more.
local function varint(r)
  local s, low, more = r.s, 0, false
  for i = 0, 9 do
    if r.at >= r.stop then
      truncated(r)
    end
    local byte = s[r.at]
    r.at = r.at + 1
    local value = band(byte, 127)
    if i < 5 then
      low = bor(low, lshift(value, 7 * i))
    end
    more = more or i == 4 and value > 15 or i > 4 and value > 0
    if byte < 128 then
      return low, more
    end
  end
  return malformed(r, "a number of more than 10 bytes; expected a SentencePiece model")
end

-- Takes `count` bytes.
local function take(r, count, more)
  if more or count < 0 or count > r.stop - r.at then
    truncated(r)
  end
  r.at = r.at + count
  return r.at - count
end

local function skip(r, wire)
  if wire == VARINT then
    varint(r)
  elseif wire == FIXED64 then
    take(r, 8)
  elseif wire == FIXED32 then
    take(r, 4)
  elseif wire == BYTES then
    take(r, varint(r))
  else
    malformed(r, "a field of wire type %d; expected a SentencePiece model", wire)
  end
end

local function value(r, kind)
  if kind == FLOAT then
    return pgee.number(r.s + take(r, 4), pgee.C.PGEE_F32)
  elseif kind == TEXT then
    local count, more = varint(r)
    return ffi.string(r.s + take(r, count, more), count)
  end
  local low, more = varint(r)
  if kind == BOOL then
    return low ~= 0 or more
  end
  return low
end

-- Calls found(field, stop) at the value of each field up to `stop` that `message` has; for one that is a message, where it ends.
local function each(r, message, stop, found)
  local outer = r.stop
  r.stop = stop
  while r.at < stop do
    local tag, more = varint(r)
    local field, wire = message[rshift(tag, 3)], band(tag, 7)
    if more or rshift(tag, 3) == 0 then
      malformed(r, "a field without a number; expected a SentencePiece model")
    elseif not field then
      skip(r, wire)
    elseif wire ~= (WIRE[field[2]] or BYTES) then
      fail("'%s': byte %d: '%s' has wire type %d, expected %d", r.path, r.at, field[1], wire, WIRE[field[2]] or BYTES)
    else
      local inner
      if not WIRE[field[2]] then
        local count, too_many = varint(r)
        inner = take(r, count, too_many) + count
        r.at = inner - count
      end
      found(field, inner)
    end
  end
  r.stop = outer
end

-- ---- The model ---------------------------------------------------------------------------------------------------------------

local function count_pieces(r)
  local count = 0
  each(r, { [1] = MODEL[1] }, r.stop, function(_, stop)
    count, r.at = count + 1, stop
  end)
  r.at = 0
  return count
end

local function read_fields(r, into)
  return function(field)
    into[field[1]] = value(r, field[2])
  end
end

local function check(m)
  local kind = MODEL_TYPES[m.trainer.model_type]
  if kind ~= "UNIGRAM" then
    fail("'%s': a SentencePiece model of type %s, expected UNIGRAM", m.path, kind or tostring(m.trainer.model_type))
  elseif m.count == 0 then
    fail("'%s': the file is cut short, or is no SentencePiece model: it has no pieces", m.path)
  elseif m.trainer.unk_id < 0 or m.trainer.unk_id >= m.count then
    fail("'%s': the unknown piece is %d of %d", m.path, m.trainer.unk_id, m.count)
  elseif m.trainer.treat_whitespace_as_suffix then
    fail("'%s': spaces as suffixes (treat_whitespace_as_suffix) are not supported", m.path)
  end
  return m
end

--- A model: { path, pieces = list of strings, scores, types (arrays from 0), count, trainer =, normalizer = }, these with the
-- fields above. text: of the file, where it has been read.
function M.read(path, text)
  local why
  if not text then
    text, why = json.text(path)
  end
  if not text then
    fail("%s", why)
  end
  local r = { path = path, s = ffi.cast("const uint8_t *", text), at = 0, stop = #text }
  local count = count_pieces(r)
  local m = {
    path = path, count = 0, pieces = {}, scores = pgee.doubles(count), types = ffi.new("int32_t[?]", count),
    trainer = { model_type = 1, unk_id = 0, unk_piece = "<unk>" },
    normalizer = { add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true },
  }
  local piece = {}
  local read = { pieces = read_fields(r, piece), trainer = read_fields(r, m.trainer), normalizer = read_fields(r, m.normalizer) }
  each(r, MODEL, #text, function(field, stop)
    piece.piece, piece.score, piece.type = "", 0, NORMAL
    each(r, field[2], stop, read[field[1]])
    if field[2] == PIECE then
      m.pieces[m.count + 1], m.scores[m.count], m.types[m.count] = piece.piece, piece.score, piece.type
      m.count = m.count + 1
    end
  end)
  return check(m)
end

-- ---- As a tokenizer.json ------------------------------------------------------------------------------------------------

-- Pieces and scores for C, as perigee.unigram has them: `before`, the model's from the piece `first` on (from 0), `behind`.
local function vocabulary(m, before, first, behind)
  local texts, count = {}, #before + math.max(m.count - first, 0) + #behind -- a model may have fewer pieces than `first`
  local ends, scores = ffi.new("int64_t[?]", count), pgee.doubles(count)
  local size = 0
  local function add(text, score)
    local i = #texts
    texts[i + 1], size = text, size + #text
    ends[i], scores[i] = size, score
  end
  for _, piece in ipairs(before) do
    add(piece[1], piece[2] or 0)
  end
  for i = first, m.count - 1 do
    add(m.pieces[i + 1], m.scores[i])
  end
  for _, piece in ipairs(behind) do
    add(piece[1], piece[2] or 0)
  end
  return { bytes = table.concat(texts), ends = ends, scores = scores, count = count, texts = texts }
end

local function charsmap(m)
  local blob = m.normalizer.precompiled_charsmap
  return blob and blob ~= "" and { type = "Precompiled", blob = blob } or nil
end

local function metaspace(split)
  return { type = "Metaspace", replacement = SPACE, prepend_scheme = "always", split = split }
end

local function model(m, vocab, unk)
  return { type = "Unigram", vocab = vocab, unk_id = unk, byte_fallback = m.trainer.byte_fallback or false }
end

-- For each class, a function that returns three things: the pieces before the model's own, the model's first piece (from 0)
-- that is kept, and the pieces after them. This order gives the ids. s: the folder's special tokens (tokenizer/folder.lua).
local FORMS = {
  XLMRobertaTokenizer = function(s)
    return { { s:text "bos_token" }, { s:text "pad_token" }, { s:text "eos_token" }, { s:text "unk_token" } }, 3,
      { { s:text "mask_token" } }
  end,
  CamembertTokenizer = function(s)
    return { { "<s>NOTUSED" }, { s:text "pad_token" }, { "</s>NOTUSED" }, { s:text "unk_token" }, { "<unk>NOTUSED", -100 } }, 1,
      { { s:text "mask_token" } }
  end,
  XLNetTokenizer = function()
    return {}, 0, {}
  end,
}

-- A pre-tokenizer that makes each user-defined piece a word of its own, the longest first; nil where there are none.
local function user_defined(m)
  local list = {}
  for i = 0, m.count - 1 do
    if m.types[i] == USER_DEFINED then
      list[#list + 1] = m.pieces[i + 1]
    end
  end
  table.sort(list, function(a, b) return #a > #b end)
  for i, piece in ipairs(list) do
    list[i] = piece:gsub("[%p ]", "\\%0")
  end
  local pattern = { Regex = table.concat(list, "|") }
  return #list > 0 and { type = "Split", pattern = pattern, behavior = "Isolated", invert = false } or nil
end

--- The equivalent decoded tokenizer.json by the model's own settings, without added tokens. If a normalizer has the type
-- Precompiled, its blob is in the field `blob`.
function M.plain(m)
  local n, steps = m.normalizer, { charsmap(m) }
  local function replace(kind, pattern, content)
    steps[#steps + 1] = { type = "Replace", pattern = { [kind] = pattern }, content = content }
  end
  if n.remove_extra_whitespaces then
    replace("Regex", "\\A +| +\\z", "")
    replace("Regex", " {2,}", " ")
  end
  if n.escape_whitespaces then
    replace("String", " ", SPACE)
  end
  local decoders = { { type = "Replace", pattern = { String = SPACE }, content = " " } }
  if m.trainer.byte_fallback then
    decoders[#decoders + 1] = { type = "ByteFallback" }
  end
  if n.add_dummy_prefix or m.trainer.byte_fallback then
    decoders[#decoders + 1] = { type = "Fuse" }
  end
  if n.add_dummy_prefix then
    replace("Regex", "\\A" .. SPACE, SPACE .. SPACE)
    decoders[#decoders + 1] = { type = "Strip", content = " ", start = 1, stop = 0 }
  end
  local cutting = { n.add_dummy_prefix and metaspace(false) or nil }
  cutting[#cutting + 1] = user_defined(m)
  return {
    model = model(m, vocabulary(m, {}, 0, {}), m.trainer.unk_id), normalizer = { type = "Sequence", normalizers = steps },
    pre_tokenizer = { type = "Sequence", pretokenizers = cutting }, decoder = { type = "Sequence", decoders = decoders },
  }
end

--- The parts from which a class (tokenizer/classes.lua) makes a tokenizer: { vocab =, charsmap =, unk =, path = }.
function M.parts(m, name, s)
  local before, first, behind = FORMS[name](s)
  return { vocab = vocabulary(m, before, first, behind), charsmap = charsmap(m), unk = m.trainer.unk_id, path = m.path }
end

--- The pieces that are found in a text before it is cut, as tokens (tokenizer/folder.lua): control pieces, which are special; and
-- those that the user defined, if a class makes the tokenizer. Without a class a pre-tokenizer finds the latter.
function M.added(m, has_class)
  local list = {}
  for i = 0, m.count - 1 do
    if m.types[i] == CONTROL or has_class and m.types[i] == USER_DEFINED then
      list[#list + 1] = {
        content = m.pieces[i + 1], special = m.types[i] == CONTROL, normalized = false, single_word = false, lstrip = false,
        rstrip = false,
      }
    end
  end
  return list
end

--- An error if a model cannot be used by the class of that name; nil: no class is known. stated: the name that the files give it.
function M.check_class(m, name, stated)
  if name and not FORMS[name] or stated and not name and not stated:find "^PreTrainedTokenizer" then
    fail("'%s': a SentencePiece model of tokenizer_class '%s' is not supported, expected %s, or none; a tokenizer.json beside it "
      .. "would say everything itself", m.path, stated, table.concat(options.names(FORMS), ", "))
  elseif not name and m.path:find "sentencepiece%.bpe%.model$" then -- such files' ids are shifted, or not
    fail("'%s': which ids the pieces have depends on the tokenizer_class in tokenizer_config.json, which is missing", m.path)
  end
end

return M
