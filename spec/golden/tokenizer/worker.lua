-- A tokenizer at the other end of two pipes, for the scripts here that compare it with the reference:
--
--   luajit spec/golden/tokenizer/worker.lua FOLDER
--
-- Reads, again and again: a line "A B LIMIT" (bytes of the texts, -1: no second one, -1: no limit) and these bytes. Writes int32:
-- tokens, dropped ones, bytes of the decoded text; ids, types, offsets in bytes, offsets in characters; then the decoded text.
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local tokenizer = require "perigee.tokenizer"

local t = tokenizer.load(arg[1])

local function encode(a, b, limit)
  local bytes = t:encode(a, b, { max_tokens = limit })
  local characters = t:encode(a, b, { max_tokens = limit, offsets = "characters" })
  local text = t:decode(bytes.ids)
  local words = { #bytes.ids, bytes.dropped, #text }
  local function add(list)
    for _, word in ipairs(list) do
      words[#words + 1] = word
    end
  end
  add(bytes.ids)
  add(bytes.types)
  for _, e in ipairs { bytes, characters } do
    for _, offsets in ipairs(e.offsets) do
      add(offsets)
    end
  end
  io.write(ffi.string(ffi.new("int32_t[?]", #words, words), 4 * #words), text)
  io.flush()
end

for line in io.lines() do
  local a, b, limit = line:match "^(%d+) (-?%d+) (-?%d+)$"
  a, b, limit = tonumber(a), tonumber(b), tonumber(limit)
  encode(a > 0 and io.read(a) or "", b > 0 and io.read(b) or b == 0 and "" or nil, limit >= 0 and limit or nil)
end
