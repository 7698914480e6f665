--- Unigram models in a tokenizer.json: pieces with scores, which C reads, and SentencePiece's precompiled normalizer.
--
--   local file = unigram.file "path/to/tokenizer.json"   -- decoded; if the model is Unigram, model.vocab is a vocab for C
--   local m = unigram.model(file.model, path)            -- { vocab =, unk = 3 or -1, byte_fallback = false }
--   local blob = unigram.charsmap(file.normalizer, path) -- the bytes that charsmap.h describes
--
-- A vocab for C is { bytes =, ends =, scores =, count = }: piece i, from 0, is bytes[ends[i - 1]] to bytes[ends[i] - 1] and has
-- id i and score scores[i]. tokenizer/sentencepiece.lua makes the same from a SentencePiece model.
local ffi = require "ffi"
local bit = require "bit"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local C = pgee.C
local fail = require("perigee.tokenizer.read").fail

local M = {}

local out = pgee.out "pgee_vocabulary *"

-- If the vocab in the text of a tokenizer.json is a list of pieces and scores, C reads it: returns the text with null in its
-- place, and the vocab for C. Otherwise returns the text alone.
local function take_vocabulary(path, text)
  if C.pgee_vocabulary_json(out, path, text, #text) ~= C.PGEE_OK then
    local message = ffi.string(C.pgee_message())
    json.object(path, text) -- if the text is not JSON, this raises the better error
    fail("%s", (message:gsub("^('.-'): byte", "%1: the model's vocab: byte")))
  elseif out[0] == nil then
    return text
  end
  local read = ffi.gc(out[0], C.pgee_vocabulary_free)
  local vocab = {
    bytes = read.bytes, ends = read.ends, scores = read.scores, count = tonumber(read.count), owner = read,
  }
  return text:sub(1, tonumber(read.begin)) .. "null" .. text:sub(tonumber(read["end"]) + 1), vocab
end

--- Reads and decodes a tokenizer.json. If its model.vocab is a list of pieces and scores, it becomes a vocab for C.
function M.file(path)
  local text, why = json.text(path)
  if not text then
    fail("%s", why)
  end
  local rest, vocab = take_vocabulary(path, text)
  local file = json.object(path, rest)
  if vocab then
    if type(file.model) ~= "table" or file.model.vocab ~= json.null then
      fail("'%s': the model's vocab is given more than once", path)
    end
    file.model.vocab = vocab
  end
  return file
end

--- The model for C (models.lua) from the decoded model of type Unigram.
function M.model(model, path)
  local vocab, unk, byte_fallback = model.vocab, model.unk_id, model.byte_fallback
  if type(vocab) ~= "table" or type(vocab.scores) ~= "cdata" then
    fail("'%s': the model's vocab is %s, expected a list of pieces and scores", path, json.describe(vocab))
  elseif vocab.count == 0 then
    fail("'%s': the model's vocab is empty", path)
  end
  if unk == nil or unk == json.null then
    unk = -1
  elseif type(unk) ~= "number" or unk % 1 ~= 0 or unk < 0 or unk >= vocab.count then
    fail("'%s': the model's unk_id is %s, expected the id of one of %d pieces", path, json.describe(unk), vocab.count)
  end
  if byte_fallback ~= nil and type(byte_fallback) ~= "boolean" then
    fail("'%s': the model's byte_fallback is %s, expected a boolean", path, json.describe(byte_fallback))
  end
  return { vocab = vocab, unk = unk, byte_fallback = byte_fallback or false }
end

-- ---- Base 64 ---------------------------------------------------------------------------------------------------------------

local VALUES = ffi.new("uint8_t[256]")
ffi.fill(VALUES, 256, 255)
for i, range in ipairs { "AZ", "az", "09", "++", "//" } do
  local before = ({ 0, 26, 52, 62, 63 })[i]
  for c = range:byte(1), range:byte(2) do
    VALUES[c] = before + c - range:byte(1)
  end
end

-- The bytes that a text in base 64 encodes; nil if the text is not base 64 with padding and zero bits at its end (RFC 4648).
local function base64(text)
  local size, padding = #text, #text:match "=?=?$"
  if size % 4 ~= 0 then
    return nil
  end
  local bytes, s, bad = ffi.new("uint8_t[?]", size / 4 * 3 + 3), ffi.cast("const uint8_t *", text), 0
  for i = 0, size / 4 - 1 do
    local word = 0
    for j = 4 * i, 4 * i + 3 do
      local value = j < size - padding and VALUES[s[j]] or 0
      bad = bit.bor(bad, value)
      word = bit.bor(bit.lshift(word, 6), value)
    end
    bytes[3 * i], bytes[3 * i + 1], bytes[3 * i + 2] = bit.rshift(word, 16), bit.rshift(word, 8), word
  end
  local count = size / 4 * 3 - padding
  for i = count, size / 4 * 3 - 1 do
    bad = bytes[i] ~= 0 and 255 or bad
  end
  return bad < 64 and ffi.string(bytes, count) or nil
end

--- The bytes of the charsmap of a normalizer of type Precompiled.
function M.charsmap(normalizer, path)
  local text = normalizer.precompiled_charsmap
  local blob = normalizer.blob or type(text) == "string" and base64(text)
  return blob or fail("'%s': the normalizer's precompiled_charsmap is %s, expected a string in base 64", path,
    type(text) == "string" and "damaged" or json.describe(text))
end

return M
