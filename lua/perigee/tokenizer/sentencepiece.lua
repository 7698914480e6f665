--- SentencePiece models (sentencepiece.bpe.model, spiece.model, tokenizer.model): reads them, and makes from them the equivalent
-- decoded tokenizer.json, as transformers converts them.
--
--   local m = sentencepiece.read "spiece.model"    -- pieces and settings as they are in the file
--   local file = sentencepiece.plain(m)            -- a tokenizer.json by the model's own settings
--   local parts = sentencepiece.parts(m, "XLMRobertaTokenizer", s)   -- what a class (tokenizer/classes.lua) needs of the model
--
-- The file is one protocol buffer (sentencepiece_model.proto, protobuf.lua). Only Unigram models are supported; another type is
-- an error that names it.
--
-- The ids of the pieces depend on the checkpoint's tokenizer_class:
--   XLMRobertaTokenizer  fairseq's ids: <s> <pad> </s> <unk>, then the model's pieces from the fourth on, then <mask>
--   CamembertTokenizer   <s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED, then the model's pieces from the second on, then <mask>
--   XLNetTokenizer       the model's ids; accents are removed; <sep> and <cls> follow a text
--   no class             the model's ids and settings; no special tokens are added to a text
local ffi = require "ffi"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local protobuf = require "perigee.tokenizer.protobuf"
local fail = require("perigee.tokenizer.read").fail

local M = {}

local SPACE = "\226\150\129" -- U+2581, which stands for ' '
local NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
local MODEL_TYPES = { "UNIGRAM", "BPE", "WORD", "CHAR" }

-- The messages of sentencepiece_model.proto, as far as they are used.
local INT, BOOL, FLOAT, TEXT = protobuf.INT, protobuf.BOOL, protobuf.FLOAT, protobuf.TEXT
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

-- ---- The model ---------------------------------------------------------------------------------------------------------------

local function count_pieces(r)
  local count = 0
  protobuf.each(r, { [1] = MODEL[1] }, r.stop, function(_, stop)
    count, r.at = count + 1, stop
  end)
  r.at = 0
  return count
end

local function read_fields(r, into)
  return function(field)
    into[field[1]] = protobuf.value(r, field[2])
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

--- Reads a model: { path, pieces = list of strings, scores, types = arrays from index 0, count, trainer =, normalizer = }; the
-- last two are tables of the fields of TRAINER and NORMALIZER. text: the file's text, if the caller has read it; else nil.
function M.read(path, text)
  local why
  if not text then
    text, why = json.text(path)
  end
  if not text then
    fail("%s", why)
  end
  local r = protobuf.reader(path, text)
  local count = count_pieces(r)
  local m = {
    path = path, count = 0, pieces = {}, scores = pgee.doubles(count), types = ffi.new("int32_t[?]", count),
    trainer = { model_type = 1, unk_id = 0, unk_piece = "<unk>" },
    normalizer = { add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true },
  }
  local piece = {}
  local read = { pieces = read_fields(r, piece), trainer = read_fields(r, m.trainer), normalizer = read_fields(r, m.normalizer) }
  protobuf.each(r, MODEL, #text, function(field, stop)
    piece.piece, piece.score, piece.type = "", 0, NORMAL
    protobuf.each(r, field[2], stop, read[field[1]])
    if field[2] == PIECE then
      m.pieces[m.count + 1], m.scores[m.count], m.types[m.count] = piece.piece, piece.score, piece.type
      m.count = m.count + 1
    end
  end)
  return check(m)
end

-- ---- As a tokenizer.json ------------------------------------------------------------------------------------------------

-- Pieces and scores for C, in the form of tokenizer/unigram.lua: the pieces of the list `before`, the model's from index `first`
-- (from 0) on, and those of the list `behind`. An entry of the two lists is { text, score or nil for 0 }.
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

-- A pre-tokenizer that makes each user-defined piece a word of its own; nil if the model has no such piece. If two pieces match
-- at one place, the longer counts.
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

--- The equivalent decoded tokenizer.json by the model's own settings, without added tokens. A normalizer of type Precompiled has
-- its bytes in the field `blob`.
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

--- The pieces that are looked for in a text before pre-tokenizing, as tokens (tokenizer/folder.lua): control pieces, which are
-- special tokens, and, if has_class, user-defined pieces. If no class makes the tokenizer, a pre-tokenizer finds user-defined
-- pieces.
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

--- An error if the class cannot use the model. name: the class, nil if none is known; stated: the tokenizer_class that the files
-- give, or nil.
function M.check_class(m, name, stated)
  if name and not FORMS[name] or stated and not name and not stated:find "^PreTrainedTokenizer" then
    fail("'%s': a SentencePiece model of tokenizer_class '%s' is not supported, expected %s, or none; or a tokenizer.json "
      .. "in the same folder", m.path, stated, table.concat(options.names(FORMS), ", "))
  elseif not name and m.path:find "sentencepiece%.bpe%.model$" then -- such files' ids are shifted, or not
    fail("'%s': which ids the pieces have depends on the tokenizer_class in tokenizer_config.json, which is missing", m.path)
  end
end

return M
