-- Images of tokenizers, whole and damaged: whatever their bytes are, nothing outside of them is read, and work ends. The
-- sanitizers of `make hard` see what is read; here too a call either gives something sound or fails with a message.
local ffi = require "ffi"
local cjson = require "cjson"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local tokenizer = require "perigee.tokenizer"
local files = require "spec.support.files"
local C = pgee.C

local LETTERS = { "a", "b", "c", "é", "中", "▁", "Ġ", "##", " ", ".", "\204\129" }

local function step(kind, more)
  more = more or {}
  more.type = kind
  return more
end

local function sequence(key, ...)
  return { type = "Sequence", [key] = { ... } }
end

local MODELS = {
  WordPiece = function()
    return { type = "WordPiece", unk_token = "[UNK]", continuing_subword_prefix = "##", max_input_chars_per_word = 100, vocab = {
      ["[UNK]"] = 0, ["[CLS]"] = 1, ["[SEP]"] = 2, a = 3, b = 4, ["##a"] = 5, ["##b"] = 6, ab = 7, ["é"] = 8, ["▁a"] = 9,
      ["中"] = 10 } }
  end,
  BPE = function()
    return { type = "BPE", unk_token = "[UNK]", byte_fallback = true, merges = { "a b", "ab a", "b a", "Ġ a" }, vocab = {
      ["[UNK]"] = 0, ["[CLS]"] = 1, ["[SEP]"] = 2, a = 3, b = 4, ab = 5, aba = 6, ba = 7, ["Ġ"] = 8, ["Ġa"] = 9, ["<0xC3>"] = 10,
      ["<0xA9>"] = 11 } }
  end,
  Unigram = function()
    return { type = "Unigram", unk_id = 0, byte_fallback = true, vocab = {
      { "[UNK]", 0 }, { "[CLS]", 0 }, { "[SEP]", 0 }, { "a", -1 }, { "b", -1.5 }, { "ab", -1.75 }, { "▁", -2 }, { "▁a", -2.5 },
      { "<0xC3>", -3 }, { "<0xA9>", -3 } } }
  end,
}

local FRAMES = {
  BERT = function(d)
    d.normalizer = step("BertNormalizer",
      { clean_text = true, handle_chinese_chars = true, strip_accents = true, lowercase = true })
    d.pre_tokenizer, d.decoder = step "BertPreTokenizer", step("WordPiece", { prefix = "##", cleanup = true })
    d.post_processor = step("BertProcessing", { cls = { "[CLS]", 1 }, sep = { "[SEP]", 2 } })
  end,
  other = function(d)
    d.normalizer = sequence("normalizers", step "NFKC", step("Replace", { pattern = { Regex = "b+|é" }, content = "ab" }))
    d.pre_tokenizer = sequence("pretokenizers",
      step("Split", { pattern = { String = "ba" }, behavior = "Isolated", invert = false }),
      step("Metaspace", { replacement = "▁", prepend_scheme = "first", split = true }),
      step("ByteLevel", { add_prefix_space = true, trim_offsets = true, use_regex = true }))
    d.decoder = sequence("decoders", step "ByteFallback", step("Strip", { content = "a", start = 1, stop = 1 }), step "Fuse")
    d.post_processor = step("RobertaProcessing", {
      cls = { "[CLS]", 1 }, sep = { "[SEP]", 2 }, trim_offsets = true, add_prefix_space = true })
  end,
}

local function added(id, content, normalized)
  return {
    id = id, content = content, normalized = normalized, single_word = false, lstrip = true, rstrip = normalized, special = true,
  }
end

local function load(model, frame)
  local d = { added_tokens = { added(1, "[CLS]", false), added(30, "Éa", true) }, model = MODELS[model]() }
  FRAMES[frame](d)
  return tokenizer.load(files.folder { ["tokenizer.json"] = cjson.encode(d) })
end

local function data_of(image)
  return ffi.cast("uint8_t *", C.pgee_tensor_data(image.handle))
end

