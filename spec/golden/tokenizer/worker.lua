-- A tokenizer at the other end of two pipes, for the scripts here that compare it with the reference:
--
--   luajit spec/golden/tokenizer/worker.lua FOLDER
--
-- Reads, again and again, a line and the bytes of texts. "A B LIMIT": two texts of A and B bytes (-1: no second one, no limit).
-- "all A B LIMIT BARE TRUNCATE": the same, BARE 1 without special tokens. "words LIMIT BARE A B ...": a list of words.
-- Writes int32: tokens (-1: an error), dropped ones, bytes of the decoded text (or of the message); ids, types, offsets in bytes,
-- offsets in characters; for "all" and "words" also sequences and words (0 for none); then the decoded text, for these two once
-- more with special tokens, its size before it.
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

-- encode(options) gives an encoding.
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
