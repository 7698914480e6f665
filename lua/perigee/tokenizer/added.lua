--- Added tokens of a folder without tokenizer.json: what its tokenizer has by itself, and what tokenizer_config.json,
-- special_tokens_map.json and added_tokens.json say of them.
--
-- An added token is { content =, id = or nil, special =, normalized =, single_word =, lstrip =, rstrip = }.
local json = require "perigee.json"
local read = require "perigee.tokenizer.read"
local given, expect = read.given, read.expect

local M = {}

local FLAGS = { "normalized", "single_word", "lstrip", "rstrip" }
local KEYS = { "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token" }

local function token(content, special)
  return { content = content, special = special, normalized = not special, single_word = false, lstrip = false, rstrip = false }
end

-- A text, or an object that says more of it.
local function stated(value, special, path, ...)
  if type(value) == "string" then
    return token(value, special)
  end
  local what = string.format(...)
  expect(value, "table", path, "%s", what)
  local t = token(expect(value.content, "string", path, "the content of %s", what), special)
  for _, key in ipairs(FLAGS) do
    if given(value[key]) ~= nil then
      t[key] = expect(value[key], "boolean", path, "%s of %s", key, what)
    end
  end
  return t
end

--- The texts of the special tokens that `defaults` has, { mask_token = "<mask>" } and so on: those stated before the defaults.
function M.with_defaults(special, defaults)
  local all = {}
  for key, text in pairs(defaults) do
    all[key] = special[key] or text
  end
  return all
end

--- A tokenizer's special tokens, { mask_token = "<mask>" } and other texts, each once.
-- spaced: the mask takes the space before it.
function M.special(special, spaced, ...)
  local list, seen = {}, {}
  local function add(text, lstrip)
    if text and not seen[text] then
      seen[text] = true
      list[#list + 1] = token(text, true)
      list[#list].lstrip = lstrip
    end
  end
  for _, key in ipairs(KEYS) do
    add(special[key], spaced and key == "mask_token")
  end
  for _, text in ipairs { ... } do
    add(text, false)
  end
  return list
end

-- The keys of a table in the order of the numbers that number_of finds in them.
local function by_number(t, number_of)
  local keys = {}
  for key in pairs(t) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    return number_of(a) < number_of(b)
  end)
  return keys
end

-- What has an id: added_tokens_decoder, or where there is none the older added_tokens.json.
local function numbered(c, is_special)
  local list, path, decoder = {}, c.files.tokenizer_config, given(c.tokenizer_config.added_tokens_decoder)
  if decoder ~= nil then
    expect(decoder, "table", path, "added_tokens_decoder")
    for id in pairs(decoder) do
      read.integer(tonumber(id) or id, path, "an id of added_tokens_decoder")
    end
    for _, id in ipairs(by_number(decoder, tonumber)) do
      expect(decoder[id], "table", path, "entry %s of added_tokens_decoder", id)
      local special = decoder[id].special == true or is_special[decoder[id].content] == true
      list[#list + 1] = stated(decoder[id], special, path, "entry %s of added_tokens_decoder", id)
      list[#list].id = tonumber(id)
    end
    return list
  end
  path = c.folder .. "/added_tokens.json"
  local ids = json.exists(path) and json.object(path) or {}
  for content, id in pairs(ids) do
    read.integer(id, path, "the id of '%s'", content)
  end
  for _, content in ipairs(by_number(ids, function(content) return ids[content] end)) do
    list[#list + 1] = token(content, is_special[content] == true)
    list[#list].id = ids[content]
  end
  return list
end

-- Special tokens: those that are no value of a key of their own, in order; and, by content, those that a key has as objects.
local function special_tokens(c)
  local nameless, objects = {}, {}
  for _, name in ipairs(c:special_sources()) do
    local path = c.files[name]
    for _, key in ipairs { "additional_special_tokens", "extra_special_tokens" } do
      for i, value in pairs(expect(given(c[name][key]) or {}, "table", path, key)) do
        nameless[#nameless + 1] = stated(value, true, path, "entry %s of %s", i, key)
      end
    end
    for key, value in pairs(c[name]) do
      if type(key) == "string" and key:find "_token$" and type(value) == "table" then
        local t = stated(value, true, path, "%s", key)
        objects[t.content] = t
      end
    end
  end
  return nameless, objects
end

-- An id behind all others.
local function next_id(vocab, list)
  local last = -1
  for _, id in pairs(vocab) do
    last = math.max(last, id)
  end
  for _, t in ipairs(list) do
    last = math.max(last, t.id or -1)
  end
  return last + 1
end

--- All added tokens of the checkpoint `c`, each once. What the folder says of one counts before what its tokenizer has by itself,
-- `defaults`. vocab: ids by pieces, so that each gets its id, and one without is left out unless the folder asks for it; nil
-- where the ids are found elsewhere.
function M.all(c, defaults, vocab)
  local list, seen, is_special = {}, {}, {}
  local nameless, objects = special_tokens(c)
  local function add(t, needed)
    if t.content == "" or seen[t.content] then
      return
    end
    if vocab then
      t.id = vocab[t.content] or t.id or needed and next_id(vocab, list) or nil
    end
    if t.id or not vocab then
      seen[t.content] = true
      list[#list + 1] = t
    end
  end
  for _, tokens in ipairs { defaults, nameless } do
    for _, t in ipairs(tokens) do
      is_special[t.content] = true
    end
  end
  for _, t in ipairs(numbered(c, is_special)) do
    add(t)
  end
  for _, t in ipairs(defaults) do
    add(objects[t.content] or t)
  end
  for _, t in ipairs(nameless) do
    add(t, true)
  end
  return list
end

return M