local function bytes_of(t)
  local image = t:image()
  return ffi.string(data_of(image), #image)
end

local function image_of(bytes)
  local t = tensor.new("U8", { #bytes })
  ffi.copy(data_of(t), bytes, #bytes)
  return t
end

local function text(random, most)
  local list = {}
  for i = 1, random(most) do
    list[i] = random(9) == 0 and string.char(random(256)) or LETTERS[random(#LETTERS) + 1]
  end
  return table.concat(list)
end

-- Everything that a tokenizer can be asked.
local function use(t, random)
  for _ = 1, 3 do
    local a, b = text(random, 40), random(2) == 0 and text(random, 20) or nil
    local ok, e = pcall(t.encode, t, a, b, { offsets = random(2) == 0 and "characters" or nil, max_tokens = 12 + random(40) })
    if ok then
      local limit = tonumber(C.pgee_tokenizer_ids(t.handle.handle))
      for i, id in ipairs(e.ids) do
        assert.is_true(id >= 0 and id < limit)
        assert.is_true(e.offsets[i][1] >= 0 and e.offsets[i][2] <= math.max(#a, #(b or "")))
      end
      pcall(t.decode, t, e.ids)
    end
    pcall(t.encode_words, t, { a, b })
    pcall(t.decode, t, { random(40), random(40), random(40) }, { special = true })
    t:piece(random(50) - 5)
    t:id(text(random, 3))
  end
end

describe("An image", function()
  after_each(files.clean)

  for model in pairs(MODELS) do
    for frame in pairs(FRAMES) do
      local name = ("of %s in %s frame"):format(model, frame == "BERT" and "BERT's" or "another")

      it(name .. " is the tokenizer", function()
        local t, random = load(model, frame), files.random(3)
        local bytes = bytes_of(t)
        assert.equal(bytes, bytes_of(load(model, frame)))
        assert.equal(0, #bytes % 64)
        local other = tokenizer.from_image(image_of(bytes))
        for _ = 1, 30 do
          local a, b = text(random, 40), random(3) == 0 and text(random, 20) or nil
          local e = t:encode(a, b)
          assert.same(e, other:encode(a, b))
          assert.equal(t:decode(e.ids), other:decode(e.ids))
        end
        assert.equal(t:id "ab", other:id "ab")
        assert.equal(t:piece(4), other:piece(4))
        assert.equal(bytes, bytes_of(other))
      end)

      it(name .. " that is damaged is an error or harmless", function()
        local bytes, random = bytes_of(load(model, frame)), files.random(#model)
        local refused = 0
        for round = 1, os.getenv "PERIGEE_HARD" and 200 or 120 do
          local image = image_of(bytes)
          local data = data_of(image)
          local words = ffi.cast("uint32_t *", data)
          for _ = 1, 1 + random(4) do
            if round % 3 == 0 then -- where the sections are, and the options
              words[random(24 * 8)] = random(3) == 0 and 0xFFFFFFFF or random(2 ^ 16)
            elseif round % 3 == 1 then
              words[random(#bytes / 4)] = ({ 0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000 })[random(5) + 1]
            else
              data[random(#bytes)] = random(256)
            end
          end
          local ok, t = pcall(tokenizer.from_image, image)
          if ok then
            use(t, random)
          else
            refused = refused + 1
            assert.matches("image of a tokenizer", t)
          end
        end
        assert.is_true(refused > 5)
      end)
    end
  end

  it("that is cut short is refused", function()
    local bytes = bytes_of(load("WordPiece", "BERT"))
    for _, size in ipairs { 0, 1, 8, 63, 512, #bytes / 2, #bytes - 64, #bytes - 1 } do
      assert.error_matches(function() tokenizer.from_image(image_of(bytes:sub(1, size))) end,
        "the image of a tokenizer has %d+ bytes")
    end
    assert.error_matches(function() tokenizer.from_image(image_of("x" .. bytes:sub(2))) end, "do not begin with 'pgeetok'")
    assert.error_matches(function() tokenizer.from_image(image_of(bytes:sub(1, 8) .. "\9" .. bytes:sub(10))) end, "has version 9")
  end)

  it("of full tables is refused, so that no search goes on for ever", function()
    local t = load("BPE", "other")
    local bytes = bytes_of(t)
    local image = image_of(bytes)
    local words = ffi.cast("uint64_t *", data_of(image))
    local refused = 0
    for section = 0, 31 do -- each in turn all ones
      local offset, length = tonumber(words[8 + 2 * section]), tonumber(words[9 + 2 * section])
      local other = image_of(bytes)
      ffi.fill(data_of(other) + offset, length, 0xFF)
      local ok, opened = pcall(tokenizer.from_image, other)
      if ok then
        use(opened, files.random(section))
      elseif length > 0 then
        refused = refused + 1
      end
    end
    assert.is_true(refused >= 6)
  end)
end)

describe("A tokenizer takes time linear in the text:", function()
  for model in pairs(MODELS) do
    it(model, function()
      local t = load(model, "other")
      local function seconds(n)
        local began = os.clock()
        for _, part in ipairs { "a", "ab", "é", " ", "\204\129", "中", "[CLS", "\255" } do
          t:encode(part:rep(n / #part), nil, { max_tokens = 8 })
        end
        return os.clock() - began
      end
      local hard = os.getenv "PERIGEE_HARD"
      assert.is_true(seconds(hard and 2 ^ 17 or 2 ^ 20) < 16)
    end)
  end
end)
