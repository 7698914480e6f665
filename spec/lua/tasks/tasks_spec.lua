-- Tasks: long texts, forms of input, heads, and errors. Their answers are checked in spec/golden/tasks_spec.lua.
local cjson = require "cjson"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local inputs = require "perigee.run.inputs"
local models = require "spec.support.models"
local perigee = require "perigee"
local scores = require "perigee.tasks.scores"
local windows = require "perigee.run.windows"

local TEXT = "the first word is not the last one, and some people will look at the water all day long. "
local LONG = TEXT:rep(3)

local loaded = {}

-- A checkpoint of spec/golden/tasks; its limit is 40 tokens.
local function load(name)
  loaded[name] = loaded[name] or perigee.load("spec/golden/tasks/" .. name, { kernel = "native" })
  return loaded[name]
end

teardown(function()
  for _, model in pairs(loaded) do
    model:release()
  end
end)

describe("the task of a checkpoint", function()
  after_each(files.clean)

  it("is what its architecture says", function()
    for name, task in pairs {
      nli = "classify", cross = "classify", qa = "qa", ner = "ner", mlm = "fill_mask", sentence = "embed",
    } do
      assert.are.equal(task, load(name).task)
      assert.is_function(perigee.tasks[task].run)
    end
  end)

  it("is embed where a masked language model was saved without its head, and where sentence-transformers pools", function()
    local config = cjson.decode(models.read "spec/golden/tasks/sentence/config.json")
    config.architectures = { "BertForMaskedLM" }
    local model = perigee.load(models.variant("spec/golden/tasks/sentence", {
      ["config.json"] = cjson.encode(config), ["modules.json"] = false,
    }))
    assert.are.equal("embed", model.task)
    assert.matches("(its config.json says BertForMaskedLM):\n  cls.predictions.transform.dense.weight [32][32] is missing\n",
      failure(model.fill_mask, model, "[MASK]"), 1, true)
    local q = model:quantize { activations = "dynamic" }
    assert.are.equal("embed", q.task)
    q:release()
    local pooled = perigee.load(models.variant("spec/golden/tasks/mlm", {
      ["modules.json"] = models.read "spec/golden/tasks/sentence/modules.json",
    }))
    assert.are.equal("embed", pooled.task)
    assert.are.equal("BertForMaskedLM", pooled.config.json.architectures[1])
  end)

  it("is said of a checkpoint that is asked for a head that it lacks", function()
    local model, path = load "sentence", "spec/golden/tasks/sentence"
    for task, what in pairs { qa = { question = "x", context = "x" }, ner = "x", classify = "x", fill_mask = "[MASK]" } do
      local message = failure(perigee.tasks[task].run, model, what)
      assert.matches(("%s: %s has no head for it; it is a model of type bert for embed"):format(task, path), message, 1, true)
      assert.matches("for embed[%w_, ]* %(its config.json says BertModel%):\n  ", message)
      assert.is_nil(message:find("embeddings", 1, true))
    end
    local all = perigee.load(models.path "bert-heads")
    all.weights.checkpoint.tensors["qa_outputs.bias"] = nil
    local message = failure(all.graph, all, "qa")
    assert.matches(("qa: %s has no head for it; it is a model of type bert for embed, classify, ner, fill_mask"):format(
      models.path "bert-heads"), message, 1, true)
    assert.matches("fill_mask[%w_, ]* %(its config.json says BertModel%):\n  qa_outputs.bias %[2%] is missing", message)
  end)

  it("is named where another one's head is asked for", function()
    local CALLS = {
      classify = { "classify", "x" }, qa = { "qa", { question = "x", context = "x" } }, ner = { "ner", "x" },
      fill_mask = { "fill_mask", "[MASK]" },
    }
    for _, name in ipairs { "nli", "qa", "ner", "mlm" } do
      local model = load(name)
      for task, call in pairs(CALLS) do
        if task ~= model.task then
          assert.are.equal(("%s: this checkpoint has a head for %s (its config.json says %s)"):format(task, model.task,
            model.config.json.architectures[1]), failure(model[call[1]], model, call[2]))
        end
      end
    end
  end)
end)

