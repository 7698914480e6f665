-- Definitions: which models are known, how others are registered, and which config.json and weights they accept.
local attention = require "perigee.graph.passes.attention"
local definitions = require "perigee.checkpoint.definitions"
local failure = require "spec.support.failure"
local files = require "spec.support.files"
local fuse = require "perigee.graph.passes.fuse"
local golden = require "spec.support.golden"
local Graph = require "perigee.graph"
local models = require "spec.support.models"
local Memo = require "perigee.quantize.memo"
local mpnet = require "perigee.graph.models.mpnet"
local perigee = require "perigee"
local safetensors = require "perigee.safetensors"
local Weights = require "perigee.checkpoint.weights"

-- A checkpoint of the repository with some values of its config.json replaced.
local function reconfigured(name, from, to)
  local config, count = models.read(models.path(name) .. "/config.json"):gsub(from, to)
  assert.equal(1, count)
  return models.variant(models.path(name), { ["config.json"] = config })
end

-- A checkpoint of the repository with other tensors. f changes the table of its tensors by name.
local function rewritten(name, f)
  local file, tensors = safetensors.open(models.path(name) .. "/model.safetensors"), {}
  for _, key in ipairs(file:names()) do
    tensors[key] = file:tensor(key)
  end
  f(tensors)
  local folder = models.variant(models.path(name), { ["model.safetensors"] = false })
  safetensors.write(folder .. "/model.safetensors", tensors)
  return folder
end

