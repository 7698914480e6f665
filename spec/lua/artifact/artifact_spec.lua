-- perigee.artifact and perigee.save: an artifact answers with the bits of the model that it was saved from; what is damaged,
-- malformed or not there is an error.
local bit = require "bit"
local ffi = require "ffi"
local artifacts = require "spec.support.artifacts"
local exact = require "spec.golden.exact"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local live = require "spec.support.live"
local models = require "spec.support.models"
local mutate = require "spec.fuzz.mutate"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local C, check = pgee.C, pgee.check

local MODES = { "static-attention", "dynamic-sequence", "dynamic-asymmetric" }

-- Small checkpoints, calibrated once.
local opened = setmetatable({}, {
  __index = function(self, name)
    self[name] = exact.open(name)
    return self[name]
  end,
})

-- An artifact of a small checkpoint, its path, and the model that it was saved from.
local function saved(name, mode)
  local q = exact.quantize(opened[name], mode or "static-attention")
  local path = artifacts.save(q)
  return perigee.open(path), path, q
end

-- Everything of a, and the error if it is one.
local function answer(path, inputs, opts)
  local ok, result = pcall(function()
    return exact.hidden(perigee.open(path, opts), inputs)
  end)
  return ok and result, not ok and result
end

describe("an artifact", function()
  after_each(files.clean)

  for _, name in ipairs(models.small) do
    it("has the bits of " .. name .. ", by any settings", function()
      local of = opened[name]
      for _, mode in ipairs(MODES) do
        local a, path, q = saved(name, mode)
        assert.equal(exact.hidden(q, of.inputs), exact.hidden(a, of.inputs), mode)
        assert.equal(models.read(path), models.read(artifacts.save(exact.quantize(of, mode))), mode)
      end
    end)
  end

  it("has them on every ISA, by any number of threads", function()
    local isa_before, threads_before = ffi.new "int[1]", ffi.new "int[1]"
    check(C.pgee_isa(isa_before))
    check(C.pgee_threads(threads_before))
    finally(function()
      check(C.pgee_isa_set(isa_before[0]))
      check(C.pgee_threads_set(threads_before[0]))
    end)
    for _, name in ipairs { "gelu", "distilbert", "mpnet" } do
      local _, path, q = saved(name)
      local want = exact.hidden(q, opened[name].inputs)
      for isa = 0, C.PGEE_ISAS - 1 do
        if C.pgee_isa_runs(isa) == 1 then
          check(C.pgee_isa_set(isa))
          check(C.pgee_threads_set(1 + isa % 3))
          assert.equal(want, answer(path, opened[name].inputs), ffi.string(C.pgee_isa_name(isa)))
        end
      end
      check(C.pgee_isa_set(isa_before[0]))
    end
  end)

  it("of FP32 has the answers of the checkpoint", function()
    local model = perigee.load(models.path "pairs", { kernel = "native" })
    local a = perigee.open(artifacts.save(model))
    local pair = { { "how many", "people" }, "no" }
    assert.same((model:classify(pair)), (a:classify(pair)))
    assert.matches("FP32", tostring(a), 1, true)
    assert.is_nil(a.settings)
    local b = perigee.open(artifacts.save(perigee.load(models.path "pairs")), { kernel = "native" }) -- oneDNN's, if it is there
    assert.same((model:classify(pair)), (b:classify(pair)))
  end)

  it("runs every task that was saved, and says which these are", function()
    local texts = { "how many people", { "a", "pair of texts" }, "" }
    local a, _, q = saved("embedder", "static-attention")
    assert.is_true(q:embed(texts) ~= nil)
    assert.same(q:embed(texts):totable(), a:embed(texts):totable())
    assert.same(q:layers(texts)[2]:totable(), a:layers(texts)[2]:totable())
    assert.same(opened.embedder.model:tokens("how many", "people"), a:tokens("how many", "people"))
    assert.same({ q.task, q.limit, q.positions }, { a.task, a.limit, a.positions })
    assert.error_matches(function() a:classify "text" end, 'it was saved without "classify"; it has hidden, layers, embed', 1,
      true)
    local c, _, r = saved("pairs", "dynamic-asymmetric")
    assert.same((r:classify(texts)), (c:classify(texts)))
    local d, _, s = saved("regression", "dynamic-asymmetric")
    assert.same((s:classify(texts)), (d:classify(texts)))
  end)

  for name, ask in pairs {
    nli = function(m)
      return { m:classify { "one", { "two", "texts" } }, (m:zeroshot("a text", { labels = { "food", "sport" } })) }
    end,
    cross = function(m) return { (m:rerank("a question", { "one answer", "another" })) } end,
    qa = function(m) return { (m:qa { question = "who?", context = ("some people and others "):rep(99) }) } end,
    ner = function(m) return { (m:ner { "some people", { words = { "and", "others" } } }) } end,
    mlm = function(m) return { (m:fill_mask "some [MASK] and [MASK]") } end,
    sentence = function(m)
      return { m:embed({ "one", "two" }, { prompt = "query" }):totable(), m:embed({ "one", "two" }):totable() }
    end,
  } do
    it("answers " .. name .. " as the model does, INT8 and FP32", function()
      local model = perigee.load("spec/golden/tasks/" .. name, { kernel = "native" })
      local q = model:quantize { activations = "dynamic" }
      for _, m in ipairs { q, model } do
        local a = perigee.open(artifacts.save(m))
        assert.same(ask(m), ask(a))
        assert.equal(model.task, a.task)
      end
    end)
  end

  it("stores a decoder that is the word table once", function()
    local model = perigee.load "spec/golden/tasks/mlm"
    local parts = artifacts.parts(artifacts.save(model:quantize { activations = "dynamic" }))
    local bytes, H = 0, model.config.hidden_size
    for name, t in pairs(parts.tensors) do
      bytes = bytes + (name:find "embeddings" and #t.shape == 2 and #t or 0)
      assert.is_false(t.dtype == "F32" and #t.shape == 1 and #t >= model.vocabulary * H, name)
    end
    assert.is_true(bytes > 0)
  end)

  it("needs no checkpoint and no tokenizer: ids are enough", function()
    local folder = models.variant(models.path "tiny", {})
    local model = perigee.load(folder)
    local path = artifacts.save(model:quantize { activations = "dynamic" })
    os.execute("rm -r " .. folder)
    local a = perigee.open(path)
    assert.equal(model.config.hidden_size, a:hidden({ ids = { 1, 2 } }).shape[2])
    assert.is_false((pcall(a.embed, a, "text")))
  end)

  it("does not lose a tokenizer that cannot be used, unless it is told to", function()
    local path = artifacts.path()
    for name, text in pairs { ["tokenizer.json"] = "{", ["vocab.txt"] = "word\n", ["sentencepiece.bpe.model"] = "?" } do
      local config = name:find "model$" and '{"tokenizer_class": "XLMRobertaTokenizer"}' or false
      local folder = models.variant(models.path "tiny", { [name] = text, ["tokenizer_config.json"] = config })
      local q = perigee.load(folder):quantize { activations = "dynamic" }
      assert.error_matches(function() q:save(path) end, "^save: the tokenizer cannot be used %(.*" .. name:gsub("%p", "%%%0")
        .. ".*%); { tokenizer = false } saves without it$")
      assert.is_nil(io.open(path))
      q:save(path, { tokenizer = false })
      assert.error_matches(function() perigee.open(path):embed "text" end, "saved without a tokenizer", 1, true)
      os.remove(path)
    end
    local model = perigee.load(models.path "tiny")
    assert.error_matches(function() model:save(path, { tokenizer = 0 }) end, "save: tokenizer is 0, expected true", 1, true)
    assert.error_matches(function() model:save(path, { tokens = 1 }) end, "save has no option tokens, only tokenizer", 1, true)
  end)

  it("says what it is made of", function()
    local a, path, q = saved "embedder"
    local text, own = tostring(a:explain()), tostring(q:explain())
    assert.matches("an artifact: SQNR of linears is known where the model was made", text, 1, true)
    for i, row in ipairs(q:explain().rows) do
      local mine = a:explain().rows[i]
      for _, key in ipairs { "name", "N", "K", "precision", "alpha", "scale", "zero", "mode" } do
        assert.same(row[key], mine[key], key)
      end
      assert.same(row.linears, mine.linears)
    end
    assert.equal(own:match "attention +heads.-\n", text:match "attention +heads.-\n")
    assert.equal(tostring(q:settings()), tostring(a:settings()))
    assert.equal(q.alpha, a.alpha)
    a:embed "text"
    local memory = a:memory()
    assert.equal(#models.read(path), memory.file)
    assert.is_true(memory.workspace > 0 and memory.weights > 0 and memory.weights < memory.file)
    q:embed "text"
    assert.equal(q:memory().tables, memory.tables)
    assert.is_true(memory.tables > 0 and memory.weights + memory.tables < memory.file)
  end)

  it("keeps its settings", function()
    local a = saved "tiny"
    for name, change in pairs {
      alpha = function() a.alpha = 0.5 end, skip = function() a.skip = {} end, set = function() a:set { alpha = 0.5 } end,
      undo = function() a:undo() end, sweep = function() a:sweep {} end, sqnr = function() a:sqnr() end,
      quantize = function() a:quantize {} end, calibrate = function() a:calibrate {} end,
    } do
      assert.error_matches(change, name .. ": an artifact has no FP32 weights, so its settings stay as they were saved", 1, true)
    end
    assert.equal(0.7, a.alpha)
    for _, key in ipairs(require("perigee.quantize.settings").KEYS) do
      assert.error_matches(function() a[key] = a[key] end, key .. ": an artifact has no FP32 weights", 1, true)
    end
    for key, said in pairs { stats = "the string 'stats'", alhpa = "the string 'alhpa'", [3] = "3" } do
      assert.error_matches(function() a[key] = 1 end, "an artifact has no field " .. said .. " to be set", 1, true)
    end
    for message, given in pairs {
      ["select: the options are 5, expected a table"] = 5, ["select has no option tokens_, only"] = { tokens_ = { 1 } },
    } do
      assert.error_matches(function() a:select(given) end, message, 1, true)
    end
  end)

  it("chooses kernels when it is told to, for the same bits", function()
    local a, _, q = saved "gelu"
    local want = exact.hidden(q, opened.gelu.inputs)
    local choices = a:select { cache = false, tokens = { 8 }, time = function() return 2 end }
    assert.is_true(next(choices.shapes) ~= nil)
    assert.equal(want, exact.hidden(a, opened.gelu.inputs))
  end)

  it("gives back what it holds", function()
    local path = artifacts.save(exact.quantize(opened.tiny, "static-attention"))
    local function work()
      local a = perigee.open(path)
      exact.hidden(a, opened.tiny.inputs)
      a:release()
      return exact.hidden(a, opened.tiny.inputs)
    end
    work()
    local before = live()
    work()
    assert.equal(before, live())
  end)

  it("is left alone by the model that it was saved from", function()
    local a, path, q = saved "tiny"
    local want, bytes, before = exact.hidden(a, opened.tiny.inputs), models.read(path), live()
    q:save(path)
    assert.is_true(live() <= before)
    q.symmetric = not q.symmetric
    q:release()
    assert.equal(want, exact.hidden(a, opened.tiny.inputs))
    assert.equal(bytes, models.read(path))
  end)

  it("has no other file to be saved to, and methods that say what they are", function()
    local a, _, q = saved "tiny"
    assert.error_matches(function() a:save "other" end, "save: an artifact is the file that it was opened from", 1, true)
    for _, m in ipairs { a, q, opened.tiny.model } do
      for _, name in ipairs { "explain", "release", "tokenizer", "hidden", "memory" } do
        assert.error_matches(function() m[name]() end, name .. " is a method of a model: call it with a colon", 1, true)
      end
    end
    local b, _, r = saved "embedder"
    assert.same(b:tokenizer():encode("how many", "people").ids, r:tokenizer():encode("how many", "people").ids)
  end)

  it("can be saved when the statistics are gone", function()
    local model = perigee.load(models.path "tiny")
    local function make()
      return model:quantize { stats = model:calibrate(opened.tiny.inputs, { progress = false }) }
    end
    local q = make()
    local bytes = models.read(artifacts.save(q))
    q = make()
    q.stats:release()
    assert.equal(bytes, models.read(artifacts.save(q)))
  end)
end)

describe("a file that is opened", function()
  after_each(files.clean)

  it("must be an artifact", function()
    local checkpoint = models.path "tiny" .. "/model.safetensors"
    for message, path in pairs {
      ["'" .. checkpoint .. "': it is no artifact of Perigee; a checkpoint is opened by perigee.load"] = checkpoint,
      ["cannot open '/nowhere'"] = "/nowhere", ["it is a directory, expected a file"] = "/tmp",
      ["open: the file is 3, expected a path"] = 3,
    } do
      assert.error_matches(function() perigee.open(path) end, message, 1, true)
    end
    local _, path = saved "tiny"
    for message, opts in pairs {
      ["open has no option x"] = { x = 1 }, ["open: verify is 1, expected true or false"] = { verify = 1 },
      ["open: max_tokens is 1, expected an integer"] = { max_tokens = 1 }, ["open: budget is 0"] = { budget = 0 },
      ["open: kernel is 1, expected one of native, onednn"] = { kernel = 1 },
    } do
      assert.error_matches(function() perigee.open(path, opts) end, message, 1, true)
    end
    assert.equal(2, perigee.open(path, { max_tokens = 2 }).limit)
  end)

  it("must have the library's format", function()
    local _, path = saved "tiny"
    local parts = artifacts.parts(path)
    parts.metadata["perigee.version"] = "9.8.7"
    for number, advice in pairs {
      ["1"] = "save the model again with this version", ["2"] = "save the model again with this version",
      ["4"] = "open it with a newer version",
    } do
      parts.metadata["perigee.format"] = number
      assert.error_matches(function() perigee.open(artifacts.write(parts)) end, ("it has format %s and was written by Perigee "
        .. "9%%.8%%.7; this library %%(.-%%) reads format 3 only: %s"):format(number, advice))
    end
    for _, number in ipairs { "0", "01", "1.5", "x", "" } do
      parts.metadata["perigee.format"] = number
      assert.error_matches(function() perigee.open(artifacts.write(parts)) end,
        ('its perigee.format is "%s", expected a whole number such as 3'):format(number), 1, true)
    end
  end)

  it("is noticed when it is damaged: what is small always, all else when asked", function()
    local _, path, q = saved "tiny"
    local inputs, bytes = opened.tiny.inputs, models.read(path)
    local want, random, at, silent = exact.hidden(q, inputs), files.random(7), 1, 0
    while at <= #bytes do
      local other = string.char(bit.bxor(bytes:byte(at), 2 ^ random(8)))
      local damaged = files.write(bytes:sub(1, at - 1) .. other .. bytes:sub(at + 1))
      assert.is_false((answer(damaged, inputs, { verify = true })))
      assert.is_false((answer(damaged, inputs, { copy = true })))
      silent = silent + (answer(damaged, inputs) and 1 or 0)
      assert(os.remove(damaged))
      at = at + 1 + random(math.ceil(#bytes / 80))
    end
    assert.equal(0, silent) -- all of this model is small
    assert.equal(want, answer(path, inputs, { verify = true }))
    assert.equal(want, answer(path, inputs, { copy = true }))
  end)

  it("is noticed when it is cut short", function()
    local _, path = saved "tiny"
    local bytes = models.read(path)
    local random, length = files.random(9), 0
    while length < #bytes do
      local short = files.write(bytes:sub(1, length))
      assert.is_false((answer(short, opened.tiny.inputs)), length)
      assert(os.remove(short))
      length = length + 1 + random(math.ceil(#bytes / 80))
    end
  end)

  it("goes on when it is replaced, and its copy when it is overwritten", function()
    local inputs = opened.tiny.inputs
    local a, path, q = saved "tiny"
    local copy = perigee.open(path, { copy = true })
    local want = exact.hidden(q, inputs)
    local other = exact.quantize(opened.tiny, "dynamic-asymmetric")
    other:save(path)
    assert.equal(want, exact.hidden(a, inputs))
    assert.equal(exact.hidden(other, inputs), answer(path, inputs))
    local file = assert(io.open(path, "wb")) -- in place
    file:write "nothing"
    file:close()
    assert.equal(want, exact.hidden(copy, inputs))
  end)
end)

describe("an artifact that somebody made up", function()
  local parts

  before_each(function()
    local _, path = saved "tiny"
    parts = artifacts.parts(path)
  end)

  after_each(files.clean)

  local function refused(expected)
    local result, message = answer(artifacts.write(parts), opened.tiny.inputs)
    assert.is_false(result)
    assert.matches(expected, message, 1, true)
  end

  local function step_of(name)
    for _, step in ipairs(parts.plans.hidden.steps) do
      if step[1] == name then
        return step[2]
      end
    end
  end

  it("is refused by what is wrong with it", function()
    step_of("linear").w.K = 63
    refused "plan.hidden.steps[3]: linear: x is U8 [T][15], expected U8 [rows][63]"
  end)

  it("may not lack a tensor", function()
    parts.tensors["encoder.layer.0.output.dense.packed"] = nil
    refused "has no tensor 'encoder.layer.0.output.dense.packed'"
  end)

  it("may not have another one in its place", function()
    local name = "encoder.layer.0.output.dense.packed"
    parts.tensors[name] = tensor.new("I8", #parts.tensors[name] + 64)
    refused "bytes is I8"
  end)

  it("has sums that weights can have", function()
    local name = "encoder.layer.0.output.dense.sums"
    parts.tensors[name] = parts.tensors[name]:copy()
    parts.tensors[name][1] = 2 ^ 30
    refused "sum 1 is 1073741824, which"
  end)

  it("calls nothing but operators", function()
    for _, name in ipairs { "release", "workspace", "observe", "__gc", "buffer" } do
      parts.plans.hidden.steps[1][1] = name
      refused("plan.hidden.steps[1][1] is the string '" .. name .. "', expected one of attention, embed")
    end
  end)

  it("has as many layers as its plan, whatever it says of them", function()
    local model = json.decode(parts.metadata.model)
    model.fields.num_hidden_layers = 1000000
    parts.metadata.model = json.canonical(model)
    assert.equal(2, #perigee.open(artifacts.write(parts)):layers { ids = { 1, 2 } })
  end)

  it("names itself where what it says of itself makes no sense", function()
    local function made_up(key, change)
      local metadata, value = {}, json.decode(parts.metadata[key])
      for k, text in pairs(parts.metadata) do
        metadata[k] = text
      end
      change(value)
      metadata[key] = json.canonical(value)
      return artifacts.write { tensors = parts.tensors, plans = parts.plans, metadata = metadata }
    end
    for message, change in pairs {
      ["model.heads[1] is 1, expected one of classify, embed, fill_mask, hidden, layers"] = function(m) m.heads = { 1 } end,
      ["model.pooling.modes is 3, expected a list"] = function(m) m.pooling = { modes = 3 } end,
      ["model.prompts.list.query is 1, expected a text"] = function(m) m.prompts = { list = { query = 1 } } end,
    } do
      local path = made_up("model", change)
      assert.error_matches(function() perigee.open(path) end, ("'%s': %s"):format(path, message), 1, true)
    end
    local path = made_up("settings", function(s) s.alpha = "x" end)
    assert.error_matches(function() return perigee.open(path).settings end, ("'%s': settings: alpha is"):format(path), 1, true)
    parts.plans.hidden.linears[2].name = {}
    refused "plan.hidden.linears[2].name is a list or an object, expected a text"
  end)

  it("has JSON where JSON is expected", function()
    parts.plans.hidden = "{"
    refused "its plan.hidden is not an object of JSON: "
    parts.metadata.model = "[]"
    refused "model.fields is missing, expected an object"
  end)

  it("never does more harm than a wrong answer", function()
    local text, random = json.canonical(parts.plans.hidden), files.random(11)
    local outcomes, names = { [true] = 0, [false] = 0 }, {}
    for name in pairs(parts.tensors) do
      names[#names + 1] = name
    end
    table.sort(names)
    local values = {
      function() return random(300) end, function() return -1 end, function() return 2 ^ 31 end, function() return 2 ^ 62 end,
      function() return 1e300 end, function() return 0.5 end, function() return true end, function() return "token" end,
      function() return {} end, function() return { tensor = names[1 + random(#names)] } end,
      function() return { buffer = 1 + random(30) } end, function() return nil end,
    }
    local function once(path)
      local plan = json.decode(text)
      for _ = 1, 1 + random(2) do
        local list = mutate.places(plan)
        table.sort(list, function(a, b) return tostring(a[2]) < tostring(b[2]) end)
        local place = list[1 + random(#list)]
        place[1][place[2]] = values[1 + random(#values)]()
      end
      local ok, encoded = pcall(json.canonical, plan)
      parts.plans.hidden = ok and encoded or "{}"
      local result = answer(artifacts.write(parts, path), opened.tiny.inputs)
      outcomes[result ~= false] = outcomes[result ~= false] + 1
    end
    artifacts.in_memory(function(path)
      for _ = 1, tonumber(os.getenv "PERIGEE_FUZZ") or 300 do
        once(path)
      end
    end)
    assert.is_true(outcomes[true] > 0 and outcomes[false] > 0, json.canonical { outcomes[true], outcomes[false] })
  end)

  it("is as harmless when its tensors are noise, or others", function()
    local random, names = files.random(13), {}
    for name in pairs(parts.tensors) do
      names[#names + 1] = name
    end
    table.sort(names)
    local function once(path)
      local tensors = {}
      for name, t in pairs(parts.tensors) do
        tensors[name] = t
      end
      for _ = 1, 2 do
        local name = names[1 + random(#names)]
        local t = tensors[name]:copy()
        local bytes = ffi.cast("uint8_t *", t:pointer())
        for i = 0, random(math.min(64, #t)) do
          bytes[i] = random(256)
        end
        tensors[name] = random(3) > 0 and t or tensors[names[1 + random(#names)]]
      end
      local made_up = { metadata = parts.metadata, plans = parts.plans, tensors = tensors }
      answer(artifacts.write(made_up, path), opened.tiny.inputs)
    end
    artifacts.in_memory(function(path)
      for _ = 1, tonumber(os.getenv "PERIGEE_FUZZ") or 100 do
        once(path)
      end
    end)
  end)

  it("is as harmless when its tokenizer is", function()
    local _, path = saved "embedder"
    local made_up, random = artifacts.parts(path), files.random(19)
    local image, size = made_up.tensors.tokenizer, #made_up.tensors.tokenizer
    local function once(other)
      local length = random(4) == 0 and random(size) or size
      local t = tensor.new("U8", math.max(length, 1))
      ffi.copy(t:pointer(), image:pointer(), length)
      local bytes = t:pointer()
      for _ = 1, 1 + random(8) do
        bytes[random(random(2) == 0 and math.min(#t, 1024) or #t)] = random(256)
      end
      made_up.tensors.tokenizer = t
      pcall(function()
        perigee.open(artifacts.write(made_up, other)):embed { "how many people", "Ünïcode, [MASK] and \255" }
      end)
    end
    artifacts.in_memory(function(other)
      for _ = 1, tonumber(os.getenv "PERIGEE_FUZZ") or 60 do
        once(other)
      end
    end)
  end)
end)
