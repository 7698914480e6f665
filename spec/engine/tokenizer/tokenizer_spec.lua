local ffi = require "ffi"
local files = require "spec.support.files"
local live = require "spec.support.live"
local wordpiece = require "spec.support.wordpiece"
local pgee = require "perigee.ffi"
local skip = require "spec.support.skip"
local C = pgee.C

local PIECES = { "[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##b", "ab", "##ab", "abab", ".", ",", "é", "e", "##e", "##é", "中",
  "文", "i", "##\204\135", "I", "A", "\239\191\189", "##\239\191\189" } -- U+0307, U+FFFD
local ID = {}
for i, p in ipairs(PIECES) do
  ID[p] = i - 1
end

local function ids(...)
  local list = { ID["[CLS]"] }
  for _, p in ipairs { ... } do
    list[#list + 1] = assert(ID[p] or tonumber(p), p)
  end
  list[#list + 1] = ID["[SEP]"]
  return table.concat(list, " ")
end

local function matches(text, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.truthy(tostring(message):find(text, 1, true), tostring(message))
end

describe("WordPiece", function()
  local t = wordpiece.new(PIECES)
  local plain = wordpiece.new(PIECES, { clean_text = 0, handle_chinese_chars = 0, strip_accents = 0, lowercase = 0 })

  it("takes the longest piece, from the beginning", function()
    assert.equal(ids("abab"), t:ids "abab")
    assert.equal(ids("abab", "##ab", "##a"), t:ids "abababa")
    assert.equal(ids("b", "##ab", "##b"), t:ids "babb")
    assert.equal("0-1 1-3 3-4", t:offsets "babb")
  end)

  it("makes a word that has no pieces to the end unknown as a whole", function()
    assert.equal(ids("a", "[UNK]", "b"), t:ids "a abz b")
    assert.equal("0-1 2-5 6-7", t:offsets "a abz b")
    assert.equal(ids("[UNK]"), t:ids "zab")
  end)

  it("makes a word longer than max_word_chars characters unknown", function()
    local function count(text)
      local e = t:encode(text)
      return ("%d, the first %d"):format(e.length - 2, e.ids[1])
    end
    assert.equal("49, the first " .. ID["abab"], count("abab" .. ("ab"):rep(48)))
    assert.equal("1, the first " .. ID["[UNK]"], count("ababa" .. ("ab"):rep(48)))
    assert.equal("100, the first " .. ID["e"], count(("é"):rep(100))) -- 200 bytes
    assert.equal("1, the first " .. ID["[UNK]"], count(("é"):rep(101)))
    local short = wordpiece.new(PIECES, { max_word_chars = 0 })
    assert.equal(ids("[UNK]", "[UNK]"), short:ids "a .")
  end)

  it("splits at white space and around punctuation", function()
    assert.equal(ids("a", ".", ".", "b", ","), t:ids " a..\tb,\n")
    assert.equal("1-2 2-3 3-4 5-6 6-7", t:offsets " a..\tb,\n")
    assert.equal(ids("a", "b"), t:ids "a\194\160b") -- U+00A0
    assert.equal(ids("a", "b"), t:ids "a\227\128\128b") -- U+3000
  end)

  it("puts spaces around ideographs, or leaves them in their words", function()
    assert.equal(ids("a", "中", "文", "b"), t:ids "a中文b")
    assert.equal("0-1 1-4 4-7 7-8", t:offsets "a中文b")
    assert.equal(ids("[UNK]"), plain:ids "a中文b")
  end)

  it("drops controls and U+FFFD when it cleans, else they are letters", function()
    assert.equal(ids("abab"), t:ids "a\0b\226\128\139ab\239\191\189")
    assert.equal("0-8", t:offsets "a\0b\226\128\139ab\239\191\189")
    assert.equal(ids("a", "##\239\191\189"), plain:ids "a\239\191\189")
    assert.equal(ids("[UNK]"), plain:ids "a\0b")
  end)

  it("lowers case and strips accents in all four combinations", function()
    local function both(lowercase, strip_accents)
      return wordpiece.new(PIECES, { lowercase = lowercase, strip_accents = strip_accents })
    end
    local text = "Aé E\204\129 \196\176" -- A é, E with U+0301, U+0130
    assert.equal(ids("a", "##e", "e", "i"), both(1, 1):ids(text))
    assert.equal(ids("a", "##é", "[UNK]", "i", "##\204\135"), both(1, 0):ids(text))
    assert.equal(ids("A", "##e", "[UNK]", "I"), both(0, 1):ids(text))
    assert.equal(ids("A", "##é", "[UNK]", "[UNK]"), both(0, 0):ids(text))
    assert.equal("0-1 1-3 4-5 8-10", both(1, 1):offsets(text))
    assert.equal("0-1 1-3 4-7 8-10 8-10", both(1, 0):offsets(text))
  end)

  it("keeps spans in the order of the text where it reorders marks", function()
    -- U+302E, which stays, sorts before U+0315, which goes: it takes the place of the first of the two.
    local marks = wordpiece.new({ "[UNK]", "[CLS]", "[SEP]", "a", "##\227\128\174" })
    assert.equal("1 3 4 2", marks:ids "a\204\149\227\128\174")
    assert.equal("0-1 1-3", marks:offsets "a\204\149\227\128\174")
  end)

  it("gives an empty text its special tokens", function()
    assert.equal("1 2", t:ids "")
    assert.equal("1 2 2", t:ids("", ""))
    assert.equal("1 2", t:ids " \n\0")
  end)

  it("counts a byte that is part of no character as U+FFFD", function()
    local unk, r = "\239\191\189", "##\239\191\189"
    assert.equal(ids("a", "##b"), wordpiece.new({ "[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", "##b" }):ids "a\255b")
    for text, expected in pairs {
      ["\128"] = { unk }, ["\255\254"] = { unk, r }, -- no first bytes
      ["\195"] = { unk }, ["\226\130"] = { unk, r }, ["\240\159\152"] = { unk, r, r }, -- cut off
      ["\195a"] = { unk, "##a" }, ["\226\130a"] = { unk, r, "##a" },
      ["\192\128"] = { unk, r }, ["\224\159\191"] = { unk, r, r }, -- overlong
      ["\237\160\128"] = { unk, r, r }, ["\244\144\128\128"] = { unk, r, r, r }, -- a surrogate, past U+10FFFF
      ["\239\191\189"] = { unk },
    } do
      assert.equal(ids(unpack(expected)), plain:ids(text))
    end
    assert.equal("0-1 1-2 2-3", plain:offsets "\226\130a")
  end)

  it("takes another prefix, and none", function()
    local function with(prefix, pieces)
      return wordpiece.new({ "[UNK]", "[CLS]", "[SEP]", unpack(pieces) }, { prefix = prefix })
    end
    assert.equal("1 3 4 2", with("", { "ab", "a" }):ids "aba")
    assert.equal("1 3 4 2", with("_", { "ab", "_a" }):ids "aba")
    assert.equal("1 0 2", with("_", { "ab", "a" }):ids "aba")
  end)

  it("takes ids as given, the last of equal pieces", function()
    assert.equal("1 70 2", wordpiece.new({ "a", "b", "a" }, nil, nil, { 5, 6, 70 }):ids "a")
  end)

  it("stays linear on long texts without a space", function()
    local began = os.clock()
    for _, part in ipairs { "a", "é", "中", ".", "\204\129\204\150", " ", "[SEP", "\255" } do
      local e = t:encode(part:rep(2 ^ 20 / #part), nil, 512)
      assert.is_true(e.length >= 2)
    end
    assert.is_true(os.clock() - began < (os.getenv "PERIGEE_HARD" and 60 or 5))
  end)
end)

describe("Pairs and truncation", function()
  local t = wordpiece.new(PIECES)

  it("gives the second text and its [SEP] type 1", function()
    local e = t:encode("a b", "ab.")
    local types = {}
    for i = 0, e.length - 1 do
      types[#types + 1] = e.types[i]
    end
    assert.equal("1 3 5 2 7 10 2", t:ids("a b", "ab."))
    assert.same({ 0, 0, 0, 0, 1, 1, 1 }, types)
    assert.equal("0-1 2-3 0-2 2-3", t:offsets("a b", "ab."))
  end)

  it("drops from the end, and says how much", function()
    for limit = 2, 9 do
      local e = t:encode("a b a b a", nil, limit)
      assert.equal(math.min(limit, 7), e.length)
      assert.equal(math.max(7 - limit, 0), e.dropped)
      assert.equal(ID["[SEP]"], e.ids[e.length - 1])
    end
    assert.equal("1 3 5 2", t:ids("a b a b a", nil, 4))
  end)

  it("cuts the longer of two texts first, then both, the longer or the second keeping one more", function()
    local function kept(n1, n2, limit)
      local e = t:encode(("a "):rep(n1), ("b "):rep(n2), limit)
      local first, second = 0, 0
      for i = 0, e.length - 1 do
        first = first + (e.ids[i] == ID.a and 1 or 0)
        second = second + (e.ids[i] == ID.b and 1 or 0)
      end
      assert.equal(first + second + 3, e.length)
      assert.equal(n1 + n2 - first - second, e.dropped)
      return ("%d %d"):format(first, second)
    end
    assert.equal("4 6", kept(4, 6, 13))
    assert.equal("4 5", kept(4, 6, 12))
    assert.equal("5 4", kept(6, 4, 12))
    assert.equal("4 4", kept(4, 6, 11))
    assert.equal("3 4", kept(4, 6, 10))
    assert.equal("4 3", kept(6, 4, 10))
    assert.equal("3 4", kept(5, 5, 10))
    assert.equal("0 1", kept(5, 5, 4))
    assert.equal("1 0", kept(6, 5, 4))
    assert.equal("0 0", kept(5, 5, 3))
    assert.equal("0 2", kept(0, 5, 5))
    assert.equal("3 0", kept(9, 0, 6))
    assert.equal("50 1", kept(80, 1, 54))
  end)

  it("asks for a capacity of max_tokens, or the bytes and the special tokens, and never writes more", function()
    for _, text in ipairs { "", "a", ".........", "\237\158\163\237\158\163", "中中中", "\240\157\133\160" } do
      for capacity = 0, #text + 4 do
        local need = math.min(#text + 2, 6)
        if capacity < need then
          matches(("the arrays hold %d tokens, expected %d"):format(capacity, need), t.encode, t, text, nil, 6, capacity)
        else
          t:encode(text, nil, 6, capacity)
        end
      end
      t:encode(text, text, nil, 2 * #text + 3)
    end
  end)

  it("refuses a max_tokens that does not hold the special tokens", function()
    matches("max_tokens is 1, expected 2 or more", t.encode, t, "a", nil, 1, 8)
    matches("max_tokens is 2, expected 3 or more", t.encode, t, "a", "b", 2, 8)
    matches("max_tokens is -5, expected 2 or more", t.encode, t, "a", nil, -5, 8)
    assert.equal("1 2", t:ids("a", nil, 2))
  end)
end)

describe("Added tokens", function()
  local function with(flags, text)
    return wordpiece.new(PIECES, nil, { { text, 90, normalized = flags.normalized, single_word = flags.single_word,
      lstrip = flags.lstrip, rstrip = flags.rstrip } })
  end

  it("are one token wherever they stand", function()
    local t = with({}, "<x>")
    assert.equal(ids("a", "90", "90", "b"), t:ids "a<x><x>b")
    assert.equal("0-1 1-4 4-7 7-8", t:offsets "a<x><x>b")
    assert.equal("1 90 2 90 2", t:ids("<x>", "<x>"))
  end)

  it("are the leftmost, and of those the longest", function()
    local t = wordpiece.new(PIECES, nil, { { "ab", 90 }, { "abx", 91 }, { "bx", 92 } })
    assert.equal(ids("90"), t:ids "ab")
    assert.equal(ids("91", "92"), t:ids "abxbx")
    assert.equal(ids("90", "90", "a"), t:ids "ababa")
  end)

  it("are looked for before normalization, or after", function()
    assert.equal(ids("e"), with({}, "É"):ids "é")
    assert.equal(ids("90"), with({}, "É"):ids "É")
    assert.equal(ids("90", "90"), with({ normalized = true }, "É"):ids "é E")
    assert.equal("0-2 3-4", with({ normalized = true }, "É"):offsets "é E")
    -- across the chunks that other tokenizers normalize in
    assert.equal(300 + 2, with({ normalized = true }, "a b"):encode(("A B "):rep(300)).length)
  end)

  it("are never found once nothing is left of them", function()
    assert.equal(ids("a"), with({ normalized = true }, "\204\129"):ids "a\204\129")
  end)

  it("may want to be no part of a word", function()
    local t = with({ single_word = true }, "ab")
    assert.equal(ids("90", ".", "90"), t:ids "ab.ab")
    assert.equal(ids("abab"), t:ids "abab")
    assert.equal(ids("a", "##ab", "90"), t:ids "aab ab")
    assert.equal(ids("e", "##ab"), t:ids "éab")
    assert.equal(ids("ab", "##e"), t:ids "abé")
  end)

  it("may take the white space beside them", function()
    assert.equal("0-1 1-6 6-7", with({ lstrip = true }, "<x>"):offsets "a  <x>b")
    assert.equal("0-1 1-7 7-8", with({ rstrip = true }, "<x>"):offsets "a<x>\n\194\160b")
    assert.equal("0-5 5-8", with({ lstrip = true, rstrip = true }, "<x>"):offsets " <x> <x>")
    -- once: what one takes is not left for another
    local t = wordpiece.new(PIECES, nil, { { "<x>", 90, rstrip = true }, { " ", 91, lstrip = true } })
    assert.equal(ids("90", "a"), t:ids "<x>  a")
  end)

  it("replace an equal one", function()
    local t = wordpiece.new(PIECES, nil, { { "<x>", 90 }, { "<x>", 91 } })
    assert.equal(ids("91"), t:ids "<x>")
  end)
end)

describe("Any bytes", function()
  local PARTS = { "a", "e", "\204\129", "\204\150", "\227\128\174", "é", "中", "\237\158\163", " ", "\t", "[SEP]", "<x>",
    "É", "\196\176", ".", "\240\157\133\160", "\194\133", "##" }

  -- A tokenizer of random pieces, options and added tokens, and a maker of random texts, whole characters and single bytes.
  local function draw(random)
    local function text(most)
      local list = {}
      for i = 1, random(most + 1) do
        list[i] = random(6) == 0 and string.char(random(256)) or PARTS[random(#PARTS) + 1]
      end
      return table.concat(list)
    end
    local pieces, added = { "[UNK]", "[CLS]", "[SEP]" }, {}
    for _ = 1, random(60) do
      pieces[#pieces + 1] = (random(2) == 0 and "##" or "") .. PARTS[random(#PARTS) + 1] .. PARTS[random(#PARTS) + 1]
    end
    for i = 1, random(4) do
      added[i] = { PARTS[random(#PARTS) + 1], 99, normalized = random(2) == 0, single_word = random(3) == 0,
        lstrip = random(3) == 0, rstrip = random(3) == 0 }
    end
    return wordpiece.new(pieces, { clean_text = random(2), handle_chinese_chars = random(2), strip_accents = random(2),
      lowercase = random(2), max_word_chars = random(3) == 0 and random(9) or 100 }, added), text
  end

  local function is_sound(e, a, b, max_tokens)
    assert.is_true(e.length <= max_tokens and (e.dropped == 0 or e.length == max_tokens))
    assert.equal(1, e.ids[0])
    assert.equal(2, e.ids[e.length - 1])
    for i = 0, e.length - 1 do
      local bytes = e.types[i] == 0 and #a or #b
      local first, last = e.offsets[2 * i], e.offsets[2 * i + 1]
      assert.is_true((first == 0 and last == 0) or (first < last and last <= bytes))
      assert.is_true(i == 0 or e.types[i] >= e.types[i - 1])
    end
    assert.equal(b and 1 or 0, e.types[e.length - 1])
  end

  it("encode to something sound, and to its beginning when cut", function()
    local random = files.random(7)
    for _ = 1, 60 do
      local t, text = draw(random)
      for _ = 1, 40 do
        local a, b = text(30), random(3) == 0 and text(20) or nil
        local whole = t:encode(a, b)
        is_sound(whole, a, b, 2 ^ 31)
        local limit = (b and 3 or 2) + random(12)
        local cut = t:encode(a, b, limit)
        is_sound(cut, a, b, limit)
        assert.equal(whole.length, cut.length + cut.dropped)
        for i = 0, (b and 0 or cut.length - 1) - 1 do
          assert.equal(whole.ids[i], cut.ids[i])
        end
      end
    end
  end)
end)

describe("What is no tokenizer", function()
  it("is refused, naming what is wrong", function()
    matches("max_word_chars is -1", wordpiece.new, PIECES, { max_word_chars = -1 })
    matches("the id of unk is -1", wordpiece.new, PIECES, { unk = -1 })
    matches("piece 0 of a template has id -3", wordpiece.new, PIECES, { cls = -3 })
    matches("piece 1 has id -3", wordpiece.new, { "a", "b" }, nil, nil, { 0, -3 })
    matches("the piece with id 1 is not UTF-8 at byte 1", wordpiece.new, { "a", "b\255" })
    matches("the added token with id 9 is not UTF-8 at byte 0", wordpiece.new, PIECES, nil, { { "\128", 9 } })
    matches("an added token has id -9", wordpiece.new, PIECES, nil, { { "a", -9 } })
  end)

  it("is refused when it is NULL", function()
    local out = pgee.out "pgee_tokenizer *"
    local function refused(change, text)
      local d, held = wordpiece.definition(PIECES, nil, { { "<x>", 90 } })
      change(d)
      assert.equal(C.PGEE_ARGUMENT, C.pgee_tokenizer_new(out, d))
      matches(text, pgee.check, C.pgee_tokenizer_new(out, d))
      held.done = true
    end
    refused(function(d) d.pieces = nil end, "d->pieces is NULL")
    refused(function(d) d.ends = nil end, "d->ends is NULL")
    refused(function(d) d.normalizers = nil end, "list is NULL")
    refused(function(d) d.added = nil end, "d->added is NULL")
    refused(function(d) ffi.cast("pgee_added_token *", d.added)[0].text = nil end, "has 3 bytes")
    refused(function(d) d.count = -1 end, "-1 pieces")
    refused(function(d) d.model = 9 end, "the model is 9, expected 1 to 3")
    assert.equal(C.PGEE_ARGUMENT, C.pgee_tokenizer_new(out, nil))
    local t = wordpiece.new(PIECES)
    local e = ffi.new("pgee_encoding", { capacity = 8 })
    matches("a text is NULL", pgee.check, C.pgee_tokenizer_encode(t.handle, e, nil, 3, nil, 0, 8))
    matches("a text of -1 bytes", pgee.check, C.pgee_tokenizer_encode(t.handle, e, "a", -1, nil, 0, 8))
    matches("a text of 2147483647 bytes", pgee.check, C.pgee_tokenizer_encode(t.handle, e, "a", 1, "b", 2 ^ 31 - 1, 8))
    matches("the arrays for ids and types are NULL", pgee.check, C.pgee_tokenizer_encode(t.handle, e, "a", 1, nil, 0, 8))
    C.pgee_tokenizer_free(nil)
  end)

  it("gives its memory back", function()
    local left, most = live.during(function()
      local t = wordpiece.new(PIECES, nil, { { "<x>", 90 } })
      t:encode(("\204\129\204\150"):rep(5000) .. ("é"):rep(5000), nil, 100)
      t:free()
    end)
    assert.is_true(most > 0)
    assert.equal(0, left)
  end)
end)

-- As spec/engine/base/allocation_spec.lua: the first allocation fails, the second, and so on, until the work succeeds.
describe("When an allocation fails, a tokenizer", function()
  local hard = os.getenv "PERIGEE_HARD"
  if hard and not pcall(function() return C.pgee_fail_allocation end) then
    ffi.cdef "void pgee_fail_allocation(int64_t n);"
  end

  local function fails_cleanly(work)
    local before = live()
    for n = 1, 1000 do
      C.pgee_fail_allocation(n)
      local ok, message = pcall(work)
      C.pgee_fail_allocation(0)
      assert.equal(before, live())
      if ok then
        return n - 1
      end
      assert.truthy(tostring(message):find("out of memory", 1, true), tostring(message))
    end
    error "it never succeeded"
  end

  local here = hard and it or skip "allocations fail on request in `make hard` alone"
  here("is not made, or lacks an added token", function()
    local many = {}
    for i = 1, 300 do
      many[i] = ("%d"):format(i * 7919)
    end
    assert.is_true(fails_cleanly(function()
      local added = {}
      for i = 1, 9 do
        added[i] = { "<" .. i .. ">", i, normalized = i % 2 == 0 }
      end
      wordpiece.new(many, nil, added):free()
    end) > 10)
  end)

  here("encodes nothing", function()
    local t = wordpiece.new(PIECES)
    assert.is_true(fails_cleanly(function()
      t:encode(("\204\129\204\150"):rep(200) .. ("a"):rep(5000), ("é"):rep(5000), 100)
    end) >= 4)
  end)
end)
