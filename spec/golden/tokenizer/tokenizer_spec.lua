-- The tokenizer gives the ids of the tokenizers package in golden.json, which golden.py made: for the texts and the vocabulary of
-- this folder, and for those of ../shared if they are there. A failure names the text. differential.py finds the shortest text
-- that differs from the package.
local bit = require "bit"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local wordpiece = require "spec.support.wordpiece"
local digest = require "spec.support.digest"
local json = require "perigee.base.json"
local skip = require "spec.support.skip"
local FOLDER, SHARED = "spec/golden/tokenizer/", "../shared/data/"
local SPECIAL = { "[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]" }
local COMBINATIONS = { { true, true }, { true, false }, { false, true }, { false, false } } -- lowercase, strip_accents
local NULL = json.null
local C = pgee.C

local golden = json.object(FOLDER .. "golden.json")
local own = json.list(FOLDER .. "texts.json")

local function lines_of(path)
  local list = {}
  for line in io.lines(path) do
    list[#list + 1] = line
  end
  return list
end

-- Returns the four tokenizers of a vocabulary, one for each of COMBINATIONS.
local function four(path)
  local pieces, id, list = lines_of(path), {}, {}
  for i, piece in ipairs(pieces) do
    id[piece] = i - 1
  end
  for i, c in ipairs(COMBINATIONS) do
    local added = {}
    for _, text in ipairs(SPECIAL) do
      added[#added + 1] = id[text] and { text, id[text] } or nil
    end
    list[i] = wordpiece.new(pieces, {
      lowercase = c[1], strip_accents = c[2], unk = id["[UNK]"], cls = id["[CLS]"], sep = id["[SEP]"],
    }, added)
  end
  return list
end

local function case_of(case)
  local b, limit = case[2], case[3]
  return case[1], b ~= NULL and b or nil, limit ~= NULL and limit or nil
end

local function split(text)
  local list = {}
  for part in text:gmatch "%S+" do
    list[#list + 1] = part
  end
  return list
end

local function same_digests(tokenizers, cases, expected)
  expected = split(expected)
  assert.equal(#expected, #cases)
  for i, case in ipairs(cases) do
    local d = digest.new()
    for _, t in ipairs(tokenizers) do
      wordpiece.digest(d, t:encode(case_of(case)))
    end
    if d:text():sub(1, 8) ~= expected[i] then
      error(("text %d: %q, %q, max_tokens %s: %s, expected %s"):format(i, case[1], tostring(case[2]), tostring(case[3]),
        d:text():sub(1, 8), expected[i]), 0)
    end
  end
end

-- Returns questions and contexts of a set in SQuAD's format, one out of `every`.
local function squad(path, step, context_step)
  local questions, contexts, cases = {}, {}, {}
  for _, article in ipairs(json.object(path).data) do
    for _, paragraph in ipairs(article.paragraphs) do
      contexts[#contexts + 1] = paragraph.context
      for _, qa in ipairs(paragraph.qas) do
        questions[#questions + 1] = qa.question
      end
    end
  end
  for list, by in pairs { [questions] = step, [contexts] = context_step } do
    for i = 1, #list, by do
      cases[#cases + 1] = { list[i], at = (list == questions and 0 or #questions) + i }
    end
  end
  table.sort(cases, function(x, y) return x.at < y.at end)
  return cases
end

-- The texts of shared_texts() in golden.py.
local function shared_texts()
  local cases = {}
  for _, source in ipairs(golden.sources) do
    local kind, path, step, context_step = unpack(source)
    if kind == "xquad" then
      for _, case in ipairs(squad(SHARED .. path, step, context_step)) do
        cases[#cases + 1] = case
      end
    else
      local lines = {}
      for line in (assert(json.text(SHARED .. path)) .. "\n"):gmatch "([^\n]*)\n" do
        lines[#lines + 1] = line
      end
      for i = 1, #lines - 1, step do
        local limit = golden.limits[#cases % #golden.limits + 1]
        cases[#cases + 1] = { lines[i], lines[i + 1], limit > 0 and limit or nil }
      end
    end
  end
  return cases
end

describe("The ids of tokenizers", function()
  it("of our own texts, with a small vocabulary", function()
    local tokenizers = four(FOLDER .. "vocab.txt")
    for i, case in ipairs(own) do
      assert.equal(golden.own.ids[i], tokenizers[1]:ids(case_of(case)))
    end
    same_digests(tokenizers, own, golden.own.digests)
    assert.is_true(#own > 900)
  end)

  it("are compared by something that sees one changed id", function()
    local tokenizers = four(FOLDER .. "vocab.txt")
    assert.error_matches(function()
      same_digests({ tokenizers[1], tokenizers[2], tokenizers[3], tokenizers[1] }, own, golden.own.digests)
    end, "^text %d+: ")
  end)

  for name, expected in pairs(golden.shared) do
    local path = SHARED .. "tokenizers/" .. name .. "/vocab.txt"
    local here = json.exists(path) and it or skip "there is no ../shared"
    here(("of our own texts and of those in ../shared, with the vocabulary of %s"):format(name), function()
      local tokenizers, texts = four(path), shared_texts()
      same_digests(tokenizers, own, expected.own)
      same_digests(tokenizers, texts, expected.shared)
      assert.is_true(#texts > 2000)
    end)
  end
end)

-- Millions of texts: arrays are allocated once, and no text becomes a Lua string.
describe("Every code point", function()
  local GIVEN = {
    ["lower, strip"] = { true, true }, lower = { true, false }, strip = { false, true }, neither = { false, false },
    raw = { true, true, raw = true },
  }
  if os.getenv "PERIGEE_HARD" then -- sanitizers are slow
    GIVEN.lower, GIVEN.strip, GIVEN.neither = nil, nil, nil
  end
  local PRIME, BASIS = 0x100000001b3ULL, 0xcbf29ce484222325ULL

  local function is_surrogate(c)
    return c >= 0xD800 and c < 0xE000
  end

  -- Writes c as UTF-8 and returns where it ends.
  local function put(to, at, c)
    local more = c < 0x80 and 0 or c < 0x800 and 1 or c < 0x10000 and 2 or 3
    for i = more, 1, -1 do
      to[at + i] = 0x80 + bit.band(c, 0x3F)
      c = bit.rshift(c, 6)
    end
    to[at] = more == 0 and c or bit.band(bit.rshift(0xFF00, more + 1), 0xFF) + c
    return at + more + 1
  end

  -- Every code point but U+0000 is a piece, alone and inside a word.
  local function vocabulary()
    local text, ids, n, at = ffi.new("uint8_t[?]", 2 * 0x110000 * 6), ffi.new("int32_t[?]", 2 * 0x110000), 0, 0
    local ends = ffi.new("int64_t[?]", 2 * 0x110000)
    for c = 1, 0x10FFFF do
      if not is_surrogate(c) then
        at = put(text, at, c)
        ends[n] = at
        text[at], text[at + 1] = 35, 35 -- ##
        at = put(text, at + 2, c)
        ends[n + 1] = at
        ids[n], ids[n + 1] = c, 0x110000 + c
        n = n + 2
      end
    end
    return { text = text, ends = ends, ids = ids, count = n }
  end

  local function new(o, pieces)
    local clean = o.raw and 0 or 1
    local out = pgee.out "pgee_tokenizer *"
    local d, held = wordpiece.definition({}, {
      clean_text = clean, handle_chinese_chars = clean, strip_accents = o[2], lowercase = o[1],
      unk = 0x220000, cls = 0x220001, sep = 0x220002,
    }, {
      { "@@", pieces.count + #SPECIAL, single_word = true, lstrip = true, rstrip = true }, { "[UNK]", 0x220000 },
      { "[CLS]", 0x220001 }, { "[SEP]", 0x220002 },
    })
    d.pieces, d.ends, d.ids, d.count = ffi.cast("const char *", pieces.text), pieces.ends, pieces.ids, pieces.count
    pgee.check(C.pgee_tokenizer_new(out, d), 0)
    held.done = true
    return ffi.gc(out[0], C.pgee_tokenizer_free)
  end

  local text = ffi.new "uint8_t[16]"
  local chars = ffi.cast("const char *", text)
  local arrays = ffi.new "struct { int32_t ids[32], types[32], offsets[64]; }"
  local e = ffi.new("pgee_encoding", arrays.ids, arrays.types, arrays.offsets, 32)

  -- Adds the encoding of the text "a c @@ c b" to the digest h.
  local function take(t, c, h)
    text[0] = 97
    local at = put(text, 1, c)
    text[at], text[at + 1] = 64, 64
    at = put(text, at + 2, c)
    text[at] = 98
    assert(C.pgee_tokenizer_encode(t, e, chars, at + 1, nil, 0, 32) == 0)
    local n = tonumber(e.length)
    h = bit.bxor(h, n + 0ULL) * PRIME
    h = bit.bxor(h, e.dropped + 0ULL) * PRIME
    for i = 0, n - 1 do
      h = bit.bxor(h, arrays.ids[i] + 0ULL) * PRIME
    end
    for i = 0, n - 1 do
      h = bit.bxor(h, arrays.types[i] + 0ULL) * PRIME
    end
    for i = 0, 2 * n - 1 do
      h = bit.bxor(h, arrays.offsets[i] + 0ULL) * PRIME
    end
    return h
  end

  it("becomes what it becomes in tokenizers", function()
    local pieces = vocabulary()
    for name, o in pairs(GIVEN) do
      local t = new(o, pieces)
      local expected = split(golden.codepoints[name])
      assert.equal(272, #expected)
      for block = 0, 271 do
        local h = BASIS
        for c = block * 4096, block * 4096 + 4095 do
          if not is_surrogate(c) then
            h = take(t, c, h)
          end
        end
        assert.equal(expected[block + 1], bit.tohex(h, 16):sub(1, 8), ("%s: U+%04X and 4095 more"):format(name, block * 4096))
      end
      C.pgee_tokenizer_free(ffi.gc(t, nil))
    end
  end)
end)
