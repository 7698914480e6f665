--- WordPiece as a checkpoint's files define it: tokenizer.json, or vocab.txt and its companions. perigee.tokenizer makes a
-- tokenizer of what is read here, a definition:
--
--   path      the file, for messages
--   vocab     piece -> id
--   added     list of { content =, id =, normalized =, single_word =, lstrip =, rstrip =, special = }
--   options   clean_text, handle_chinese_chars, strip_accents, lowercase, max_word_chars, prefix
--   unk       the unknown token's text
--   cls, sep  texts, or ids
--   pad, mask texts; a vocabulary may lack them
--   cleanup   whether decode takes the space before punctuation away; nil: it cannot decode
--
-- What is not WordPiece as BERT uses it is an error that names file and component.
local json = require "perigee.json"

local M = {}

local function fail(...)
  error(string.format(...), 0)
end

local function given(value)
  if value ~= json.null then
    return value
  end
end

-- ---- tokenizer.json -----------------------------------------------------------------------------------------------------

local function expect(value, kind, path, ...)
  if type(value) ~= kind then
    fail("'%s': %s is %s, expected a %s", path, string.format(...), json.describe(value), kind)
  end
  return value
end

local function integer(value, path, ...)
  if type(value) ~= "number" or value % 1 ~= 0 or value < 0 or value >= 2 ^ 31 then
    fail("'%s': %s is %s, expected an integer from 0 to 2^31 - 1", path, string.format(...), json.describe(value))
  end
  return value
end

-- A component of tokenizer.json, which must be of one of the types listed.
local function component(file, path, name, ...)
  local value = expect(file[name], "table", path, "the %s", name)
  for _, kind in ipairs { ... } do
    if value.type == kind then
      return value
    end
  end
  fail("'%s': the %s is of type '%s', expected %s", path, name, tostring(given(value.type)), table.concat({ ... }, " or "))
end

local function read_normalizer(file, path)
  if given(file.normalizer) == nil then
    return { clean_text = false, handle_chinese_chars = false, strip_accents = false, lowercase = false }
  end
  local n, o = component(file, path, "normalizer", "BertNormalizer"), {}
  for _, key in ipairs { "clean_text", "handle_chinese_chars", "lowercase" } do
    o[key] = expect(n[key], "boolean", path, "%s of the normalizer", key)
  end
  o.strip_accents = given(n.strip_accents)
  if o.strip_accents == nil then
    o.strip_accents = o.lowercase
  end
  expect(o.strip_accents, "boolean", path, "strip_accents of the normalizer")
  return o
end

-- A template as text: "[CLS]:0 $A:0 [SEP]:0".
local function template_text(pieces, path)
  local list = {}
  for i, piece in ipairs(expect(pieces, "table", path, "a template of the post_processor")) do
    expect(piece, "table", path, "piece %d of a template of the post_processor", i)
    local sequence, special = piece.Sequence, piece.SpecialToken
    local part = expect(sequence or special, "table", path, "piece %d of a template of the post_processor", i)
    list[i] = ("%s%s:%s"):format(sequence and "$" or "", tostring(part.id), tostring(part.type_id))
  end
  return table.concat(list, " "), list[1] and list[1]:match "^(.+):0$", list[3] and list[3]:match "^(.+):0$"
end

