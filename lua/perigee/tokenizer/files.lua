--- A checkpoint's tokenizer as a decoded tokenizer.json. It is the file itself, or its equivalent made from other files as
-- transformers 5 makes it (classes.lua): from vocab.txt, from vocab.json and merges.txt, or from a SentencePiece model, each
-- with the small files in the same folder.
local foreign = require "perigee.base.foreign"
local json = require "perigee.base.json"
local added = require "perigee.tokenizer.added"
local classes = require "perigee.tokenizer.classes"
local folder = require "perigee.tokenizer.folder"
local keys = require "perigee.tokenizer.keys"
local models = require "perigee.tokenizer.models"
local read = require "perigee.tokenizer.read"
local schema = require "perigee.tokenizer.schema"
local sentencepiece = require "perigee.tokenizer.sentencepiece"
local unigram = require "perigee.tokenizer.unigram"
local fail, given = read.fail, read.given

local M = {}

-- ---- vocab.txt ------------------------------------------------------------------------------------------------------------

-- The text of a vocabulary file. Any line is a valid piece, so only these two beginnings show that a file is of another kind.
local function text_of(path)
  local text, why = json.text(path)
  if text and (text:find "^version https://git%-lfs" or text:find "^%s*<!DOCTYPE") then
    fail("'%s' is no vocabulary%s", path, foreign.hint(path))
  end
  return text or fail("%s", why)
end

-- Patterns of Unicode's white space outside ASCII, in UTF-8, at the end of a line.
local SPACES = { "\194[\133\160]$", "\225\154\128$", "\226\128[\128-\138\168\169\175]$", "\226\129\159$", "\227\128\128$" }

-- A line without the white space at its end, as Rust's trim_end takes it off.
local function trimmed(line)
  local text = line:gsub("%s+$", "")
  for _, space in ipairs((text:byte(-1) or 0) >= 128 and SPACES or {}) do
    local short = text:gsub(space, "")
    if short ~= text then
      return trimmed(short)
    end
  end
  return text
end

-- One piece a line, ids from 0. Of equal lines the last counts.
local function read_lines(path)
  local text, vocab, id = text_of(path), {}, 0
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    vocab[trimmed(line)] = id
    id = id + 1
  end
  return { vocab = vocab, path = path }
end

-- ---- vocab.json and merges.txt --------------------------------------------------------------------------------------------

