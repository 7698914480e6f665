--- Definition: a decoded tokenizer.json as the struct pgee_tokenizer_definition, from which pgee_tokenizer_new makes a tokenizer.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local read = require "perigee.tokenizer.read"
local models = require "perigee.tokenizer.models"
local steps = require "perigee.tokenizer.steps"
local C = pgee.C
local fail, given, expect = read.fail, read.given, read.expect

local M = {}

-- Sets a char pointer of a struct to the bytes of a Lua string, and keeps the string alive by the list `held`.
local function text_into(struct, field, text, held)
  if text then
    held[#held + 1] = text
    struct[field] = text
  end
end

-- ---- Steps, templates -----------------------------------------------------------------------------------------------------

local function set_steps(d, name, list, held)
  local array = ffi.new("pgee_tokenizer_step[?]", #list + 1)
  for i, s in ipairs(list) do
    local to = array[i - 1]
    to.kind = s.kind
    for _, letter in ipairs { "a", "b", "c", "d" } do
      local value = s[letter] or 0
      to[letter] = value == true and 1 or value
    end
    for _, field in ipairs { "text", "more" } do
      text_into(to, field, s[field], held)
      to[field .. "_bytes"] = s[field] and #s[field] or 0
    end
    if s.charsmap then
      if d.charsmap ~= nil then
        fail("'%s': two normalizers of type Precompiled are not supported", held.path)
      end
      text_into(d, "charsmap", s.charsmap, held)
      d.charsmap_bytes = #s.charsmap
    end
  end
  held[#held + 1] = array
  d[name .. "s"], d[name .. "_count"] = array, #list
end

-- one_type: all token types are 0.
local function set_template(d, name, list, one_type, held)
  if list then
    local array = ffi.new("pgee_template_piece[?]", #list + 1)
    for i, piece in ipairs(list) do
      array[i - 1].id, array[i - 1].type = piece[1], one_type and 0 or piece[2]
    end
    held[#held + 1] = array
    d[name], d[name .. "_count"] = array, #list
  end
end

-- ---- Added tokens ---------------------------------------------------------------------------------------------------------

local FLAGS = { "normalized", "single_word", "lstrip", "rstrip", "special" }

-- The added tokens of a tokenizer.json. Entries with the same content become one entry, as in tokenizers: it is at the place of
-- the first, has the options of the last, and is special if any of them is. Its field shown_normalized is true if an entry
-- before the last is normalized. The ids are -1, because C assigns them.
local function added_tokens(file, path)
  local list, place = {}, {}
  for i, token in ipairs(read.list(given(file.added_tokens) or {}, path, "added_tokens")) do
    expect(token, "table", path, "added token %d", i)
    local content = expect(token.content, "string", path, "the content of added token %d", i)
    local a = { content = content, id = -1 }
    for _, key in ipairs(FLAGS) do
      a[key] = expect(token[key], "boolean", path, "%s of added token '%s'", key, content)
    end
    if content ~= "" then
      local before = list[place[content] or 0]
      a.special = a.special or before ~= nil and before.special
      a.shown_normalized = before ~= nil and (before.normalized or before.shown_normalized)
      place[content] = place[content] or #list + 1
      list[place[content]] = a
    end
  end
  return list
end

local function set_added(d, list, held)
  local array = ffi.new("pgee_added_token[?]", #list + 1)
  for i, a in ipairs(list) do
    local to = array[i - 1]
    text_into(to, "text", a.content, held)
    to.bytes, to.id = #a.content, a.id
    for _, key in ipairs(FLAGS) do
      to[key] = a[key] and 1 or 0
    end
    to.shown_normalized = a.shown_normalized and 1 or 0
  end
  held[#held + 1] = array
  d.added, d.added_count = array, #list
end

-- ---- Special tokens by role -----------------------------------------------------------------------------------------------

-- For roles that the folder names no token for: the usual names. The first one that is an added token is used.
local NAMES = {
  cls_token = { "[CLS]", "<s>" }, sep_token = { "[SEP]", "</s>" }, pad_token = { "[PAD]", "<pad>" },
  mask_token = { "[MASK]", "<mask>" }, unk_token = { "[UNK]", "<unk>" },
}
local ORDER = { "unk_token", "cls_token", "sep_token", "pad_token", "mask_token" }

-- The ids of the class token and of the separator in the template for one text: the first special token before the text, and the
-- first one after it; nil where there is none.
local function cls_and_sep(single)
  local before, behind, seen
  for _, piece in ipairs(single or {}) do
    if piece[1] == C.PGEE_TEXT_A then
      seen = true
    elseif not seen then
      before = before or piece[1]
    else
      behind = behind or piece[1]
    end
  end
  return before, behind
end

local function contents(list)
  local set = {}
  for _, a in ipairs(list) do
    set[a.content] = true
  end
  return set
end

local function set_specials(d, special, model, added, single, held)
  local ids, array, there = ffi.new("int32_t[5]", -1, -1, -1, -1, -1), ffi.new "const char *[5]", contents(added)
  local cls, sep = cls_and_sep(single)
  ids[1], ids[2] = not special.cls_token and cls or -1, not special.sep_token and sep or -1
  for i, key in ipairs(ORDER) do
    local text = special[key] or key == "unk_token" and model.unk_text
    for _, name in ipairs(NAMES[key]) do
      text = text or there[name] and name
    end
    if text then
      held[#held + 1] = text
      array[i - 1] = text
    end
  end
  held[#held + 1], held[#held + 2] = array, ids
  d.specials, d.special_ids = array, ids
end

-- ---- All of it ------------------------------------------------------------------------------------------------------------

local function set_model(d, m, held)
  held[#held + 1] = m
  local v = m.vocab
  d.model, d.count, d.unk = m.kind, v.count, m.unk
  text_into(d, "pieces", v.bytes, held)
  d.ends, d.ids, d.scores = v.ends, v.ids, v.scores
  text_into(d, "prefix", m.prefix, held)
  text_into(d, "suffix", m.suffix, held)
  d.max_word_chars = m.max_word_chars or 0
  d.merges, d.merge_count = m.merges, m.merge_count or 0
  for _, key in ipairs { "byte_fallback", "fuse_unk", "ignore_merges" } do
    d[key] = m[key] and 1 or 0
  end
end

--- The definition, a pgee_tokenizer_definition that keeps alive all memory that it points to. file, path, special and cut: the
-- four results of files.read.
function M.of(file, path, special, cut)
  local d, held = ffi.new "pgee_tokenizer_definition", { path = path }
  local model, post, added = models.model(file, path), steps.post_processor(file, path), added_tokens(file, path)
  set_model(d, model, held)
  set_steps(d, "normalizer", steps.normalizers(file, path), held)
  set_steps(d, "pre_tokenizer", steps.pre_tokenizers(file, path), held)
  set_steps(d, "decoder", steps.decoders(file, path), held)
  local pair = post.pair or file.one_type and { { C.PGEE_TEXT_A }, { C.PGEE_TEXT_B } } or nil
  set_template(d, "single", post.single, file.one_type, held)
  set_template(d, "pair", pair, file.one_type, held)
  d.trim_offsets, d.add_prefix_space = post.trim_offsets and 1 or 0, post.add_prefix_space and 1 or 0
  d.left = cut.left and 1 or 0
  set_added(d, added, held)
  set_specials(d, special, model, added, post.single, held)
  return pgee.hold(d, held)
end

return M
