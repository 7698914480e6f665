--- A checkpoint's tokenizer as a decoded tokenizer.json: the file itself, or the equivalent that transformers 5 makes
-- (classes.lua) from vocab.txt, from vocab.json and merges.txt, or from a SentencePiece model, each with the small files in the
-- same folder (folder.lua).
local json = require "perigee.base.json"
local added = require "perigee.tokenizer.added"
local adjust = require "perigee.tokenizer.adjust"
local classes = require "perigee.tokenizer.classes"
local folder = require "perigee.tokenizer.folder"
local keys = require "perigee.tokenizer.keys"
local models = require "perigee.tokenizer.models"
local read = require "perigee.tokenizer.read"
local schema = require "perigee.tokenizer.schema"
local sentencepiece = require "perigee.tokenizer.sentencepiece"
local unigram = require "perigee.tokenizer.unigram"
local vocabularies = require "perigee.tokenizer.vocabularies"
local fail, given = read.fail, read.given

local M = {}

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

-- Adds the class's default special tokens for the keys that no file names, and applies the class's rules for tokens that are
-- given as a text alone (spaced and objects of classes.lua).
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

-- The tokenizer that a class makes of x = { vocab =, merges =, charsmap =, unk =, path = }. vocab: ids by pieces or, for Unigram,
-- what unigram.file gives. Adds to x: folder, and the ids of special tokens (ids, first) that the class's make reads.
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

-- ---- Facts about a tokenizer.json -----------------------------------------------------------------------------------------

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

-- The direction of the object `truncation` or `padding` of a tokenizer.json: "left", "right", or nil if it gives none.
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

-- A tokenizer.json that is used as it is, with the tokens added that the folder's small files have.
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
    fail("'%s': a vocabulary of tokenizer_class '%s' is not supported; expected a tokenizer.json in the same folder",
      files.vocabulary or files.pieces or files.sentencepiece, class.stated)
  elseif files.vocabulary and (kind == "WordPiece" or not class) then
    x = vocabularies.lines(files.vocabulary)
  elseif files.pieces and files.merges and (kind == "BPE" or not class) then
    x = vocabularies.pairs(files)
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
  keys.check(c, { class = class, lowers = adjust.lowers(file.normalizer), prefixed = prefixes(file.pre_tokenizer) })
  if own and direction(own.padding) == "left" and given(c.tokenizer_config.padding_side) == nil then
    c.ignored:add(path, "padding.direction", "sequences are not padded")
  end
  if files.lower then
    adjust.lower(file)
  end
  adjust.clean_up(c, file, s)
  file.one_type = c.files.config ~= nil and not keys.gives_types(c, class)
  return file, path, texts(s), { left = keys.truncation_side(c, own and direction(own.truncation)) == "left" }
end

return M
