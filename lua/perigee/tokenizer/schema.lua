--- The keys of a tokenizer.json: those of the file, and those of each component by its type. A key that is not in these tables
-- has no effect here or in tokenizers, and is put on the list of ignored keys. The modules that read a key check its value.
local read = require "perigee.tokenizer.read"
local set = require "perigee.base.set"

local M = {}

local FILE = set "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model"
local TRUNCATION = set "direction max_length strategy stride"
local PADDING = set "strategy direction pad_to_multiple_of pad_id pad_type_id pad_token"
local ADDED = set "id content single_word lstrip rstrip normalized special"

local MODELS = {
  WordPiece = set "type unk_token continuing_subword_prefix max_input_chars_per_word vocab",
  BPE = set("type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback ignore_merges vocab "
    .. "merges"),
  Unigram = set "type unk_id vocab byte_fallback",
}

-- Keys of normalizers, pre-tokenizers, post-processors and decoders by their type, besides `type`.
local COMPONENTS = {
  BertNormalizer = set "clean_text handle_chinese_chars strip_accents lowercase",
  Strip = set "strip_left strip_right content start stop",
  Replace = set "pattern content", Prepend = set "prepend", Precompiled = set "precompiled_charsmap",
  Metaspace = set "replacement str_rep add_prefix_space prepend_scheme split", Split = set "pattern behavior invert",
  ByteLevel = set "add_prefix_space trim_offsets use_regex", Punctuation = set "behavior", Digits = set "individual_digits",
  CharDelimiterSplit = set "delimiter", FixedLength = set "length", WordPiece = set "prefix cleanup", BPEDecoder = set "suffix",
  BertProcessing = set "sep cls", RobertaProcessing = set "sep cls trim_offsets add_prefix_space",
  TemplateProcessing = set "single pair special_tokens",
}
local PARTS = { "normalizer", "pre_tokenizer", "post_processor", "decoder" }
local INNER = { "normalizers", "pretokenizers", "processors", "decoders" }

local function check_object(object, known, name, found)
  for key in pairs(type(object) == "table" and object or {}) do
    if not known[key] and key ~= "type" then
      found(name .. key)
    end
  end
end

local function check_component(c, name, found)
  if type(c) ~= "table" or type(c.type) ~= "string" then
    return
  end
  local known = c.type == "Sequence" and set(table.concat(INNER, " ")) or COMPONENTS[c.type] or {}
  check_object(c, known, name .. c.type .. ".", found)
  for _, inner in ipairs(INNER) do
    for _, part in ipairs(c.type == "Sequence" and type(c[inner]) == "table" and c[inner] or {}) do
      check_component(part, name, found)
    end
  end
end

--- Puts the unknown keys of a decoded tokenizer.json on the list `ignored`. rebuilt: whether only the vocabulary of the file is
-- used, because a class makes the other components; their keys are then not checked.
function M.check(file, path, ignored, rebuilt)
  local function found(key)
    ignored:add(path, key, "this key is not known")
  end
  check_object(file, FILE, "", found)
  check_object(file.truncation, TRUNCATION, "truncation.", found)
  check_object(file.padding, PADDING, "padding.", found)
  for _, token in ipairs(type(file.added_tokens) == "table" and file.added_tokens or {}) do
    check_object(token, ADDED, "added_tokens.", found)
  end
  if type(file.model) == "table" then
    check_object(file.model, MODELS[file.model.type] or file.model, "model.", found)
  end
  for _, part in ipairs(rebuilt and {} or PARTS) do
    local c = read.given(file[part])
    if type(c) == "table" then
      check_component(c, part .. ".", found)
    end
  end
end

return M
