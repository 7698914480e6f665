-- Tokenizers of folders without tokenizer.json: vocab.txt, vocab.json and merges.txt, or a SentencePiece model, with what stands
-- beside them in several forms, against the reference library's answers in folders.json, which golden_folders.py made.
local cjson = require "cjson"
local json = require "perigee.json"
local tokenizer = require "perigee.tokenizer"
local files = require "spec.support.files"
local FOLDER = "spec/golden/tokenizer/"

local function folder_of(contents)
  local bytes = {}
  for name, content in pairs(contents) do
    if type(content) == "table" then
      content = cjson.encode(content)
    elseif content:sub(1, 1) == "@" then
      content = json.text(FOLDER .. content:sub(2))
    end
    bytes[name] = content
  end
  return files.folder(bytes)
end

describe("Folders without tokenizer.json", function()
  after_each(files.clean)

  it("have the reference's answers", function()
    local golden = cjson.decode((assert(json.text(FOLDER .. "folders.json"))))
    assert.equal(21, #golden.folders)
    for i, folder in ipairs(golden.folders) do
      local t = tokenizer.load(folder_of(folder.files))
      assert.same(folder.special, { t.unk, t.cls, t.sep, t.pad, t.mask })
      for j, text in ipairs(golden.texts) do
        local case, where = folder.cases[j], ("folder %d, %q"):format(i, text)
        local e = t:encode(text, j % 2 == 0 and golden.texts[j - 1] or nil, { offsets = "characters" })
        assert.same(case.ids, e.ids, where)
        assert.same(case.types, e.types, where)
        assert.same(case.offsets, e.offsets, where)
        assert.equal(case.text, t:decode(e.ids), where)
      end
    end
  end)
end)
