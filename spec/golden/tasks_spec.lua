-- Tasks give the answers of the transformers pipelines, which make_tasks.py wrote to spec/golden/tasks.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

local function path(name)
  return "spec/golden/tasks/" .. name
end

-- Returns the golden answers of a checkpoint. from: only the answers of this library.
local function answers(name, from)
  local list = {}
  for _, row in ipairs(cjson.decode(models.read(path(name) .. "/answers.json"))) do
    list[#list + 1] = (not from or row.from == from) and row or nil
  end
  return list
end

-- The maximum difference of a probability or a logit from the golden one. Both are float32. Hidden states differ by 2e-5 at most,
-- and a head, whose weights add up to tens, multiplies that difference.
local function near(want, got, what)
  assert.near(want, got, 1e-4 * math.max(1, math.abs(want)), what)
end

-- Returns a text such as "row 3, {...}", which names the answer in a failure.
local function label(i, row)
  return ("row %d, %s, %s"):format(i, cjson.encode(row.given), cjson.encode(row.options))
end

-- Returns the number of bytes before character `n` of a text. Characters count from 0.
local function bytes_before(text, n)
  local at = 1
  for _ = 1, n do
    at = (text:find("[%z\1-\127\192-\255]", at + 1)) or #text + 1
  end
  return at - 1
end

-- Asserts that an answer's places are right: characters as transformers counts them, and bytes of the same text.
local function check_places(text, first, last, got, what)
  assert.are.equal(first, got.start, what)
  assert.are.equal(last, got["end"], what)
  assert.are.equal(first + 1, got.first, what)
  assert.are.equal(last, got.last, what)
  assert.are.equal(bytes_before(text, first) + 1, got.first_byte, what)
  assert.are.equal(bytes_before(text, last), got.last_byte, what)
end

-- Calls f(model, given, options, row, what) with the FP32 model for each golden answer of a checkpoint.
local function each(name, from, f)
  local model = perigee.load(path(name), { kernel = "native" })
  local count = 0
  for i, row in ipairs(answers(name, from)) do
    f(model, row.given, row.options, row.answer, label(i, row))
    count = count + 1
  end
  model:release()
  assert.is_true(count > 0)
end

-- The same for three checkpoints with a head: BERT, RoBERTa with byte-level BPE, and XLM-R with Unigram.
local function of_all(head, from, f)
  for _, kind in ipairs { "", "roberta-", "xlmr-" } do
    each(kind .. head, from, f)
  end
end

describe("classify", function()
  it("has the scores of the text-classification pipeline: softmax, sigmoid, none; texts and pairs; truncated", function()
    each("nli", "text-classification", function(model, given, options, want, what)
      local got = model:classify(type(given) == "table" and { given } or given, options)
      got = type(given) == "table" and got[1] or got
      assert.are.equal(want[1].label, got.label, what)
      near(want[1].score, got.score, what)
      for _, one in ipairs(want) do
        near(one.score, got.scores[one.label], what)
      end
    end)
  end)

  it("has as many labels as are asked for, best first", function()
    each("nli", "text-classification, top_k", function(model, given, options, want, what)
      local got = model:classify(given, options)
      assert.are.equal(#want, #got, what)
      for k, one in ipairs(want) do
        assert.are.equal(one.label, got[k].label, what)
        near(one.score, got[k].score, what)
      end
    end)
  end)

  it("takes the sigmoid of one label unless config.json says that it is a regression", function()
    local config = cjson.decode(models.read(path "cross" .. "/config.json"))
    for i, row in ipairs(answers("cross", "text-classification")) do
      config.problem_type = row.given.config.problem_type
      local model = perigee.load(models.variant(path "cross", { ["config.json"] = cjson.encode(config) }), { kernel = "native" })
      local got = model:classify(row.given.text)
      assert.are.equal(row.answer[1].label, got.label, label(i, row))
      near(row.answer[1].score, got.score, label(i, row))
      model:release()
    end
    files.clean()
  end)
end)

describe("zeroshot", function()
  it("has the scores of the zero-shot-classification pipeline", function()
    each("nli", "zero-shot-classification", function(model, given, options, want, what)
      local got = model:zeroshot(given, options)
      assert.are.same(want.labels, got.labels, what)
      for i, score in ipairs(want.scores) do
        near(score, got.scores[i], what)
      end
    end)
  end)

  it("answers a list as each text alone", function()
    local model = perigee.load(path "nli", { kernel = "native" })
    local texts, options = { "the water", "people look for the day" }, { labels = { "water", "day" } }
    local list, batch = model:zeroshot(texts, options)
    assert.are.equal(4, batch.n)
    for i, text in ipairs(texts) do
      assert.are.same(model:zeroshot(text, options), list[i])
    end
    model:release()
  end)
end)

describe("rerank", function()
  after_each(files.clean)

  it("ranks as sentence-transformers' CrossEncoder, with the activation that config.json says", function()
    local config = cjson.decode(models.read(path "cross" .. "/config.json"))
    for i, row in ipairs(answers("cross", "CrossEncoder.rank")) do
      local changed = {}
      for key, value in pairs(config) do
        changed[key] = value
      end
      for key, value in pairs(row.given.config) do
        changed[key] = value
      end
      local model = perigee.load(models.variant(path "cross", { ["config.json"] = cjson.encode(changed) }), { kernel = "native" })
      local got = model:rerank(row.given.query, row.given.documents, row.options)
      assert.are.equal(#row.answer, #got)
      for k, want in ipairs(row.answer) do
        assert.are.equal(want.index, got[k].index, label(i, row))
        assert.are.equal(row.given.documents[want.index], got[k].text)
        near(want.score, got[k].score, label(i, row))
      end
      model:release()
    end
  end)
end)

describe("qa", function()
  it("has the answers of the question-answering pipeline: windows, n-best, no answer, whole words, places", function()
    of_all("qa", nil, function(model, given, options, want, what)
      local got = model:qa(given, options)
      got = (options.top_k or 1) == 1 and { got } or got
      assert.are.equal(#want, #got, what)
      for k, one in ipairs(want) do
        near(one.score, got[k].score, what)
        assert.are.equal(one.answer, got[k].answer, what)
        assert.are.same({ one.start, one["end"] }, { got[k].start, got[k]["end"] }, what)
        if one.answer ~= "" then
          check_places(given.context, one.start, one["end"], got[k], what)
          assert.are.equal(one.answer, given.context:sub(got[k].first_byte, got[k].last_byte))
        end
      end
    end)
  end)
end)

describe("ner", function()
  it("has the entities of the token-classification pipeline, by every aggregation", function()
    of_all("ner", "token-classification", function(model, given, options, want, what)
      local got = model:ner(given, options)
      assert.are.equal(#want, #got, what)
      for k, one in ipairs(want) do
        assert.are.equal(one.entity_group or one.entity, got[k].label, what)
        near(one.score, got[k].score, what)
        check_places(given, one.start, one["end"], got[k], what)
        assert.are.equal(given:sub(got[k].first_byte, got[k].last_byte), got[k].text)
      end
    end)
  end)

  it("tags words given by their first piece", function()
    of_all("ner", "the first piece of a word", function(model, given, options, want, what)
      local got = model:ner(given, options)
      assert.are.equal(#want, #got, what)
      for k, one in ipairs(want) do
        assert.are.equal(one.entity, got[k].label, what)
        near(one.score, got[k].score, what)
      end
    end)
  end)
end)

describe("fill_mask", function()
  it("has the pieces of the fill-mask pipeline, for each mask", function()
    of_all("mlm", nil, function(model, given, options, want, what)
      local got = model:fill_mask(given, options)
      assert.are.equal(#want, #got, what)
      for m, list in ipairs(want) do
        assert.are.equal(#list, #got[m], what)
        for k, one in ipairs(list) do
          assert.are.equal(one.token, got[m][k].token, what)
          near(one.score, got[m][k].score, what)
        end
      end
    end)
  end)

  it("puts a piece where its mask is: a word apart, a continuation to the word before", function()
    local model = perigee.load(path "mlm", { kernel = "native" })
    local got = model:fill_mask("Look [MASK], [MASK]!", { top_k = 3, targets = { "water", "##ing", "day" } })
    for m, before in ipairs { "Look", "Look [MASK]," } do
      for _, item in ipairs(got[m]) do
        local after = m == 1 and ", [MASK]!" or "!"
        local want = item.piece == "##ing" and before .. "ing" .. after or before .. " " .. item.piece .. after
        assert.are.equal(want, item.text)
      end
    end
    model:release()
    for name, texts in pairs {
      ["roberta-mlm"] = { ["Ġfirst"] = "Look first, and", ome = "Lookome, and" },
      ["xlmr-mlm"] = { ["▁each"] = "Look each, and", f = "Lookf, and" },
    } do
      model = perigee.load(path(name), { kernel = "native" })
      for piece, text in pairs(texts) do
        assert.are.equal(text, model:fill_mask("Look <mask>, and", { targets = { piece } })[1][1].text)
      end
      assert.are.equal(texts["Ġfirst"] and "first!" or "each!", model:fill_mask("<mask>!", {
        targets = { texts["Ġfirst"] and "Ġfirst" or "▁each" },
      })[1][1].text)
      model:release()
    end
  end)
end)

describe("embed", function()
  after_each(files.clean)

  it("has sentence-transformers' vectors: prompts by name, by text, by default, and none; pooled with them or without", function()
    local KEYS = { mean = "mean_tokens", first = "cls_token", max = "max_tokens" }
    for i, row in ipairs(answers "sentence") do
      local pooling = { include_prompt = row.given.include_prompt }
      for mode, key in pairs(KEYS) do
        pooling["pooling_mode_" .. key] = mode == row.given.mode
      end
      local folder = models.variant(path "sentence", { ["1_Pooling/config.json"] = cjson.encode(pooling) })
      local model = perigee.load(folder, { kernel = "native" })
      local lists, batch = model:embed(row.given.texts, {
        prompt = row.options.prompt, dimensions = row.options.dimensions, tables = true,
      })
      assert.are.equal(#row.given.texts, batch.count)
      for t, want in ipairs(row.answer) do
        for k, v in ipairs(want) do
          near(v, lists[t][k], label(i, row))
        end
      end
      model:release()
    end
  end)
end)
