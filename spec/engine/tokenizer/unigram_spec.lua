-- Unigram's parts by themselves: grapheme clusters, the precompiled charsmap, the best path. The reference's answers for whole
-- tokenizers are in spec/golden/tokenizer.
local ffi = require "ffi"
local json = require "perigee.base.json"
local pgee = require "perigee.ffi"
local unigram = require "perigee.tokenizer.unigram"
local C = require("spec.support.native").cdef [[
  int64_t spec_graphemes(int64_t *ends, const char *text, int64_t bytes);
  int spec_charsmap_image(char **out, int64_t *size, const char *blob, int64_t bytes);
  int spec_unigram_image(char **out, int64_t *size, const char *bytes, const int64_t *ends, int64_t count, const double *scores,
                         int32_t unk, int byte_fallback);
  void spec_free(void *block);
  int64_t spec_charsmap_run(const char *image, int64_t size, const char *text, int64_t bytes, char *out, int32_t *spans,
                            int64_t capacity);
  int64_t spec_unigram_run(const char *image, int64_t size, const char *word, int64_t bytes, int32_t *out, int64_t capacity);
]]
local GOLDEN = "spec/golden/tokenizer/unigram.json"

-- Integers, the same each time.
local function integers(seed)
  math.randomseed(seed)
  return math.random
end

local function message()
  return ffi.string(pgee.C.pgee_message())
end

-- ---- Grapheme clusters -----------------------------------------------------------------------------------------------------

