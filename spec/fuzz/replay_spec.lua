-- Inputs that fuzzing found, and some that it begins with: see README.md. The sanitizers of `make hard` see what is read.
local ffi = require "ffi"
local inputs = require "spec.fuzz.inputs"
local mutate = require "spec.fuzz.mutate"
local native = require "spec.support.native"

local C = native.cdef [[
  int fuzz_safetensors(const uint8_t *bytes, size_t count);
  int fuzz_vocabulary(const uint8_t *bytes, size_t count);
  int fuzz_definition(const uint8_t *bytes, size_t count);
  int fuzz_image(const uint8_t *bytes, size_t count);
  int fuzz_encode(const uint8_t *bytes, size_t count);
]]

local TARGETS = { "safetensors", "vocabulary", "definition", "image", "encode" }
local DRIVERS = { "checkpoint", "sentencepiece", "artifact", "jsonl", "arguments" }
local TRIES = 20 -- mutated inputs of each kind, the same in every run

local function give(target, bytes)
  local buffer = ffi.new("uint8_t[?]", math.max(#bytes, 1))
  ffi.copy(buffer, bytes, #bytes)
  assert.equal(0, C["fuzz_" .. target](buffer, #bytes))
end

describe("Inputs that fuzzing found", function()
  for _, target in ipairs(TARGETS) do
    it("do no harm to " .. target, function()
      for _, input in ipairs(inputs.corpus(target)) do
        give(target, input.bytes)
        for i = 1, TRIES do
          give(target, mutate.bytes(input.bytes, { input.bytes }, mutate.generator(i)))
        end
      end
    end)
  end

  for _, name in ipairs(DRIVERS) do
    it("are answered by " .. name, function()
      local driver = require("spec.fuzz.drivers." .. name)
      for _, input in ipairs(inputs.corpus(name)) do
        local why = inputs.judge(driver, input.bytes)
        assert.is_nil(why, ("%s: %s"):format(input.path, tostring(why)))
      end
    end)
  end

  it("reach the model where they are a sound tensor of an artifact", function()
    local driver, tensors = require "spec.fuzz.drivers.artifact", 0
    for _, seed in ipairs(driver.seeds()) do
      local name = seed:match "^tensor ([^\n]+)\n"
      if name and name:find "LayerNorm" then
        tensors = tensors + 1
        driver.run(("tensor %s\n%s"):format(name, "\0\0\128\63")) -- ones
      end
    end
    assert.is_true(tensors > 0)
  end)

  it("are made of SentencePiece models that are read to the end", function()
    local driver = require "spec.fuzz.drivers.sentencepiece"
    for _, seed in ipairs(driver.seeds()) do
      driver.run(seed)
    end
  end)

  it("are SentencePiece models with fewer pieces than those that a class replaces", function()
    local sentencepiece = require "perigee.tokenizer.sentencepiece"
    for _, class in ipairs { "XLMRobertaTokenizer", "CamembertTokenizer" } do
      local m = sentencepiece.read("one", "\10\14\10\5<unk>\21\0\0\0\0\24\2")
      local vocab = sentencepiece.parts(m, class, { text = function(_, name) return name end }).vocab
      assert.equal(#vocab.texts, vocab.count)
    end
  end)

  it("are told from sound ones by the message of an error", function()
    assert.is_nil(inputs.unsound "config.json is odd")
    assert.truthy(inputs.unsound "x.lua:3: attempt to index a nil value")
    assert.truthy(inputs.unsound {})
    local driver = { run = function(input) if input == "bad" then return input.x.y end error("no " .. input, 0) end }
    assert.is_nil(inputs.judge(driver, "good"))
    assert.matches("attempt to index", inputs.judge(driver, "bad"))
    assert.equal("it is wrong", inputs.judge({ run = function() return "it is wrong" end }, ""))
  end)
end)
