-- perigee.foreign: errors about files of another kind than expected. checkpoint_spec.lua has such files in place of weights and
-- JSON.
local files = require "spec.support.files"
local foreign = require "perigee.base.foreign"
local models = require "spec.support.models"
local perigee = require "perigee"

local POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaaa5e2ca2"
  .. "4d17e239\nsize 12345\n"

local XLMR, ROBERTA = '{"tokenizer_class": "XLMRobertaTokenizer"}', '{"tokenizer_class": "RobertaTokenizer"}'

describe("A file that is another", function()
  after_each(files.clean)

  it("is told by its first bytes, and nothing is said of others", function()
    assert.equal("; it is a pointer of Git LFS, not the file itself: run `git lfs pull` in the folder",
      foreign.hint(files.write(POINTER)))
    for _, bytes in ipairs { "{}", "abc", "\8\0", "version 1", "PK", "\0\0\0\0\0\0\0\0{}", "< 5" } do
      assert.equal("", foreign.hint(files.write(bytes)))
    end
    assert.equal("", foreign.hint "/nowhere/at/all")
    assert.equal("", foreign.hint "/tmp")
  end)

  it("is named where an artifact should be", function()
    for _, how in ipairs { {}, { copy = true } } do
      assert.error_matches(function() perigee.open(files.write(POINTER), how) end, "run `git lfs pull` in the folder$")
      assert.error_matches(function() perigee.open(files.write "PK\3\4...........", how) end, "it is a ZIP archive")
    end
  end)

  it("is named where a tokenizer's file should be", function()
    for name, changes in pairs {
      ["vocab.txt"] = { ["vocab.txt"] = POINTER },
      ["sentencepiece.bpe.model"] = { ["tokenizer_config.json"] = XLMR, ["sentencepiece.bpe.model"] = POINTER },
      ["vocab.json"] = { ["tokenizer_config.json"] = ROBERTA, ["vocab.json"] = POINTER, ["merges.txt"] = "" },
      ["merges.txt"] = {
        ["tokenizer_config.json"] = ROBERTA, ["vocab.json"] = '{"<s>": 0, "</s>": 1, "<unk>": 2}', ["merges.txt"] = POINTER,
      },
      ["tokenizer.json"] = { ["tokenizer.json"] = POINTER }, ["tokenizer_config.json"] = { ["tokenizer_config.json"] = POINTER },
    } do
      local model = perigee.load(models.variant("spec/golden/tasks/sentence", changes))
      local ok, message = pcall(model.tokens, model, "the water")
      assert.is_false(ok, name)
      assert.truthy(message:find(name, 1, true), message)
      assert.truthy(message:find("run `git lfs pull`", 1, true), message)
    end
  end)
end)
