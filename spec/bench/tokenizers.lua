-- The Perigee side of spec/bench/tokenizer_peers.py: encodes the lines of files on request.
--
--   luajit spec/bench/tokenizers.lua FOLDER
--
-- First it prints the seconds of processor time of loading the folder's tokenizer and of opening its image. Then it reads lines,
-- each the path of a file. It encodes that file's lines one by one (ids, types, offsets), and prints the seconds and number of
-- tokens.
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local tokenizer = require "perigee.tokenizer"
local ROOM = 1048576

local began = os.clock()
local t = tokenizer.load(arg[1])
local loaded = os.clock()
local image = t:image()
local opening = os.clock()
tokenizer.from_image(image)
print(("%.6f %.6f"):format(loaded - began, os.clock() - opening))
io.flush()

local ids, types, offsets = ffi.new("int32_t[?]", ROOM), ffi.new("int32_t[?]", ROOM), ffi.new("int32_t[?]", 2 * ROOM)
local texts = {}
for path in io.lines() do
  if not texts[path] then
    texts[path] = {}
    for line in io.lines(path) do
      table.insert(texts[path], line)
    end
  end
  local list, tokens = texts[path], 0
  local start = os.clock()
  for i = 1, #list do
    tokens = tokens + t:encode_into(ids, types, ROOM, list[i], nil, offsets)
  end
  print(("%.6f %d"):format(os.clock() - start, tokens))
  io.flush()
end
