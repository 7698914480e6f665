local ffi = require "ffi"
local cjson = require "cjson"
local files = require "spec.support.files"
local checkpoint = require "perigee.checkpoint"
local tokenizer = require "perigee.tokenizer"
local json = require "perigee.base.json"
local skip = require "spec.support.skip"

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

-- A tokenizer.json as tokenizers writes it; change(d) changes it first.
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

describe("A text that grows when it is normalized", function()
  it("is refused above 64 MiB, with what to do", function()
    if os.getenv "PERIGEE_HARD" then
      return pending "takes long under the sanitizers"
    end
    local t = load { ["tokenizer.json"] = definition(function(d) d.normalizer = { type = "NFKC" } end) }
    local one = "\239\183\186" -- U+FDFA becomes 33 bytes
    assert.is_true(#t:encode(one:rep(1000)).ids > 2)
    local ok, message = pcall(t.encode, t, one:rep(2.1e6), nil, { max_tokens = 16 })
    assert.is_false(ok)
    assert.match("the text has more than 67108864 bytes when it is normalized: cut it into several texts", message, 1, true)
    t:release()
  end)
end)

describe("A tokenizer", function()
  after_each(files.clean)

  describe("from tokenizer.json", function()
    it("is used as it is if no class is named, with the tokens that the other files add", function()
      local others = {
        ["vocab.txt"] = "[UNK]\n[CLS]\n[SEP]\na\n", ["tokenizer_config.json"] = '{"do_lower_case": false, "cls_token": "x"}',
        ["sentence_bert_config.json"] = '{"do_lower_case": false, "max_seq_length": 3}',
      }
      others["tokenizer.json"] = definition()
      local t = load(others)
      assert.equal(ids_of("a", "e", "."), ids(t, "A é."))
      assert.same({ 21, 1, 20, 3, 0, 4 }, { t.size, t.unk, t.cls, t.sep, t.pad, t.mask }) -- x has the next free id
      others["tokenizer.json"] = definition(function(d) d.normalizer.lowercase = false end)
      assert.equal(ids_of("A", "é", "."), ids(load(others), "A é."))
      assert.equal("tokenizer WordPiece, 21 pieces", tostring(t))
      assert.same({ "WordPiece", "##" }, { t.model, t.prefix })
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

    it("has regular expressions whose classes know fewer word characters, as those of tokenizers do", function()
      local function replaced(regex)
        return ids(load { ["tokenizer.json"] = definition(function(d)
          d.normalizer = { type = "Replace", pattern = { Regex = regex }, content = "b" }
        end) }, "½ a ² é ٣ Ⅷ")
      end
      assert.equal(ids_of("b", "b", "b", "b", "b", "b"), replaced "\\w")
      assert.equal(ids_of("[UNK]", "b", "[UNK]", "b", "b", "b"), replaced "[\\w]")
      assert.equal(ids_of("b", "a", "b", "é", "[UNK]", "[UNK]"), replaced "[^\\w\\s]")
    end)

    it("takes BertProcessing, another prefix and limit", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        d.post_processor = { type = "BertProcessing", sep = { "b", ID.b }, cls = { "a", ID.a } }
        d.model.continuing_subword_prefix, d.model.max_input_chars_per_word = "", 2
      end) }
      assert.equal(table.concat({ ID.a, ID.a, ID.e, ID["[UNK]"], ID.b }, " "), ids(t, "ae aea"))
    end)

    it("leaves out of decoded text whatever has a special token's text, under any id", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        d.model = { type = "Unigram", unk_id = 0, vocab = {} }
        for i, piece in ipairs { "<unk>", "<s>", "a", "<s>", "<s>", "b" } do
          d.model.vocab[i] = { piece, -i }
        end
        d.added_tokens = { special "<s>", special "<unk>" }
        d.added_tokens[1].id, d.added_tokens[2].id = 1, 0
        d.normalizer, d.pre_tokenizer, d.decoder, d.post_processor = cjson.null, cjson.null, { type = "Fuse" }, cjson.null
      end) }
      assert.same({ 2, 4, 5 }, t:encode("a<s>b").ids)
      assert.equal("ab", t:decode { 0, 1, 2, 3, 4, 5 })
      assert.equal("<unk><s>a<s><s>b", t:decode({ 0, 1, 2, 3, 4, 5 }, { special = true }))
    end)

    -- tokenizers 0.23.3: an added token that is looked for in normalized text is shown as "_\n", the model's piece is "\n".
    it("trims offsets by what the model's pieces are, not by what they are shown as", function()
      local t = load { ["tokenizer.json"] = definition(function(d)
        d.model = { type = "BPE", vocab = { ["_"] = 0, a = 1, b = 2, ["\n"] = 3 }, merges = {} }
        d.added_tokens = { special "[PAD]" }
        d.added_tokens[1].id, d.added_tokens[1].content, d.added_tokens[1].normalized = 3, "\n", true
        d.normalizer, d.pre_tokenizer, d.decoder = { type = "Prepend", prepend = "_" }, cjson.null, cjson.null
        d.post_processor = {
          type = "RobertaProcessing", sep = { "b", 2 }, cls = { "a", 1 }, trim_offsets = true, add_prefix_space = false,
        }
      end) }
      local e = t:encode "a\nb\n"
      assert.same({ 1, 0, 1, 3, 2, 3, 2 }, e.ids)
      assert.same({ { 0, 0 }, { 0, 1 }, { 0, 1 }, { 2, 2 }, { 2, 3 }, { 4, 4 }, { 0, 0 } }, e.offsets)
    end)

    it("numbers added tokens as transformers does", function()
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
      ["the model is of type 'WordLevel', which is not supported; expected WordPiece, Unigram or BPE"] = function(d)
        d.model = { type = "WordLevel", vocab = {} }
      end,
      ["the model is missing"] = function(d) d.model = nil end,
      ["the normalizer is of type 'Made', which is not supported; expected BertNormalizer, ByteLevel, Lowercase,"] = function(d)
        d.normalizer = { type = "Made" }
      end,
      ["the normalizer is of type missing"] = function(d)
        d.normalizer = { type = "Sequence", normalizers = { { type = "NFC" }, {} } }
      end,
      ["the pre_tokenizer is of type 'UnicodeScripts', which is not supported; expected BertPreTokenizer,"] = function(d)
        d.pre_tokenizer.type = "UnicodeScripts"
      end,
      ["the decoder is of type 'CTC', which is not supported; expected BPEDecoder,"] = function(d) d.decoder.type = "CTC" end,
      ["the post_processor is of type 'Made', which is not supported; expected BertProcessing, ByteLevel,"] = function(d)
        d.post_processor.type = "Made"
      end,
      ["the post-processor ByteLevel follows one that adds special tokens, which is not supported"] = function(d)
        d.post_processor = { type = "Sequence", processors = { d.post_processor, { type = "ByteLevel", trim_offsets = true } } }
      end,
      ["two post-processors that trim offsets are not supported"] = function(d)
        local one = { type = "ByteLevel", trim_offsets = true, add_prefix_space = true }
        d.post_processor = { type = "Sequence", processors = { one, one } }
      end,
      ["cls of the post_processor is missing"] = function(d) d.post_processor.type = "RobertaProcessing" end,
      ["the template for a pair lacks the second"] = function(d) table.remove(d.post_processor.pair, 4) end,
      ["the template for one text lacks the first"] = function(d) d.post_processor.single = { token("[CLS]", 0) } end,
      ["the special token '[SEP]' of the post_processor"] = function(d) d.post_processor.special_tokens["[SEP]"] = nil end,
      ["the vocabulary has no <unk>"] = function(d) d.model.unk_token = "<unk>" end,
      ["lowercase of BertNormalizer is missing"] = function(d) d.normalizer.lowercase = nil end,
      ["max_input_chars_per_word is -1"] = function(d) d.model.max_input_chars_per_word = -1 end,
      ["the model's vocab is missing"] = function(d) d.model.vocab = nil end,
      ["the id of 'a' is 1.5, expected an integer"] = function(d) d.model.vocab = { a = 1.5, ["[UNK]"] = 1 } end,
      ["the content of added token 1 is missing"] = function(d) d.added_tokens[1].content = nil end,
      ["lstrip of added token 2 is the string 'no'"] = function(d) d.added_tokens[2].lstrip = "no" end,
      ["is not valid JSON: expected UTF-8 at byte "] = function(d) d.model.vocab = { ["a\255"] = 0, ["[UNK]"] = 1 } end,
      ["the model's dropout is 0.1, which is not supported"] = function(d)
        d.model = { type = "BPE", vocab = ID, merges = {}, dropout = 0.1 }
      end,
      ["merge 1 is 'a', expected two pieces with a space between"] = function(d)
        d.model = { type = "BPE", vocab = ID, merges = { "a" } }
      end,
      ["merge 1 has the piece 'ab', which is not in the vocabulary"] = function(d)
        d.model = { type = "BPE", vocab = ID, merges = { "a b" } }
      end,
      ["the regular expression '(a' is not supported: a group without its end at byte 2"] = function(d)
        d.pre_tokenizer = { type = "Split", pattern = { Regex = "(a" }, behavior = "Isolated", invert = false }
      end,
      ["'(?=a)|b' is not supported: it may match the empty string"] = function(d) -- though it does not match an empty text
        d.normalizer = { type = "Replace", pattern = { Regex = "(?=a)|b" }, content = "" }
      end,
      ["'(?i:é)' is not supported: a letter beyond ASCII where case does not count"] = function(d)
        d.normalizer = { type = "Replace", pattern = { Regex = "(?i:é)" }, content = "" }
      end,
      ["'(?i:ass)' is not supported: letters that one character is equal to where case does not count"] = function(d)
        d.normalizer = { type = "Replace", pattern = { Regex = "(?i:ass)" }, content = "" }
      end,
      ["the behavior of Split is 'Made', expected Removed, Isolated,"] = function(d)
        d.pre_tokenizer = { type = "Split", pattern = { String = "a" }, behavior = "Made", invert = false }
      end,
      ["the id of 'a' is the string 'x', expected an integer"] = function(d)
        d.model = { type = "BPE", vocab = { a = "x" }, merges = { "a a" } }
      end,
      ["the model's merges is an object, expected a list"] = function(d)
        d.model = { type = "BPE", vocab = ID, merges = { a = "b" } }
      end,
      ["added_tokens is an object, expected a list"] = function(d) d.added_tokens = { a = special "[UNK]" } end,
      ["normalizers of the normalizer is an object, expected a list"] = function(d)
        d.normalizer = { type = "Sequence", normalizers = { a = { type = "NFC" } } }
      end,
      ["the text of piece 2 of a template of the post_processor is the string 'C', expected 'A' or 'B'"] = function(d)
        d.post_processor.single[2].Sequence.id = "C"
      end,
      ["the model's vocab: byte "] = function(d) d.model = { type = "Unigram", vocab = { { "a", -1 }, { "b", "c" } } } end,
      ["the replacement of Metaspace is 'ab', expected one character"] = function(d)
        d.pre_tokenizer = { type = "Metaspace", replacement = "ab" }
      end,
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

    it("is refused where it is for a tokenizer that cuts words otherwise", function()
      for _, class in ipairs { "BertJapaneseTokenizer", "PhobertTokenizer", "BertweetTokenizer" } do
        for _, name in ipairs { "tokenizer_config.json", "config.json" } do
          fails(("vocab.txt': a vocabulary of tokenizer_class '%s' is not supported"):format(class), load,
            { ["vocab.txt"] = VOCABULARY, [name] = ('{"tokenizer_class": "%s"}'):format(class) })
        end
      end
      fails("vocab.json': a vocabulary of tokenizer_class 'HerbertTokenizerFast' is not supported", load,
        { ["vocab.json"] = "{}", ["merges.txt"] = "", ["tokenizer_config.json"] = '{"tokenizer_class": "HerbertTokenizerFast"}' })
      fails("word_tokenizer_type is the string 'mecab', which is not supported (words are split as in BERT)", with,
        '{"word_tokenizer_type": "mecab"}')
      fails("subword_tokenizer_type is the string 'character'", with, '{"subword_tokenizer_type": "character"}')
      assert.equal(ids_of("a"), ids(with '{"word_tokenizer_type": "basic", "subword_tokenizer_type": null}', "a"))
    end)

    it("is given text in lower case where sentence-transformers lowers it", function()
      local lowers = { ["modules.json"] = "[]", ["sentence_bert_config.json"] = '{"do_lower_case": true}' }
      assert.equal(ids_of("a", "é"), ids(with('{"do_lower_case": false}', lowers), "A é"))
      for _, normalizer in ipairs {
        cjson.null, { type = "NFC" }, { type = "Sequence", normalizers = { { type = "NFC" }, { type = "Lowercase" } } },
        { type = "BertNormalizer", clean_text = true, handle_chinese_chars = true, strip_accents = false, lowercase = false },
      } do
        lowers["tokenizer.json"] = definition(function(d) d.normalizer = normalizer end)
        assert.equal(ids_of("a", "é", "[MASK]"), ids(load(lowers), "A É [MASK]"))
      end
    end)

    it("leaves ideographs in their words when told so", function()
      assert.equal(ids_of("中", "中"), ids(with(), "中中"))
      assert.equal(ids_of("中", "##中"), ids(with '{"tokenize_chinese_chars": false}', "中中"))
    end)

    it("reads lines as transformers does", function()
      local t = with(nil, { ["vocab.txt"] = (VOCABULARY .. "c\n\nc"):gsub("\n", "\r\n") })
      assert.equal("2 22 3", ids(t, "c"))
      assert.equal("", t:piece(21))
      local spaced = with(nil, { ["vocab.txt"] = VOCABULARY .. "x\227\128\128\nyá\194\160\226\128\138 \n\225\154\128\n" })
      assert.same({ "x", "yá", "" }, { spaced:piece(20), spaced:piece(21), spaced:piece(22) })
      assert.equal(ID.a, t:id "a")
    end)

    it("has the special tokens that the folder names", function()
      local vocabulary = "<pad>\n<s>\n</s>\n<unk>\na\n"
      local t = with('{"cls_token": "<s>", "sep_token": {"content": "</s>"}, "pad_token": "<pad>"}', {
        ["vocab.txt"] = vocabulary, ["special_tokens_map.json"] = '{"unk_token": "<unk>"}',
      })
      assert.equal("1 4 3 2 2", ids(t, "a z</s>"))
      assert.same({ 0, 5, 6 }, { t.pad, t.mask, t.size }) -- [MASK], which no file names, has the next free id
      assert.same({ 2, 0, 3 }, with(nil, { ["vocab.txt"] = "[UNK]\na\n[CLS]\n" }):encode("?").ids)
      fails("the vocabulary has no [UNK]", with, nil, { ["vocab.txt"] = "a\nb\n" })
    end)

    it("takes added tokens from tokenizer_config.json, or the older added_tokens.json", function()
      local text, older = "a <x><y> [MASK]", { ["added_tokens.json"] = '{"<Y>": 21, "<x>": 20, "[MASK]": 50}' }
      local e = with([[{"added_tokens_decoder": {
        "21": {"content": "<Y>", "normalized": true},
        "20": {"content": "<x>", "lstrip": true, "normalized": false, "special": true},
        "4": {"content": "[MASK]", "lstrip": true, "normalized": false, "special": true}}}]]):encode(text)
      assert.same({ 2, ID.a, 20, 21, 4, 3 }, e.ids)
      assert.same({ { 0, 0 }, { 0, 1 }, { 1, 5 }, { 5, 8 }, { 8, 15 }, { 0, 0 } }, e.offsets)
      local t = with(nil, older)
      assert.same({ 2, ID.a, 20, 21, 4, 3 }, t:encode(text).ids)
      assert.same({ 2, 5 }, t:encode(text).offsets[3])
      assert.equal(22, t.size)
      assert.equal(20, with('{"added_tokens_decoder": {}}', older).size)
    end)

    it("says what is malformed in these", function()
      local function refused(message, config, more)
        fails(message, with, config, more)
      end
      refused("added_tokens_decoder is 3, expected a table", '{"added_tokens_decoder": 3}')
      refused("an id of added_tokens_decoder is the string 'x', expected an integer", '{"added_tokens_decoder": {"x": {}}}')
      refused("entry 5 of added_tokens_decoder is 3, expected a table", '{"added_tokens_decoder": {"5": 3}}')
      refused("the content of entry 5 of added_tokens_decoder is missing", '{"added_tokens_decoder": {"5": {}}}')
      refused("lstrip of entry 5 of added_tokens_decoder is 1, expected a boolean",
        '{"added_tokens_decoder": {"5": {"content": "a", "lstrip": 1}}}')
      refused("additional_special_tokens is true, expected a table", '{"additional_special_tokens": true}')
      refused("entry 2 of extra_special_tokens is 3, expected a table", '{"extra_special_tokens": ["<x>", 3]}')
      refused("special_tokens_map.json': the content of mask_token is missing", nil,
        { ["special_tokens_map.json"] = '{"mask_token": {}}' })
      refused("the id of '<x>' is the string '1'", nil, { ["added_tokens.json"] = '{"<x>": "1"}' })
    end)
  end)

  it("has a mask that takes the space before it if the folder says so", function()
    local vocab = { ["<s>"] = 0, ["<pad>"] = 1, ["</s>"] = 2, ["<unk>"] = 3, a = 4, ["\196\160"] = 5, ["<mask>"] = 6 }
    local folder = {
      ["vocab.json"] = cjson.encode(vocab), ["merges.txt"] = "", ["tokenizer_config.json"] = '{"mask_token": "<mask>"}',
    }
    assert.same({ 0, 4, 5, 6, 5, 4, 2 }, load(folder):encode("a <mask> a").ids) -- version 4 of transformers: it does
    folder["tokenizer_config.json"] = [[{"mask_token": {"content": "<mask>", "lstrip": true}}]]
    local e = load(folder):encode "a <mask> a"
    assert.same({ 0, 4, 6, 5, 4, 2 }, e.ids)
    assert.same({ 2, 8 }, e.offsets[3]) -- the space, which trim_offsets takes off again
  end)

  describe("of a class that the files name", function()
    -- A folder of a BERT with these files: the tokenizer, and the keys that have no effect, { key = reason }.
    local function open(contents)
      contents["config.json"] = contents["config.json"] or '{"model_type": "bert"}'
      local c = checkpoint.tokenizer(files.folder(contents))
      local t, ignored = tokenizer.load(c), {}
      for _, entry in ipairs(c.ignored) do
        ignored[entry.key] = entry.reason
      end
      return t, ignored
    end

    it("is made by the class: tokenizer.json has the vocabulary alone", function()
      local file = definition(function(d)
        d.normalizer.lowercase, d.post_processor, d.model.max_input_chars_per_word = false, cjson.null, 2
      end)
      local t, ignored = open { ["tokenizer.json"] = file }
      assert.equal(ids_of("a", "e", "don"), ids(t, "A é don"))
      local reason = "tokenizer_class BertTokenizer has its own"
      assert.same({ normalizer = reason, post_processor = reason, ["model.max_input_chars_per_word"] = reason }, ignored)
      t, ignored = open { ["tokenizer.json"] = file, ["tokenizer_config.json"] = '{"do_lower_case": false}' }
      assert.equal(ids_of("A", "é", "don"), ids(t, "A é don"))
      assert.is_nil(ignored.normalizer)
      assert.same({}, (select(2, open { ["tokenizer.json"] = definition() })))
    end)

    it("is tokenizer.json as it is for PreTrainedTokenizerFast, and gives no token types", function()
      local file = definition(function(d) d.normalizer.lowercase = false end)
      local config = '{"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": true}'
      local t, ignored = open { ["tokenizer.json"] = file, ["tokenizer_config.json"] = config }
      assert.equal(ids_of("A", "é"), ids(t, "A é"))
      assert.same({ 0, 0, 0, 0, 0 }, t:encode("a", "b").types)
      assert.same({ do_lower_case = "tokenizer_class TokenizersBackend does not read it" }, ignored)
      assert.same({ 0, 0, 0, 1, 1 }, open({ ["tokenizer.json"] = definition() }):encode("a", "b").types)
      t = open { ["tokenizer.json"] = definition(), ["tokenizer_config.json"] = '{"model_input_names": ["input_ids"]}' }
      assert.same({ 0, 0, 0, 0, 0 }, t:encode("a", "b").types)
    end)

    it("is refused if its files are another class's", function()
      local bytes = definition(function(d) d.model = { type = "BPE", vocab = { a = 0 }, merges = {} } end)
      fails("the model is of type the string 'BPE', but the tokenizer_class BertTokenizer is for WordPiece; tokenizer_class "
        .. "PreTrainedTokenizerFast in tokenizer_config.json takes the file as it is", open, { ["tokenizer.json"] = bytes })
      fails("has no tokenizer of tokenizer_class RobertaTokenizer: neither tokenizer.json nor vocab.json with merges.txt", open,
        { ["vocab.txt"] = VOCABULARY, ["config.json"] = '{"model_type": "roberta"}' })
      fails("cls_token is null, expected the text of a token", open,
        { ["vocab.txt"] = VOCABULARY, ["tokenizer_config.json"] = '{"cls_token": null}' })
      local _, ignored = open {
        ["tokenizer.json"] = definition(), ["tokenizer_config.json"] = '{"tokenizer_class": "FooTokenizer"}',
      }
      assert.equal("FooTokenizer is not known here; tokenizer.json is taken as it is", ignored.tokenizer_class)
    end)

    it("has every key of its files obeyed, refused or listed", function()
      local function with(config)
        return open { ["vocab.txt"] = VOCABULARY, ["tokenizer_config.json"] = config }
      end
      local t, ignored = with [[{"chat_template": "x", "do_basic_tokenize": false, "never_split": ["a"], "padding_side": "left",
        "add_prefix_space": true, "trim_offsets": true, "auto_map": {}, "foo": 1, "name_or_path": "x", "use_fast": false,
        "max_length": 7, "sp_model_kwargs": {}, "keep_accents": null, "add_bos_token": false, "truncation_side": "left",
        "own_token": "<own>", "clean_up_tokenization_spaces": true, "split_special_tokens": false}]]
      assert.same({
        chat_template = "chats are not supported", padding_side = "sequences are not padded", foo = "this key is not known",
        do_basic_tokenize = "version 5 of transformers always splits at spaces and punctuation first",
        never_split = "version 5 of transformers does not read it; added tokens are never split",
        add_prefix_space = "tokenizer_class BertTokenizer does not read it",
        auto_map = "code that comes with a checkpoint is not run",
      }, ignored)
      assert.equal("left", t.truncation_side)
      assert.same({ 2, ID.b, ID.a, 3 }, t:encode("a b a", nil, { max_tokens = 4 }).ids)
      assert.same({ 2, ID.a, ID.b, 3 }, t:encode("a b a", nil, { max_tokens = 4, truncation_side = "right" }).ids)
      assert.equal("left", tokenizer.from_image(t:image()).truncation_side)
      assert.equal(20, t:id "<own>")
      for config, message in pairs {
        ['{"split_special_tokens": true}'] = "split_special_tokens is true, which is not supported",
        ['{"truncation_side": "up"}'] = "truncation_side is the string 'up', expected 'left' or 'right'",
        ['{"padding_side": 1}'] = "padding_side is 1, expected 'left' or 'right'",
        ['{"do_lower_case": null}'] = "do_lower_case is null, expected true or false",
        ['{"vocab": {"a": 0}}'] = "vocab is a list or an object, which is not supported",
        ['{"init_inputs": [1]}'] = "init_inputs is not empty, which is not supported",
        ['{"fast_tokenizer_files": ["tokenizer.4.json"]}'] = "fast_tokenizer_files has the string 'tokenizer.4.json'",
        ['{"model_input_names": 3}'] = "model_input_names is 3, expected a list",
        ['{"mask_token": 3}'] = "mask_token is 3, expected a string or an object",
      } do
        fails(message, with, config)
      end
    end)

    it("takes the sides of tokenizer.json's truncation and padding, and lists its unknown keys", function()
      local file = definition(function(d)
        d.truncation = { direction = "Left", max_length = 3, strategy = "LongestFirst", stride = 0 }
        d.padding = { strategy = "BatchLongest", direction = "Left", pad_id = 0, pad_type_id = 0, pad_token = "[PAD]" }
        d.more, d.model.more, d.normalizer.more, d.added_tokens[1].more = 1, 1, 1, 1
      end)
      local t, ignored = open { ["tokenizer.json"] = file }
      assert.equal("left", t.truncation_side)
      local unknown = "this key is not known"
      assert.same({
        ["padding.direction"] = "sequences are not padded", more = unknown, ["model.more"] = unknown,
        ["added_tokens.more"] = unknown,
      }, ignored)
      local config = '{"tokenizer_class": "PreTrainedTokenizerFast", "truncation_side": "right", "padding_side": "right"}'
      t, ignored = open { ["tokenizer.json"] = file, ["tokenizer_config.json"] = config }
      assert.equal("right", t.truncation_side)
      assert.same({
        ["normalizer.BertNormalizer.more"] = unknown, more = unknown, ["model.more"] = unknown, ["added_tokens.more"] = unknown,
      }, ignored)
    end)

    it("cleans decoded text up if it is asked for", function()
      local text = "don ' t . a !"
      local function shown(config)
        local t = open {
          ["tokenizer.json"] = definition(function(d) d.decoder.cleanup = false end), ["tokenizer_config.json"] = config,
        }
        return t:decode(t:encode(text).ids)
      end
      assert.equal("don ' t . a !", shown '{"tokenizer_class": "PreTrainedTokenizerFast"}')
      local cleaned = '{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": true}'
      assert.equal("don't. a!", shown(cleaned))
      local _, ignored = open {
        ["tokenizer.json"] = definition(function(d) d.decoder = cjson.null end), ["tokenizer_config.json"] = cleaned,
      }
      assert.equal("tokenizer.json has no decoder whose text could be cleaned up", ignored.clean_up_tokenization_spaces)
    end)
  end)

  it("is an error if the folder has none", function()
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
        offsets = { { 0, 0 }, { 0, 1 }, { 1, 2 }, { 0, 0 } }, sequences = { 0, 1, 1, 0 }, words = { nil, 1, 1 }, dropped = 0,
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
      fails("encode has no option limit, only max_tokens, offsets, special, truncate", t.encode, t, "a", nil, { limit = 3 })
      fails("encode: max_tokens is 2.5, expected an integer", t.encode, t, "a", nil, { max_tokens = 2.5 })
      fails("max_tokens is 1, expected 2 or more", t.encode, t, "a", nil, { max_tokens = 1 })
      fails("decode: argument 1 is the string 'a', expected a list of ids", t.decode, t, "a")
      fails("tokenizer_spec.lua", function() t:encode(3) end)
    end)

    it("says which text and which word a token is of", function()
      local e = t:encode("ab a", "b!")
      assert.same({ 0, 1, 1, 1, 0, 2, 2, 0 }, e.sequences)
      assert.same({ nil, 1, 1, 2, nil, 1, 2 }, e.words)
      assert.same({ 2, 3 }, { t:special_count(), t:special_count(true) })
      assert.same({ ID.a, 1 }, { t:encode("a", nil, { special = false }).ids[1], #t:encode("a", nil, { special = false }).ids })
      assert.same({ 0, 1 }, t:encode("a", "b", { special = false }).types)
    end)

    it("counts offsets in characters when asked", function()
      local text = "é é\204\129 中a"
      local bytes, characters = t:encode(text).offsets, t:encode(text, nil, { offsets = "characters" }).offsets
      assert.same({ { 0, 0 }, { 0, 2 }, { 3, 5 }, { 8, 11 }, { 11, 12 }, { 0, 0 } }, bytes)
      assert.same({ { 0, 0 }, { 0, 1 }, { 2, 3 }, { 5, 6 }, { 6, 7 }, { 0, 0 } }, characters)
    end)

    it("truncates the text that is named", function()
      local function lengths(truncate, max_tokens)
        local e = t:encode("a b a b", "b a b", { truncate = truncate, max_tokens = max_tokens })
        local n = { 0, 0, dropped = e.dropped }
        for _, of in ipairs(e.sequences) do
          n[of] = (n[of] or 0) + 1
        end
        return { n[1], n[2], n.dropped }
      end
      assert.same({ 3, 3, 1 }, lengths("longest", 9))
      assert.same({ 2, 3, 2 }, lengths("first", 8))
      assert.same({ 4, 1, 2 }, lengths("second", 8))
      assert.same({ 0, 0, 7 }, lengths("first", 3))
      fails("the first text, which is to be truncated, would have no token left", lengths, "first", 6)
      fails("the second text, which is to be truncated, would have no token left", lengths, "second", 7)
      fails("encode: truncate is the string 'last', expected one of first, longest, second", lengths, "last", 7)
      fails("the second text is to be truncated, but there is none", t.encode, t, "a b", nil,
        { truncate = "second", max_tokens = 3 })
    end)

    it("encodes a list of words", function()
      local e = t:encode_words { "ab", "", "a!", "é" }
      assert.same({ 2, ID.a, ID["##b"], ID.a, ID["!"], ID.e, 3 }, e.ids)
      assert.same({ nil, 1, 1, 3, 3, 4 }, e.words)
      assert.same({ { 0, 0 }, { 0, 1 }, { 1, 2 }, { 0, 1 }, { 1, 2 }, { 0, 2 }, { 0, 0 } }, e.offsets)
      assert.same({ 0, 1 }, t:encode_words({ "中", "é" }, { offsets = "characters" }).offsets[3])
      assert.equal(1, t:encode_words({ "a", "b" }, { max_tokens = 3 }).dropped)
      fails("encode_words: word 2 is 3, expected a string", t.encode_words, t, { "a", 3 })
      fails("encode_words: argument 1 is the string 'a', expected a list of strings", t.encode_words, t, "a")
    end)

    it("runs from its image", function()
      local image = t:image()
      assert.equal(tostring(image), tostring(load({ ["tokenizer.json"] = definition() }):image()))
      local other = tokenizer.from_image(image)
      t:release()
      assert.same({ 20, 1, 2, 3, 0, 4, "##", "WordPiece" },
        { other.size, other.unk, other.cls, other.sep, other.pad, other.mask, other.prefix, other.model })
      assert.equal(ids_of("a", "e", "."), ids(other, "A é."))
      assert.equal("a e.", other:decode(other:encode "A é.".ids))
      assert.same({ "##b", ID["##b"], nil }, { other:piece(ID["##b"]), other:id "##b", other:id "x" })
      fails("from_image: argument 1 is 3, expected a tensor", tokenizer.from_image, 3)
      fails("are not the image of a tokenizer", tokenizer.from_image, require("perigee.tensor").new("U8", { 4096 }))
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

    it("decodes as transformers does", function()
      assert.equal("ab a.", t:decode(t:encode("ab a.").ids))
      assert.equal("##b a", t:decode { ID["##b"], ID.a })
      assert.equal("don ' t!", t:decode { ID["don"], ID["'"], ID["t"], ID["!"] })
      assert.equal("a don't", t:decode { ID.a, ID["do not"] })
      assert.equal("ab", t:decode(ffi.new("int32_t[3]", { 2, ID.a, ID["##b"] })))
      assert.equal("", t:decode {})
      fails("decode: id 2 is 99, which the vocabulary does not have", t.decode, t, { ID.a, 99 })
      local plain = load { ["tokenizer.json"] = definition(function(d) d.decoder.cleanup = false end) }
      assert.equal("a .", plain:decode { ID.a, ID["."] })
      assert.equal("[CLS]a [SEP]", t:decode({ 2, ID.a, 3 }, { special = true }):gsub("%] a", "]a"))
      fails("decode: id 1 is -1, which the vocabulary does not have", t.decode, t, { -1 })
      local none = load { ["tokenizer.json"] = definition(function(d) d.decoder = cjson.null end) }
      assert.equal("a ##b", none:decode { 2, ID.a, ID["##b"] })
    end)

    it("is of no use once released", function()
      t:release()
      t:release()
      fails("this tokenizer was released", t.encode, t, "a")
    end)
  end)

  local demo = "build/demo/all-MiniLM-L6-v2"
  local here = json.exists(demo .. "/vocab.txt") and it or skip "the demo model is not here; `make demo` fetches it"
  here("of the demo's checkpoint has BERT's ids", function()
    local t = tokenizer.load(demo)
    assert.equal("101 7592 1010 2088 999 15743 2618 19662 7520 21335 6321 102", ids(t, "Hello, WORLD! Naïveté untokenizably"))
    assert.same({ 30522, 101, 102, 100, 0, 103 }, { t.size, t.cls, t.sep, t.unk, t.pad, t.mask })
  end)
end)
