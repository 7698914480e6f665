-- Runs a Perigee tokenizer at the other end of two pipes, for the scripts here that compare it with the tokenizers package:
--
--   luajit spec/golden/tokenizer/worker.lua FOLDER
--
-- It reads requests until its input ends. A request is a line, and then the bytes of its texts. The line is one of
--   A B LIMIT                      two texts of A and B bytes. B is -1 if there is no second text, LIMIT is -1 for no limit
--   all A B LIMIT BARE TRUNCATE    the same. If BARE is 1, without special tokens
--   words LIMIT BARE A B ...       a list of words of A, B, ... bytes
-- It answers with int32 numbers: how many tokens (-1 for an error), how many tokens were dropped, bytes of the decoded text or of
-- the error message; ids, types, offsets in bytes, offsets in characters. For "all" and "words" sequences and words follow (0 for
-- none). Then comes the decoded text. For "all" and "words" the size and the bytes of the text with special tokens follow.
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local tokenizer = require "perigee.tokenizer"

local ok, t = pcall(tokenizer.load, arg[1])
if ok then
  t = tokenizer.from_image(t:image())
end

local function pack(words)
  return ffi.string(ffi.new("int32_t[?]", #words + 1, words), 4 * #words)
end

local function fail(message)
  io.write(pack { -1, 0, #message }, message)
end

-- encode(options) returns an encoding.
local function answer(encode, options, all)
  options.offsets = "bytes"
  local done, bytes = pcall(encode, options)
  if not done then
    return fail(tostring(bytes))
  end
  options.offsets = "characters"
  local characters = encode(options)
  local text = t:decode(bytes.ids)
  local words = { #bytes.ids, bytes.dropped, #text }
  local function add(list, n)
    for i = 1, n or #list do
      words[#words + 1] = list[i] or 0
    end
  end
  add(bytes.ids)
  add(bytes.types)
  for _, e in ipairs { bytes, characters } do
    for _, offsets in ipairs(e.offsets) do
      add(offsets)
    end
  end
  if not all then
    io.write(pack(words), text)
    return
  end
  add(bytes.sequences)
  add(bytes.words, #bytes.ids)
  local whole = t:decode(bytes.ids, { special = true })
  io.write(pack(words), text, pack { #whole }, whole)
end

local function take(bytes)
  return bytes > 0 and io.read(bytes) or ""
end

local function numbers(line)
  local list = {}
  for number in line:gmatch "%-?%d+" do
    list[#list + 1] = tonumber(number)
  end
  return list
end

local TRUNCATE = { [0] = "longest", "first", "second" }

for line in io.lines() do
  local n = numbers(line)
  if not ok then
    if line:find "^words" then
      for i = 3, #n do
        take(n[i])
      end
    else
      take(n[1])
      take(math.max(n[2], 0))
    end
    fail(tostring(t))
  elseif line:find "^words" then
    local list = {}
    for i = 3, #n do
      list[i - 2] = take(n[i])
    end
    answer(function(options) return t:encode_words(list, options) end,
      { max_tokens = n[1] >= 0 and n[1] or nil, special = n[2] == 0 }, true)
  else
    local a, b = take(n[1]), n[2] >= 0 and take(n[2]) or nil
    answer(function(options) return t:encode(a, b, options) end, {
      max_tokens = n[3] >= 0 and n[3] or nil, special = n[4] ~= 1, truncate = TRUNCATE[n[5] or 0],
    }, line:find "^all" ~= nil)
  end
  io.flush()
end
