local ffi = require "ffi"
local cjson = require "cjson"
local files = require "spec.support.files"
local tokenizer = require "perigee.tokenizer"
local json = require "perigee.json"

local PIECES = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "A", "e", "é", "##é", ".", "中", "##中", "!", "don",
  "'", "t", "do not" }
local ID = {}
for i, piece in ipairs(PIECES) do
  ID[piece] = i - 1
end
local VOCABULARY = table.concat(PIECES, "\n") .. "\n"

local function special(text)
  return {
    id = ID[text], content = text, single_word = false, lstrip = false, rstrip = false, normalized = false, special = true,
  }
end

local function sequence(id, type_id)
  return { Sequence = { id = id, type_id = type_id } }
end

local function token(id, type_id)
  return { SpecialToken = { id = id, type_id = type_id } }
end

-- A tokenizer.json as the reference writes it; change(d) changes it first.
local function definition(change)
  local d = {
    version = "1.0", truncation = cjson.null, padding = cjson.null,
    added_tokens = { special "[PAD]", special "[UNK]", special "[CLS]", special "[SEP]", special "[MASK]" },
    normalizer = {
      type = "BertNormalizer", clean_text = true, handle_chinese_chars = true, strip_accents = cjson.null, lowercase = true,
    },
    pre_tokenizer = { type = "BertPreTokenizer" },
    post_processor = {
      type = "TemplateProcessing",
      single = { token("[CLS]", 0), sequence("A", 0), token("[SEP]", 0) },
      pair = { token("[CLS]", 0), sequence("A", 0), token("[SEP]", 0), sequence("B", 1), token("[SEP]", 1) },
      special_tokens = {
        ["[CLS]"] = { id = "[CLS]", ids = { 2 }, tokens = { "[CLS]" } },
        ["[SEP]"] = { id = "[SEP]", ids = { 3 }, tokens = { "[SEP]" } },
      },
    },
    decoder = { type = "WordPiece", prefix = "##", cleanup = true },
    model = {
      type = "WordPiece", unk_token = "[UNK]", continuing_subword_prefix = "##", max_input_chars_per_word = 100, vocab = ID,
    },
  }
  if change then
    change(d)
  end
  return cjson.encode(d)
end

local function load(contents)
  return tokenizer.load(files.folder(contents))
end

local function ids(t, ...)
  return table.concat(t:encode(...).ids, " ")
end

local function ids_of(...)
  local list = {}
  for i, piece in ipairs { ... } do
    list[i] = assert(ID[piece], piece)
  end
  return "2 " .. table.concat(list, " ") .. " 3"
end

local function fails(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(message):find(text, 1, true), tostring(message))
end

