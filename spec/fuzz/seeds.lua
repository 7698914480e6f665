--- Seeds: writes the first inputs of the coverage-guided targets to build/fuzz/seeds/TARGET.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
require "spec.helper"
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"
local inputs = require "spec.fuzz.inputs"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local safetensors = require "perigee.safetensors"
local tensor = require "perigee.tensor"
local tokenizer = require "perigee.tokenizer"

local function put(target, name, bytes)
  local folder = "build/fuzz/seeds/" .. target
  system.make_folder(folder)
  inputs.write(folder .. "/" .. name, bytes)
end

---- Files ------------------------------------------------------------------------------------------------------------

put("safetensors", "two", files.pack { { "a", "F32", { 2, 2 }, ("\0"):rep(16) }, { "b", "BF16", { 1 }, "\128\63" } })
put("safetensors", "empty", files.safetensors('{"__metadata__":{"a":"b","\\u00e9":"\\ud83d\\ude00"},"x":{"dtype":"I64",'
  .. '"shape":[0,3],"data_offsets":[0,0]}}  '))
local path = os.tmpname()
safetensors.write(path, { x = tensor.from { { 1, 2 }, { 3, 4 } }, y = tensor.new("U8", { 70 }), z = tensor.new("I64", { 1 }) },
  { ["perigee.format"] = "1", config = "{}" })
put("safetensors", "artifact", inputs.read(path))
os.remove(path)

put("vocabulary", "list", [=[{"version":"1.0","model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["a",-1.25e1],
 ["\u2581b",-12345678901234567890.5e-3],["\ud83d\ude00",-0.1]]},"x":[{"y":"z\"["}]}]=])
put("vocabulary", "object", '{"model":{"vocab":{"a":0,"b":1}}}')

---- Tokenizers -------------------------------------------------------------------------------------------------------

local TEXTS = { "\0\9Hello, a\9ab \239\183\186 1", "\112\20a b\204\129ab\227\129\147 1.5\255<s>\6second" }

-- Bytes of an input of the target image: what to encode, its length before it, then the image.
local function image_input(t, text)
  local image = t:image()
  local bytes = ffi.string(ffi.cast("const char *", pgee.C.pgee_tensor_data(tensor.handle(image))), #image)
  return string.char(math.floor(#text / 256), #text % 256) .. text .. bytes
end

local SMALL = 40000 -- bytes of an image that is a seed
for i, case in ipairs(cjson.decode((assert(json.text "spec/golden/tokenizer/pipeline.json")))) do
  local dir = files.folder { ["tokenizer.json"] = type(case.file) == "string" and case.file or cjson.encode(case.file) }
  local ok, t = pcall(tokenizer.load, dir)
  local bytes = ok and image_input(t, TEXTS[i % 2 + 1])
  if ok and #bytes < SMALL then
    put("image", tostring(i), bytes)
  end
end
files.clean()

for frame = 0, 3 do
  for model = 0, 2 do
    put("encode", ("%d-%d"):format(frame, model), string.char(frame, model + 4 + 16) .. TEXTS[model % 2 + 1])
  end
end

---- Definitions ------------------------------------------------------------------------------------------------------

-- As definition.c reads them.
local function text(s)
  return string.char(#s) .. s
end

local function steps(...)
  local list = { string.char(select("#", ...)) }
  for _, step in ipairs { ... } do
    list[#list + 1] = string.char(step[1], (step[2] or 0) + 1, (step[3] or 0) + 1, (step[4] or 0) + 1, 1) ..
      text(step[5] or "") .. text(step[6] or "")
  end
  return table.concat(list)
end

local PIECES = { "[UNK]", "a", "b", "ab", "##a", "\226\150\129", "\226\150\129a", "e", "<0xC3>", "<0xA9>" }

local function pieces()
  local list = { string.char(#PIECES, 1) } -- no ids
  for i, piece in ipairs(PIECES) do
    list[#list + 1] = text(piece) .. string.char(16 + i)
  end
  return table.concat(list)
end

local MERGES = string.char(1) .. string.char(2, 3, 4) -- a b -> ab, by ids plus 1
local CHARSMAP = string.char(2) .. text "\239\183\186" .. text "abab abab abab abab abab" .. text "A" .. text "a" .. "\0"
local ADDED = string.char(1, 1 + 4 + 16) .. text "Ab"
local TEMPLATES = "\3\3\0\2\0\3\0\0" -- one text; no template for a pair
local ENCODE = "\64\13A a\204\129b\239\183\186e Ab\5again"

for i, frame in ipairs {
  { steps({ 0, 1, 1, 1 }), steps({ 0 }), steps({ 0, 1, 0, 0, "##" }) },
  { steps({ 12 }, { 3 }), steps({ 6, 94, 1, 1 }), steps({ 4 }, { 2 }) },
  { steps({ 8, 1, 0, 0, "b+|e", "ab" }, { 7, 1, 1 }), steps({ 5, 1, 1, 0, "\\s+" }, { 7, 1, 1 }), steps({ 7 }, { 3, 97, 1, 1 }) },
} do
  for model = 1, 3 do
    put("definition", ("%d-%d"):format(i, model), string.char(model + 4, 1, 101) .. text "##" .. text "" .. pieces() .. MERGES ..
      table.concat(frame) .. CHARSMAP .. ADDED .. TEMPLATES .. ENCODE)
  end
end