describe("a long text", function()
  -- Runs of each task over LONG: name of the checkpoint, function of (model, options). A task that is not here takes a text and
  -- draws its head over the hidden states of any checkpoint.
  local TASKS = {
    embed = { "sentence", function(m, o)
      return m:embed(LONG, { prompt = false, long = o.long, stride = o.stride, truncation_side = o.truncation_side })
    end },
    classify = { "nli", function(m, o) return m:classify(LONG, o) end },
    zeroshot = { "nli", function(m, o)
      return m:zeroshot(LONG, { labels = { "water" }, long = o.long, stride = o.stride, truncation_side = o.truncation_side })
    end },
    rerank = { "cross", function(m, o) return m:rerank("the water", { LONG }, o) end },
    qa = { "qa", function(m, o) return m:qa({ question = "what?", context = LONG }, o) end },
    ner = { "ner", function(m, o) return m:ner(LONG, o) end },
    fill_mask = { "mlm", function(m, o) return m:fill_mask(TEXT .. TEXT:gsub("some", "[MASK] some") .. TEXT, o) end },
  }
  for _, name in ipairs(perigee.tasks.names()) do
    TASKS[name] = TASKS[name] or { "sentence", function(m, o) return m[name](m, LONG, o) end }
  end

  -- The ids of a batch of one sequence, as a text.
  local function ids_of(batch)
    local list = {}
    for t = 0, batch.T - 1 do
      list[t + 1] = batch.ids[t]
    end
    return table.concat(list, " ")
  end

  for task, run in pairs(TASKS) do
    it(("of %s is cut off on the side that is asked for, or that the tokenizer's files say"):format(task), function()
      local model = load(run[1])
      local config = cjson.decode(models.read(model.dir .. "/tokenizer_config.json"))
      config.truncation_side = "left"
      local other = perigee.load(models.variant(model.dir, { ["tokenizer_config.json"] = cjson.encode(config) }))
      local function cut(m, side)
        local _, batch = run[2](m, { long = "truncate", truncation_side = side })
        assert.are.same({ 1, 40, 1 }, { batch.n, batch.T, #batch.truncated })
        return ids_of(batch)
      end
      local right, left = cut(model, "right"), cut(model, "left")
      assert.are_not.equal(right, left)
      assert.are.equal(right, cut(model))
      assert.are.equal(left, cut(other))
      assert.are.equal(right, cut(other, "right"))
      assert.matches(task .. ": truncation_side is the string 'up', expected one of left, right",
        failure(run[2], model, { long = "truncate", truncation_side = "up" }), 1, true)
    end)
  end

  it("has a stride only in windows", function()
    for task, run in pairs(TASKS) do
      for _, long in ipairs { "truncate", "error" } do
        local message = ('%s: stride is how many tokens two windows share, but long is "%s"; give long = "windows"'):format(
          task, long)
        assert.matches(message, failure(run[2], load(run[1]), { long = long, stride = 4 }), 1, true)
      end
    end
    assert.matches('classify: stride is how many tokens two windows share, but long is "truncate"',
      failure(perigee.tasks.classify.run, load "nli", TEXT, { stride = 4 }), 1, true)
  end)

  it("is cut off on either side for hidden states and tokens, too", function()
    local model = load "nli"
    local whole = model:tokenizer():encode(LONG).ids
    local left = whole[1] .. " " .. table.concat(whole, " ", #whole - 38)
    for _, name in ipairs { "hidden", "layers" } do
      local _, batch = model[name](model, LONG, { truncation_side = "left" })
      assert.are.equal(left, ids_of(batch))
      _, batch = model[name](model, LONG)
      assert.are.equal(table.concat(whole, " ", 1, 39) .. " " .. whole[#whole], ids_of(batch))
      assert.matches(name .. ": truncation_side is 1, expected one of left, right",
        failure(model[name], model, LONG, { truncation_side = 1 }), 1, true)
    end
    assert.are.equal(left, table.concat(model:tokens(LONG, nil, { truncation_side = "left" }).ids, " "))
    assert.matches("tokens has no option side, only truncation_side",
      failure(model.tokens, model, LONG, nil, { side = "left" }), 1, true)
  end)

  it("of one text loses its beginning if it is cut off on the left", function()
    local model = load "nli"
    local whole = model:tokenizer():encode(LONG).ids
    local _, batch = model:classify(LONG, { truncation_side = "left" })
    assert.are.equal(whole[1] .. " " .. table.concat(whole, " ", #whole - 38), ids_of(batch))
  end)

  it("has full windows from its end on if it is cut off on the left", function()
    local model = load "qa"
    local e = model:tokenizer():encode("what?", LONG)
    local _, batch = model:qa({ question = "what?", context = LONG }, { truncation_side = "left", tokens = 20, stride = 3 })
    local last = batch.parts[batch.n]
    assert.are.equal(20, windows.size(last))
    assert.are.equal(#e.ids - 1, last.to)
    assert.are.equal(3, batch.parts[batch.n - 1].to - last.from + 1)
    assert.is_true(windows.size(batch.parts[1]) <= 20)
  end)

  for task, run in pairs(TASKS) do
    it(("of %s is truncated, refused or cut into windows, and that is reported"):format(task), function()
      local model = load(run[1])
      local _, batch = run[2](model, { long = "truncate" })
      assert.are.equal(1, batch.n)
      assert.are.equal(model.limit, batch.T)
      assert.are.equal(1, #batch.truncated)
      assert.are.equal(1, batch.truncated[1].input)
      assert.is_true(batch.truncated[1].dropped > 20)
      assert.are.equal(0, #batch.windows)

      local message = failure(run[2], model, { long = "error" })
      assert.matches("tokens, at most 40 are taken", message, 1, true)
      assert.matches(task, message, 1, true)

      local answer, cut = run[2](model, { long = "windows" })
      assert.are.equal(0, #cut.truncated)
      assert.are.equal(1, #cut.windows)
      assert.are.equal(cut.n, cut.windows[1].windows)
      assert.is_true(cut.n > 1)
      assert.are.equal(1, cut.count)
      assert.is_truthy(answer)

      assert.matches("long is the string 'both', expected one of error, truncate, windows",
        failure(run[2], model, { long = "both" }), 1, true)
    end)
  end

  -- The windows of a batch as inputs of their own.
  local function alone(batch)
    local list = {}
    for s = 1, batch.n do
      list[s] = { ids = {}, types = {} }
      for t = batch.starts[s - 1], batch.starts[s] - 1 do
        table.insert(list[s].ids, batch.ids[t])
        table.insert(list[s].types, batch.types[t])
      end
    end
    return list
  end

  it("in windows has the mean of their vectors and logits, by tokens, and a document its best window", function()
    local model = load "nli"
    local answer, batch = model:classify(LONG, { long = "windows", stride = 3 })
    local sum, tokens = { 0, 0, 0 }, 0
    for s, one in ipairs(model:classify(alone(batch))) do
      local own = batch.starts[s] - batch.starts[s - 1]
      tokens = tokens + own
      for k = 1, 3 do
        sum[k] = sum[k] + own * one.logits[k]
      end
    end
    for k = 1, 3 do
      assert.near(sum[k] / tokens, answer.logits[k], 1e-12)
    end

    model = load "cross"
    local ranked
    ranked, batch = model:rerank("the water", { LONG, "no" }, { long = "windows" })
    local best = -math.huge
    for s, one in ipairs(model:classify(alone(batch))) do
      best = batch.of[s] == 1 and math.max(best, one.logits[1]) or best
    end
    for _, item in ipairs(ranked) do
      assert.is_true(item.index == 2 or item.logit == best)
    end

    model = load "sentence"
    local vector
    vector, batch = model:embed({ "no", LONG }, { long = "windows", prompt = "how many people: " })
    assert.are.equal(2, #vector)
    local hidden, starts = model:hidden(alone(batch))
    local mean, count = {}, 0
    for t = batch.starts[1] + 1, batch.T do
      count = count + 1
      for k, v in ipairs(hidden[t]:totable()) do
        mean[k] = (mean[k] or 0) + v
      end
    end
    assert.are.equal(starts.T, batch.T)
    local length = 0
    for k = 1, #mean do
      length = length + (mean[k] / count) ^ 2
    end
    for k = 1, #mean do
      assert.near(mean[k] / count / math.sqrt(length), vector[2][k], 1e-5)
    end
    for s = 3, batch.n do -- every window begins with the prompt
      for t = 0, 4 do
        assert.are.equal(batch.ids[batch.starts[1] + t], batch.ids[batch.starts[s - 1] + t])
      end
    end
  end)

  it("has its entities and masks from the window in which they have most context", function()
    local model = load "ner"
    local got, batch = model:ner(LONG, { long = "windows", aggregation = "none", stride = 10 })
    local parts = inputs.batch(model, LONG, "here", { long = "windows", keep = true, stride = 10 }).parts
    assert.are.equal(#parts, batch.n)
    local seen = {}
    for _, entity in ipairs(got) do
      assert.is_nil(seen[entity.token])
      seen[entity.token] = true
      assert.are.equal(LONG:sub(entity.first_byte, entity.last_byte), entity.text)
    end
    local last = got[#got]
    assert.is_true(last.first > #TEXT * 2)

    model = load "mlm"
    local text = "[MASK] " .. LONG .. "[MASK] " .. LONG .. "[MASK]"
    assert.matches("fill_mask: input 1: 2 of 3 masks lie beyond the limit", failure(model.fill_mask, model, text), 1, true)
    local masks = model:fill_mask(text, { long = "windows", top_k = 2 })
    assert.are.equal(3, #masks)
    assert.are.equal(masks[3][1].text:sub(-#masks[3][1].piece), masks[3][1].piece)
  end)

  it("leaves a text that fits as it is", function()
    local model = load "ner"
    for _, long in ipairs { "truncate", "error", "windows" } do
      local got, batch = model:ner(TEXT, { long = long })
      assert.are.same(model:ner(TEXT), got)
      assert.are.equal(0, #batch.truncated + #batch.windows)
    end
  end)

  it("is cut at the text that a task says: labels, queries and questions stay whole", function()
    local _, batch = load("nli"):zeroshot(LONG, { labels = { "the day", "water" } })
    assert.are.same({ { 1, 1 }, { 1, 2 } }, { { batch.truncated[1].input, batch.truncated[1].label },
      { batch.truncated[2].input, batch.truncated[2].label } })
    local ids = {}
    for t = batch.T - 4, batch.T - 1 do
      ids[#ids + 1] = load("nli"):tokenizer():piece(batch.ids[t])
    end
    assert.are.same({ "is", "water", ".", "[SEP]" }, ids)
    assert.matches("zeroshot: input 1, label 1: it has 70 tokens without the text that is cut (the first)",
      failure(load("nli").zeroshot, load "nli", "the water", { labels = { LONG } }), 1, true)
    assert.matches("qa: it has 66 tokens without the text that is cut (the second), which leaves no room for it within 40 tokens",
      failure(load("qa").qa, load "qa", { question = LONG, context = LONG }), 1, true)
  end)
end)

describe("lists", function()
  it("have an answer for each input, the same as alone; an empty list has none", function()
    local qa, ner, mlm = load "qa", load "ner", load "mlm"
    local questions = { { question = "what?", context = TEXT }, { question = "how many?", context = LONG } }
    local tagged, masked = { TEXT, { words = { "the", "water" } }, "" }, { "[MASK] people", "the [MASK] and [MASK]" }
    for i, answer in ipairs(qa:qa(questions)) do
      assert.are.same(qa:qa(questions[i]), answer)
    end
    for i, answer in ipairs(ner:ner(tagged)) do
      assert.are.same(ner:ner(tagged[i]), answer)
    end
    for i, answer in ipairs(mlm:fill_mask(masked)) do
      assert.are.same(mlm:fill_mask(masked[i]), answer)
    end
    assert.are.same({}, (qa:qa {}))
    assert.are.same({}, (ner:ner {}))
    assert.are.same({}, (mlm:fill_mask {}))
    assert.are.same({}, (load("nli"):zeroshot({}, { labels = { "x" } })))
    assert.are.same({}, (load("cross"):rerank("x", {})))
    assert.are.equal(0, #load("sentence"):embed {})
  end)

  it("of queries are one batch, by perigee.tasks", function()
    local model, rerank = load "cross", perigee.tasks.rerank.run
    local queries = { { query = "water", documents = { "the day", LONG } }, { query = "people", documents = "no" } }
    local ranked, batch = rerank(model, queries)
    assert.are.same(model:rerank("water", { "the day", LONG }), ranked[1])
    assert.are.same(model:rerank("people", { "no" }), ranked[2])
    assert.are.same(rerank(model, queries[1]), ranked[1])
    assert.are.same({ 1, 2 }, { batch.truncated[1].input, batch.truncated[1].document })
  end)
end)

describe("the best", function()
  it("are found among all there are, in order, whatever their number and ties", function()
    local random, n = require("perigee.evaluate.bootstrap").generator(7), 3000
    local all = {}
    for i = 1, n do
      all[i] = { value = random(200), key = random(1000), i = i }
    end
    for _, count in ipairs { 1, 2, 17, 900, 2 ^ 31 } do
      local best, want, seen = scores.keep(count), {}, {}
      for _, item in ipairs(all) do
        if item.value > best.min then
          best:put { value = item.value, key = item.key, i = item.i }
        end
      end
      local sorted = { unpack(all) }
      table.sort(sorted, function(a, b) return a.value > b.value or a.value == b.value and a.i < b.i end)
      for _, item in ipairs(sorted) do
        want[#want + 1] = not seen[item.key] and #want < count and item.i or nil
        seen[item.key] = true
      end
      for k, item in ipairs(best:sorted()) do
        assert.are.equal(want[k], item.i)
      end
      assert.are.equal(#want, #best:sorted())
    end
  end)

  it("may be all: answers of a long context and pieces of a vocabulary, each once", function()
    local context = ("Ötters look at the water 🙂 all day. "):rep(100)
    local given = { question = "who?", context = context }
    local few, all = load("qa"):qa(given, { top_k = 5 }), load("qa"):qa(given, { top_k = 2 ^ 31 })
    assert.is_true(#all > 10000)
    assert.are.same(few, { unpack(all, 1, 5) })
    local seen = {}
    for k, one in ipairs(all) do
      assert.is_nil(seen[one.first_byte .. " " .. one.last_byte])
      seen[one.first_byte .. " " .. one.last_byte] = true
      assert.is_true(k == 1 or one.score <= all[k - 1].score)
    end
    local pieces = load("mlm"):fill_mask("the [MASK]", { top_k = 2 ^ 31 })[1]
    local sum = 0
    for _, piece in ipairs(pieces) do
      sum = sum + piece.score
    end
    assert.are.equal(load("mlm").config.vocab_size, #pieces)
    assert.near(1, sum, 1e-12)
  end)
end)

describe("characters", function()
  it("are counted to any byte, in any order", function()
    local text = ("aé🙂日"):rep(40)
    local at, want, count = scores.characters(text), {}, 0
    for byte = 0, #text do
      want[byte] = count
      local next_byte = text:byte(byte + 1)
      count = count + ((next_byte and (next_byte < 0x80 or next_byte >= 0xC0)) and 1 or 0)
    end
    for k = 0, #text do
      local byte = k * 37 % (#text + 1)
      assert.are.equal(want[byte], at(byte))
    end
  end)
end)

describe("bytes that are no UTF-8", function()
  it("are a character each, as to the tokenizer", function()
    local text = "a\xffé\x80\xe2\x82z\xed\xa0\x80🙂\xf0\x9f"
    local at = scores.characters(text)
    local starts = { 0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 15, 16, 17 }
    for count, byte in ipairs(starts) do
      assert.are.equal(count - 1, at(byte))
    end
    for _, name in ipairs { "ner", "roberta-ner", "xlmr-ner" } do
      local model = load(name)
      local offsets = model:tokenizer():encode(text, nil, { offsets = "characters" }).offsets
      local tokens = model:ner(text, { aggregation = "none" })
      for _, token in ipairs(tokens) do
        assert.are.same(offsets[token.token], { token.first - 1, token.last })
        assert.are.same(offsets[token.token], { token.start, token["end"] })
        assert.are.equal(token.text, text:sub(token.first_byte, token.last_byte))
      end
    end
  end)
end)

describe("words", function()
  it("have a tag each, also those that have no token; none is cut where they fit", function()
    local model = load "ner"
    local got = model:ner { words = { "the", "", "\226\128\139", "unlikely", "water" } }
    assert.are.equal(5, #got)
    assert.are.same({ { label = "O", score = 0 }, { label = "O", score = 0 } }, { got[2], got[3] })
    local words = {}
    for i = 1, 100 do
      words[i] = "people"
    end
    local cut, batch = model:ner { words = words }
    assert.are.equal(100, #cut)
    assert.are.equal(1, #batch.truncated)
    assert.are.same({ label = "O", score = 0 }, cut[100])
    local whole = model:ner({ words = words }, { long = "windows" })
    assert.is_true(whole[100].score > 0)
    assert.are.same({}, (model:ner { words = {} }))
  end)

  it("are tagged by all their pieces on request", function()
    local model, words = load "ner", { words = { "doing", "longest" } }
    local by = {}
    for _, how in ipairs { "first", "max", "average" } do
      by[how] = model:ner(words, { aggregation = how })
    end
    assert.is_true(by.max[1].score >= by.first[1].score)
    assert.is_true(by.average[1].score ~= by.first[1].score)
    assert.matches("ner: words take the aggregation first, average or max, not simple",
      failure(model.ner, model, words, { aggregation = "simple" }), 1, true)
  end)
end)

describe("options", function()
  after_each(files.clean)

  it("of classify: the best labels, those of a score, and all of one name", function()
    local model = load "nli"
    local whole = model:classify(TEXT)
    local all = model:classify(TEXT, { top_k = 10 })
    assert.are.equal(3, #all)
    assert.are.same({ whole.label, whole.score }, { all[1].label, all[1].score })
    for k, one in ipairs(all) do
      assert.are.equal(whole.scores[one.label], one.score)
      assert.is_true(k == 1 or one.score <= all[k - 1].score)
    end
    assert.are.same({ all[1], all[2] }, (model:classify(TEXT, { threshold = all[2].score })))
    assert.are.same({ all[1] }, model:classify({ TEXT }, { threshold = all[2].score, top_k = 1 })[1])
    assert.are.same({}, (model:classify(TEXT, { threshold = 2 })))
    local config = cjson.decode(models.read "spec/golden/tasks/nli/config.json")
    config.id2label, config.label2id = { ["0"] = "yes", ["1"] = "no", ["2"] = "yes" }, nil
    local twice = perigee.load(models.variant("spec/golden/tasks/nli", { ["config.json"] = cjson.encode(config) }),
      { kernel = "native" })
    local got = twice:classify(TEXT)
    assert.are.same({ yes = whole.scores.entailment, no = whole.scores.neutral, ["yes#2"] = whole.scores.contradiction },
      got.scores)
    local names = {}
    for k, one in ipairs(twice:classify(TEXT, { top_k = 3 })) do
      names[k] = one.label
    end
    table.sort(names)
    assert.are.same({ "no", "yes", "yes" }, names)
    twice:release()
  end)

  it("of classify: the softmax of one label is refused, since it is always 1", function()
    assert.matches("classify: apply is softmax, which is always 1 for the one label of this checkpoint; expected sigmoid or none",
      failure(perigee.tasks.classify.run, load "cross", TEXT, { apply = "softmax" }), 1, true)
    local logit = load("cross"):classify(TEXT, { apply = "none" }).score
    assert.near(1 / (1 + math.exp(-logit)), load("cross"):classify(TEXT).score, 1e-15)
    assert.are.same({ { label = "relevance", score = logit } }, (load("cross"):classify(TEXT, { apply = "none", top_k = 2 })))
  end)

  it("of zeroshot: the best labels", function()
    local labels = { "water", "people", "the day" }
    local all = load("nli"):zeroshot(TEXT, { labels = labels })
    local two = load("nli"):zeroshot(TEXT, { labels = labels, top_k = 2 })
    assert.are.same({ labels = { all.labels[1], all.labels[2] }, scores = { all.scores[1], all.scores[2] } }, two)
  end)

  it("of ner: a score, and labels to leave out; of texts alone", function()
    local model = load "ner"
    local all = model:ner(TEXT, { ignore_labels = {} })
    local some, named = {}, {}
    for _, entity in ipairs(all) do
      some[#some + 1] = entity.score >= all[1].score and entity or nil
      named[#named + 1] = entity.label ~= all[1].label and entity or nil
    end
    assert.is_true(#some < #all and #named < #all)
    assert.are.same(some, (model:ner(TEXT, { ignore_labels = {}, threshold = all[1].score })))
    assert.are.same(named, (model:ner(TEXT, { ignore_labels = { all[1].label } })))
    for name, value in pairs { ignore_labels = { "O" }, threshold = 0.5 } do
      assert.matches(("ner: %s leaves out entities of texts, but words have a tag each"):format(name),
        failure(model.ner, model, { TEXT, { words = { "the" } } }, { [name] = value }), 1, true)
    end
  end)

  it("of embed: only the first dimensions, of the length that the model's vectors have", function()
    local config = { ["modules.json"] = false }
    for _, model in ipairs { load "sentence", perigee.load(models.variant("spec/golden/tasks/sentence", config)) } do
      local whole = model:embed({ TEXT, "no" }, { prompt = false })
      local part = model:embed({ TEXT, "no" }, { prompt = false, dimensions = 5 })
      assert.are.same({ 2, 5 }, part.shape)
      for row = 1, 2 do
        local length = 0
        for k = 1, 5 do
          length = length + whole[row][k] ^ 2
        end
        length = model:pooling().normalize and math.sqrt(length) or 1
        for k = 1, 5 do
          assert.near(whole[row][k] / length, part[row][k], 1e-6)
        end
      end
      assert.are.same(whole:totable(), model:embed({ TEXT, "no" }, { prompt = false, dimensions = 32 }):totable())
      assert.matches("embed: dimensions is 33, expected an integer from 1 to 32, the length of the model's vectors",
        failure(model.embed, model, TEXT, { dimensions = 33 }), 1, true)
    end
  end)

  it("have one name each", function()
    local given = { question = "what?", context = TEXT }
    assert.matches("qa has no option best, only by,", failure(perigee.tasks.qa.run, load "qa", given, { best = 3 }), 1, true)
    assert.matches("classify has no option aply, only apply, long, stride, threshold, tokens, top_k, truncation_side (did you "
      .. 'mean "apply"?)', failure(perigee.tasks.classify.run, load "nli", TEXT, { aply = "none" }), 1, true)
  end)
end)

describe("a context without words", function()
  it("has no answer: its score is 0, whatever the tokenizer makes of it", function()
    for _, name in ipairs { "qa", "roberta-qa", "xlmr-qa" } do
      local model = load(name)
      local none = { answer = "", score = 0, start = 0, ["end"] = 0 }
      for _, context in ipairs { "", "  ", "\t\n", "\194\160", "\227\128\128 \226\128\131" } do
        assert.are.same(none, (model:qa { question = "what?", context = context }))
        assert.are.same({ none }, (model:qa({ question = "what?", context = context }, { top_k = 3 })))
        assert.are.same(none, (model:qa({ question = "what?", context = context }, { no_answer = true })))
      end
      assert.is_true(model:qa({ question = "what?", context = "é" }).score > 0)
    end
  end)
end)

describe("what is wrong", function()
  it("with an input or an option is named", function()
    local qa, ner, mlm, nli, cross, sentence = load "qa", load "ner", load "mlm", load "nli", load "cross", load "sentence"
    for _, case in ipairs {
      { qa, "qa", { "x" }, "qa is a text, expected { question =, context = }" },
      { qa, "qa", { { question = "x" } }, "qa: context is nil, expected a text" },
      { qa, "qa", { { { question = "x", context = 3 } } }, "qa: input 1: context is 3, expected a text" },
      { qa, "qa", { { question = "x", context = "x", id = 1 } }, 'qa: unknown key "id"; expected context and question' },
      { qa, "qa", { 7 }, "qa: expected { question =, context = } or a list of inputs; got 7" },
      { qa, "qa", { {}, { top_k = 0 } }, "qa: top_k is 0, expected an integer of at least 1" },
      { qa, "qa", { {}, { by = false } }, "qa: by is false, expected one of logits, probability" },
      { ner, "ner", { "x", { long = false } }, "ner: long is false, expected one of error, truncate, windows" },
      { qa, "qa", { {}, { top_k = false } }, "qa: top_k is false, expected an integer of at least 1" },
      { qa, "qa", { {}, { longest = "x" } }, "qa: longest is the string 'x', expected an integer of at least 1" },
      { qa, "qa", { {}, { stride = -1 } }, "qa: stride is -1, expected an integer of at least 0" },
      { qa, "qa", { {}, { no_answer = 1 } }, "qa: no_answer is 1, expected true or false" },
      { qa, "qa", { {}, { by = "x" } }, "qa: by is the string 'x', expected one of logits, probability" },
      { qa, "qa", { {}, { top = 1 } }, "qa has no option top, only" },
      { ner, "ner", { { { "a", "b" } } }, "ner: input 1 is a pair of texts { a, b }, expected a text or { words = { ... } }" },
      { ner, "ner", { { words = "x" } }, "ner: words is the string 'x', expected a list of strings" },
      { ner, "ner", { { words = { "x", 1 } } }, "ner: words[2] is 1, expected a string" },
      { ner, "ner", { "x", { aggregation = "all" } }, "ner: aggregation is the string 'all', expected one of" },
      { mlm, "fill_mask", { "x" }, "fill_mask: input 1 has no [MASK]" },
      { mlm, "fill_mask", { { "[MASK]", "x" } }, "fill_mask: input 2 has no [MASK]" },
      { mlm, "fill_mask", { "[MASK]", { targets = {} } }, "fill_mask: targets is empty, expected a list of texts" },
      { mlm, "fill_mask", { "[MASK]", { targets = { "xyz" } } },
        'fill_mask: targets[1] is "xyz", which is no piece of the vocabulary' },
      { mlm, "fill_mask", { { words = { "x" } } }, "fill_mask is { words = { ... } }, expected a text, a pair of texts" },
      { nli, "classify", { "x", { apply = "x" } }, "classify: apply is the string 'x', expected one of none, sigmoid, softmax" },
      { nli, "classify", { "x", { tokens = 1 } }, "classify: tokens is 1, expected an integer of at least 2" },
      { nli, "zeroshot", { "x" }, "zeroshot: labels is nil, expected a list of texts" },
      { nli, "zeroshot", { "x", { labels = {} } }, "zeroshot: labels is empty, expected a list of texts" },
      { nli, "zeroshot", { "x", { labels = { 1 } } }, "zeroshot: labels[1] is 1, expected a text" },
      { nli, "zeroshot", { "x", { labels = { "a" }, template = "x" } }, 'zeroshot: template is "x", expected a text with {}' },
      { nli, "zeroshot", { { { "a", "b" } }, { labels = { "a" } } }, "zeroshot: input 1 is a table, expected a text" },
      { cross, "zeroshot", { "x", { labels = { "a" } } }, 'zeroshot: none of the labels relevance of' },
      { nli, "rerank", { "x", { "a" } }, "rerank: the checkpoint has 3 labels, expected one, the score" },
      { cross, "rerank", { 1, { "a" } }, "rerank: the query is 1, expected a text" },
      { cross, "rerank", { "x", 1 }, "rerank: the documents are 1, expected a list of texts" },
      { cross, "rerank", { "x", { "a", 2 } }, "rerank: document 2 is 2, expected a text" },
      { nli, "zeroshot", { "x", { labels = { "a", b = "c" } } }, "zeroshot: labels: expected a list of texts, found the key b" },
      { nli, "zeroshot", { "x", { labels = { "a", nil, "c" } } }, "zeroshot: labels" },
      { nli, "zeroshot", { { "a", nil, "c" }, { labels = { "a" } } }, "zeroshot: " },
      { nli, "classify", { { "a", nil, "c" } }, "classify: " },
      { mlm, "fill_mask", { "[MASK]", { targets = { "the", x = 1 } } },
        "fill_mask: targets: expected a list of texts, found the key x" },
      { ner, "ner", { { words = { "a", b = "c" } } }, "ner: words: expected a list of strings, found the key b" },
      { ner, "ner", { { words = { "a", nil, "c" } } }, "ner: words" },
      { cross, "rerank", { "x", { "a", nil, "c" } }, "rerank: " },
      { cross, "rerank", { "x", { a = "b" } }, "rerank: expected a list of texts, found the key a" },
      { sentence, "embed", { "x", { prompt = 1 } }, "embed: prompt is 1, expected the name of a prompt, a text, or false" },
      { sentence, "embed", { { ids = { 1 } } }, "embed: a prompt goes before a text, but the input is ids" },
      { sentence, "embed", { "x", { tables = 1 } }, "embed: tables is 1, expected true or false" },
      { sentence, "embed", { "x", { promt = "x" } }, "embed has no option promt, only" },
    } do
      local model, method, arguments, message = unpack(case)
      assert.matches(message, failure(model[method], model, unpack(arguments)), 1, true)
    end
  end)

  it("with prompts in the checkpoint's files is named", function()
    local folder = "spec/golden/tasks/sentence"
    for text, message in pairs {
      ['{ "prompts": 3 }'] = "prompts is 3, expected an object of name: text",
      ['{ "prompts": { "a": 3 } }'] = "the prompt a is 3, expected a text",
      ['{ "prompts": {}, "default_prompt_name": "b" }'] = "default_prompt_name is the string 'b', expected the name of one",
    } do
      local model = perigee.load(models.variant(folder, { ["config_sentence_transformers.json"] = text }))
      assert.matches(message, failure(model.embed, model, "x"), 1, true)
      assert.is_truthy(model:hidden "x")
    end
    local pooling = cjson.decode(models.read(folder .. "/1_Pooling/config.json"))
    pooling.include_prompt = false
    local model = perigee.load(models.variant(folder, { ["1_Pooling/config.json"] = cjson.encode(pooling) }))
    assert.matches("embed: input 1: its 40 tokens are all of the prompt, which has 64",
      failure(model.embed, model, { "x", "y" }, { prompt = LONG }), 1, true)
    files.clean()
  end)
end)

describe("INT8", function()
  -- What each head is calibrated on and answers.
  local GIVEN = {
    { "qa", "qa", { { question = "what?", context = LONG }, { question = "how many people?", context = TEXT } } },
    { "ner", "ner", { LONG, { words = { "the", "water" } } } },
    { "mlm", "fill_mask", { "the [MASK] is", "[MASK] people look at [MASK]" } },
    { "nli", "classify", { TEXT, { "people", LONG } } },
  }

  it("models are calibrated on the inputs of their task, windows included, and run it, whatever the batches", function()
    for _, case in ipairs(GIVEN) do
      local name, method, given = unpack(case)
      local model = load(name)
      local stats = model:calibrate(given, { progress = false })
      assert.are.equal(#given, stats.texts)
      if name == "qa" then
        assert.is_true(stats.tokens > 3 * 40)
      end
      for _, activations in ipairs { "static", "dynamic" } do
        local q = model:quantize { stats = stats, activations = activations }
        local all = q[method](q, given)
        for i, input in ipairs(given) do
          assert.are.same(q[method](q, { input })[1], all[i])
        end
        q:release()
      end
      stats:release()
    end
  end)

  it("models are saved with their head and answer from the file", function()
    for _, case in ipairs(GIVEN) do
      local name, method, given = unpack(case)
      local q = load(name):quantize { activations = "dynamic" }
      local path = files.write ""
      q:save(path)
      local opened = perigee.open(path)
      assert.are.equal(q.task, opened.task)
      assert.are.same(q[method](q, given), opened[method](opened, given))
      assert.matches("it was saved without", failure(name == "qa" and opened.ner or opened.qa, opened,
        name == "qa" and "x" or { question = "x", context = "x" }), 1, true)
      opened:release()
      q:release()
    end
    files.clean()
  end)
end)
