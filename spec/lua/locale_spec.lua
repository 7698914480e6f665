-- The locale of a host process: no reader and no writer depends on it. It is set after the modules were loaded, to one that has a
-- decimal comma and groups thousands with points; `localedef` makes it.
local ffi = require "ffi"
local artifacts = require "spec.support.artifacts"
local change = require "perigee.quantize.settings"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local jsonl = require "perigee.pipe.jsonl"
local locale = require "spec.support.locale"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local selection = require "perigee.graph.passes.select"
local vectors = require "perigee.pipe.vectors"

pcall(ffi.cdef, "char *setlocale(int category, const char *name); int snprintf(char *to, size_t count, const char *format, ...);")

local LC_ALL = 6
-- Whether C prints numbers with a comma now.
local function has_comma()
  local buffer = ffi.new "char[16]"
  ffi.C.snprintf(buffer, 16, "%g", ffi.cast("double", 0.5))
  return ffi.string(buffer) == "0,5"
end

-- f() under the locale, or nil if there is none.
local function under_comma(f)
  local folder = locale.folder()
  ffi.C.setenv("LOCPATH", folder or "", 1)
  if not folder or ffi.C.setlocale(LC_ALL, "comma") == nil then
    return nil
  end
  assert(has_comma())
  local ok, result = pcall(f)
  ffi.C.setlocale(LC_ALL, "C")
  assert(not has_comma())
  assert(ok, result)
  return result
end

-- The same values under both.
local function same(f)
  local under = under_comma(f)
  if under == nil then
    return pending "localedef makes no locale here"
  end
  assert.same(f(), under)
end

describe("Under a locale with a decimal comma", function()
  after_each(files.clean)

  it("JSON is read and written as ever", function()
    same(function()
      local path = files.write '{"a":[0.45,-1.5e-3,1e30,12345678.9],"b":{"c":0.1}}'
      local line = jsonl.read '{"x":0.25,"text":"0,5"}'
      return {
        json.object(path), json.decode "0.45", json.canonical { a = 0.45, b = 1234567.5 }, json.shortest(0.1),
        line:raw "x", line:text "text", json.line { score = 0.5, n = 1e6 },
      }
    end)
  end)

  it("selected kernels are kept and found", function()
    same(function()
      local path = files.folder {} .. "/select.json"
      local w = perigee.packed.new(perigee.tensor.new("F32", { 64, 64 }))
      local warned, times, kept = {}, 0, nil
      for _ = 1, 2 do
        kept = selection.run({ w }, { cache = path, warn = function(text) warned[#warned + 1] = text end, time = function()
          times = times + 1
          return 0.45
        end })
      end
      return { json.exists(path) and json.text(path) or "none", warned, times, kept.shapes }
    end)
  end)

  it("models, artifacts, recipes and settings are the same", function()
    same(function()
      local model = perigee.load(models.path "bert-heads")
      local stats = model:calibrate({ { ids = { 1, 2, 3 } }, { ids = { 4, 5, 6, 7 } } }, { progress = false })
      local q = model:quantize { stats = stats, alpha = 0.65, sites = { ["encoder.layer.0.*"] = { alpha = 0.55 } } }
      local path = artifacts.save(q)
      local a = perigee.open(path, { verify = true })
      local list = {}
      for value in vectors.list(a:embed { ids = { 1, 2, 3 } }):gmatch "[^,%[%]]+" do
        list[#list + 1] = tonumber(value)
      end
      local settings = tostring(change.new { alpha = 0.65 })
      return { models.read(path), settings, tostring(a.settings), list, q:recipe():match "model:quantize.*" }
    end)
  end)

  it("messages of the engine have decimal points", function()
    same(function()
      local s = perigee.tensor.new("F32", { 2 })
      local status = pgee.C.pgee_smooth(s.handle, s.handle, s.handle, 1.5)
      return { tonumber(status), ffi.string(pgee.C.pgee_message()) }
    end)
    assert.matches("alpha is 1.5", ffi.string(pgee.C.pgee_message()), 1, true)
  end)

  it("tokenizers and their scores are the same", function()
    same(function()
      local t = perigee.tokenizer.load(files.folder {
        ["tokenizer.json"] = '{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0.0],["a",-1.5],["b",-2.25],["ab",-3.5]]}}',
      })
      return t:encode("abba").ids
    end)
  end)

  it("evaluations read scores", function()
    same(function()
      local path = files.write "sentence1\tsentence2\tscore\na\tb\t0.25\nc\td\t1.5\n"
      local dir = files.folder { ["pairs.tsv"] = models.read(path) }
      local set = perigee.evaluate.read(dir .. "/pairs.tsv")
      local labels = {}
      for i, label in ipairs(set.labels or set.scores or {}) do
        labels[i] = label
      end
      return labels
    end)
  end)
end)
