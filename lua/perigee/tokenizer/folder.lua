--- Reads the small files in a tokenizer's folder and merges them as transformers 5 does: tokenizer_config.json and, if that
-- file has no added_tokens_decoder, the older special_tokens_map.json, added_tokens.json and the added tokens of
-- tokenizer.json.
--
--   local s = folder.read(c, tokenizer_json)   -- a checkpoint; its tokenizer.json, decoded, or nil
--   s.named.mask_token                         -- a token, nil if no file names it; false if a file says null
--   s.order                                    -- the keys of s.named, in the order in which their tokens are added
--   s.extra                                    -- tokens of additional_special_tokens or extra_special_tokens; nil if not given
--   s.weak                                     -- true: another source of extra tokens replaces s.extra
--   s.numbered                                 -- tokens for which a file gives an id, in the order of these ids
--   s:flag("do_lower_case", true)              -- a boolean of tokenizer_config.json
--
-- A token is { content =, special =, normalized =, single_word =, lstrip =, rstrip =, plain = }. If no file says whether it is
-- normalized, the field is nil, which means the opposite of special. plain: whether the file gives the token as a text alone.
local json = require "perigee.base.json"
local jsonl = require "perigee.pipe.jsonl"
local options = require "perigee.options"
local read = require "perigee.tokenizer.read"
local given, expect, fail = read.given, read.expect, read.fail

local M = {}

local FLAGS = { "normalized", "single_word", "lstrip", "rstrip", "special" }

-- The special tokens that every tokenizer may have, in the order in which they are added.
local NAMED = { "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token" }
local IS_NAMED = {}
for _, key in ipairs(NAMED) do
  IS_NAMED[key] = true
end

-- ---- Tokens ---------------------------------------------------------------------------------------------------------------

--- A token that is given as a text alone.
function M.plain(content)
  return { content = content, special = true, single_word = false, lstrip = false, rstrip = false, plain = true }
end

-- A token from a text, or from an object with its flags. special: the flag's value if the object does not have it (true in
-- special_tokens_map.json).
local function token(value, special, path, ...)
  if type(value) == "string" then
    return M.plain(value)
  end
  local what = string.format(...)
  expect(value, "table", path, "%s", what)
  local t = { content = expect(value.content, "string", path, "the content of %s", what), special = special, older = special }
  for _, key in ipairs(FLAGS) do
    if given(value[key]) ~= nil then
      t[key] = expect(value[key], "boolean", path, "%s of %s", key, what)
    elseif key ~= "normalized" and key ~= "special" then
      t[key] = false
    end
  end
  return t
end

