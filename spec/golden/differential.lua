-- Runs Perigee on the folders that spec/golden/differential.py wrote. For each line of standard input, the path of a folder,
-- this prints one line of JSON, { "task", "answer" or "error", "ignored" }.
--
-- A folder's texts are in texts.json: { "texts", "prompt" or null, "query" or null }. With a query, the texts are documents to
-- rerank.
package.path = "lua/?.lua;lua/?/init.lua;?.lua;" .. package.path
local cjson = require "cjson"
local models = require "spec.support.models"
local perigee = require "perigee"

local function answer_of(model, given, ids)
  local prompt = given.prompt ~= cjson.null and given.prompt or nil
  if given.query == cjson.null then
    return (model:embed(given.texts, { prompt = prompt, tables = true }))
  end
  local scores = {}
  for _, one in ipairs((model:rerank(given.query, given.texts, { prompt = prompt }))) do
    scores[one.index] = { one.score }
  end
  return scores, ids
end

for folder in io.lines() do
  local line = { ignored = "" }
  local ok, failure = pcall(function()
    local model = perigee.load(folder, { kernel = "native" })
    line.answer = answer_of(model, cjson.decode(models.read(folder .. "/texts.json")))
    line.ignored = tostring(select(2, model:unused()))
    model:release()
  end)
  line.error = not ok and failure or nil
  io.write(cjson.encode(line), "\n")
  io.flush()
end