-- Two pieces a line. The tokenizers package passes over a line that begins with #version.
local function read_merges(path)
  local merges = {}
  for line in (text_of(path):gsub("\r\n", "\n") .. "\n"):gmatch "([^\n]*)\n" do
    if line ~= "" and line:sub(1, 8) ~= "#version" then
      merges[#merges + 1] = line
    end
  end
  return merges
end

local function read_pieces(files)
  local vocab = json.object(files.pieces)
  for piece, id in pairs(vocab) do
    read.integer(id, files.pieces, "the id of '%s'", piece)
  end
  return { vocab = vocab, merges = read_merges(files.merges), path = files.pieces }
end

-- ---- tokenizer.json -------------------------------------------------------------------------------------------------------

-- The first precompiled charsmap of the normalizer.
local function charsmap(file)
  local normalizer = given(file.normalizer)
  for _, part in ipairs(type(normalizer) == "table" and (normalizer.normalizers or { normalizer }) or {}) do
    if type(part) == "table" and part.type == "Precompiled" then
      return part
    end
  end
end

-- The parts of a tokenizer.json that a class takes.
local function parts_of(file, path, class)
  local model = read.expect(file.model, "table", path, "the model")
  local kind = models.type_of(model)
  if kind ~= class.model then
    fail("'%s': the model is of type %s, but the tokenizer_class %s is for %s; tokenizer_class PreTrainedTokenizerFast in "
      .. "tokenizer_config.json takes the file as it is", path, json.describe(kind), class.stated, class.model)
  end
  return { vocab = model.vocab, merges = model.merges, charsmap = charsmap(file), path = path }
end

-- ---- Made by a class ------------------------------------------------------------------------------------------------------

-- Names the special tokens of the class that no file names.
local function with_defaults(s, class)
  for key, text in pairs(class.special) do
    if s.named[key] == nil then
      s.named[key] = folder.plain(text)
    end
  end
  local mask = s.named.mask_token
  if class.spaced and mask and mask.plain then
    s.named.mask_token = {
      content = mask.content, special = class.spaced.special, single_word = false, lstrip = true, rstrip = false,
    }
  end
  for _, key in ipairs(class.objects and s.order or {}) do
    if s.named[key] and s.named[key].plain then
      s.named[key].plain, s.named[key].special = nil, false
    end
  end
  if not s.extra and class.extra then
    s.extra = {}
    for i, text in ipairs(class.extra) do
      s.extra[i] = folder.plain(text)
    end
  end
end

-- The tokenizer that a class makes of x: { vocab =, merges =, charsmap =, unk =, path = }, whose vocab is ids by pieces or, of
-- Unigram, as unigram.file gives it.
local function made_by(class, x, s)
  x.folder = s
  local list, wanted = added.list(s, {}), {}
  for _, t in ipairs(list) do
    wanted[#wanted + 1] = t.content
  end
  for _, t in pairs(s.named) do
    wanted[#wanted + 1] = t and t.content or nil
  end
  local known, count, first = models.ids(x.vocab, wanted, x.path)
  x.first, x.ids = first, added.ids(list, known, count)
  local file = class.make(x)
  file.added_tokens = list
  return file
end

-- ---- Sentence-transformers' lower case ------------------------------------------------------------------------------------

local function lowers(normalizer)
  if type(normalizer) ~= "table" then
    return false
  end
  for _, part in ipairs(type(normalizer.normalizers) == "table" and normalizer.normalizers or {}) do
    if lowers(part) then
      return true
    end
  end
  return normalizer.type == "Lowercase" or normalizer.type == "BertNormalizer" and normalizer.lowercase == true
end

-- sentence-transformers has texts in lower case where sentence_bert_config.json says so, whatever the tokenizer does.
local function in_lower_case(file)
  if not lowers(file.normalizer) then
    file.normalizer = { type = "Sequence", normalizers = { { type = "Lowercase" }, given(file.normalizer) } }
  end
end

-- ---- What the model is given, and what is shown ---------------------------------------------------------------------------

-- Whether a pre-tokenizer puts a space before a text.
local function prefixes(pre)
  if type(pre) ~= "table" then
    return false
  end
  for _, part in ipairs(type(pre.pretokenizers) == "table" and pre.pretokenizers or {}) do
    if prefixes(part) then
      return true
    end
  end
  return pre.type == "ByteLevel" and pre.add_prefix_space ~= false
    or pre.type == "Metaspace" and pre.add_prefix_space ~= false and pre.prepend_scheme ~= "never"
end

local CLEANED = {
  { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" }, { " n't", "n't" }, { " 'm", "'m" }, { " 's", "'s" },
  { " 've", "'ve" }, { " 're", "'re" },
}

-- Adds steps to the decoder that change a decoded text as transformers does with clean_up_tokenization_spaces. A tokenizer of
-- byte pair encoding gets none.
local function clean_up(c, file, s)
  if not s:flag("clean_up_tokenization_spaces", false) or models.type_of(file.model) == "BPE" then
    return
  elseif given(file.decoder) == nil then
    return c.ignored:add(s.path, "clean_up_tokenization_spaces", "tokenizer.json has no decoder whose text could be cleaned up")
  end
  local steps = { file.decoder, { type = "Fuse" } }
  for _, pair in ipairs(CLEANED) do
    steps[#steps + 1] = { type = "Replace", pattern = { String = pair[1] }, content = pair[2] }
  end
  file.decoder = { type = "Sequence", decoders = steps }
end

local function direction(part)
  part = given(part)
  local value = type(part) == "table" and given(part.direction) or nil
  return value == "Left" and "left" or value == "Right" and "right" or nil
end

-- ---- All of them ----------------------------------------------------------------------------------------------------------

-- The tokenizer class by the files of a folder, if no file and no model_type names a class.
local function guess(files, s, vocab)
  if files.vocabulary then
    return classes.named "BertTokenizer"
  end
  local cls = s.named.cls_token and s.named.cls_token.content or "<s>"
  return classes.named(vocab[cls] and "RobertaTokenizer" or "GPT2Tokenizer")
end

local KINDS = { WordPiece = "vocab.txt", BPE = "vocab.json with merges.txt", Unigram = "a SentencePiece model" }

local function no_tokenizer(c, class)
  if class then
    fail("'%s' has no tokenizer of tokenizer_class %s: neither tokenizer.json nor %s", c.folder or c.dir, class.stated,
      KINDS[class.model] or "a SentencePiece model")
  end
  fail("'%s' has no tokenizer: neither tokenizer.json nor vocab.txt, vocab.json with merges.txt, or a SentencePiece model",
    c.folder or c.dir)
end

-- The tokenizer of a tokenizer.json as it is, with the tokens that the folder adds.
local function as_it_is(file, s)
  local padding = given(file.padding)
  if s.named.pad_token == nil and type(padding) == "table" and type(padding.pad_token) == "string" then
    s.named.pad_token = folder.plain(padding.pad_token)
  end
  local own = read.list(given(file.added_tokens) or {}, file.path, "added_tokens")
  local all = { unpack(own) }
  for _, t in ipairs(added.list(s, own)) do
    all[#all + 1] = t
  end
  file.added_tokens = all
  return file
end

local function from_json(c, files, class)
  local path = files.tokenizer
  local own = unigram.file(path)
  local s = folder.read(c, own)
  schema.check(own, path, c.ignored, class and class.make ~= nil)
  if not class or not class.make then
    own.path = path
    if class and class.other then
      c.ignored:add(files.tokenizer_config or path, "tokenizer_class",
        class.name .. " is not known here; tokenizer.json is taken as it is")
    end
    return as_it_is(own, s), path, s, own
  end
  with_defaults(s, class)
  local file = made_by(class, parts_of(own, path, class), s)
  classes.differences(own, file, path, function(name)
    c.ignored:add(path, name, ("tokenizer_class %s has its own"):format(class.name))
  end)
  return file, path, s, own
end

-- From a SentencePiece model: by a class, or by the model's own settings.
local function from_pieces(path, class, s)
  local m = sentencepiece.read(path)
  sentencepiece.check_class(m, class and class.model and class.name, class and class.stated)
  if not s.extra or s.weak then
    s.extra = sentencepiece.added(m, class and class.make)
  end
  if class and class.make then
    with_defaults(s, class)
    return made_by(class, sentencepiece.parts(m, class.name, s), s), path, s
  end
  local file = sentencepiece.plain(m)
  s.named.unk_token = s.named.unk_token == nil and folder.plain(m.trainer.unk_piece) or s.named.unk_token
  file.path, file.added_tokens = path, {}
  return as_it_is(file, s), path, s
end

local function from_vocabulary(c, files, class)
  local s, kind, x = folder.read(c), class and class.model, nil
  if class and class.python and (files.vocabulary or files.pieces or files.sentencepiece) then
    fail("'%s': a vocabulary of tokenizer_class '%s' is not supported; a tokenizer.json beside it would say everything itself",
      files.vocabulary or files.pieces or files.sentencepiece, class.stated)
  elseif files.vocabulary and (kind == "WordPiece" or not class) then
    x = read_lines(files.vocabulary)
  elseif files.pieces and files.merges and (kind == "BPE" or not class) then
    x = read_pieces(files)
  elseif files.sentencepiece and (kind == "Unigram" or not kind) then
    return from_pieces(files.sentencepiece, class, s)
  else
    no_tokenizer(c, class)
  end
  class = class or guess(files, s, x.vocab)
  with_defaults(s, class)
  return made_by(class, x, s), x.path, s, nil, class
end

-- Texts of special tokens by key.
local function texts(s)
  local special = {}
  for key, t in pairs(s.named) do
    special[key] = t and t.content or nil
  end
  return special
end

--- Reads the tokenizer of the checkpoint c (from perigee.checkpoint). Keys without effect are put on c.ignored. Returns
--   1. the decoded tokenizer.json
--   2. the path of the file that it is from
--   3. the known texts of special tokens by key, { mask_token = "<mask>" }
--   4. { left = whether long texts are cut off at their beginning }
function M.read(c)
  local files, class = c:tokenizer_files(), classes.of(c)
  local file, path, s, own, guessed = (files.tokenizer and from_json or from_vocabulary)(c, files, class)
  class = class or guessed or classes.named "TokenizersBackend"
  keys.check(c, { class = class, lowers = lowers(file.normalizer), prefixed = prefixes(file.pre_tokenizer) })
  if own and direction(own.padding) == "left" and given(c.tokenizer_config.padding_side) == nil then
    c.ignored:add(path, "padding.direction", "sequences are not padded")
  end
  if files.lower then
    in_lower_case(file)
  end
  clean_up(c, file, s)
  file.one_type = c.files.config ~= nil and not keys.gives_types(c, class)
  return file, path, texts(s), { left = keys.truncation_side(c, own and direction(own.truncation)) == "left" }
end

return M
