-- Runs Perigee's tokenizers of many folders, for differential_folders.py:
--
--   luajit spec/golden/tokenizer/folders_worker.lua < TASKS
--
-- Reads JSON lines { "folder": path, "cases": [ { "text":, "pair":, "max":, "truncate":, "side": } ] }; writes one JSON line for
-- each: { "error": message } or { "special": ids, "size":, "left":, "cases": [ { "ids":, "types":, "offsets":, "text": } or
-- { "error": } ] }.
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local checkpoint = require "perigee.checkpoint"
local cjson = require "cjson"
local tokenizer = require "perigee.tokenizer"

local function text_of(value)
  return value ~= cjson.null and value or nil
end

local function case(t, c)
  local ok, e = pcall(t.encode, t, c.text, text_of(c.pair), {
    max_tokens = text_of(c.max), truncate = text_of(c.truncate), truncation_side = text_of(c.side), offsets = "characters",
  })
  if not ok then
    return { error = tostring(e) }
  end
  local offsets = {}
  for i, o in ipairs(e.offsets) do
    offsets[2 * i - 1], offsets[2 * i] = o[1], o[2]
  end
  return { ids = e.ids, types = e.types, offsets = offsets, text = t:decode(e.ids), whole = t:decode(e.ids, { special = true }) }
end

for line in io.lines() do
  local task = cjson.decode(line)
  local c = checkpoint.tokenizer(task.folder)
  local ok, t = pcall(tokenizer.load, c)
  local answer = { error = not ok and tostring(t) or nil }
  if ok then
    local special = {}
    for i, key in ipairs { "unk", "cls", "sep", "pad", "mask" } do
      special[i] = t[key] or cjson.null
    end
    answer.special, answer.size, answer.cases, answer.ignored = special, t.size, {}, tostring(c.ignored)
    for i, one in ipairs(task.cases) do
      answer.cases[i] = case(t, one)
    end
  end
  io.write(cjson.encode(answer), "\n")
  io.flush()
end
