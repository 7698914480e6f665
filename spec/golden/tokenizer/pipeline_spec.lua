-- Tokenizers with every component give the answers of the tokenizers package in pipeline.json, which golden_pipeline.py made.
-- Byte pair encoding and WordPiece also give the ids of llama.cpp's vectors, if ../shared is there.
-- differential_pipeline.py finds the shortest text that differs.
local json = require "perigee.base.json"
local tokenizer = require "perigee.tokenizer"
local files = require "spec.support.files"
local skip = require "spec.support.skip"
local FOLDER, SHARED = "spec/golden/tokenizer/", "../shared/data/tokenizers/"
local NULL = json.null

-- The texts of the two JSON files are not decoded: a table would be encoded in another order.
local function entries()
  local list = {}
  for line in assert(json.text(FOLDER .. "pipeline.json")):gmatch "[^\n]+" do
    local text = line:match "^{.*}"
    if text then
      list[#list + 1] = { file = text:match '^{"file":(.*),"cases":', cases = json.decode(text).cases }
    end
  end
  return list
end

local function words_of(text)
  local list = {}
  for word in (text .. " "):gmatch "([^ ]*) " do
    list[#list + 1] = word
  end
  return list
end

local function encode(t, case, offsets)
  local options = { max_tokens = case.limit ~= NULL and case.limit or nil, special = not case.bare, offsets = offsets }
  if case.in_words then
    return t:encode_words(words_of(case.a), options)
  end
  return t:encode(case.a, case.b ~= NULL and case.b or nil, options)
end

describe("The answers of tokenizers", function()
  after_each(files.clean)

  it("of made-up tokenizers of every component", function()
    local count = 0
    for i, entry in ipairs(entries()) do
      local t = tokenizer.load(files.folder { ["tokenizer.json"] = entry.file })
      for j, case in ipairs(entry.cases) do
        local where = ("tokenizer %d, case %d: %q"):format(i, j, case.a)
        local e = encode(t, case)
        local words = {}
        for k = 1, #e.ids do
          words[k] = e.words[k] or 0
        end
        assert.same(case.ids, e.ids, where)
        assert.same(case.types, e.types, where)
        assert.same(case.bytes, e.offsets, where)
        assert.same(case.characters, encode(t, case, "characters").offsets, where)
        assert.same(case.sequences, e.sequences, where)
        assert.same(case.words, words, where)
        assert.equal(case.dropped, e.dropped, where)
        assert.equal(case.text, t:decode(e.ids), where)
        assert.equal(case.whole, t:decode(e.ids, { special = true }), where)
        count = count + 1
      end
    end
    assert.is_true(count >= 200)
  end)

  -- A Python that has the tokenizers package: PERIGEE_PYTHON, the system's, or that of `make bench-peers`.
  local python
  for _, path in ipairs { os.getenv "PERIGEE_PYTHON" or "python3", "build/peers/bin/python" } do
    if not os.getenv "PERIGEE_HARD" and os.execute(("'%s' -c 'import tokenizers' 2> /dev/null"):format(path)) == 0 then
      python = path
    end
  end
  local beside = python and it or skip "need Python's tokenizers (make bench-peers)"
  beside("of tokenizers and texts made up on the spot", function()
    local command = ("PERIGEE_LIB='%s' '%s' %s --texts 600 --round 20 --seed 7 2>&1"):format(os.getenv "PERIGEE_LIB", python,
      "spec/golden/tokenizer/differential_pipeline.py")
    local said = assert(io.popen(command)):read "*a"
    assert.matches("600 texts, %d+ of which the package answers, all equal", said)
  end)

  for name, vectors in pairs { gpt2 = "ggml-vocab-gpt-2.gguf", ["bert-base-uncased"] = "ggml-vocab-bert-bge.gguf" } do
    local path = SHARED .. "llama.cpp-vocab-tests/" .. vectors
    local here = json.exists(path .. ".inp") and it or skip "there is no ../shared"
    here("of llama.cpp's vectors for " .. name, function()
      local t, ids, n = tokenizer.load(SHARED .. name), {}, 0
      for line in (assert(json.text(path .. ".out")) .. "\n"):gmatch "([^\n]*)\n" do
        ids[#ids + 1] = line:gsub("^%s+", ""):gsub("%s+$", "")
      end
      for text in (assert(json.text(path .. ".inp")) .. "\n__ggml_vocab_test__\n"):gmatch "(.-)\n__ggml_vocab_test__\n" do
        n = n + 1
        assert.equal(ids[n], table.concat(t:encode(text, nil, { special = false }).ids, " "), text)
      end
      assert.is_true(n >= 40)
    end)
  end
end)