describe("register_model", function()
  local encoder = { check = function() end, encoder = function() end }

  after_each(function()
    perigee.register_model("mine", nil)
    files.clean()
  end)

  it("makes a definition known to load, which is then asked as the others are", function()
    local asked = {}
    perigee.register_model("mine", {
      prefix = "bert",
      check = function(config)
        asked.check = config
        require("perigee.graph.models.bert").check(config)
      end,
      encoder = require("perigee.graph.models.bert").encoder,
    })
    local folder = reconfigured("gelu-new", '"model_type": "bert"', '"model_type": "mine"')
    local model, bert = perigee.load(folder), perigee.load(models.path "gelu-new")
    assert.equal(model.config, asked.check)
    local given = { ids = { 1, 2, 3 } }
    assert.same(bert:hidden(given):totable(), model:hidden(given):totable())
    assert.equal("mine has no head \"qa\"; it has none",
      failure(definitions.head, model.definition, perigee.tasks.qa, model))
  end)

  it("refuses what is no definition, and says why", function()
    local function refuses(message, ...)
      assert.matches(message, failure(perigee.register_model, ...), 1, true)
    end
    refuses("model_type is 5, expected what config.json says, a string", 5, encoder)
    refuses("model_type is the string '', expected", "", encoder)
    refuses("the definition is the string 'bert', expected a table of functions", "mine", "bert")
    refuses('check of "mine" is missing, expected a function', "mine", { encoder = encoder.encoder })
    refuses('encoder of "mine" is missing, expected a function', "mine", { check = encoder.check })
    refuses('fill_mask of "mine" is true, expected a function', "mine", { check = print, encoder = print, fill_mask = true })
    refuses('"mine" has a field clasify, which is none of a definition\'s (did you mean "classify"?)', "mine",
      { check = print, encoder = print, clasify = print })
    refuses('"mine" has a field nerr, which is none of a definition\'s (did you mean "ner"?)', "mine",
      { check = print, encoder = print, nerr = print })
    refuses('prefix of "mine" is 1, expected a string', "mine", { check = print, encoder = print, prefix = 1 })
  end)

  -- The error of use(model), where model is a BERT loaded as "mine" with some functions of its definition replaced.
  local function breaks(message, changes, use)
    local definition = { prefix = "bert" }
    for name, value in pairs(require "perigee.graph.models.bert") do
      definition[name] = changes[name] or type(value) == "function" and value or nil
    end
    perigee.register_model("mine", definition)
    local folder = reconfigured("gelu", '"model_type": "bert"', '"model_type": "mine"')
    assert.matches(message, failure(function() use(perigee.load(folder)) end), 1, true)
  end

  it("checks what the functions of a definition return and which fields they set", function()
    local bert = require "perigee.graph.models.bert"
    local given = { ids = { 1, 2, 3 } }
    local function hidden(model) model:hidden(given) end
    local function classify(model) model:classify(given) end
    for _, field in ipairs { "vocab_size", "positions", "type_vocab_size", "num_hidden_layers", "hidden_size" } do
      breaks(('config.%s is missing after check of "mine", expected an integer of at least 1'):format(field), {
        check = function(config)
          bert.check(config)
          config[field] = nil
        end,
      }, hidden)
    end
    breaks('encoder of "mine" is missing, expected a node of the graph, [tokens][64]', { encoder = function() end }, hidden)
    breaks('encoder of "mine" is a table, expected a node of the graph', {
      encoder = function(_, config, weights) return bert.encoder(Graph.new(), config, weights) end,
    }, hidden)
    breaks('encoder of "mine" is [sequences][64], expected a node of the graph, [tokens][64]', {
      encoder = function(g, config, weights) return g:pool(bert.encoder(g, config, weights), "first") end,
    }, hidden)
    breaks('the second result of the encoder of "mine" is missing, expected a list of 3 nodes', {
      encoder = function(g, config, weights) return (bert.encoder(g, config, weights)) end,
    }, hidden)
    breaks('classify of "mine" is [tokens][64], expected a node of the graph, [sequences][2]', {
      classify = function(_, _, _, x) return x end,
    }, classify)
    breaks('classify of "mine" is missing, expected', { classify = function() end }, classify)
    breaks("classifier.weight as [2][64] and as [3][64]", {
      classify = function(g, _, weights, x)
        weights:linear("classifier", 2, 64)
        return g:linear(x, weights:linear("classifier", 3, 64))
      end,
    }, classify)
    breaks("the eps of the norm embeddings.LayerNorm is not a number", {
      encoder = function(g, config, weights)
        return g:norm(bert.embeddings(g, config, weights), weights:norm("embeddings.LayerNorm", 64))
      end,
    }, hidden)
  end)

  it("checks the buckets of a bias, and its heads", function()
    local bert = require "perigee.graph.models.bert"
    local function biased(bucket) -- by the table of words, for as many heads as that is wide
      return { encoder = function(g, config, weights)
        local table = weights:table("embeddings.word_embeddings.weight", 97, 64)
        local bias = { table = table, bucket = bucket, reach = config.positions }
        config.num_attention_heads = 64
        return bert.layers(g, config, weights, bert.embeddings(g, config, weights), nil, bias)
      end }
    end
    local function hidden(model) model:hidden { ids = { 1, 2, 3 } } end
    for _, bucket in ipairs { -1, 97, 0.5 } do
      breaks(("attention: the bucket of the distance -63 is %s, expected an integer from 0 to 96"):format(bucket),
        biased(function() return bucket end), hidden)
    end
    breaks("attention of 4 heads with a bias of 64", { encoder = function(g, config, weights)
      local x = bert.embeddings(g, config, weights)
      return g:attention(x, x, x, 4, { table = weights:table("embeddings.word_embeddings.weight", 97, 64) })
    end }, hidden)
  end)

  it("takes layers that share their weights: each use has a name, statistics and settings of its own", function()
    local bert = require "perigee.graph.models.bert"
    local names = {} -- layer 1 has the tensors of layer 0
    for key, value in pairs(bert.names) do
      names[key] = value
    end
    names.layer = "encoder.layer.0."
    local definition = { prefix = "bert", check = bert.check, encoder = function(g, config, weights)
      return bert.layers(g, config, weights, bert.embeddings(g, config, weights), names)
    end }
    perigee.register_model("mine", definition)
    local shared = perigee.load(reconfigured("gelu", '"model_type": "bert"', '"model_type": "mine"'), { kernel = "native" })
    local copied = perigee.load(rewritten("gelu", function(tensors)
      for name, t in pairs(tensors) do
        local twin = name:gsub("encoder%.layer%.0%.", "encoder.layer.1.")
        tensors[twin] = tensors[twin] and t
      end
    end), { kernel = "native" })
    local inputs = {}
    for i = 1, 8 do
      inputs[i] = { ids = { i, i + 9, 2 * i, 50 + i } }
    end
    local function quantize(model, settings)
      settings.stats = model:calibrate(inputs, { progress = false })
      return model:quantize(settings)
    end
    assert.same(copied:hidden(inputs):totable(), shared:hidden(inputs):totable())
    local a, b = quantize(shared, {}), quantize(copied, {})
    assert.same(b:hidden(inputs):totable(), a:hidden(inputs):totable())
    local rows, seen = a:explain().rows, {}
    for i, row in ipairs(rows) do
      assert.is_nil(seen[row.name], row.name)
      seen[row.name] = true
      local twin = b:explain().rows[i]
      assert.same({ twin.scale, twin.zero, twin.sqnr }, { row.scale, row.zero, row.sqnr }, row.name)
    end
    assert.is_true(seen["encoder.layer.0.attention.self.qkv#2"] and seen["encoder.layer.0.output.dense#2"])
    assert.equal("encoder.layer.0.attention.self#2", a:explain().attention[2].name)
    a:set("encoder.layer.0.output.dense#2", { alpha = 0.3 })
    b:set("encoder.layer.1.output.dense", { alpha = 0.3 })
    a:set("encoder.layer.0.attention.self.query#2", { skip = true })
    b:set("encoder.layer.1.attention.self.query", { skip = true })
    assert.same(b:hidden(inputs):totable(), a:hidden(inputs):totable())
    local path = files.folder {} .. "/model"
    a:save(path)
    assert.same(a:hidden(inputs):totable(), perigee.open(path):hidden(inputs):totable())
  end)

  it("replaces what was known, and forgets it again", function()
    local before = definitions.names()
    perigee.register_model("mine", encoder)
    assert.matches(" mine ", " " .. table.concat(definitions.names(), " ") .. " ", 1, true)
    assert.equal(#before + 1, #definitions.names())
    perigee.register_model("mine", nil)
    assert.same(before, definitions.names())
  end)
end)

describe("hidden_act", function()
  after_each(files.clean)

  -- name: a checkpoint; old, new: names of one function.
  local function same(name, key, old, new)
    local folder = reconfigured(name, ('"%s": "%s"'):format(key, old), ('"%s": "%s"'):format(key, new))
    local one, other, given = perigee.load(models.path(name)), perigee.load(folder), { ids = { 5, 6, 7, 8 } }
    assert.same(one:hidden(given):totable(), other:hidden(given):totable(), new)
    one:release()
    other:release()
  end

  it("is known by every name that transformers has for it", function()
    same("gelu", "hidden_act", "gelu", "gelu_python")
    for _, new in ipairs { "gelu_new", "gelu_fast", "gelu_python_tanh", "gelu_accurate" } do
      same("gelu-tanh", "hidden_act", "gelu_pytorch_tanh", new)
    end
    same("distilbert-heads", "activation", "silu", "swish")
  end)

  it("of another name is an error that lists the known ones", function()
    assert.matches("hidden_act is the string 'mish', expected gelu, gelu_accurate, gelu_fast, gelu_new, gelu_python, "
      .. "gelu_python_tanh, gelu_pytorch_tanh, quick_gelu, relu, silu, swish, tanh",
      failure(perigee.load, reconfigured("gelu", '"hidden_act": "gelu"', '"hidden_act": "mish"')), 1, true)
    assert.matches("(did you mean \"gelu\"?)",
      failure(perigee.load, reconfigured("gelu", '"hidden_act": "gelu"', '"hidden_act": "gellu"')), 1, true)
  end)
end)

describe("the decoder", function()
  after_each(files.clean)

  -- The linear that makes logits of words, in a graph of the model.
  local function decoder(model)
    local g = Graph.new()
    local weights = Weights.new(model.checkpoint)
    local x = model.definition.encoder(g, model.config, weights)
    g.in_head = true
    g:output("logits", model.definition.fill_mask(g, model.config, weights, x))
    weights:check()
    g = fuse(g)
    return g.nodes[#g.nodes].parts[1]
  end

  it("is the table of words where the checkpoint has no other", function()
    for _, name in ipairs { "bert-heads", "roberta", "mpnet", "electra" } do
      local part = decoder(perigee.load(models.path(name)))
      assert.equal("embeddings.word_embeddings.weight", part.weight.name)
      assert.is_true(part.in_place)
    end
  end)

  it("is the checkpoint's own where there is one, or has to be", function()
    local own = decoder(perigee.load(rewritten("roberta", function(tensors)
      tensors["lm_head.decoder.weight"] = tensors["roberta.embeddings.word_embeddings.weight"]
      tensors["lm_head.decoder.bias"], tensors["lm_head.bias"] = tensors["lm_head.bias"], nil
    end)))
    assert.equal("lm_head.decoder.weight", own.weight.name)
    assert.equal("lm_head.decoder.bias", own.bias.name)
    -- A decoder that is not tied is saved with two biases. transformers adds the decoder's own bias, and the other is unused.
    local both = decoder(perigee.load(rewritten("roberta", function(tensors)
      tensors["lm_head.decoder.bias"] = tensors["lm_head.bias"]
    end)))
    assert.equal("lm_head.decoder.bias", both.bias.name)
    assert.equal("vocab_projector.weight", decoder(perigee.load(models.path "distilbert-heads")).weight.name)
    local untied = perigee.load(reconfigured("electra", '"tie_word_embeddings": true', '"tie_word_embeddings": false'))
    assert.matches("generator_lm_head.weight [97][20] is missing", failure(decoder, untied), 1, true)
    local odd = perigee.load(reconfigured("electra", '"tie_word_embeddings": true', '"tie_word_embeddings": 1'))
    assert.matches("tie_word_embeddings is 1, expected true or false", failure(decoder, odd), 1, true)
  end)

  it("is the table of words, too, where only it was kept of the two that are one", function()
    local given = { ids = { 1, 2, 3 } }
    local function kept(tensors)
      tensors["lm_head.decoder.weight"] = tensors["roberta.embeddings.word_embeddings.weight"]
      tensors["roberta.embeddings.word_embeddings.weight"] = nil
    end
    local folder = rewritten("roberta", kept)
    local model, want = perigee.load(folder), perigee.load(models.path "roberta")
    assert.same(want:hidden(given):totable(), model:hidden(given):totable())
    assert.equal("lm_head.decoder.weight", decoder(model).weight.name)
    local config = models.read(folder .. "/config.json"):gsub('"tie_word_embeddings": true', '"tie_word_embeddings": false')
    assert.matches("embeddings.word_embeddings.weight [97][36] is missing",
      failure(perigee.load, models.variant(folder, { ["config.json"] = config })), 1, true)
  end)

  it("costs no copy of the table", function()
    local model = perigee.load(models.path "bert-heads")
    local part = decoder(model)
    local lowered = require("perigee.graph.passes.lower").packed_f32(model.memo, { part })
    assert.equal(4 * 97, lowered.bytes) -- what stands for a bias where there is none
    model:release()
  end)
end)

describe("a bias of attention", function()
  it("is one for each way to find buckets, even in one table", function()
    local memo = Memo.new()
    local parameter = { name = "table", shape = { 2, 1 }, tensor = perigee.tensor.from { { 1 }, { 2 } } }
    local function bias(bucket)
      return attention.bias({ heads = 1, bias = { table = parameter, bucket = bucket, reach = 2 } }, memo)
    end
    local function after(distance) return distance > 0 and 1 or 0 end
    local first = bias(after)
    assert.same({ { 1, 1, 2 } }, first:totable())
    assert.same({ { 2, 1, 1 } }, bias(function(distance) return distance < 0 and 1 or 0 end):totable())
    assert.equal(first, bias(after))
    memo:release()
  end)
end)

describe("MPNet", function()
  after_each(files.clean)

  it("has one bucket for each distance up to 7, then wider ones, apart for keys before and after", function()
    local first = { [8] = 8, [9] = 12, [10] = 16, [11] = 23, [12] = 32, [13] = 46, [14] = 64, [15] = 91 }
    for distance = 0, 600 do
      local want = math.min(distance, 7)
      for bucket = 8, 15 do
        want = distance >= first[bucket] and bucket or want
      end
      assert.equal(want, mpnet.bucket(-distance), distance)
      assert.equal(distance > 0 and 16 + want or 0, mpnet.bucket(distance), distance)
    end
  end)

  it("needs the 32 buckets that transformers uses", function()
    local message = failure(perigee.load, reconfigured("mpnet", '"relative_attention_num_buckets": 32',
      '"relative_attention_num_buckets": 31'))
    assert.matches("relative_attention_num_buckets is 31, expected an integer from 32", message, 1, true)
  end)

  it("takes texts as long as it has positions, and no longer", function()
    local model = perigee.load(models.path "mpnet")
    assert.equal(148, model.positions)
    local ids = {}
    for i = 1, 149 do
      ids[i] = 5
    end
    assert.matches("ids has 149 tokens, expected 1 to 148", failure(model.hidden, model, { ids = ids }), 1, true)
    ids[149] = nil
    assert.equal(148, #model:hidden { ids = ids })
  end)
end)

describe("ELECTRA", function()
  after_each(files.clean)

  it("is for words as a generator, and for vectors as a discriminator", function()
    local function task(architecture)
      return perigee.load(reconfigured("electra", '"ElectraModel"', ('"%s"'):format(architecture))).task
    end
    assert.equal("fill_mask", task "ElectraForMaskedLM")
    assert.equal("embed", task "ElectraForPreTraining")
    assert.equal("classify", task "ElectraForSequenceClassification")
  end)

  it("has a linear over its embeddings where these are narrower than its layers", function()
    assert.matches("embeddings_project", tostring(perigee.load(models.path "electra"):graph "hidden"), 1, true)
    assert.matches("embeddings.word_embeddings.weight is [97][20], expected [97][32]",
      failure(perigee.load, reconfigured("electra", '"embedding_size": 20', '"embedding_size": 32')), 1, true)
    assert.matches("embeddings_project.weight [32][20] is missing",
      failure(perigee.load, rewritten("electra", function(tensors)
        tensors["electra.embeddings_project.weight"] = nil
      end)), 1, true)
  end)
end)

describe("positions", function()
  it("do not count padding tokens if transformers does not", function()
    local model, sequences = perigee.load(models.path "roberta"), golden.read(models.path "roberta")
    local ids = sequences[4].ids
    assert.equal(1, ids[4]) -- the golden values of models_spec are of a sequence that has some
    local with, without = {}, {}
    for i, id in ipairs(ids) do
      with[i], without[i] = id, id == 1 and 2 or id
    end
    local a, b = model:layers { ids = with }, model:layers { ids = without }
    assert.same(a[1][3]:totable(), b[1][3]:totable())
    assert.not_same(a[1][7]:totable(), b[1][7]:totable())
    model:release()
  end)
end)
