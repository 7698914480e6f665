--- Tokenizer classes of transformers 5: the tokenizer that each class makes of a vocabulary and of tokenizer_config.json.
--
-- In version 5 a class makes its own normalizer, pre-tokenizer, post-processor and decoder. A class takes only the vocabulary,
-- the merges and a precompiled charsmap from a tokenizer.json. TokenizersBackend (once PreTrainedTokenizerFast) takes
-- tokenizer.json as it is.
--
-- An entry of CLASSES:
--   model      the type of the vocabulary: "WordPiece", "BPE" or "Unigram"
--   special    texts of the special tokens that no file names
--   spaced     { special = boolean } if a mask token that is given as a text alone also matches the space before it; special:
--              the mask token's flag
--   objects    whether the class makes token objects of special tokens that are given as texts alone. An extra token with the
--              same text is then a different token, and its flags are used
--   extra      special tokens that the class adds unless a file lists extra ones
--   types      whether a pair's second text has token type 1
--   takes      keys of tokenizer_config.json that the class obeys, besides those that all classes obey
--   make(x)    returns the tokenizer in the form of a decoded tokenizer.json, without added_tokens. x: made_by in files.lua
local steps = require "perigee.tokenizer.steps"

local M = {}

local SPACE = "\226\150\129" -- U+2581, which stands for ' '

-- ---- Post-processors ------------------------------------------------------------------------------------------------------

-- A post-processor of type `kind` that adds the class token before a text and the separator after each text.
local function between(x, kind)
  local cls, sep = x.folder:text "cls_token", x.folder:text "sep_token"
  return { type = kind, cls = { cls, x.ids[cls] }, sep = { sep, x.ids[sep] } }
end