local function template_id(post, text, path)
  local token = expect(expect(post.special_tokens, "table", path, "special_tokens of the post_processor")[text], "table", path,
    "the special token '%s' of the post_processor", text)
  local ids = expect(token.ids, "table", path, "ids of '%s' in the post_processor", text)
  if #ids ~= 1 then
    fail("'%s': the special token '%s' of the post_processor has %d ids, expected one", path, text, #ids)
  end
  return integer(ids[1], path, "the id of '%s' in the post_processor", text)
end

-- Ids of what stands before and after a text.
local function read_post_processor(file, path)
  local post = component(file, path, "post_processor", "TemplateProcessing", "BertProcessing")
  if post.type == "BertProcessing" then
    local function id(key)
      return integer(expect(post[key], "table", path, "%s of the post_processor", key)[2], path, "the id of %s", key)
    end
    return id "cls", id "sep"
  end
  local single, cls, sep = template_text(post.single, path)
  local pair = template_text(post.pair, path)
  cls, sep = tostring(cls), tostring(sep)
  if single ~= ("%s:0 $A:0 %s:0"):format(cls, sep) or pair ~= ("%s:0 $A:0 %s:0 $B:1 %s:1"):format(cls, sep, sep) then
    fail("'%s': the post_processor's templates '%s' and '%s' are not supported, expected BERT's: '[CLS]:0 $A:0 [SEP]:0' and "
      .. "'[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1'", path, single, pair)
  end
  return template_id(post, cls, path), template_id(post, sep, path)
end

-- The reference takes the model's id for an added token that is a piece, and numbers on from the vocabulary's size for others.
local function read_added(file, path, vocab, size)
  local added, ids, place = {}, {}, {}
  for i, token in ipairs(expect(given(file.added_tokens) or {}, "table", path, "added_tokens")) do
    expect(token, "table", path, "added token %d", i)
    local content = expect(token.content, "string", path, "the content of added token %d", i)
    local a = { content = content }
    for _, key in ipairs { "normalized", "single_word", "lstrip", "rstrip", "special" } do
      a[key] = expect(token[key], "boolean", path, "%s of added token '%s'", key, content)
    end
    if content ~= "" then
      a.id = vocab[content] or ids[content]
      if not a.id then
        a.id, size = size, size + 1
      end
      ids[content] = a.id
      place[content] = place[content] or #added + 1
      added[place[content]] = a
    end
  end
  return added
end

local function count_pieces(vocab, path)
  local size = 0
  for piece, id in pairs(vocab) do
    integer(id, path, "the id of '%s'", tostring(piece))
    size = size + 1
  end
  return size
end

local function read_tokenizer(path, special)
  local file = json.object(path)
  local model = expect(file.model, "table", path, "the model")
  if model.type ~= nil or model.max_input_chars_per_word == nil then -- old files do not name it
    component(file, path, "model", "WordPiece")
  end
  component(file, path, "pre_tokenizer", "BertPreTokenizer")
  local d = { path = path, options = read_normalizer(file, path), pad = special.pad_token, mask = special.mask_token }
  d.cls, d.sep = read_post_processor(file, path)
  d.vocab = expect(model.vocab, "table", path, "the model's vocab")
  d.added = read_added(file, path, d.vocab, count_pieces(d.vocab, path))
  d.unk = expect(model.unk_token, "string", path, "the model's unk_token")
  d.options.prefix = expect(model.continuing_subword_prefix, "string", path, "the model's continuing_subword_prefix")
  d.options.max_word_chars = integer(model.max_input_chars_per_word, path, "the model's max_input_chars_per_word")
  local decoder = given(file.decoder)
  if type(decoder) == "table" and decoder.type == "WordPiece" then
    d.cleanup = decoder.cleanup ~= false
  end
  return d
end

-- ---- vocab.txt ---------------------------------------------------------------------------------------------------------

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

local function plain_token(content, id, special)
  return {
    content = content, id = id, normalized = not special, single_word = false, lstrip = false, rstrip = false, special = special,
  }
end

-- What tokenizer_config.json and added_tokens.json add to the vocabulary's special tokens.
local function read_companions(c, vocab, special)
  local by_content, added = {}, {}
  local function add(a)
    if a.content ~= "" and a.id and not by_content[a.content] then
      by_content[a.content] = true
      added[#added + 1] = a
    end
  end
  local path = c.files.tokenizer_config
  local decoder = expect(given(c.tokenizer_config.added_tokens_decoder) or {}, "table", path or "", "added_tokens_decoder")
  for id, token in pairs(decoder) do
    expect(token, "table", path, "entry %s of added_tokens_decoder", id)
    local content = expect(token.content, "string", path, "the content of entry %s of added_tokens_decoder", id)
    local a = plain_token(content, vocab[content] or tonumber(id), token.special == true)
    for _, key in ipairs { "normalized", "single_word", "lstrip", "rstrip" } do
      if type(token[key]) == "boolean" then
        a[key] = token[key]
      end
    end
    add(a)
  end
  local names = {}
  for _, text in pairs(special) do
    names[text] = true
  end
  local legacy = c.folder .. "/added_tokens.json"
  for content, id in pairs(json.exists(legacy) and json.object(legacy) or {}) do
    add(plain_token(content, vocab[content] or integer(id, legacy, "the id of '%s'", content), names[content] == true))
  end
  for _, text in pairs(special) do
    add(plain_token(text, vocab[text], true))
  end
  return added
end

local DEFAULTS = { unk_token = "[UNK]", cls_token = "[CLS]", sep_token = "[SEP]", pad_token = "[PAD]", mask_token = "[MASK]" }

local function read_vocabulary(c, files, special)
  local vocab = read_lines(files.vocabulary)
  return {
    path = files.vocabulary, vocab = vocab, added = read_companions(c, vocab, special), cleanup = true,
    unk = special.unk_token, cls = special.cls_token, sep = special.sep_token, pad = special.pad_token, mask = special.mask_token,
    options = { clean_text = true, handle_chinese_chars = files.chinese, strip_accents = files.strip_accents,
      lowercase = files.lowercase, max_word_chars = 100, prefix = "##" },
  }
end

--- The definition in a checkpoint (what perigee.checkpoint opened).
function M.read(c)
  local files = c:tokenizer_files()
  local special = {}
  for key, text in pairs(DEFAULTS) do
    special[key] = files.special[key] or text
  end
  if files.tokenizer then
    return read_tokenizer(files.tokenizer, special)
  elseif files.vocabulary then
    return read_vocabulary(c, files, special)
  end
  fail("'%s' has no tokenizer: neither tokenizer.json nor vocab.txt", c.folder)
end

return M
