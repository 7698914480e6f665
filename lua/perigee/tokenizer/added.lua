--- Added tokens in the order in which transformers 5 adds them: first those for which a file gives an id, then the named special
-- tokens, then the extra ones. A token that the vocabulary has keeps the vocabulary's id. The others get ids from the
-- vocabulary's size on, in this order, even if a file gives other ids.
local M = {}

local FLAGS = { "single_word", "lstrip", "rstrip", "special" }

local function is_normalized(t)
  if t.normalized == nil then
    return not t.special
  end
  return t.normalized
end

local function equal(a, b)
  for _, key in ipairs(FLAGS) do
    if a[key] ~= b[key] then
      return false
    end
  end
  return a.content == b.content and a.plain == b.plain and is_normalized(a) == is_normalized(b)
end

local function has(list, t)
  for _, other in ipairs(list) do
    if equal(other, t) then
      return true
    end
  end
  return false
end

local function contents(...)
  local set = {}
  for _, list in ipairs { ... } do
    for _, t in ipairs(list) do
      set[t.content] = true
    end
  end
  return set
end

--- The tokens that a folder's small files add to a tokenizer that already has the tokens of the list `there`: a list in the
-- form of added_tokens of a tokenizer.json, without ids. s: the folder (folder.lua).
function M.list(s, there)
  local list, known, special = { unpack(s.numbered) }, contents(there, s.numbered), {}
  local function add(t)
    if t and not known[t.content] and not has(list, t) then
      list[#list + 1] = t
    end
  end
  for _, key in ipairs(s.order) do
    special[s.named[key] and s.named[key].content or ""] = true
    add(s.named[key])
  end
  for _, t in ipairs(s.extra or {}) do
    add(t)
  end
  for i, t in ipairs(list) do
    local made = { content = t.content, special = t.special or special[t.content] == true }
    made.single_word, made.lstrip, made.rstrip = t.single_word, t.lstrip, t.rstrip
    made.normalized = is_normalized { normalized = t.normalized, special = made.special }
    list[i] = made
  end
  return list
end

--- Ids of tokens, { [text] = id }: those of `known`, { [text] = id } of the vocabulary, and new ids for the tokens of `list` that
-- `known` lacks. count: the number of pieces of the vocabulary, which is the first new id.
function M.ids(list, known, count)
  local ids, next_id = setmetatable({}, { __index = known }), count
  for _, t in ipairs(list) do
    if t.content ~= "" and not ids[t.content] then
      ids[t.content], next_id = next_id, next_id + 1
    end
  end
  return ids
end

return M