-- A template such as "cls_token:0 $A:0 sep_token:0": a key of a special token, or a text, and its token type.
local function template(x, text)
  local list = {}
  for name, type_id in text:gmatch "(%S+):(%d)" do
    local kind = name:sub(1, 1) == "$" and "Sequence" or "SpecialToken"
    list[#list + 1] = { [kind] = { id = kind == "Sequence" and name:sub(2) or x.folder:text(name), type_id = tonumber(type_id) } }
  end
  return list
end

local function templates(x, single, pair)
  local tokens = {}
  for name in pair:gmatch "([%l_]+):%d" do
    local text = x.folder:text(name)
    tokens[text] = { id = text, ids = { x.ids[text] }, tokens = { text } }
  end
  return {
    type = "TemplateProcessing", single = template(x, single), pair = template(x, pair), special_tokens = tokens,
  }
end

-- ---- WordPiece ------------------------------------------------------------------------------------------------------------

local function wordpiece(x, post)
  local f = x.folder
  local lowercase = f:flag("do_lower_case", true)
  return {
    model = {
      type = "WordPiece", vocab = x.vocab, unk_token = f:text "unk_token", continuing_subword_prefix = "##",
      max_input_chars_per_word = 100,
    },
    normalizer = {
      type = "BertNormalizer", clean_text = true, handle_chinese_chars = f:flag("tokenize_chinese_chars", true),
      strip_accents = f:flag "strip_accents", lowercase = lowercase,
    },
    pre_tokenizer = { type = "BertPreTokenizer" }, decoder = { type = "WordPiece", prefix = "##", cleanup = true },
    post_processor = post,
  }
end

local function bert(x)
  return wordpiece(x, between(x, "BertProcessing"))
end

local function mpnet(x)
  local post = between(x, "RobertaProcessing")
  post.trim_offsets, post.add_prefix_space = true, false
  return wordpiece(x, post)
end

-- ---- Byte pair encoding ---------------------------------------------------------------------------------------------------

local function bytes(x, post)
  local prefix = x.folder:flag("add_prefix_space", false)
  return {
    model = { type = "BPE", vocab = x.vocab, merges = x.merges },
    pre_tokenizer = { type = "ByteLevel", add_prefix_space = prefix, trim_offsets = true, use_regex = true },
    decoder = { type = "ByteLevel", add_prefix_space = true, trim_offsets = true, use_regex = true },
    post_processor = post,
  }
end

local function roberta(x)
  local post = between(x, "RobertaProcessing")
  post.trim_offsets, post.add_prefix_space = x.folder:flag("trim_offsets", true), x.folder:flag("add_prefix_space", false)
  return bytes(x, post)
end

-- ---- Unigram --------------------------------------------------------------------------------------------------------------

local function unigram(x, unk, prefix, post)
  local metaspace = { type = "Metaspace", replacement = SPACE, prepend_scheme = prefix and "always" or "never", split = true }
  return {
    model = { type = "Unigram", vocab = x.vocab, unk_id = unk, byte_fallback = false }, normalizer = x.charsmap,
    pre_tokenizer = { type = "Sequence", pretokenizers = { { type = "WhitespaceSplit" }, metaspace } },
    decoder = metaspace, post_processor = post,
  }
end

local function fairseq(x)
  return templates(x, "bos_token:0 $A:0 eos_token:0", "bos_token:0 $A:0 eos_token:0 eos_token:0 $B:0 eos_token:0")
end

local function xlm_roberta(x)
  return unigram(x, 3, x.folder:flag("add_prefix_space", true), fairseq(x))
end

local function camembert(x)
  local unk = x.first[x.folder:text "unk_token"] or 0
  return unigram(x, unk, x.folder:flag("add_prefix_space", true), fairseq(x))
end

local function xlnet(x)
  local post = templates(x, "$A:0 sep_token:0 cls_token:2", "$A:0 sep_token:0 $B:1 sep_token:1 cls_token:2")
  local file = unigram(x, x.unk or x.folder:integer("unk_id", 0), true, post)
  local list = {
    { type = "Replace", pattern = { String = "``" }, content = '"' },
    { type = "Replace", pattern = { String = "''" }, content = '"' }, { type = "NFKD" }, { type = "StripAccents" },
  }
  if x.folder:flag("do_lower_case", false) then
    list[#list + 1] = { type = "Lowercase" }
  end
  list[#list + 1] = x.charsmap
  file.normalizer = { type = "Sequence", normalizers = list }
  return file
end

-- ---- The classes ----------------------------------------------------------------------------------------------------------

local BERT = { unk_token = "[UNK]", sep_token = "[SEP]", pad_token = "[PAD]", cls_token = "[CLS]", mask_token = "[MASK]" }

local function angled(unk)
  return {
    bos_token = "<s>", eos_token = "</s>", sep_token = "</s>", cls_token = "<s>", unk_token = unk, pad_token = "<pad>",
    mask_token = "<mask>",
  }
end

local XLNET = angled "<unk>"
XLNET.sep_token, XLNET.cls_token = "<sep>", "<cls>"

local GPT2 = { unk_token = "<|endoftext|>", bos_token = "<|endoftext|>", eos_token = "<|endoftext|>" }

local CASE = { do_lower_case = true, strip_accents = true, tokenize_chinese_chars = true }
local BYTES = { add_prefix_space = true, trim_offsets = true }

local CLASSES = {
  BertTokenizer = { model = "WordPiece", special = BERT, types = true, takes = CASE, make = bert },
  DistilBertTokenizer = { model = "WordPiece", special = BERT, takes = CASE, make = bert },
  MPNetTokenizer = {
    model = "WordPiece", special = angled "[UNK]", spaced = { special = false }, objects = true, takes = CASE, make = mpnet,
  },
  RobertaTokenizer = { model = "BPE", special = angled "<unk>", takes = BYTES, make = roberta },
  GPT2Tokenizer = { model = "BPE", special = GPT2, takes = { add_prefix_space = true }, make = bytes },
  XLMRobertaTokenizer = { model = "Unigram", special = angled "<unk>", takes = { add_prefix_space = true }, make = xlm_roberta },
  CamembertTokenizer = {
    model = "Unigram", special = angled "<unk>", spaced = { special = true }, takes = { add_prefix_space = true },
    make = camembert, extra = { "<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED" },
  },
  XLNetTokenizer = {
    model = "Unigram", special = XLNET, spaced = { special = false }, takes = { do_lower_case = true, unk_id = true },
    make = xlnet, extra = { "<eop>", "<eod>" },
  },
  TokenizersBackend = { special = {}, takes = {} },
}

local ALIASES = {
  ElectraTokenizer = "BertTokenizer", LxmertTokenizer = "BertTokenizer", MobileBertTokenizer = "BertTokenizer",
  SqueezeBertTokenizer = "BertTokenizer", BartTokenizer = "RobertaTokenizer", LEDTokenizer = "RobertaTokenizer",
  LongformerTokenizer = "RobertaTokenizer", MvpTokenizer = "RobertaTokenizer", PreTrainedTokenizer = "TokenizersBackend",
  PythonBackend = "TokenizersBackend",
}

-- The class by model_type, for checkpoints whose files name no class.
local BY_MODEL = {
  bert = "BertTokenizer", distilbert = "BertTokenizer", electra = "BertTokenizer", mpnet = "MPNetTokenizer",
  roberta = "RobertaTokenizer", ["roberta-prelayernorm"] = "RobertaTokenizer", camembert = "CamembertTokenizer",
  ["xlm-roberta"] = "XLMRobertaTokenizer", xlnet = "XLNetTokenizer", gpt2 = "GPT2Tokenizer",
}

-- Classes whose vocabulary files cannot be used here, because these classes cut words or merge pieces in another way.
local OTHERS = {
  BertJapaneseTokenizer = true, BertweetTokenizer = true, PhobertTokenizer = true, CLIPTokenizer = true, CTRLTokenizer = true,
  FlaubertTokenizer = true, HerbertTokenizer = true, OpenAIGPTTokenizer = true, XLMTokenizer = true,
}

--- The class of a checkpoint's tokenizer: an entry of CLASSES with the fields name, and stated = the name that the files give.
-- For an unknown class the field `other` is true, and its tokenizer.json is used as it is. Returns nil if neither the files nor
-- the model_type name a class.
function M.of(c)
  local stated
  for _, values in ipairs { c.tokenizer_config, c.config } do
    stated = stated or type(values.tokenizer_class) == "string" and values.tokenizer_class or nil
  end
  local name = stated and stated:gsub("Fast$", "") or BY_MODEL[c.config.model_type]
  if not name then
    return nil
  end
  name = name == "PreTrainedTokenizer" and "TokenizersBackend" or ALIASES[name] or name
  local class = CLASSES[name] or { special = {}, takes = {}, other = true, python = OTHERS[name] }
  return setmetatable({ name = name, stated = stated or name }, { __index = class })
end

--- The class of that name.
function M.named(name)
  return setmetatable({ name = name }, { __index = CLASSES[name] })
end

-- ---- Differences of a tokenizer.json from its class -----------------------------------------------------------------------

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return a == b or type(a) == "cdata" and type(b) == "cdata" and tonumber(a) == tonumber(b)
  end
  for key, value in pairs(a) do
    if not same(value, b[key]) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false
    end
  end
  return true
end

local PARTS = {
  { "normalizer", steps.normalizers }, { "pre_tokenizer", steps.pre_tokenizers }, { "decoder", steps.decoders },
  { "post_processor", steps.post_processor },
}
local MODEL = { "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "unk_id", "dropout", "fuse_unk",
  "byte_fallback", "ignore_merges", "end_of_word_suffix" }

--- Calls found(name) for each part of the tokenizer.json `own`, and of its model, that differs from `made`, which the class
-- makes.
function M.differences(own, made, path, found)
  for _, part in ipairs(PARTS) do
    local ok, theirs = pcall(part[2], own, path)
    if not (ok and same(theirs, part[2](made, path))) then
      found(part[1])
    end
  end
  for _, key in ipairs(MODEL) do
    local a, b = own.model[key], made.model[key]
    local neutral = a == nil or a == false or a == "" or type(a) == "userdata"
    if a ~= b and not (neutral and not b) then
      found("model." .. key)
    end
  end
end

return M