-- The keys of an object in the order of its JSON text. Keys that are not in the text come last, in alphabetical order.
local function names_in(object, text)
  local ok, line = pcall(jsonl.read, text or "")
  local names, there = ok and line.names or {}, {}
  for _, key in ipairs(names) do
    there[key] = true
  end
  for _, key in ipairs(options.names(object)) do
    names[#names + 1] = not there[key] and key or nil
  end
  return names
end

-- ---- Lists of tokens ------------------------------------------------------------------------------------------------------

local function is_list(value)
  return #value > 0 or next(value) == nil
end

local function list_of(values, special, path, key)
  local list = {}
  for i, value in ipairs(values) do
    list[i] = token(value, special, path, "entry %d of %s", i, key)
  end
  return list
end

-- Makes `value` the token of a key. A key that is not one of NAMED is put at the end of s.order.
local function name(s, key, value, path)
  if s.named[key] == nil and not IS_NAMED[key] then
    s.order[#s.order + 1] = key
  end
  s.named[key] = value
  s.paths[key] = path
end

-- extra_special_tokens is a list of tokens or, in newer files, an object of names and tokens.
local function take_extra(s, values, path, key, text)
  if given(values) == nil then
    return
  end
  expect(values, "table", path, "%s", key)
  if is_list(values) then
    s.extra = list_of(values, false, path, key)
    return
  end
  local ok, line = pcall(jsonl.read, text)
  for _, inner in ipairs(names_in(values, ok and line:raw(key))) do
    name(s, inner, token(values[inner], false, path, "%s of %s", inner, key), path)
  end
end

-- ---- tokenizer_config.json ------------------------------------------------------------------------------------------------

-- Whether a file names a token by a key that is not one of NAMED. If it does, the order of the file's keys matters.
local function has_own(values)
  for key, value in pairs(values) do
    if type(key) == "string" and key:find "_token$" and not IS_NAMED[key] and type(value) == "string" then
      return true
    end
  end
  return false
end

-- Takes the special tokens of a file: those of the keys NAMED, and those of any other key that ends with _token.
local function take_named(s, values, path, text, special)
  local function take(key)
    local value = values[key]
    if value == json.null then
      if IS_NAMED[key] then
        s.named[key], s.paths[key] = false, path
      end
    elseif type(value) == "string" or type(value) == "table" then
      name(s, key, token(value, special, path, "%s", key), path)
    elseif value ~= nil and IS_NAMED[key] then
      fail("'%s': %s is %s, expected a string or an object", path, key, json.describe(value))
    end
  end
  for _, key in ipairs(NAMED) do
    take(key)
  end
  for _, key in ipairs(has_own(values) and names_in(values, text) or {}) do
    if key:find "_token$" and not IS_NAMED[key] then
      take(key)
    end
  end
end

local function config(s, c)
  local values, path = c.tokenizer_config, c.files.tokenizer_config
  local text = path and json.text(path)
  take_named(s, values, path, text, false)
  local additional, extra = values.additional_special_tokens, values.extra_special_tokens
  if additional == nil or type(extra) == "table" and next(extra) ~= nil then
    take_extra(s, extra, path, "extra_special_tokens", text)
  end
  if not s.extra then
    take_extra(s, additional, path, "additional_special_tokens", text)
    s.weak = type(extra) == "table" and next(extra) ~= nil
  end
end

-- ---- Tokens with ids ------------------------------------------------------------------------------------------------------

local function in_order(by_id)
  local ids, list = {}, {}
  for id in pairs(by_id) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  for i, id in ipairs(ids) do
    list[i] = by_id[id]
  end
  return list
end

local function decoder(c)
  local path, by_id = c.files.tokenizer_config, {}
  local entries = expect(c.tokenizer_config.added_tokens_decoder, "table", path, "added_tokens_decoder")
  for id, entry in pairs(entries) do
    read.integer(tonumber(id) or id, path, "an id of added_tokens_decoder")
    expect(entry, "table", path, "entry %s of added_tokens_decoder", id)
    by_id[tonumber(id)] = token(entry, false, path, "entry %s of added_tokens_decoder", id)
  end
  return in_order(by_id)
end

-- ---- Older files ----------------------------------------------------------------------------------------------------------

-- Takes special_tokens_map.json. Its tokens replace those of tokenizer_config.json, except additional_special_tokens.
local function special_tokens_map(s, c)
  local path = c.files.special_tokens
  if not path then
    return
  end
  local values, text = c.special_tokens, json.text(path)
  take_named(s, values, path, text, true)
  local extra = values.extra_special_tokens
  if given(extra) ~= nil and is_list(expect(extra, "table", path, "extra_special_tokens")) then
    s.extra = s.extra or {}
    for _, t in ipairs(list_of(extra, true, path, "extra_special_tokens")) do
      table.insert(s.extra, t)
    end
  else
    take_extra(s, extra, path, "extra_special_tokens", text)
  end
  if not s.extra or s.weak then
    take_extra(s, values.additional_special_tokens, path, "additional_special_tokens", text)
    s.weak = true
  end
end

local function legacy(s, c, tokenizer_json)
  special_tokens_map(s, c)
  local by_id, path = {}, c.files.added_tokens
  local special = {}
  local function count(t)
    if t and (t.plain or t.older) then -- transformers ignores objects of tokenizer_config.json here
      special[t.content] = true
    end
  end
  for _, key in ipairs(NAMED) do
    count(s.named[key])
  end
  for _, t in ipairs(not s.weak and s.extra or {}) do
    count(t)
  end
  for content, id in pairs(path and json.object(path) or {}) do
    read.integer(id, path, "the id of '%s'", content)
    by_id[id] = {
      content = content, special = special[content] == true, normalized = special[content] ~= true, single_word = false,
      lstrip = false, rstrip = false,
    }
  end
  path = c.files.tokenizer
  for i, entry in ipairs(read.list(tokenizer_json and given(tokenizer_json.added_tokens) or {}, path, "added_tokens")) do
    expect(entry, "table", path, "added token %d", i)
    local id = read.integer(entry.id, path, "the id of added token %d", i)
    by_id[id] = token(entry, false, path, "added token %d", i)
  end
  return in_order(by_id)
end

-- ---- All of them ----------------------------------------------------------------------------------------------------------

local Folder = {}
Folder.__index = Folder

--- A boolean of tokenizer_config.json, or the default if the key is missing. null is an error unless the default is nil.
function Folder:flag(key, default)
  return read.flag(self.values, key, self.path, default)
end

--- An integer of tokenizer_config.json, or the default if the key is missing or null.
function Folder:integer(key, default)
  local value = given(self.values[key])
  return value == nil and default or read.integer(value, self.path, "%s", key)
end

--- The text of the special token of that key, an error if there is none.
function Folder:text(key)
  local t = self.named[key]
  return t and t.content or fail("'%s': %s is %s, expected the text of a token", self.paths[key] or self.path or self.folder, key,
    t == false and "null" or "missing")
end

--- The merged small files of the checkpoint c. tokenizer_json: its tokenizer.json, decoded, or nil.
function M.read(c, tokenizer_json)
  local s = setmetatable({
    values = c.tokenizer_config, path = c.files.tokenizer_config, folder = c.folder, named = {}, paths = {},
    order = { unpack(NAMED) },
  }, Folder)
  config(s, c)
  local with_ids = {}
  if c.tokenizer_config.added_tokens_decoder ~= nil then
    s.numbered = decoder(c)
  else
    s.numbered = legacy(s, c, tokenizer_json)
  end
  for _, t in ipairs(s.numbered) do
    with_ids[t.content] = t
  end
  for _, key in ipairs(NAMED) do
    s.named[key] = s.named[key] and with_ids[s.named[key].content] or s.named[key]
  end
  return s
end

return M
