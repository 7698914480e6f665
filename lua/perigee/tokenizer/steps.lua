--- The components of a tokenizer.json except its model. Normalizers, pre-tokenizers and decoders become lists of steps, which C
-- runs one after another; post-processors become templates. A component that is not supported is an error that names it.
--
-- A step is { kind = C.PGEE_STEP_..., a =, b =, c =, d =, text =, more = }. perigee.h says, for each kind, what these fields
-- mean.
local pgee = require "perigee.ffi"
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local unigram = require "perigee.tokenizer.unigram"
local C = pgee.C
local fail, given, expect, optional = read.fail, read.given, read.expect, read.optional

local M = {}

-- ---- One step -------------------------------------------------------------------------------------------------------------

local function flag(c, key, path, default)
  if default ~= nil then
    return optional(c[key], "boolean", default, path, "%s of %s", key, c.type)
  end
  return expect(c[key], "boolean", path, "%s of %s", key, c.type)
end

-- The text of a pattern, and whether it is a regular expression.
local function pattern(c, path)
  local p = expect(c.pattern, "table", path, "the pattern of %s", c.type)
  local regex = given(p.Regex)
  local text = expect(regex or given(p.String), "string", path, "the pattern of %s", c.type)
  return text, regex ~= nil
end

local BEHAVIORS = {
  Removed = C.PGEE_REMOVED, Isolated = C.PGEE_ISOLATED, Contiguous = C.PGEE_CONTIGUOUS,
  MergedWithPrevious = C.PGEE_MERGED_WITH_PREVIOUS, MergedWithNext = C.PGEE_MERGED_WITH_NEXT,
}

local function behavior(c, path)
  local name = optional(c.behavior, "string", "Isolated", path, "the behavior of %s", c.type)
  return BEHAVIORS[name] or fail("'%s': the behavior of %s is '%s', expected Removed, Isolated, MergedWithPrevious, "
    .. "MergedWithNext or Contiguous", path, c.type, name)
end

local function replace(c, path)
  local text, regex = pattern(c, path)
  if text == "" then
    fail("'%s': the pattern of Replace is empty, which is not supported", path)
  end
  local content = expect(c.content, "string", path, "the content of Replace")
  return { kind = C.PGEE_STEP_REPLACE, text = text, a = regex, more = content }
end

local SCHEMES = { never = C.PGEE_PREPEND_NEVER, first = C.PGEE_PREPEND_FIRST, always = C.PGEE_PREPEND_ALWAYS }

local function metaspace(c, path)
  local scheme = optional(c.prepend_scheme, "string", nil, path, "the prepend_scheme of Metaspace")
  local prefix = optional(c.add_prefix_space, "boolean", nil, path, "add_prefix_space of Metaspace") -- what older files have
  if prefix == false and scheme ~= nil and scheme ~= "never" then
    fail("'%s': add_prefix_space of Metaspace is false, but its prepend_scheme is '%s'", path, scheme)
  end
  scheme = prefix == false and "never" or scheme or "always"
  return {
    kind = C.PGEE_STEP_METASPACE, a = read.character(c.replacement, path, "the replacement of Metaspace"),
    b = SCHEMES[scheme] or fail("'%s': the prepend_scheme of Metaspace is '%s', expected never, first or always", path, scheme),
    c = flag(c, "split", path, true),
  }
end

local function byte_level(c, path)
  return {
    kind = C.PGEE_STEP_BYTE_LEVEL, a = flag(c, "add_prefix_space", path, true), b = flag(c, "use_regex", path, true),
  }
end

local function plain(kind)
  return function()
    return { kind = kind }
  end
end

