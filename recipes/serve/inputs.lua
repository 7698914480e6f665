--- From the inputs of requests to those of the engine.
local errors = require "serve.errors"

local M = {}

--- The fields of a request that hold one input or a list of inputs, as a list; and whether it was one. A list of integers is one
-- input, the ids of its tokens.
function M.list(given)
  if type(given) == "string" or type(given[1]) == "number" then
    return { given }, true
  end
  return given, false
end

local FOREIGN = "token id %d is out of range: the vocabulary of %s has ids below %d. The client has cut the text into tokens of "
  .. "another model; tell it to send texts (langchain's OpenAIEmbeddings: check_embedding_ctx_length=False)"

local function check_ids(ids, model)
  for _, id in ipairs(ids) do
    if id >= model.vocabulary then
      errors.fail("Validation", FOREIGN, id, model.name, model.vocabulary)
    end
  end
end

--- The inputs of a request for a model, as the engine takes them; how many of them are ids; and the characters of the others.
function M.read(given, model)
  local list = M.list(given)
  local items, ids, characters = {}, 0, 0
  for i, item in ipairs(list) do
    if type(item) == "table" then
      check_ids(item, model)
      items[i], ids = { ids = item }, ids + 1
    else
      items[i] = item
      characters = characters + #item
    end
  end
  return items, ids, characters
end

return M