describe("A tokenizer", function()
  after_each(files.clean)

  describe("from tokenizer.json", function()
    it("is what it says, whatever the other files say", function()
      local others = {
        ["vocab.txt"] = "[UNK]\n[CLS]\n[SEP]\na\n", ["tokenizer_config.json"] = '{"do_lower_case": false, "cls_token": "x"}',
        ["sentence_bert_config.json"] = '{"do_lower_case": true, "max_seq_length": 3}',
      }
      others["tokenizer.json"] = definition()
      local t = load(others)
      assert.equal(ids_of("a", "e", "."), ids(t, "A é."))
      assert.same({ 20, 1, 2, 3, 0, 4 }, { t.size, t.unk, t.cls, t.sep, t.pad, t.mask })
      others["tokenizer.json"] = definition(function(d) d.normalizer.lowercase = false end)
      assert.equal(ids_of("A", "é", "."), ids(load(others), "A é."))
      assert.equal("tokenizer WordPiece, 20 pieces, lower case, without accents", tostring(t))
    end)

    it("ignores truncation and padding", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        d.truncation = { direction = "Right", max_length = 3, strategy = "LongestFirst", stride = 0 }
        d.padding = { strategy = { Fixed = 9 }, direction = "Right", pad_id = 0, pad_type_id = 0, pad_token = "[PAD]" }
      end) }
      assert.equal(ids_of("a", "b", "a", "b"), ids(t, "a b a b"))
    end)

    it("takes every option of the normalizer, and none", function()
      local function with(change)
        return load { ["tokenizer.json"] = definition(change) }
      end
      assert.equal(ids_of("A", "e"), ids(with(function(d)
        d.normalizer.lowercase, d.normalizer.strip_accents = false, true
      end), "A é"))
      assert.equal(ids_of("a", "é"), ids(with(function(d) d.normalizer.strip_accents = false end), "A é"))
      assert.equal(ids_of("a", "中", "b"), ids(with(), "a中b"))
      assert.equal(ids_of("[UNK]"), ids(with(function(d) d.normalizer.handle_chinese_chars = false end), "a中a"))
      assert.equal(ids_of("[UNK]"), ids(with(function(d) d.normalizer.clean_text = false end), "a\1b"))
      assert.equal(ids_of("A", "é", "[UNK]"), ids(with(function(d) d.normalizer = cjson.null end), "A é a\1b"))
    end)

    it("takes BertProcessing, another prefix and limit", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        d.post_processor = { type = "BertProcessing", sep = { "b", ID.b }, cls = { "a", ID.a } }
        d.model.continuing_subword_prefix, d.model.max_input_chars_per_word = "", 2
      end) }
      assert.equal(table.concat({ ID.a, ID.a, ID.e, ID["[UNK]"], ID.b }, " "), ids(t, "ae aea"))
    end)

    it("numbers added tokens as the reference does", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        local function add(content, flags)
          local a = special(content)
          a.id = 99
          for key, value in pairs(flags or {}) do
            a[key] = value
          end
          table.insert(d.added_tokens, a)
        end
        add("<x>")
        add ""
        add("b", { normalized = true, single_word = true, special = false })
        add("<y>", { lstrip = true })
        add("<x>", { rstrip = true })
      end) }
      assert.same({ 20, 21, ID.b, 22 }, { t:id "<x>", t:id "<y>", t:id "b", t.size })
      assert.same({ "<x>", "<y>", "b" }, { t:piece(20), t:piece(21), t:piece(ID.b) })
      local e = t:encode "a <x> B <y>"
      assert.same({ 2, ID.a, 20, ID.b, 21, 3 }, e.ids)
      assert.same({ { 0, 0 }, { 0, 1 }, { 2, 6 }, { 6, 7 }, { 7, 11 }, { 0, 0 } }, e.offsets)
    end)

    local UNSUPPORTED = {
      ["the model is of type 'BPE', expected WordPiece"] = function(d) d.model = { type = "BPE", vocab = {}, merges = {} } end,
      ["the normalizer is of type 'NFC', expected BertNormalizer"] = function(d) d.normalizer = { type = "NFC" } end,
      ["the pre_tokenizer is of type 'Whitespace', expected BertPreTokenizer"] = function(d)
        d.pre_tokenizer.type = "Whitespace"
      end,
      ["the pre_tokenizer is missing"] = function(d) d.pre_tokenizer = nil end,
      ["the post_processor is of type 'RobertaProcessing', expected TemplateProcessing or BertProcessing"] = function(d)
        d.post_processor.type = "RobertaProcessing"
      end,
      ["the post_processor is null"] = function(d) d.post_processor = cjson.null end,
      ["'[CLS]:0 $A:0' and"] = function(d) d.post_processor.single[3] = nil end,
      ["$B:0 [SEP]:1' are not supported"] = function(d) d.post_processor.pair[4] = sequence("B", 0) end,
      ["the special token '[SEP]' of the post_processor"] = function(d) d.post_processor.special_tokens["[SEP]"] = nil end,
      ["has 2 ids, expected one"] = function(d) d.post_processor.special_tokens["[CLS]"].ids = { 2, 3 } end,
      ["the vocabulary has no <unk>"] = function(d) d.model.unk_token = "<unk>" end,
      ["lowercase of the normalizer is missing"] = function(d) d.normalizer.lowercase = nil end,
      ["max_input_chars_per_word is -1"] = function(d) d.model.max_input_chars_per_word = -1 end,
      ["the model's vocab is missing"] = function(d) d.model.vocab = nil end,
      ["the id of 'a' is 1.5, expected an integer"] = function(d) d.model.vocab = { a = 1.5 } end,
      ["the content of added token 1 is missing"] = function(d) d.added_tokens[1].content = nil end,
      ["lstrip of added token '[UNK]' is the string 'no'"] = function(d) d.added_tokens[2].lstrip = "no" end,
      ["not UTF-8"] = function(d) d.model.vocab = { ["a\255"] = 0, ["[UNK]"] = 1 } end,
    }
    for message, change in pairs(UNSUPPORTED) do
      it("is an error that says: " .. message, function()
        local dir = files.folder { ["tokenizer.json"] = definition(change) }
        fails(message, tokenizer.load, dir)
        fails(dir .. "/tokenizer.json", tokenizer.load, dir)
      end)
    end
  end)

  describe("from vocab.txt", function()
    local function with(config, more)
      local contents = more or {}
      contents["vocab.txt"] = contents["vocab.txt"] or VOCABULARY
      contents["tokenizer_config.json"] = config
      return load(contents)
    end

    it("lowers case and strips accents unless told otherwise", function()
      assert.equal(ids_of("a", "e"), ids(with(), "A é"))
      assert.equal(ids_of("A", "é"), ids(with '{"do_lower_case": false}', "A é"))
      assert.equal(ids_of("A", "e"), ids(with '{"do_lower_case": false, "strip_accents": true}', "A é"))
      assert.equal(ids_of("a", "é"), ids(with '{"do_lower_case": true, "strip_accents": false}', "A é"))
      assert.equal(ids_of("a", "e"), ids(with '{"strip_accents": null}', "A é"))
    end)

    it("is given text in lower case where sentence-transformers lowers it", function()
      local lowers = { ["sentence_bert_config.json"] = '{"do_lower_case": true}' }
      assert.equal(ids_of("a", "é"), ids(with('{"do_lower_case": false}', lowers), "A é"))
    end)

    it("leaves ideographs in their words when told so", function()
      assert.equal(ids_of("中", "中"), ids(with(), "中中"))
      assert.equal(ids_of("中", "##中"), ids(with '{"tokenize_chinese_chars": false}', "中中"))
    end)

    it("reads lines as the reference does", function()
      local t = with(nil, { ["vocab.txt"] = (VOCABULARY .. "c\n\nc"):gsub("\n", "\r\n") })
      assert.equal("2 22 3", ids(t, "c"))
      assert.equal("", t:piece(21))
      assert.equal(ID.a, t:id "a")
    end)

    it("has the special tokens that the folder names", function()
      local vocabulary = "<pad>\n<s>\n</s>\n<unk>\na\n"
      local t = with('{"cls_token": "<s>", "sep_token": {"content": "</s>"}, "pad_token": "<pad>"}', {
        ["vocab.txt"] = vocabulary, ["special_tokens_map.json"] = '{"unk_token": "<unk>"}',
      })
      assert.equal("1 4 3 2 2", ids(t, "a z</s>"))
      assert.same({ 0, nil }, { t.pad, t.mask })
      fails("the vocabulary has no [UNK], [CLS], [SEP]", with, nil, { ["vocab.txt"] = "a\nb\n" })
      fails("the vocabulary has no [SEP]", with, nil, { ["vocab.txt"] = "[UNK]\n[CLS]\n" })
    end)

    it("takes added tokens from tokenizer_config.json and added_tokens.json", function()
      local t = with([[{"added_tokens_decoder": {
        "20": {"content": "<x>", "lstrip": true, "normalized": false, "special": true},
        "4": {"content": "[MASK]", "lstrip": true, "normalized": false, "special": true}}}]],
        { ["added_tokens.json"] = '{"<Y>": 21, "<x>": 50}' })
      local e = t:encode "a <x><y> [MASK]"
      assert.same({ 2, ID.a, 20, 21, 4, 3 }, e.ids)
      assert.same({ { 0, 0 }, { 0, 1 }, { 1, 5 }, { 5, 8 }, { 8, 15 }, { 0, 0 } }, e.offsets)
      assert.equal(22, t.size)
    end)
  end)

  it("is an error where there is none", function()
    fails("has no tokenizer: neither tokenizer.json nor vocab.txt", load, {})
    fails("load: argument 1 is 3, expected a checkpoint or the path of its folder", tokenizer.load, 3)
    fails("is not valid JSON", load, { ["tokenizer.json"] = "{" })
  end)

  describe("that is loaded", function()
    local t
    before_each(function() t = load { ["tokenizer.json"] = definition() } end)

    it("encodes a text and a pair", function()
      assert.same({
        ids = { 2, ID.a, ID["##b"], 3 }, types = { 0, 0, 0, 0 },
        offsets = { { 0, 0 }, { 0, 1 }, { 1, 2 }, { 0, 0 } }, dropped = 0,
      }, t:encode "ab")
      local text, pair = "a é", "b!"
      local e = t:encode(text, pair)
      assert.same({ 2, ID.a, ID.e, 3, ID.b, ID["!"], 3 }, e.ids)
      assert.same({ 0, 0, 0, 0, 1, 1, 1 }, e.types)
      assert.equal("é", text:sub(e.offsets[3][1] + 1, e.offsets[3][2]))
      assert.equal("!", pair:sub(e.offsets[6][1] + 1, e.offsets[6][2]))
      assert.equal("2 3", ids(t, ""))
    end)

    it("truncates to max_tokens and says so", function()
      local e = t:encode("a b a b", nil, { max_tokens = 4 })
      assert.same({ 2, ID.a, ID.b, 3 }, e.ids)
      assert.equal(2, e.dropped)
      assert.equal(0, t:encode("a b a b", nil, { max_tokens = 6 }).dropped)
    end)

    it("names the argument that is no text", function()
      fails("encode: argument 1 is nil, expected a string", t.encode, t)
      fails("encode: argument 1 is a table, expected a string", t.encode, t, {})
      fails("encode: argument 2 is 3, expected a string", t.encode, t, "a", 3)
      fails("encode has no option limit, only max_tokens", t.encode, t, "a", nil, { limit = 3 })
      fails("encode: max_tokens is 2.5, expected an integer", t.encode, t, "a", nil, { max_tokens = 2.5 })
      fails("max_tokens is 1, expected 2 or more", t.encode, t, "a", nil, { max_tokens = 1 })
      fails("decode: argument 1 is the string 'a', expected a list of ids", t.decode, t, "a")
      fails("tokenizer_spec.lua", function() t:encode(3) end)
    end)

    it("encodes into a caller's arrays", function()
      local array, types, offsets = ffi.new "int32_t[8]", ffi.new "int32_t[8]", ffi.new "int32_t[16]"
      assert.same({ 5, 1 }, { t:encode_into(array, types, 5, "a b", "a", offsets) })
      assert.same({ 2, ID.a, 3, ID.a, 3 }, { array[0], array[1], array[2], array[3], array[4] })
      assert.same({ 0, 1, 1 }, { types[2], types[3], types[4] })
      assert.same({ 0, 1 }, { offsets[2], offsets[3] })
      assert.same({ 2, 0 }, { t:encode_into(array, types, 8, "") })
      fails("encode_into: argument 5 is 3", t.encode_into, t, array, types, 8, "", 3)
    end)

    it("decodes as the reference does", function()
      assert.equal("ab a.", t:decode(t:encode("ab a.").ids))
      assert.equal("##b a", t:decode { ID["##b"], ID.a })
      assert.equal("don ' t!", t:decode { ID["don"], ID["'"], ID["t"], ID["!"] })
      assert.equal("a don't", t:decode { ID.a, ID["do not"] })
      assert.equal("ab", t:decode(ffi.new("int32_t[3]", { 2, ID.a, ID["##b"] })))
      assert.equal("", t:decode {})
      fails("decode: id 2 is 99, which the vocabulary does not have", t.decode, t, { ID.a, 99 })
      local plain = load { ["tokenizer.json"] = definition(function(d) d.decoder.cleanup = false end) }
      assert.equal("a .", plain:decode { ID.a, ID["."] })
      local none = load { ["tokenizer.json"] = definition(function(d) d.decoder = { type = "Fuse" } end) }
      fails("its decoder is not supported", none.decode, none, { ID.a })
    end)

    it("is of no use once released", function()
      t:release()
      t:release()
      fails("this tokenizer was released", t.encode, t, "a")
    end)
  end)

  local demo = "build/demo/all-MiniLM-L6-v2"
  local here = json.exists(demo .. "/vocab.txt") and it or pending
  here("of the demo's checkpoint has BERT's ids", function()
    local t = tokenizer.load(demo)
    assert.equal("101 7592 1010 2088 999 15743 2618 19662 7520 21335 6321 102", ids(t, "Hello, WORLD! Naïveté untokenizably"))
    assert.same({ 30522, 101, 102, 100, 0, 103 }, { t.size, t.cls, t.sep, t.unk, t.pad, t.mask })
  end)
end)