local NORMALIZERS = {
  BertNormalizer = function(c, path)
    local lowercase = flag(c, "lowercase", path)
    return {
      kind = C.PGEE_STEP_BERT_NORMALIZER, a = flag(c, "clean_text", path), b = flag(c, "handle_chinese_chars", path),
      c = flag(c, "strip_accents", path, lowercase), d = lowercase,
    }
  end,
  NFC = plain(C.PGEE_STEP_NFC), NFD = plain(C.PGEE_STEP_NFD), NFKC = plain(C.PGEE_STEP_NFKC), NFKD = plain(C.PGEE_STEP_NFKD),
  Lowercase = plain(C.PGEE_STEP_LOWERCASE), StripAccents = plain(C.PGEE_STEP_STRIP_ACCENTS), Nmt = plain(C.PGEE_STEP_NMT),
  ByteLevel = plain(C.PGEE_STEP_BYTE_LEVEL_NORMALIZER), Replace = replace,
  Strip = function(c, path)
    return { kind = C.PGEE_STEP_STRIP, a = flag(c, "strip_left", path), b = flag(c, "strip_right", path) }
  end,
  Prepend = function(c, path)
    return { kind = C.PGEE_STEP_PREPEND, text = expect(c.prepend, "string", path, "prepend of Prepend") }
  end,
  Precompiled = function(c, path)
    return { kind = C.PGEE_STEP_PRECOMPILED, charsmap = unigram.charsmap(c, path) }
  end,
}

local PRE_TOKENIZERS = {
  BertPreTokenizer = plain(C.PGEE_STEP_BERT_PRE_TOKENIZER), Whitespace = plain(C.PGEE_STEP_WHITESPACE),
  WhitespaceSplit = plain(C.PGEE_STEP_WHITESPACE_SPLIT), Metaspace = metaspace, ByteLevel = byte_level,
  Punctuation = function(c, path)
    return { kind = C.PGEE_STEP_PUNCTUATION, a = behavior(c, path) }
  end,
  Digits = function(c, path)
    return { kind = C.PGEE_STEP_DIGITS, a = flag(c, "individual_digits", path) }
  end,
  Split = function(c, path)
    local text, regex = pattern(c, path)
    return { kind = C.PGEE_STEP_SPLIT, text = text, a = regex, b = behavior(c, path), c = flag(c, "invert", path) }
  end,
  CharDelimiterSplit = function(c, path)
    return { kind = C.PGEE_STEP_CHAR_DELIMITER, a = read.character(c.delimiter, path, "the delimiter of CharDelimiterSplit") }
  end,
  FixedLength = function(c, path)
    local length = read.integer(c.length == nil and 5 or c.length, path, "the length of FixedLength")
    return { kind = C.PGEE_STEP_FIXED_LENGTH, a = length > 0 and length or fail("'%s': the length of FixedLength is 0", path) }
  end,
}

local DECODERS = {
  Metaspace = metaspace, ByteLevel = plain(C.PGEE_STEP_BYTE_LEVEL), Replace = replace,
  Fuse = plain(C.PGEE_STEP_DECODE_FUSE), ByteFallback = plain(C.PGEE_STEP_BYTE_FALLBACK),
  WordPiece = function(c, path)
    return {
      kind = C.PGEE_STEP_DECODE_WORDPIECE, text = expect(c.prefix, "string", path, "the prefix of the decoder WordPiece"),
      a = flag(c, "cleanup", path, true),
    }
  end,
  BPEDecoder = function(c, path)
    return { kind = C.PGEE_STEP_DECODE_BPE, text = expect(c.suffix, "string", path, "the suffix of BPEDecoder") }
  end,
  Strip = function(c, path)
    return {
      kind = C.PGEE_STEP_DECODE_STRIP, a = read.character(c.content, path, "the content of Strip"),
      b = read.integer(c.start, path, "the start of Strip"), c = read.integer(c.stop, path, "the stop of Strip"),
    }
  end,
}

-- ---- A component, or a sequence of components ------------------------------------------------------------------------------

