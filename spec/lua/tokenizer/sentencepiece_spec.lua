-- SentencePiece models: the protocol buffer, the ids for each class, and which models are refused. The ids of texts are in
-- spec/golden/tokenizer.
local ffi = require "ffi"
local json = require "perigee.base.json"
local sentencepiece = require "perigee.tokenizer.sentencepiece"
local unigram = require "perigee.tokenizer.unigram"
local FOLDER, SHARED = "spec/golden/tokenizer/", "../shared/data/tokenizers/"
local MODEL = FOLDER .. "unigram.model"

local function refused(why, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(message):find(why, 1, true), tostring(message))
end

local function varint(n)
  local list = {}
  while n > 127 do
    list[#list + 1] = string.char(n % 128 + 128)
    n = math.floor(n / 128)
  end
  return table.concat(list) .. string.char(n)
end

local function number(field, value)
  return varint(field * 8) .. varint(value)
end

local function bytes(field, text)
  return varint(field * 8 + 2) .. varint(#text) .. text
end

local function float(value)
  return varint(2 * 8 + 5) .. ffi.string(ffi.new("float[1]", value), 4)
end

local function piece(text, score, kind)
  return bytes(1, bytes(1, text) .. float(score) .. (kind and number(3, kind) or ""))
end

local PIECES = piece("<unk>", 0, 2) .. piece("<s>", 0, 3) .. piece("</s>", 0, 3) .. piece("a", -1.5) .. piece("b", -2)

local function texts(vocab)
  local list, begin, all = {}, 0, vocab.bytes
  all = type(all) == "string" and all or ffi.string(all, vocab.ends[vocab.count - 1])
  for i = 0, vocab.count - 1 do
    list[#list + 1] = all:sub(begin + 1, tonumber(vocab.ends[i]))
    begin = tonumber(vocab.ends[i])
  end
  return list
end

local function read(text)
  return sentencepiece.read("a.model", text)
end

-- The ids of the special tokens <s> and </s> in the post-processor.
describe("a SentencePiece model", function()
  it("has pieces, scores, types and settings", function()
    local m = read(PIECES)
    assert.same({ "<unk>", "<s>", "</s>", "a", "b" }, m.pieces)
    assert.same({ 0, -1.5, -2 }, { m.scores[2], m.scores[3], m.scores[4] })
    assert.same({ 2, 3, 3, 1, 1 }, { m.types[0], m.types[1], m.types[2], m.types[3], m.types[4] })
    assert.same({ 1, 0, "<unk>" }, { m.trainer.model_type, m.trainer.unk_id, m.trainer.unk_piece })
    assert.is_true(m.normalizer.add_dummy_prefix)
    m = read(PIECES .. bytes(2, number(35, 1) .. number(40, 1)) .. bytes(3, number(3, 0) .. bytes(2, "xyz")))
    assert.same({ true, 1 }, { m.trainer.byte_fallback, m.trainer.unk_id })
    assert.same({ false, true, "xyz" }, { m.normalizer.add_dummy_prefix, m.normalizer.escape_whitespaces,
      m.normalizer.precompiled_charsmap })
  end)

  it("may have fields that are not known, in any order and twice", function()
    local extra = number(77, 5) .. bytes(900, "??") .. varint(99 * 8 + 5) .. "1234" .. varint(98 * 8 + 1) .. "12345678"
    local m = read(bytes(2, extra .. number(40, 3)) .. extra .. PIECES .. bytes(2, number(40, 1)))
    assert.equal(5, m.count)
    assert.equal(1, m.trainer.unk_id)
  end)

  it("is refused if it has another type, or is not a SentencePiece model", function()
    for kind, name in pairs { [2] = "BPE", [3] = "WORD", [4] = "CHAR", [9] = "9" } do
      local text = PIECES .. bytes(2, number(3, kind))
      refused("'a.model': a SentencePiece model of type " .. name .. ", expected UNIGRAM", read, text)
    end
    refused("it has no pieces", read, "")
    refused("treat_whitespace_as_suffix", read, PIECES .. bytes(2, number(24, 1)))
    refused("the unknown piece is 5 of 5", read, PIECES .. bytes(2, number(40, 5)))
    refused("wire type", read, "{\"model\": {}}")
    refused("'pieces' has wire type 0, expected 2", read, number(1, 3))
    refused("'score' has wire type 0, expected 5", read, bytes(1, number(2, 3)))
    refused("without a number", read, "\0\0")
    refused("more than 10 bytes", read, ("\255"):rep(11))
    refused("cut short", read, bytes(1, "abc"):sub(1, 3))
    refused("cut short", read, "\10\255\255\255\255\15")
    refused("cannot open", sentencepiece.read, "no/such.model")
  end)

  it("is refused wherever it is cut within a message, and survives any damage", function()
    local whole = PIECES .. bytes(2, number(40, 0)) .. bytes(3, bytes(2, "xyz"))
    local good = 0
    for size = 0, #whole - 1 do
      good = good + (pcall(read, whole:sub(1, size)) and 1 or 0)
    end
    assert.equal(6, good) -- behind one of the messages that may be the last
    math.randomseed(5)
    for _ = 1, 3000 do
      local list = { whole:byte(1, -1) }
      for _ = 1, math.random(1, 4) do
        list[math.random(#list)] = math.random(0, 255)
      end
      local ok, message = pcall(read, string.char(unpack(list)))
      assert.truthy(ok or message:find "^'a.model': ", message)
    end
  end)
end)

describe("a SentencePiece model as a tokenizer.json", function()
  local m = read(PIECES)

  -- Stands for a folder's files that name no special token but the mask: text(key) gives the default tokens.
  local function named(mask)
    local texts_of = { bos_token = "<s>", eos_token = "</s>", pad_token = "<pad>", unk_token = "<unk>", mask_token = mask }
    return { text = function(_, key) return texts_of[key] end }
  end

  it("has fairseq's ids for XLM-RoBERTa", function()
    local vocab = sentencepiece.parts(m, "XLMRobertaTokenizer", named "<m>").vocab
    assert.same({ "<s>", "<pad>", "</s>", "<unk>", "a", "b", "<m>" }, texts(vocab))
    assert.same({ 0, -1.5, 0 }, { vocab.scores[3], vocab.scores[4], vocab.scores[6] })
  end)

  it("has CamemBERT's", function()
    local vocab = sentencepiece.parts(m, "CamembertTokenizer", named "<mask>").vocab
    assert.same({ "<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>", "a", "b", "<mask>" },
      texts(vocab))
    assert.equal(-100, vocab.scores[4])
  end)

  it("has the model's own otherwise, or says that it cannot know", function()
    local file = sentencepiece.plain(m)
    assert.same(m.pieces, texts(file.model.vocab))
    assert.is_nil(file.post_processor)
    refused("tokenizer_class 'T5Tokenizer' is not supported, expected CamembertTokenizer, XLMRobertaTokenizer, XLNetTokenizer",
      sentencepiece.check_class, m, nil, "T5Tokenizer")
    refused("depends on the tokenizer_class", sentencepiece.check_class,
      sentencepiece.read(MODEL:gsub("unigram", "sentencepiece.bpe"), json.text(MODEL)))
    local own = read(PIECES .. piece("(", 0, 4) .. piece("c.", 0, 4) .. piece("日", 0, 4))
    assert.equal("日|c\\.|\\(", sentencepiece.plain(own).pre_tokenizer.pretokenizers[2].pattern.Regex) -- each a word of its own
    local found = sentencepiece.added(own, true)
    assert.same({ "<s>", true, "日", false },
      { found[1].content, found[1].special, found[#found].content, found[#found].special })
    assert.equal(#found - 3, #sentencepiece.added(own, false))
  end)

  local function same(path, model)
    local file, parts = unigram.file(path), sentencepiece.parts(sentencepiece.read(model), "XLMRobertaTokenizer", named "<mask>")
    local x, y = file.model.vocab, parts.vocab
    assert.equal(x.count, y.count)
    assert.equal(ffi.string(x.bytes, x.ends[x.count - 1]), y.bytes)
    local moved, different = 0, 0
    for i = 0, x.count - 1 do
      moved = moved + (x.ends[i] ~= y.ends[i] and 1 or 0)
      different = math.max(different, math.abs(x.scores[i] - y.scores[i]))
    end
    assert.equal(0, moved)
    assert.is_true(different < 1e-6) -- a float as the model has it, and its decimal digits
    assert.equal(unigram.charsmap(file.normalizer, path), unigram.charsmap(parts.charsmap, model))
  end

  it("says what the tokenizer.json with the same pieces says", function()
    same(FOLDER .. "unigram.json", MODEL)
  end)

  it("says so for XLM-R's 250,000 pieces", function()
    if not json.exists(SHARED .. "xlm-roberta-base/tokenizer.json") then
      return pending "../shared/data is not here"
    end
    same(SHARED .. "xlm-roberta-base/tokenizer.json", SHARED .. "xlm-roberta-base/sentencepiece.bpe.model")
  end)
end)
