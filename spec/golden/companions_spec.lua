-- Files beside a checkpoint's weights are used as sentence-transformers and peft use them. make_companions.py made the answers in
-- spec/golden/companions.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

local PATH = "spec/golden/companions/"
local cases = cjson.decode(models.read(PATH .. "cases.json"))

-- Returns the files of a case: those of its base, replaced or extended by its own.
local function changes_of(case)
  local changes = { ["answers.json"] = false }
  for path, value in pairs(case.files) do
    changes[path] = value ~= cjson.null and cjson.encode(value)
  end
  for path, stored in pairs(case.binary) do
    changes[path] = models.read(PATH .. stored)
  end
  return changes
end

local function folder_of(case)
  return models.variant("spec/golden/tasks/" .. case.base, changes_of(case))
end

local function near(want, got, what)
  assert.near(want, got, 1e-4 * math.max(1, math.abs(want)), what)
end

local function near_lists(want, got, what)
  assert.equal(#want, #got, what)
  for i, row in ipairs(want) do
    assert.equal(#row, #got[i], what)
    for k, v in ipairs(row) do
      near(v, got[i][k], what)
    end
  end
end

local answer = {}

answer["SentenceTransformer.encode"] = function(model, case)
  near_lists(case.answer, (model:embed(case.given, { prompt = case.options.prompt, tables = true })), case.name)
end
answer["mean of hidden states"] = answer["SentenceTransformer.encode"]

answer["CrossEncoder.rank"] = function(model, case)
  local got = model:rerank(case.given.query, case.given.documents, case.options)
  assert.equal(#case.answer, #got, case.name)
  for i, want in ipairs(case.answer) do
    near(want.score, got[i].score, case.name)
    assert.equal(want.index, got[i].index, case.name)
  end
end

answer["zero-shot-classification"] = function(model, case)
  for i, got in ipairs((model:zeroshot(case.given, case.options))) do
    assert.same(case.answer[i].labels, got.labels, case.name)
    near_lists({ case.answer[i].scores }, { got.scores }, case.name)
  end
end

function answer.logits(model, case)
  for i, one in ipairs((model:classify(case.given))) do
    near_lists({ case.answer[i] }, { one.logits }, case.name)
  end
end

describe("Companion files", function()
  after_each(files.clean)

  for _, case in ipairs(cases) do
    it(("give the answers of %s: %s"):format(case.from, case.name), function()
      local model = perigee.load(folder_of(case), { kernel = "native" })
      if case.limit ~= cjson.null then
        assert.equal(math.min(case.limit, model.positions), model.limit)
      end
      answer[case.from](model, case)
      model:release()
    end)
  end

  it("have the same answers from an artifact", function()
    for _, case in ipairs(cases) do
      local model = perigee.load(folder_of(case), { kernel = "native" })
      local path = os.tmpname()
      model:save(path)
      model:release()
      local a = perigee.open(path)
      answer[case.from](a, case)
      a:release()
      os.remove(path)
    end
  end)

  it("quantize like any checkpoint", function()
    for _, case in ipairs(cases) do
      if case.name:find "^LaBSE" or case.name:find "dora" then
        local model = perigee.load(folder_of(case))
        local q = model:quantize { activations = "dynamic" }
        local vectors = q:embed(case.given, { tables = true })
        for i, want in ipairs(case.answer) do
          local dot, a, b = 0, 0, 0
          for k, v in ipairs(want) do
            dot, a, b = dot + v * vectors[i][k], a + v * v, b + vectors[i][k] ^ 2
          end
          assert.is_true(dot / math.sqrt(a * b) > 0.99, case.name)
        end
        q:release()
        model:release()
      end
    end
  end)
end)