local function names(makers)
  local list = { "Sequence" }
  for name in pairs(makers) do
    list[#list + 1] = name
  end
  table.sort(list)
  return table.concat(list, ", ", 1, #list - 1) .. " or " .. list[#list]
end

local function collect(component, makers, what, key, path, steps)
  local c = expect(component, "table", path, "the %s", what)
  if c.type == "Sequence" then
    for _, part in ipairs(read.list(c[key], path, "%s of the %s", key, what)) do
      collect(part, makers, what, key, path, steps)
    end
  elseif makers[c.type] then
    steps[#steps + 1] = makers[c.type](c, path)
  else
    fail("'%s': the %s is of type %s, which is not supported; expected %s", path, what,
      type(c.type) == "string" and "'" .. c.type .. "'" or json.describe(c.type), names(makers))
  end
  return steps
end

local function component(makers, what, key)
  return function(file, path)
    return given(file[what]) == nil and {} or collect(file[what], makers, what, key, path, {})
  end
end

--- Functions of (file, path) that return the list of steps of a component; an empty list if the file does not have it.
M.normalizers = component(NORMALIZERS, "normalizer", "normalizers")
M.pre_tokenizers = component(PRE_TOKENIZERS, "pre_tokenizer", "pretokenizers")
M.decoders = component(DECODERS, "decoder", "decoders")

-- ---- Post-processors ------------------------------------------------------------------------------------------------------

local A, B = C.PGEE_TEXT_A, C.PGEE_TEXT_B
local TEXTS = { A = A, B = B }

-- { "[CLS]", 101 }
local function token_id(post, key, path)
  return read.integer(expect(post[key], "table", path, "%s of the post_processor", key)[2], path, "the id of %s", key)
end

local function template_ids(post, name, path)
  local tokens = expect(post.special_tokens, "table", path, "special_tokens of the post_processor")
  local token = expect(tokens[name], "table", path, "the special token '%s' of the post_processor", tostring(name))
  return read.list(token.ids, path, "ids of '%s' in the post_processor", name)
end

local function template(post, key, path)
  local list = {}
  for i, piece in ipairs(read.list(post[key], path, "the template '%s' of the post_processor", key)) do
    expect(piece, "table", path, "piece %d of a template of the post_processor", i)
    local sequence, special = given(piece.Sequence), given(piece.SpecialToken)
    local part = expect(sequence or special, "table", path, "piece %d of a template of the post_processor", i)
    local type_id = read.integer(part.type_id, path, "the type_id of piece %d of a template of the post_processor", i)
    if sequence then
      local text = TEXTS[part.id or json.null] or fail("'%s': the text of piece %d of a template of the post_processor is %s, "
        .. "expected 'A' or 'B'", path, i, json.describe(part.id))
      list[#list + 1] = { text, type_id }
    else
      for _, id in ipairs(template_ids(post, part.id, path)) do
        list[#list + 1] = { read.integer(id, path, "an id of '%s' in the post_processor", part.id), type_id }
      end
    end
  end
  return list
end

local function trim(into, post, path)
  if flag(post, "trim_offsets", path, true) then
    if into.trim_offsets then
      fail("'%s': two post-processors that trim offsets are not supported", path)
    end
    into.trim_offsets, into.add_prefix_space = true, flag(post, "add_prefix_space", path, true)
  end
end

local PROCESSORS = {
  ByteLevel = trim,
  BertProcessing = function(into, post, path)
    local cls, sep = token_id(post, "cls", path), token_id(post, "sep", path)
    into.single = { { cls, 0 }, { A, 0 }, { sep, 0 } }
    into.pair = { { cls, 0 }, { A, 0 }, { sep, 0 }, { B, 1 }, { sep, 1 } }
  end,
  RobertaProcessing = function(into, post, path)
    local cls, sep = token_id(post, "cls", path), token_id(post, "sep", path)
    trim(into, post, path)
    into.single = { { cls, 0 }, { A, 0 }, { sep, 0 } }
    into.pair = { { cls, 0 }, { A, 0 }, { sep, 0 }, { sep, 0 }, { B, 0 }, { sep, 0 } }
  end,
  TemplateProcessing = function(into, post, path)
    into.single, into.pair = template(post, "single", path), template(post, "pair", path)
  end,
}

local function process(into, post, path)
  expect(post, "table", path, "the post_processor")
  if post.type == "Sequence" then
    for _, part in ipairs(read.list(post.processors, path, "processors of the post_processor")) do
      process(into, part, path)
    end
    return
  end
  local done = PROCESSORS[post.type] or fail("'%s': the post_processor is of type %s, which is not supported; expected %s", path,
    type(post.type) == "string" and "'" .. post.type .. "'" or json.describe(post.type), names(PROCESSORS))
  if into.single then
    fail("'%s': the post-processor %s follows one that adds special tokens, which is not supported", path, post.type)
  end
  done(into, post, path)
end

--- The post-processor: { single =, pair =, trim_offsets =, add_prefix_space = }. single and pair are templates, lists of { id
-- of a token, or C.PGEE_TEXT_A or _B; token type }; nil if no special tokens are added.
function M.post_processor(file, path)
  local into = {}
  if given(file.post_processor) ~= nil then
    process(into, file.post_processor, path)
  end
  return into
end

return M
