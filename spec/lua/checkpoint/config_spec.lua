local bert = require "perigee.graph.models.bert"
local Config = require "perigee.checkpoint.config"
local config_keys = require "perigee.checkpoint.config_keys"
local definitions = require "perigee.checkpoint.definitions"
local Ignored = require "perigee.base.ignored"
local json = require "perigee.base.json"
local models = require "spec.support.models"

local function values(changes)
  local v = {
    hidden_size = 64, num_hidden_layers = 2, intermediate_size = 128, vocab_size = 100, max_position_embeddings = 32,
    num_attention_heads = 4, layer_norm_eps = 1e-12, hidden_act = "gelu",
  }
  for key, value in pairs(changes) do
    if value == "MISSING" then
      value = nil
    end
    v[key] = value
  end
  return Config.new(v, "x/config.json")
end

describe("config", function()
  it("of a BERT is checked key by key; each error names file, key, value and what was expected", function()
    for _, case in ipairs {
      { { hidden_size = 64.5 }, "'x/config.json': hidden_size is 64.5, expected an integer from 1 to 32768" },
      { { hidden_size = "64" }, "hidden_size is the string '64', expected an integer from 1 to 32768" },
      { { hidden_size = { 1 } }, "hidden_size is a list or an object, expected an integer from 1 to 32768" },
      { { num_attention_heads = 5 }, "num_attention_heads is 5, expected a divisor of hidden_size, which is 64" },
      { { num_attention_heads = 0 }, "num_attention_heads is 0, expected an integer from 1 to 32768" },
      { { intermediate_size = 0 }, "intermediate_size is 0" },
      { { intermediate_size = 32769 }, "intermediate_size is 32769" },
      { { layer_norm_eps = 0 }, "layer_norm_eps is 0, expected a number above 0 and below 1" },
      { { layer_norm_eps = 0 / 0 }, "expected a number above 0 and below 1" },
      { { hidden_act = "mish" }, "hidden_act is the string 'mish', expected gelu, gelu_accurate, gelu_fast, gelu_new" },
      { { hidden_act = "gelu_nwe" }, '(did you mean "gelu_new"?)' },
      { { position_embedding_type = "relative_key" }, "'relative_key', expected absolute" },
      { { is_decoder = true }, "is_decoder is true, expected none: only encoders are supported" },
      { { add_cross_attention = true }, "add_cross_attention is true, expected none: only encoders are supported" },
      { { is_encoder_decoder = true }, "is_encoder_decoder is true, expected none" },
      { { pruned_heads = { ["0"] = { 1 } } }, "pruned_heads is a list or an object, expected none: every layer has all" },
      { { per_layer_config = { ["0"] = {} } }, "per_layer_config is a list or an object, expected none" },
      { { quantization_config = { quant_method = "gptq" } }, "expected none: the weights are those of another quantization" },
      { { compression_config = { a = 1 } }, "expected none: the weights are compressed" },
      { { fusion_config = { a = 1 } }, "expected none: weights are not fused" },
      { { transformers_weights = "x" }, "expected none: the weights are in model.safetensors" },
      { { type_vocab_size = 0 }, "type_vocab_size is 0" },
    } do
      local ok, message = pcall(bert.check, values(case[1]))
      assert.is_false(ok, case[2])
      assert.matches(case[2], message, 1, true)
    end
  end)

  it("has an entry for every key of transformers' classes, with a reason", function()
    local text = models.read "spec/golden/companions/config_keys.json"
    for _, key in ipairs(json.decode(text)) do
      assert.is_table(config_keys.of[key], key)
    end
    local KINDS = { obeyed = true, none = true, refused = true, listed = true }
    for key, entry in pairs(config_keys.of) do
      assert.is_true(KINDS[entry[1]] and #entry[2] > 4, key)
    end
  end)

  it("takes keys that ask for nothing, and lists code that is not run", function()
    local ignored = Ignored.new()
    local config = values {
      pruned_heads = {}, is_decoder = false, quantization_config = json.null, chunk_size_feed_forward = 4,
      add_cross_attention = 0, auto_map = { AutoModel = "custom.Model" }, custom_pipelines = { a = {} }, dtype = "float16",
    }
    config.ignored = ignored
    bert.check(config)
    table.sort(ignored, function(a, b) return a.key < b.key end)
    assert.equal("auto_map of config.json: code of the checkpoint's own is not run\n"
      .. "custom_pipelines of config.json: code of the checkpoint's own is not run", tostring(ignored))
  end)

  it("has the defaults of transformers", function()
    local config = values {
      layer_norm_eps = "MISSING", hidden_act = "MISSING", type_vocab_size = json.null, is_decoder = json.null,
    }
    bert.check(config)
    assert.are.same({ 1e-12, "gelu", 2 }, { config.layer_norm_eps, config.hidden_act, config.type_vocab_size })
  end)

  -- The values of transformers' config classes without arguments.
  for model_type, want in pairs {
    bert = { 768, 12, 12, 3072, 30522, 512 }, distilbert = { 768, 12, 6, 3072, 30522, 512 },
    roberta = { 768, 12, 12, 3072, 50265, 510 }, camembert = { 768, 12, 12, 3072, 30522, 510 },
    ["xlm-roberta"] = { 768, 12, 12, 3072, 30522, 510 }, mpnet = { 768, 12, 12, 3072, 30527, 510 },
    electra = { 256, 4, 12, 1024, 30522, 512 },
  } do
    it("has them where config.json says nothing else: " .. model_type, function()
      local config = Config.new({ model_type = model_type, hidden_size = json.null }, "x/config.json")
      definitions.check(definitions.of(config), config)
      assert.same(want, {
        config.hidden_size, config.num_attention_heads, config.num_hidden_layers, config.intermediate_size, config.vocab_size,
        config.positions,
      })
    end)
  end

  it("of a DistilBERT may have three of BERT's keys, which go first", function()
    local config = Config.new({
      model_type = "distilbert", hidden_size = 32, dim = 64, num_attention_heads = 4, num_hidden_layers = 2,
      intermediate_size = 5, hidden_act = "relu",
    }, "x/config.json")
    definitions.check(definitions.of(config), config)
    assert.same({ 32, 4, 2, 3072, "gelu" }, {
      config.hidden_size, config.num_attention_heads, config.num_hidden_layers, config.intermediate_size, config.activation,
    })
    local odd = Config.new({ model_type = "distilbert", hidden_size = 0.5, dim = 64 }, "x/config.json")
    assert.error_matches(function() definitions.check(definitions.of(odd), odd) end, "hidden_size is 0.5", 1, true)
  end)

  local function head(changes)
    local config = values(changes)
    config:read_head()
    return config
  end

  it("tells labels and the kind of problem", function()
    local config = head { id2label = { ["1"] = "pos", ["0"] = "neg" } }
    assert.are.same({ { "neg", "pos" }, "single_label_classification" }, { config.labels, config.problem })
    assert.are.same({ { "LABEL_0", "LABEL_1" }, "single_label_classification" }, { head({}).labels, head({}).problem })
    assert.are.same({ "LABEL_0", "LABEL_1", "LABEL_2" }, head({ num_labels = 3 }).labels)
    assert.are.equal("regression", head({ id2label = { ["0"] = "score" } }).problem)
    assert.are.equal("regression", head({ problem_type = "regression" }).problem)
    assert.are.equal("multi_label_classification", head({ problem_type = "multi_label_classification" }).problem)
    for _, ids in ipairs { { "0", "2" }, { "1", "3" }, { "1", "2" }, { "0", "00" }, {} } do
      local id2label = {}
      for _, id in ipairs(ids) do
        id2label[id] = "a"
      end
      assert.has_error(function() head { id2label = id2label } end,
        "'x/config.json': id2label is a list or an object, expected names for the ids 0, 1, 2 and so on")
    end
    for _, id in ipairs { "x", "nan", "inf", "0.5" } do
      assert.error_matches(function() head { id2label = { [id] = "a" } } end, "expected an object of number: name", 1, true)
    end
    assert.error_matches(function() head { id2label = "a" } end, "id2label is the string 'a', expected an object", 1, true)
    assert.has_error(function() head { problem_type = "x" } end)
  end)

  it("names labels by numbers if num_labels differs from the number of names, as transformers does", function()
    assert.are.same({ "0", "1" }, head({ id2label = { ["0"] = 0, ["1"] = 1 } }).labels)
    assert.are.same({ "a", "b" }, head({ id2label = { ["0"] = "a", ["1"] = "b" }, num_labels = 2 }).labels)
    assert.are.same({ "LABEL_0", "LABEL_1", "LABEL_2" }, head({ id2label = { ["0"] = "a", ["1"] = "b" }, num_labels = 3 }).labels)
    assert.are.same({ "LABEL_0" }, head({ id2label = { ["0"] = "a", ["1"] = "b" }, num_labels = 1 }).labels)
  end)
end)
