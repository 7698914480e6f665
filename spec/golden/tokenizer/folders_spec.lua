-- Tokenizers of checkpoint folders, compared with transformers' AutoTokenizer. A folder has tokenizer.json, vocab.txt,
-- vocab.json and merges.txt, or a SentencePiece model, and the small configuration files in several forms. golden_folders.py
-- made the answers in folders.json, differential_folders.py made those in folders_random.json.
local cjson = require "cjson"
local json = require "perigee.base.json"
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

describe("Folders of a tokenizer", function()
  after_each(files.clean)

  local function given(value)
    return value ~= cjson.null and value or nil
  end

  it("with files and keys at random have the answers of AutoTokenizer", function()
    local folders = cjson.decode((assert(json.text(FOLDER .. "folders_random.json"))))
    assert.equal(60, #folders)
    for i, folder in ipairs(folders) do
      local t = tokenizer.load(folder_of(folder.files))
      for k, key in ipairs { "unk", "cls", "sep", "pad", "mask" } do
        if given(folder.special[k]) then
          assert.equal(folder.special[k], t[key], ("folder %d: %s"):format(i, key))
        end
      end
      for j, c in ipairs(folder.cases) do
        local e = t:encode(c.text, given(c.pair), {
          max_tokens = c.max, truncate = c.truncate, truncation_side = given(c.side), offsets = "characters",
        })
        local where, offsets = ("folder %d, case %d"):format(i, j), {}
        for k, o in ipairs(e.offsets) do
          offsets[2 * k - 1], offsets[2 * k] = o[1], o[2]
        end
        assert.same(c.ids, e.ids, where)
        assert.same(c.types, e.types, where)
        assert.same(c.offsets, offsets, where)
      end
    end
  end)

  it("without tokenizer.json have the answers of AutoTokenizer", function()
    local golden = cjson.decode((assert(json.text(FOLDER .. "folders.json"))))
    assert.equal(27, #golden.folders)
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
