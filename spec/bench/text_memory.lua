--- Measures the memory that encoding takes, in bytes for each byte of text, with max_tokens = 512. For each tokenizer of
-- ../shared it prints the maximum over several kinds of text, such as characters that grow when they are normalized.
--
--   luajit spec/bench/text_memory.lua
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
require "spec.helper"
local ffi = require "ffi"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local models = require "spec.support.models"
local pgee = require "perigee.ffi"
local tokenizer = require "perigee.tokenizer"

local BYTES = 1e6 -- of a text
local SHARED = assert(models.shared()) .. "/data/tokenizers/"

local TEXTS = {
  ["U+FDFA, 33 bytes once normalized"] = "\239\183\186", ["U+3316"] = "\227\140\150", ["U+1F82"] = "\225\190\130",
  ["one long word"] = "a", ["words"] = "word ", ["spaces"] = " ", ["combining marks"] = "\204\129", ["ill-formed bytes"] = "\255",
  ["ideographs"] = "\228\184\173", ["digits"] = "1 ",
}

-- Folders by name: the files of ../shared, and the tokenizer_class that a checkpoint would name.
local CLASSES = {
  ["bert-base-uncased"] = { "BertTokenizer", "vocab.txt" }, ["bert-base-cased"] = { "BertTokenizer", "vocab.txt" },
  ["bert-base-chinese"] = { "BertTokenizer", "vocab.txt" }, ["bert-base-multilingual-cased"] = { "BertTokenizer", "vocab.txt" },
  ["roberta-base"] = { "RobertaTokenizer", "vocab.json", "merges.txt" },
  ["gpt2"] = { "GPT2Tokenizer", "vocab.json", "merges.txt" },
  ["xlm-roberta-base"] = { "XLMRobertaTokenizer", "sentencepiece.bpe.model" }, ["xlnet"] = { "XLNetTokenizer", "spiece.model" },
}

local function load(name)
  local class = CLASSES[name]
  local contents = { ["tokenizer_config.json"] = json.canonical { tokenizer_class = class[1] }, ["config.json"] = "{}" }
  for i = 2, #class do
    contents[class[i]] = models.read(SHARED .. name .. "/" .. class[i])
  end
  return tokenizer.load(files.folder(contents))
end

-- Peak bytes that the engine allocates while it encodes, in addition to the bytes that it held before.
local function peak(t, text)
  local ids, types = ffi.new "int32_t[512]", ffi.new "int32_t[512]"
  pgee.C.pgee_peak_reset()
  local before = tonumber(pgee.C.pgee_live_bytes())
  t:encode_into(ids, types, 512, text)
  return tonumber(pgee.C.pgee_peak_bytes()) - before
end

local names = {}
for name in pairs(CLASSES) do
  names[#names + 1] = name
end
table.sort(names)
for _, name in ipairs(names) do
  local ok, t = pcall(load, name)
  if not ok then
    print(("| %s | %s |"):format(name, t))
  else
    local worst, which = 0, nil
    for said, unit in pairs(TEXTS) do
      local bytes = peak(t, unit:rep(BYTES / #unit)) / BYTES
      if bytes > worst then
        worst, which = bytes, said
      end
    end
    print(("| %s | %.0f | %s | %.0f |"):format(name, worst, which, peak(t, ("some plain text "):rep(BYTES / 16)) / BYTES))
  end
end
files.clean()