local function clusters(text)
  local ends, list, begin = ffi.new("int64_t[?]", #text + 1), {}, 0
  for i = 0, tonumber(C.spec_graphemes(ends, text, #text)) - 1 do
    list[#list + 1] = text:sub(begin + 1, tonumber(ends[i]))
    begin = tonumber(ends[i])
  end
  return table.concat(list, "|")
end

describe("grapheme clusters", function()
  local function same(expected)
    assert.equal(expected, clusters((expected:gsub("|", ""))))
  end

  it("keep marks, joiners and CR LF with what they follow", function()
    same "a|b|e\204\129\204\130|c" -- U+0301, U+0302
    same "\r\n|\n|\r|\r\n"
    same "\n|\204\129|a" -- a control takes no mark
    same "a\226\128\141|b" -- U+200D
    same "\216\128a|b" -- U+0600 goes with what follows
    same "\224\174\149\224\175\141|\224\174\183" -- Tamil makes no conjuncts
    assert.equal("", clusters "")
  end)

  it("keep Hangul syllables, flags, emoji sequences and Indic conjuncts together", function()
    same "\225\132\128\225\133\161\225\134\168|\234\176\128\225\134\168|\234\176\129\225\134\168|\225\132\128"
    same "🇩🇪|🇫🇷|🇩|a"
    same "👨‍👩‍👧‍👦|👍🏽|a‍|👍"
    same "©‍©|a‍|©" -- a joiner joins two pictographs
    same "क्ष|क्‍षि|क‍|ष|क" -- a linker among extends joins two consonants
  end)
end)

-- ---- The charsmap ----------------------------------------------------------------------------------------------------------

local function image(make, ...)
  local out, size = ffi.new "char *[1]", ffi.new "int64_t[1]"
  if make(out, size, ...) ~= 0 then
    return nil, message()
  end
  return ffi.gc(out[0], C.spec_free), tonumber(size[0])
end

local ROOM = 4096
local text_out, spans_out = ffi.new("char[?]", ROOM), ffi.new("int32_t[?]", 2 * ROOM)

-- The text and, for each of its bytes, where it comes from.
local function normalize(map, size, text)
  local count = tonumber(C.spec_charsmap_run(map, size, text, #text, text_out, spans_out, ROOM))
  assert.is_true(count >= 0 and count <= ROOM, message())
  local spans = {}
  for i = 0, count - 1 do
    spans[#spans + 1] = spans_out[2 * i] .. "-" .. spans_out[2 * i + 1]
  end
  return ffi.string(text_out, count), table.concat(spans, " ")
end

local file = unigram.file(GOLDEN)
local blob = unigram.charsmap(file.normalizer, GOLDEN)

describe("a precompiled charsmap", function()
  local map, size = image(C.spec_charsmap_image, blob, #blob)

  it("replaces characters and whole clusters", function()
    local function becomes(expected, spans, text)
      local normal, from = normalize(map, size, text)
      assert.equal(expected, normal)
      assert.equal(spans, from)
    end
    becomes("abc", "0-1 1-2 2-3", "abc")
    becomes("ffi", "0-3 0-3 0-3", "\239\172\131") -- U+FB03
    becomes("a\195\169b", "0-1 1-2 1-2 4-5", "ae\204\129b") -- e and U+0301: a cluster
    becomes("a b", "0-1 1-2 2-3", "a\tb")
    becomes("ab", "0-1 4-5", "a\226\128\139b") -- U+200B goes
    becomes("\195\170b", "0-1 0-1 5-6", "e\204\130\204\129b") -- e and U+0302 are in the map, and U+0301 goes with the cluster
    local long = "e\204\130\204\129\204\129"
    becomes(long, "0-1 1-3 1-3 3-5 3-5 5-7 5-7", long) -- 7 bytes: each character by itself
  end)

  it("gives later characters the places of earlier ones when the first are dropped, as the reference does", function()
    local normal, from = normalize(map, size, "\1\1ab")
    assert.equal("ab", normal)
    assert.equal("0-1 1-2", from)
  end)

  it("is refused where it is no charsmap", function()
    for _, bad in ipairs { "", "abc", "\255\255\255\255", blob:sub(1, 100), "\3\0\0\0abc" } do
      local made, why = image(C.spec_charsmap_image, bad, #bad)
      assert.is_nil(made)
      assert.truthy(why:find("precompiled charsmap", 1, true))
    end
    local made, why = image(C.spec_charsmap_image, blob .. "\255", #blob + 1)
    assert.is_nil(made)
    assert.truthy(why:find("not UTF-8", 1, true))
  end)
end)

-- ---- The best path -----------------------------------------------------------------------------------------------------------

local function unigram_image(pieces, unk, byte_fallback)
  local texts, ends, scores, at = {}, ffi.new("int64_t[?]", #pieces), ffi.new("double[?]", #pieces), 0
  for i, piece in ipairs(pieces) do
    texts[i], at = piece[1], at + #piece[1]
    ends[i - 1], scores[i - 1] = at, piece[2]
  end
  return image(C.spec_unigram_image, table.concat(texts), ends, #pieces, scores, unk, byte_fallback and 1 or 0)
end

local pieces_out = ffi.new("int32_t[?]", 3 * ROOM)

-- "3:0-2 4:2-3": ids, and the bytes that they are.
local function cut(model, size, word)
  local count = tonumber(C.spec_unigram_run(model, size, word, #word, pieces_out, ROOM))
  if count < 0 then
    return nil, message()
  end
  local list = {}
  for i = 0, math.min(count, ROOM) - 1 do
    list[#list + 1] = ("%d:%d-%d"):format(pieces_out[3 * i], pieces_out[3 * i + 1], pieces_out[3 * i + 2])
  end
  return table.concat(list, " "), count
end

describe("Unigram", function()
  it("takes the path of the greatest score, and of equal ones the first", function()
    local m, size = unigram_image({ { "<unk>", 0 }, { "a", -1 }, { "b", -1 }, { "ab", -3 }, { "abc", -2.5 }, { "c", -0.25 } }, 0)
    assert.equal("1:0-1 2:1-2", cut(m, size, "ab"))
    assert.equal("1:0-1 2:1-2 5:2-3", cut(m, size, "abc"))
    assert.equal("", cut(m, size, ""))
    -- a, b and ab score the same: the one that begins earlier is found first
    m, size = unigram_image({ { "<unk>", 0 }, { "a", -1 }, { "b", -1 }, { "ab", -2 } }, 0)
    assert.equal("3:0-2", cut(m, size, "ab"))
  end)

  it("adds scores from left to right, in double", function()
    -- (0.1 + 0.2) + 0.3 is 0.6000000000000001, more than 0.6; 0.3 + 0.2 and 0.1 is 0.6 itself
    local list = { { "<unk>", 0 }, { "a", 0.1 }, { "b", 0.2 }, { "c", 0.3 }, { "abc", 0.6 }, { "cba", 0.6 } }
    local m, size = unigram_image(list, 0)
    assert.equal("1:0-1 2:1-2 3:2-3", cut(m, size, "abc"))
    assert.equal("5:0-3", cut(m, size, "cba"))
  end)

  it("makes unknowns side by side one, and the piece that they are", function()
    local m, size = unigram_image({ { "<unk>", 0 }, { "a", -1 } }, 0)
    assert.equal("0:0-2 1:2-3 0:3-9", cut(m, size, "xya日本"))
    assert.equal("0:0-5", cut(m, size, "<unk>"))
    assert.equal("0:0-6", cut(m, size, "<unk>x"))
    m, size = unigram_image({ { "<unk>", 50 }, { "xy", 40 }, { "xyz", 45 } }, 0) -- an unknown scores 30
    assert.equal("1:0-2", cut(m, size, "xy"))
    assert.equal("0:0-4", cut(m, size, "xyzw"))
  end)

  it("falls back to bytes where all of them are there", function()
    local list = { { "<unk>", 0 }, { "a", -1 }, { "<0xC3>", 0 }, { "<0xA9>", 0 } }
    local m, size = unigram_image(list, 0, true)
    assert.equal("1:0-1 2:1-3 3:1-3 1:3-4", cut(m, size, "aéa"))
    assert.equal("0:0-2", cut(m, size, "è"))
    assert.equal("0:0-4", cut(m, size, "éè"))
    m, size = unigram_image(list, 0, false)
    assert.equal("1:0-1 0:1-3", cut(m, size, "aé"))
  end)

  it("takes the last of equal pieces, and never an empty one", function()
    local m, size = unigram_image({ { "<unk>", 0 }, { "a", -1 }, { "", 5 }, { "a", -9 }, { "aa", -12 } }, 0)
    assert.equal("3:0-1", cut(m, size, "a"))
    assert.equal("4:0-2", cut(m, size, "aa"))
  end)

  it("takes zero bytes and characters that share their first bytes", function()
    local m, size = unigram_image({ { "<unk>", -5 }, { "a\0b", -1 }, { "\0", -1 }, { "é", -1 }, { "è", -1 }, { "日", -1 } }, 0)
    assert.equal("1:0-3 2:3-4 3:4-6 4:6-8 5:8-11", cut(m, size, "a\0b\0éè日"))
    assert.equal("0:0-5", cut(m, size, "本ê"))
  end)

  it("fails without an unknown token, and with one that is no piece", function()
    local m, size = unigram_image({ { "a", -1 } }, -1)
    assert.equal("0:0-1 0:1-2", cut(m, size, "aa"))
    local none, why = cut(m, size, "aéa")
    assert.is_nil(none)
    assert.truthy(why:find("the character 'é' is no piece", 1, true))
    none, why = unigram_image({ { "a", -1 } }, 1)
    assert.is_nil(none)
    assert.truthy(why:find("the unknown token of Unigram has id 1", 1, true))
    assert.is_nil((unigram_image({}, -1)))
  end)

  it("finds what a naive search finds", function()
    local rng, letters = integers(7), { "a", "b", "c", "é", "日", "😀" }
    local function text(longest)
      local list = {}
      for i = 1, rng(1, longest) do
        list[i] = letters[rng(1, #letters)]
      end
      return table.concat(list)
    end
    for _ = 1, 40 do
      local list, score = { { "<unk>", 0 } }, {}
      for _ = 1, rng(1, 60) do
        list[#list + 1] = { text(5), -rng(1, 12) / 4 }
      end
      local least = 0
      for i, piece in ipairs(list) do
        score[piece[1]], least = { i - 1, piece[2] }, math.min(least, piece[2])
      end
      local m, size = unigram_image(list, 0)
      for _ = 1, 40 do
        local word = text(12)
        local best = { [0] = { 0 } } -- of the first so many bytes: the greatest score
        for stop = 1, #word do
          if stop == #word or bit.band(word:byte(stop + 1), 0xC0) ~= 0x80 then
            for begin = 0, stop - 1 do
              local part = word:sub(begin + 1, stop)
              local known = score[part]
              local single = select(2, part:gsub("[^\128-\191]", "")) == 1
              local value = best[begin] and (known and known[2] or single and least - 10)
              if value and (not best[stop] or best[begin][1] + value > best[stop][1]) then
                best[stop] = { best[begin][1] + value }
              end
            end
          end
        end
        local total = 0
        for id, begin, stop in cut(m, size, word):gmatch "(%d+):(%d+)%-(%d+)" do
          local part = word:sub(begin + 1, stop)
          local characters = select(2, part:gsub("[^\128-\191]", ""))
          total = total + (id == "0" and characters * (least - 10) or list[id + 1][2])
        end
        assert.equal(best[#word][1], total, word)
      end
    end
  end)
end)

describe("a damaged image", function()
  local vocab = file.model.vocab
  local texts = { "the quick brown fox", "日本語テキスト", "e\204\129\204\130x\1\1y\226\128\139", ("ab"):rep(300), "\240\159\152\128\0z",
    "\239\189\182\239\190\158\r\n", "" }

  -- Runs over images with some bytes changed, in a block that ends where they do: sanitizers see what is read behind it.
  local function damage(make, run, seed, ...)
    local bytes, size = image(make, ...)
    local good, rng = ffi.string(bytes, size), integers(seed)
    for round = 1, os.getenv "PERIGEE_HARD" and 1000 or 4000 do
      ffi.copy(bytes, good, size)
      for _ = 1, rng(1, 1 + round % 50) do
        local at = round % 8 == 0 and rng(0, 575) or rng(576, size - 1) -- the head is 576 bytes
        bytes[at] = rng(0, 1) == 0 and rng(-128, 127) or bit.bxor(bytes[at], bit.lshift(1, rng(0, 6)))
      end
      run(bytes, size, texts[1 + round % #texts])
    end
  end

  it("of a charsmap leads nowhere else", function()
    damage(C.spec_charsmap_image, function(bytes, size, text)
      C.spec_charsmap_run(bytes, size, text, #text, text_out, spans_out, ROOM)
    end, 1, blob, #blob)
  end)

  it("of Unigram leads nowhere else", function()
    damage(C.spec_unigram_image, function(bytes, size, text)
      C.spec_unigram_run(bytes, size, text, #text, pieces_out, ROOM)
    end, 2, vocab.bytes, vocab.ends, vocab.count, vocab.scores, 3, 1)
  end)
end)

-- ---- The vocabulary of a tokenizer.json ------------------------------------------------------------------------------------

describe("pgee_vocabulary_json", function()
  local out = ffi.new "pgee_vocabulary *[1]"

  local function read(text)
    out[0] = nil
    if pgee.C.pgee_vocabulary_json(out, "t.json", text, #text) ~= 0 then
      return nil, message()
    end
    return out[0] ~= nil and ffi.gc(out[0], pgee.C.pgee_vocabulary_free) or nil
  end

  it("reads pieces and scores, and says where they are", function()
    local list = [=[[ ["a",-1.5], ["\u00e9\u0000", 2e1] ]]=]
    local text = [[{"a":{"vocab":[1]},"model": {"x":"]}\"", "vocab" : ]] .. list .. ',"y":[]},"z":1}'
    local v = read(text)
    assert.equal(2, tonumber(v.count))
    assert.equal("a\195\169\0", ffi.string(v.bytes, v.ends[1]))
    assert.equal(1, tonumber(v.ends[0]))
    assert.same({ -1.5, 20 }, { v.scores[0], v.scores[1] })
    assert.equal(list, text:sub(tonumber(v.begin) + 1, tonumber(v["end"])))
    assert.equal(0, tonumber(read('{"model":{"vocab":[]}}').count))
  end)

  it("finds none where there is none", function()
    for _, text in ipairs { "{}", "[]", "", '{"model":3}', '{"model":{}}', '{"model":{"vocab":{"a":1}}}', '{"model":null}' } do
      assert.is_nil(read(text))
      assert.equal(1, select("#", read(text)), text)
    end
  end)

  it("rounds scores as the reference does", function()
    local function value(text)
      return read('{"model":{"vocab":[["a",' .. text .. "]]}}").scores[0]
    end
    assert.equal(-7.471577644348144, value "-7.4715776443481445") -- the nearest is ...1445
    assert.equal(-3.4635426998138428, value "-3.4635426998138428")
    assert.equal(0, value "0e999")
    assert.equal(0, value "1e-400")
    assert.equal(1e308, value "1e308")
    assert.equal(18446744073709551615, value "18446744073709551615")
    assert.equal(1.2345678901234567e29, value "123456789012345678901234567890")
  end)

  it("refuses what is not a list of pieces and scores, and says at which byte", function()
    for bad, why in pairs {
      ['{"model":{"vocab":[["a"]]}}'] = "expected ','", ['{"model":{"vocab":[["a",1,2]]}}'] = "expected ']'",
      ['{"model":{"vocab":[["a","b"]]}}'] = "a digit", ['{"model":{"vocab":[[1,1]]}}'] = "expected a string",
      ['{"model":{"vocab":[["a",01]]}}'] = "leading zero", ['{"model":{"vocab":[["a",1.]]}}'] = "a digit",
      ['{"model":{"vocab":[["a",1e999]]}}'] = "larger than any double", ['{"model":{"vocab":[["a",NaN]]}}'] = "a digit",
      ['{"model":{"vocab":[["a",1]'] = "not the end", ['{"model":{"vocab":['] = "", ['{"model":{"vocab":[["a'] = "does not end",
      ['{"model":{"vocab":[["\255",1]]}}'] = "UTF-8", ['{"model":{"vocab":[["a",1],]}}'] = "comma", ['{"x":"'] = "does not end",
    } do
      local v, message_of = read(bad)
      assert.is_nil(v)
      assert.truthy(message_of and message_of:find("^'t.json': byte %d+: "), bad)
      assert.truthy(message_of:find(why, 1, true) or why == "not the end", message_of)
    end
  end)

  it("survives any damage", function()
    local text, rng = json.text(GOLDEN), integers(3)
    text = text:sub(1, 300) .. text:sub(-3000)
    local short = '{"model":{"a":[1,{"b":"\\"]"}],"vocab":[["ab",-1.25e1],["\\u00e9\\ud83d\\ude00",0]]}}'
    for round = 1, 3000 do
      local bytes = ffi.new("char[?]", #short + 1, short)
      for _ = 1, rng(1, 3) do
        local from = rng(1, #text)
        bytes[rng(0, #short - 1)] = rng(0, 1) == 0 and rng(-128, 127) or text:byte(from)
      end
      read(ffi.string(bytes, round % 3 == 0 and rng(0, #short) or #short))
    end
  end)
end)
