-- Unigram gives the ids of the tokenizers package in unigram_golden.json, which unigram.py made: always for our vocabulary, and
-- for XLM-R, XLNet and other models if ../shared has them. differential_unigram.py compares many more texts.
local ffi = require "ffi"
local digest = require "spec.support.digest"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local tokenizer = require "perigee.tokenizer"
local FOLDER, SHARED = "spec/golden/tokenizer/", "../shared/data/"
local NULL = json.null

local golden = json.object(FOLDER .. "unigram_golden.json")
local source = json.text(FOLDER .. "unigram.json")
local METASPACE = '{"type":"Metaspace","replacement":"▁","prepend_scheme":"%s","split":%s}'
local PRE_TOKENIZER = '"pre_tokenizer":(%b{})'

local function with_pre_tokenizer(scheme, split)
  local space = METASPACE:format(scheme, split)
  return (source:gsub(PRE_TOKENIZER, function() return '"pre_tokenizer":' .. space end, 1))
end

-- The FORMS of unigram.py.
local FORMS = {
  xlmr = source,
  bytes = source:gsub('"byte_fallback":false', '"byte_fallback":true'),
  whole = with_pre_tokenizer("always", "false"),
  first = with_pre_tokenizer("first", "true"),
  never = with_pre_tokenizer("never", "true"):gsub('("decoder":%b{})', function(decoder)
    return (decoder:gsub("always", "never"))
  end),
}

local function load(text)
  return tokenizer.load(files.folder { ["tokenizer.json"] = text })
end

local cases = {}
for _, case in ipairs(json.list(FOLDER .. "texts.json")) do
  local b, limit = case[2], case[3]
  cases[#cases + 1] = { case[1], b ~= NULL and b or nil, limit ~= NULL and math.max(limit, 4) or nil }
end
for _, text in ipairs(golden.more) do
  cases[#cases + 1] = { text }
end
for i = 1, #golden.more - 1 do
  cases[#cases + 1] = { golden.more[i], golden.more[i + 1], 9 }
end

-- Adds an encoding to a digest: counts, ids, types, offsets, and the bytes of the decoded text.
local function take(d, t, case)
  local e = t:encode(case[1], case[2], { max_tokens = case[3] })
  local words = { #e.ids, e.dropped }
  local function add(list)
    for _, word in ipairs(list) do
      words[#words + 1] = word
    end
  end
  add(e.ids)
  add(e.types)
  for _, offsets in ipairs(e.offsets) do
    add(offsets)
  end
  for byte in t:decode(e.ids):gmatch "." do
    words[#words + 1] = byte:byte()
  end
  d:bytes(ffi.new("int32_t[?]", #words, words), 4 * #words)
end

local function short(d)
  return d:text():sub(1, 8)
end

local function same_digests(t, expected)
  local i = 0
  for text in expected:gmatch "%x+" do
    local d = digest.new()
    i = i + 1
    take(d, t, cases[i])
    assert.equal(text, short(d), cases[i][1])
  end
  assert.equal(#cases, i)
end

describe("Unigram gives the ids of tokenizers, types, offsets and texts", function()
  after_each(files.clean)

  for name, text in pairs(FORMS) do
    it("for every text of the golden set, form " .. name, function()
      same_digests(load(text), golden.digests[name])
    end)
  end

  it("for the first of them, one by one", function()
    local t = load(source)
    for i, ids in ipairs(golden.ids) do
      assert.same(ids, t:encode(cases[i][1], cases[i][2], { max_tokens = cases[i][3] }).ids)
    end
  end)

  it("from a SentencePiece model too", function()
    same_digests(tokenizer.load(files.folder {
      ["sentencepiece.bpe.model"] = json.text(FOLDER .. "unigram.model"),
      ["tokenizer_config.json"] = '{"tokenizer_class": "XLMRobertaTokenizer", '
        .. '"mask_token": {"content": "<mask>", "lstrip": true}}',
    }), golden.digests.xlmr)
  end)

  it("from its image too", function()
    same_digests(tokenizer.from_image(load(FORMS.bytes):image()), golden.digests.bytes)
  end)
end)

describe("a text of a megabyte", function()
  after_each(files.clean)

  -- Seconds of processor time.
  local function time(t, text)
    local began = os.clock()
    t:encode_into(ffi.new("int32_t[?]", #text + 8), ffi.new("int32_t[?]", #text + 8), #text + 8, text)
    return os.clock() - began
  end

  it("takes 16 times what a sixteenth of it takes", function()
    for _, form in ipairs { "xlmr", "whole" } do
      local t = load(FORMS[form])
      for _, unit in ipairs { "the quick brown fox ", "日本語", "ab", "\204\129", "\1▁" } do
        local size = (os.getenv "PERIGEE_HARD" and 2 or 64) * 1024
        local small, large = unit:rep(math.floor(size / #unit)), unit:rep(math.floor(16 * size / #unit))
        time(t, small)
        local ratio = math.huge
        for _ = 1, 5 do
          ratio = ratio < 60 and ratio or time(t, large) / math.max(time(t, small), 1e-4)
        end
        assert.is_true(ratio < 60, ("%s, '%s': %.0f times"):format(form, unit, ratio))
      end
    end
  end)
end)

-- ---- ../shared --------------------------------------------------------------------------------------------------------------

-- The texts of texts_of() in unigram_reference.py.
local function texts_of(kind, path, step)
  local all, list = {}, {}
  if kind == "lines" then
    for line in (json.text(SHARED .. path) .. "\n"):gmatch "([^\n]*)\n" do
      all[#all + 1] = line
    end
  else
    for _, article in ipairs(json.object(SHARED .. path).data) do
      for _, paragraph in ipairs(article.paragraphs) do
        all[#all + 1] = paragraph.context
        for _, qa in ipairs(paragraph.qas) do
          all[#all + 1] = qa.question
        end
      end
    end
  end
  for i = 1, #all, step do
    list[#list + 1] = all[i]
  end
  return list
end

local function load_shared(path, class)
  local config = class ~= "plain" and ('{"tokenizer_class":"%s"}'):format(class) or "{}"
  local name = path:find "%.json$" and "tokenizer.json" or class == "plain" and "spiece.model" or "sentencepiece.bpe.model"
  return tokenizer.load(files.folder { [name] = json.text(SHARED .. "tokenizers/" .. path), ["tokenizer_config.json"] = config })
end

describe("on the texts of ../shared Unigram gives the ids of tokenizers, types, offsets and texts", function()
  if not json.exists(SHARED .. "tokenizers/xlm-roberta-base/tokenizer.json") then
    return pending "../shared/data is not here"
  elseif os.getenv "PERIGEE_HARD" then
    return pending "sanitizers are on: the golden set is enough"
  end
  local texts = {}
  for i, source_of in ipairs(golden.sources) do
    texts[i] = texts_of(unpack(source_of))
  end

  after_each(files.clean)
  for name, digests in pairs(golden.shared) do
    it("as " .. name, function()
      local t, i = load_shared(name:match "^(%S+) (%S+)$"), 0
      for expected in digests:gmatch "%x+" do
        local d = digest.new()
        i = i + 1
        for _, text in ipairs(texts[i]) do
          take(d, t, { text })
        end
        assert.equal(expected, short(d), golden.sources[i][2])
      end
      assert.equal(#golden.sources, i)
    end)
  end
end)
