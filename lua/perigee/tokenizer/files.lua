--- A checkpoint's tokenizer as a tokenizer.json says it, decoded: the file itself, or what vocab.txt, vocab.json and merges.txt,
-- or a SentencePiece model, with what stands beside them, come to in the reference library.
local json = require "perigee.json"
local added = require "perigee.tokenizer.added"
local read = require "perigee.tokenizer.read"
local sentencepiece = require "perigee.sentencepiece"
local unigram = require "perigee.unigram"
local fail, optional = read.fail, read.optional

local M = {}

-- ---- Special tokens --------------------------------------------------------------------------------------------------------

local function check_there(vocab, path, special, keys)
  local missing = {}
  for _, key in ipairs(keys) do
    missing[#missing + 1] = not vocab[special[key]] and special[key] or nil
  end
  if #missing > 0 then
    fail("'%s': the vocabulary has no %s", path, table.concat(missing, ", "))
  end
end

-- ---- Which tokenizer it is --------------------------------------------------------------------------------------------------

-- Tokenizers that have a vocab.txt, or a vocab.json and merges.txt, too, but whose words something else cuts, or whose pieces
-- something else merges.
local OTHERS = {
  BertJapaneseTokenizer = true, BertweetTokenizer = true, PhobertTokenizer = true,
  CLIPTokenizer = true, CTRLTokenizer = true, FlaubertTokenizer = true, HerbertTokenizer = true, OpenAIGPTTokenizer = true,
  XLMTokenizer = true,
}

local function check_kind(c, path, class)
  if class and OTHERS[class:gsub("Fast$", "")] then
    fail("'%s': a vocabulary of tokenizer_class '%s' is not supported; a tokenizer.json beside it would say everything itself",
      path, class)
  end
  for key, known in pairs { word_tokenizer_type = "basic", subword_tokenizer_type = "wordpiece" } do
    local value = read.given(c.tokenizer_config[key])
    if value ~= nil and value ~= known then
      fail("'%s': %s is %s, which is not supported, only %s", c.files.tokenizer_config, key, json.describe(value), known)
    end
  end
end

-- ---- vocab.txt ------------------------------------------------------------------------------------------------------------

-- One piece a line, ids from 0. Of equal lines the last counts.
local function read_lines(path)
  local text, why = json.text(path)
  if not text then
    fail("%s", why)
  end
  local vocab, id = {}, 0
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    vocab[line:gsub("%s+$", "")] = id
    id = id + 1
  end
  return vocab
end

local BERT = { unk_token = "[UNK]", cls_token = "[CLS]", sep_token = "[SEP]", pad_token = "[PAD]", mask_token = "[MASK]" }

local MPNET = {
  bos_token = "<s>", eos_token = "</s>", unk_token = "[UNK]", cls_token = "<s>", sep_token = "</s>", pad_token = "<pad>",
  mask_token = "<mask>",
}

local function from_lines(c, files)
  check_kind(c, files.vocabulary, files.class)
  local path, mpnet = files.vocabulary, files.class ~= nil and files.class:find "^MPNetTokenizer" ~= nil
  local vocab, special = read_lines(path), added.with_defaults(files.special, mpnet and MPNET or BERT)
  local tokens = added.all(c, added.special(special, mpnet), vocab)
  local ids = setmetatable({}, { __index = vocab })
  for _, a in ipairs(tokens) do
    ids[a.content] = ids[a.content] or a.id
  end
  check_there(ids, path, special, { "unk_token", "cls_token", "sep_token" })
  return {
    model = {
      type = "WordPiece", vocab = vocab, unk_token = special.unk_token, continuing_subword_prefix = "##",
      max_input_chars_per_word = 100,
    },
    normalizer = {
      type = "BertNormalizer", clean_text = true, handle_chinese_chars = files.chinese, strip_accents = files.strip_accents,
      lowercase = files.lowercase,
    },
    pre_tokenizer = { type = "BertPreTokenizer" }, decoder = { type = "WordPiece", prefix = "##", cleanup = true },
    post_processor = {
      type = mpnet and "RobertaProcessing" or "BertProcessing", cls = { special.cls_token, ids[special.cls_token] },
      sep = { special.sep_token, ids[special.sep_token] }, trim_offsets = true, add_prefix_space = false,
    },
    added_tokens = tokens, numbered = true,
  }, special
end

-- ---- vocab.json and merges.txt --------------------------------------------------------------------------------------------

-- Two pieces a line. The reference passes over a line that begins with #version.
local function read_merges(path)
  local text, why = json.text(path)
  if not text then
    fail("%s", why)
  end
  local merges = {}
  for line in (text:gsub("\r\n", "\n") .. "\n"):gmatch "([^\n]*)\n" do
    if line ~= "" and line:sub(1, 8) ~= "#version" then
      merges[#merges + 1] = line
    end
  end
  return merges
end

local ROBERTA = {
  bos_token = "<s>", eos_token = "</s>", sep_token = "</s>", cls_token = "<s>", unk_token = "<unk>", pad_token = "<pad>",
  mask_token = "<mask>",
}
local GPT2 = { bos_token = "<|endoftext|>", eos_token = "<|endoftext|>", unk_token = "<|endoftext|>" }

local function from_merges(c, files)
  local path = files.pieces
  check_kind(c, path, files.class)
  local vocab = json.object(path)
  for piece, id in pairs(vocab) do
    read.integer(id, path, "the id of '%s'", piece)
  end
  local roberta = vocab[files.special.cls_token or ROBERTA.cls_token] ~= nil
  if files.class then
    roberta = not files.class:find "^GPT2"
  end
  local special = added.with_defaults(files.special, roberta and ROBERTA or GPT2)
  local function flag(key, default)
    return optional(c.tokenizer_config[key], "boolean", default, c.files.tokenizer_config, "%s", key)
  end
  local prefix = flag("add_prefix_space", false)
  local file = {
    model = { type = "BPE", vocab = vocab, merges = read_merges(files.merges) },
    pre_tokenizer = { type = "ByteLevel", add_prefix_space = prefix, trim_offsets = true, use_regex = true },
    decoder = { type = "ByteLevel", add_prefix_space = prefix, trim_offsets = true, use_regex = true },
    added_tokens = added.all(c, added.special(special, roberta), vocab), numbered = true,
  }
  if roberta then
    check_there(vocab, path, special, { "cls_token", "sep_token" })
    file.post_processor = {
      type = "RobertaProcessing", trim_offsets = flag("trim_offsets", true), add_prefix_space = prefix,
      cls = { special.cls_token, vocab[special.cls_token] }, sep = { special.sep_token, vocab[special.sep_token] },
    }
  else
    file.post_processor = { type = "ByteLevel", add_prefix_space = true, trim_offsets = false, use_regex = true }
  end
  return file, special
end

-- ---- All of them ----------------------------------------------------------------------------------------------------------

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
    file.normalizer = { type = "Sequence", normalizers = { { type = "Lowercase" }, read.given(file.normalizer) } }
  end
  return file
end

local function from_folder(c, files)
  if files.tokenizer then
    return unigram.file(files.tokenizer), files.tokenizer, files.special
  elseif files.vocabulary then
    local file, special = from_lines(c, files)
    return file, files.vocabulary, special
  elseif files.pieces and files.merges then
    local file, special = from_merges(c, files)
    return file, files.pieces, special
  elseif files.sentencepiece then
    local model = sentencepiece.read(files.sentencepiece)
    local file = sentencepiece.file(model, files.class, files.special)
    file.added_tokens = added.all(c, file.added_tokens)
    return file, files.sentencepiece, files.special
  end
  fail("'%s' has no tokenizer: neither tokenizer.json nor vocab.txt, vocab.json with merges.txt, or a SentencePiece model",
    c.folder)
end

--- The tokenizer of a checkpoint (what perigee.checkpoint opened) as a decoded tokenizer.json; the path of the file that it is
-- from; texts of special tokens by key, { mask_token = "<mask>" }, as far as they are known.
function M.read(c)
  local files = c:tokenizer_files()
  local file, path, special = from_folder(c, files)
  return files.lower and in_lower_case(file) or file, path, special
end

return M
