-- Models at work: loading, inputs, limits, batches. What they compute is compared with the reference library in spec/golden.
local definitions = require "perigee.checkpoint.definitions"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

-- A checkpoint whose config.json differs by one replacement.
local function reconfigured(name, pattern, replacement)
  local config, count = models.read(models.path(name) .. "/config.json"):gsub(pattern, replacement)
  assert(count == 1)
  return models.variant(models.path(name), { ["config.json"] = config })
end

teardown(files.clean)

describe("loading", function()
  it("lists every tensor that is missing or of another shape", function()
    local message = failure(perigee.load, reconfigured("gelu", '"num_hidden_layers": 2', '"num_hidden_layers": 3'))
    assert.matches("16 of 53 tensors that config.json asks for are not as they should be:", message, 1, true)
    assert.matches("encoder.layer.2.attention.self.query.weight [64][64] is missing", message, 1, true)
    message = failure(perigee.load, reconfigured("gelu", '"intermediate_size": 150', '"intermediate_size": 151'))
    assert.matches("encoder.layer.0.intermediate.dense.weight is [150][64], expected [151][64]", message, 1, true)
    assert.matches("6 of 37", message, 1, true)
  end)

  it("names a weight that is NaN or infinite, and where", function()
    for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
      local message = failure(perigee.load, models.edited(models.path "tiny", function(name, values)
        if name == "encoder.layer.0.output.dense.weight" then
          values[7 * 3 + 2] = bad -- [15][7]
        end
      end))
      assert.matches("encoder.layer.0.output.dense.weight has NaN or infinity at [4][3]", message, 1, true)
      assert.matches("1 of 21", message, 1, true)
    end
  end)

  it("refuses another kind of model", function()
    local message = failure(perigee.load, reconfigured("tiny", '"model_type": "bert"', '"model_type": "brt"'))
    assert.matches(("model_type is the string 'brt', expected %s (did you mean \"bert\"?); perigee.register_model makes others "
      .. "known"):format(table.concat(definitions.names(), ", ")), message, 1, true)
  end)

  it("takes what is no name of an architecture for none", function()
    assert.are.equal("embed", perigee.load(reconfigured("tiny", '"BertModel"', "5")).task)
  end)

  it("checks a relative of BERT by its own names", function()
    local message = failure(perigee.load, reconfigured("distilbert", '"n_heads": 4', '"n_heads": 5'))
    assert.matches("n_heads is 5, expected a divisor of dim, which is 32", message, 1, true)
    message = failure(perigee.load, reconfigured("distilbert", '"n_layers": 3', '"n_layers": 4'))
    assert.matches("transformer.layer.3.attention.q_lin.weight [32][32] is missing", message, 1, true)
    message = failure(perigee.load, reconfigured("xlmr", '"max_position_embeddings": 40', '"max_position_embeddings": 2'))
    assert.matches("max_position_embeddings is 2, expected more than 2: positions begin after pad_token_id", message, 1, true)
  end)

  it("counts XLM-RoBERTa's positions from the padding token's id + 1", function()
    local model = perigee.load(models.path "xlmr")
    assert.are.same({ 38, 38 }, { model.positions, model.limit })
    local ids = {}
    for i = 1, 39 do
      ids[i] = 5
    end
    assert.matches("ids has 39 tokens, expected 1 to 38", failure(model.hidden, model, { ids = ids }))
  end)

  it("lists what nothing asked for", function()
    local model = perigee.load(models.path "gelu-new")
    local unused = model:unused()
    table.sort(unused)
    assert.are.same({ "bert.pooler.dense.bias", "bert.pooler.dense.weight", "cls.predictions.bias" }, unused)
  end)

  it("lists keys of the files beside the weights that have no effect, and refuses them if it is strict", function()
    local plain = perigee.load(models.path "embedder", { strict = true })
    assert.are.same({}, { unpack((select(2, plain:unused()))) })
    local folder = models.variant(models.path "embedder", { ["tokenizer_config.json"] = '{"padding_side": "left"}' })
    local _, ignored = perigee.load(folder):unused()
    assert.are.same({ { file = folder .. "/tokenizer_config.json", key = "padding_side", reason = "sequences are not padded" } },
      { unpack(ignored) })
    assert.equal("padding_side of tokenizer_config.json: sequences are not padded", tostring(ignored))
    assert.equal("strict: 1 key of the checkpoint's files has no effect: padding_side (tokenizer_config.json)\n"
      .. tostring(ignored), failure(perigee.load, folder, { strict = true }))
    assert.equal("load: strict is the string 'yes', expected true or false", failure(perigee.load, folder, { strict = "yes" }))
  end)

  it("says so if the tokenizer's files add a token that the model has no embedding for", function()
    local folder = models.variant(models.path "embedder", { ["tokenizer_config.json"] = '{"mask_token": "<new>"}' })
    local model = perigee.load(folder)
    local size = model.vocabulary
    assert.equal(size, model:tokenizer().mask)
    assert.equal(2, #model:embed { "how", "many" })
    for _, task in ipairs { "embed", "hidden" } do
      local message = "the tokenizer gives '<new>' the id %d, but the model has embeddings for the ids 0 to %d alone"
      assert.matches(message:format(size, size - 1), failure(model[task], model, "how <new> many"), 1, true)
    end
  end)

  it("refuses a file beside the weights that cannot be read if it is strict", function()
    local folder = models.variant(models.path "embedder", { ["tokenizer_config.json"] = "{" })
    assert.matches("is not valid JSON", failure(perigee.load, folder, { strict = true }))
    assert.are.same({}, { unpack((select(2, perigee.load(folder):unused()))) })
    assert.truthy(perigee.load(models.path "tiny", { strict = true })) -- there is no tokenizer
  end)

  it("needs a pooler and a classifier only for classifying", function()
    local model = perigee.load(models.path "tiny")
    assert.are.same({ 3, 15 }, model:hidden({ ids = { 1, 2, 3 } }).shape)
    local message = failure(model.classify, model, { ids = { 1 } })
    assert.matches("pooler.dense.weight [15][15] is missing", message, 1, true)
    assert.matches("classifier.bias [2] is missing", message, 1, true)
    assert.are.same({ 1, 15 }, model:layers({ ids = { 1 } })[1].shape) -- what went before is as it was
  end)

  it("needs a tokenizer only for text", function()
    local model = perigee.load(models.path "tiny")
    assert.matches("tokenizer", failure(model.hidden, model, "text"))
    assert.are.same({ 1, 15 }, model:hidden({ ids = { 1 } }).shape)
  end)

  it("needs what is about text to be well formed only for text", function()
    local refusals = {
      ["tokenizer_config.json"] = { "{", "is not valid JSON" }, ["special_tokens_map.json"] = { "[]", "holds a list" },
      ["sentence_bert_config.json"] = { '{"max_seq_length": "x"}', "max_seq_length is the string 'x'" },
      ["tokenizer.json"] = { "{", "is not valid JSON" },
    }
    for name, refusal in pairs(refusals) do
      local model = perigee.load(models.variant(models.path "gelu", { [name] = refusal[1], ["modules.json"] = "[]" }))
      assert.are.same({ 1, 64 }, model:hidden({ ids = { 1 } }).shape)
      assert.equal(model.positions, model.limit)
      for _ = 1, 2 do
        local message = failure(model.hidden, model, "text")
        assert.matches(name, message, 1, true)
        assert.matches(refusal[2], message, 1, true)
      end
    end
  end)

  it("says why oneDNN is not used, and does not do without where it was asked for", function()
    local program = [[
      package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
      local perigee = require "perigee"
      print(perigee.load("%s"):explain().notes[1])
      print(select(2, pcall(perigee.load, "%s", { kernel = "onednn" })))
    ]]
    local path = models.path "tiny"
    local pipe = assert(io.popen(("PERIGEE_ONEDNN=/no/such/file PERIGEE_LIB='%s' luajit - 2>&1 <<'END'\n%s\nEND"):format(
      os.getenv "PERIGEE_LIB", program:format(path, path))))
    local notes, message = pipe:read "*l", pipe:read "*a"
    pipe:close()
    if notes:find("this build has no oneDNN", 1, true) then
      return pending "this build has no oneDNN"
    end
    assert.matches("oneDNN: not used: /no/such/file", notes, 1, true)
    assert.matches("load: kernel is onednn, which cannot be used: /no/such/file", message, 1, true)
  end)

  it("blames its caller for what it is given", function()
    for _, path in ipairs { false, "", 7 } do
      local message = failure(function() local m = perigee.load(path or nil) return m end)
      assert.matches("^[^:]*model_spec.lua:%d+: the checkpoint is [^:]*, expected the path of a folder$", message)
    end
    local model = perigee.load(models.path "tiny")
    local message = failure(function() local s = model:calibrate({ { ids = { 1 } } }, { progress = "x" }) return s end)
    assert.matches("model_spec.lua:%d+: calibrating: progress is the string 'x', expected true, false, or a function", message)
  end)

  it("says that methods are called with a colon", function()
    local model = perigee.load(models.path "tiny")
    local q = model:quantize { activations = "dynamic" }
    for m, names in pairs {
      [model] = { "embed", "classify", "hidden", "layers", "memory", "tokens", "calibrate", "quantize" },
      [q] = { "embed", "hidden", "set", "undo", "diff", "sqnr", "sweep", "plot", "select" },
    } do
      for _, name in ipairs(names) do
        local said = ("model_spec.lua:%%d+: %s is a method of a model: call it with a colon, as in m:%s"):format(name, name)
        assert.matches(said, failure(function() local x = m[name] { "text" } return x end))
        assert.matches(said, failure(function() local x = m[name]() return x end))
      end
    end
  end)

  it("runs on a number of threads that there can be", function()
    for _, n in ipairs { 2 ^ 40, -2 ^ 40, 2 ^ 31, 1.5, 1 / 0, "2" } do
      assert.matches("threads: expected an integer from 1 to 256, got ", failure(perigee.threads, n), 1, true)
    end
    assert.matches("257 threads, expected 1 to 256", failure(perigee.threads, 257), 1, true)
  end)

  it("takes known options only", function()
    assert.matches("load has no option max_token, only budget, kernel, max_tokens",
      failure(perigee.load, models.path "tiny", { max_token = 3 }))
    assert.matches("load: kernel is the string 'mkl'", failure(perigee.load, models.path "tiny", { kernel = "mkl" }))
    for _, budget in ipairs { 0, -1, 1.5, "x" } do
      assert.matches("budget is .*, expected an integer of at least 1",
        failure(perigee.load, models.path "tiny", { budget = budget }))
    end
  end)
end)

describe("a failure of the library", function()
  it("is the caller's, not the module's in between", function()
    local model = perigee.load(models.path "tiny")
    pgee.C.pgee_interrupt(1)
    local message = failure(function() return (model:hidden { ids = { 1 } }) end)
    pgee.C.pgee_interrupt(0)
    assert.matches("^[^:]*model_spec.lua:%d+: interrupted[^:]*$", message)
  end)
end)

describe("the limit", function()
  local words = ("no "):rep(80)

  local function tokens(options, text)
    local model = perigee.load(models.path "embedder", options)
    local _, batch = model:hidden(text)
    return batch.T, batch.truncated[1] and batch.truncated[1].dropped
  end

  it("is the least of what the checkpoint says", function()
    assert.are.same({ 48, 34 }, { tokens(nil, words) })
  end)

  it("takes exactly that many; one more is truncated, and said", function()
    assert.are.same({ 48 }, { tokens(nil, ("no "):rep(46)) })
    assert.are.same({ 48, 1 }, { tokens(nil, ("no "):rep(47)) })
  end)

  it("is overridden by max_tokens up to the positions", function()
    assert.are.same({ 64, 18 }, { tokens({ max_tokens = 64 }, words) })
    assert.are.same({ 5, 77 }, { tokens({ max_tokens = 5 }, words) })
    for _, bad in ipairs { 65, 1, 2.5, "9" } do
      assert.matches("expected an integer from 2 to 64, the positions that the model has",
        failure(perigee.load, models.path "embedder", { max_tokens = bad }))
    end
  end)
end)

describe("inputs", function()
  local model

  setup(function() model = perigee.load(models.path "embedder") end)

  it("are a text, a pair, ids, or a list of them", function()
    local _, batch = model:hidden { "no", { "no", "how many" }, { ids = { 5, 6 }, types = { 0, 1 } } }
    assert.are.same({ 3, 3 + 6 + 2, false }, { batch.n, batch.T, batch.single })
    local types = {}
    for i = 0, batch.T - 1 do
      types[i + 1] = batch.types[i]
    end
    assert.are.same({ 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1 }, types)
  end)

  it("one at a time give a vector, a list gives a matrix", function()
    assert.are.same({ 32 }, model:embed("no").shape)
    assert.are.same({ 1, 32 }, model:embed({ "no" }).shape)
    assert.is_true(model:embed("no"):equals(model:embed({ "no" })[1]))
  end)

  it("may be none at all, and a text may be empty", function()
    assert.are.same({ 0, 32 }, model:embed({}).shape)
    assert.are.same({ 0, 32 }, model:hidden({}).shape)
    assert.are.same({ 2, 32 }, model:hidden("").shape)
  end)

  it("that are something else are an error that says which", function()
    for _, case in ipairs {
      { { 7 }, "embed: input 1 is 7, expected a text, a pair of texts { a, b }, or { ids = { ... } }" },
      { { "a", { "b" } }, "embed: input 2 is a table, expected a text" },
      { { "a", { "b", 2 } }, "embed: input 2 is a table, expected a text" },
      { { "a", { "b", "c", "d" } }, "embed: input 2 is a table, expected a text" },
      { 7, "embed: expected a text, { ids = { ... } }, or a list of inputs; got 7" },
      { nil, "embed: expected a text, { ids = { ... } }, or a list of inputs; got nil" },
      { { text = "a" }, "embed: expected a list of inputs, found the key text" },
      { { ids = {} }, "ids has 0 tokens, expected 1 to 64" },
      { { ids = { 1, 2.5 } }, "ids[2] is 2.5, expected an integer from 0 to" },
      { { ids = { 1, -1 } }, "ids[2] is -1, expected an integer from 0 to" },
      { { ids = { 1e9 } }, "expected an integer from 0 to" },
      { { ids = { 1, 2 }, types = { 0 } }, "types has 1 entries, ids has 2" },
      { { ids = { 1 }, types = { 2 } }, "types[1] is 2, expected an integer from 0 to 1" },
      { { ids = { 1 }, mask = { 1 } }, 'unknown key "mask"; expected ids and types' },
      { { ids = "abc" }, "ids is the string 'abc', expected a list of integers" },
      { { ids = require("ffi").new "int[3]" }, "expected a list of integers" },
    } do
      assert.matches(case[2], failure(model.embed, model, case[1]), 1, true)
    end
    local ids = {}
    for i = 1, 65 do
      ids[i] = 1
    end
    assert.matches("ids has 65 tokens, expected 1 to 64", failure(model.embed, model, { { ids = ids } }))
  end)

  it("may be tensors of ids", function()
    local ids = perigee.tensor.from({ 5, 6, 7 }, "I64")
    assert.is_true(model:hidden({ ids = ids }):equals(model:hidden { ids = { 5, 6, 7 } }))
  end)
end)

describe("batches", function()
  local inputs = models.random_inputs(40, 30, 97, 3)

  it("are cut by the budget; the answer stays the same", function()
    local want, batch = perigee.load(models.path "gelu", { kernel = "native" }):hidden(inputs)
    for _, budget in ipairs { 1, 50, 1000000 } do
      local model = perigee.load(models.path "gelu", { kernel = "native", budget = budget })
      local got, same = model:hidden(inputs)
      assert.is_true(got:equals(want), "budget " .. budget)
      assert.are.equal(batch.T, same.T)
      model:release()
    end
  end)

  it("of growing size use one workspace, which is bounded", function()
    local model = perigee.load(models.path "gelu", { budget = 64 })
    local runner = model:runner "hidden"
    local bytes = {}
    for i, n in ipairs { 1, 40, 2, 40 } do
      model:hidden({ unpack(inputs, 1, n) }):release()
      bytes[i] = runner:bytes()
    end
    assert.is_true(bytes[1] <= bytes[2])
    assert.are.same({ bytes[2], bytes[2] }, { bytes[3], bytes[4] })
    model:release()
  end)
end)

describe("memory", function()
  it("is given back by name", function()
    local left, most = live.during(function()
      local model = perigee.load(models.path "gelu")
      local stats = model:calibrate(models.random_inputs(8, 30, 97, 4), { progress = false })
      local q = model:quantize { stats = stats }
      model:hidden({ ids = { 1, 2 } }):release()
      q:hidden({ ids = { 1, 2 } }):release()
      tostring(q:explain())
      q:release()
      stats:release()
      model:release()
    end)
    -- What waits for the collector: views of the mapped weights.
    assert.is_true(left < 30000 and most > 2e6, ("%d bytes left of %d"):format(left, most))
  end)
end)

describe("tokens", function()
  it("of a text, as the model sees them", function()
    local model = perigee.load(models.path "embedder", { max_tokens = 5 })
    local tokens = model:tokens("how many people", "no")
    assert.are.equal(5, #tokens.ids)
    assert.are.same({ "[CLS]", "how", "[SEP]", "no", "[SEP]" }, tokens.pieces)
    assert.are.same({ 0, 0, 0, 1, 1 }, tokens.types)
    assert.are.equal(2, tokens.dropped)
    assert.matches("expected a string", failure(model.tokens, model, 7))
  end)
end)
