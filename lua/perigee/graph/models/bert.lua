--- BERT (Devlin et al. 2019, figure 1 and appendix A; the layer is Vaswani et al. 2017, figure 1, left): post-LN encoder.
--
-- A definition is a table of functions: check(config), encoder, and the heads that the architecture has: classify, qa, ner and
-- fill_mask (lua/README.md, "Add a model"). `weights` makes parameters by their checkpoint names: weights:table(name,
-- rows, width), weights:linear(name, N, K), weights:norm(name, width, eps), weights:decoder { ... }. Relatives of BERT share
-- these functions.
local config_keys = require "perigee.checkpoint.config_keys"

local bert = {}

-- config.json's hidden_act, and the graph's activation that computes it.
local ACTIVATIONS = {
  gelu = "gelu", gelu_python = "gelu",
  gelu_new = "gelu_tanh", gelu_fast = "gelu_tanh", gelu_pytorch_tanh = "gelu_tanh", gelu_python_tanh = "gelu_tanh",
  gelu_accurate = "gelu_tanh",
  quick_gelu = "quick_gelu", silu = "silu", swish = "silu", relu = "relu", tanh = "tanh",
}

--- The names of the parts of layer %d in a checkpoint. Definitions of related models have a table of their own.
bert.names = {
  layer = "encoder.layer.%d.",
  query = "attention.self.query", key = "attention.self.key", value = "attention.self.value",
  attended = "attention.output.dense", attended_norm = "attention.output.LayerNorm",
  inner = "intermediate.dense", outer = "output.dense", outer_norm = "output.LayerNorm",
}

---- config.json -------------------------------------------------------------------------------------------------------

-- The defaults of transformers for values that config.json lacks.
local DEFAULTS = {
  hidden_size = 768, num_attention_heads = 12, num_hidden_layers = 12, intermediate_size = 3072, vocab_size = 30522,
  max_position_embeddings = 512,
}

--- Checks config.json (perigee.config) and makes what the definition reads fields of `config`. keys: what a relative of BERT
-- calls some of the same values, { hidden_size = "dim", ... }. defaults: where the relative's are not BERT's.
function bert.check(config, keys, defaults)
  keys, defaults = keys or {}, defaults or {}
  local function integer(name, high)
    config[name] = config:integer(keys[name] or name, 1, high, defaults[name] or DEFAULTS[name])
    return config[name]
  end
  local H, heads = integer("hidden_size", 32768), integer("num_attention_heads", 32768)
  integer("num_hidden_layers", 1024)
  integer("intermediate_size", 32768)
  integer("vocab_size", 2 ^ 31 - 1)
  config.positions = integer("max_position_embeddings", 2 ^ 31 - 1)
  config.offset = 0 -- of the first token's position
  config:integer("type_vocab_size", 1, 2 ^ 31 - 1, 2)
  config:number("layer_norm_eps", 0, 1, 1e-12)
  config.activation = ACTIVATIONS[config:choice(keys.hidden_act or "hidden_act", ACTIVATIONS, "gelu")]
  config:choice("position_embedding_type", { absolute = true }, "absolute")
  if H % heads ~= 0 then
    config:fail(keys.num_attention_heads or "num_attention_heads", ("a divisor of %s, which is %d"):format(
      keys.hidden_size or "hidden_size", H))
  end
  config_keys.check(config)
end

---- The encoder -------------------------------------------------------------------------------------------------------

--- The embeddings, normed: token ids to [T][E]. types: false where the model has no table of token types.
function bert.embeddings(g, config, weights, types)
  local E = config.embedding_size or config.hidden_size
  local x = g:embed {
    word = weights:table("embeddings.word_embeddings.weight", config.vocab_size, E),
    position = weights:table("embeddings.position_embeddings.weight", config.max_position_embeddings, E),
    type = types ~= false and weights:table("embeddings.token_type_embeddings.weight", config.type_vocab_size, E) or nil,
    offset = config.offset, skip_padding = config.skip_padding,
  }
  return g:norm(x, weights:norm("embeddings.LayerNorm", E, config.layer_norm_eps))
end

--- The layers over x: [T][H] to [T][H]. Second result: every layer's output, x first. names: of the layers' parts. bias: what
-- attention adds to its scores, see Graph:attention.
function bert.layers(g, config, weights, x, names, bias)
  names = names or bert.names
  local H, I, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
  local layers = { x }

  for i = 0, config.num_hidden_layers - 1 do
    local layer = names.layer:format(i)
    local q = g:linear(x, weights:linear(layer .. names.query, H, H))
    local k = g:linear(x, weights:linear(layer .. names.key, H, H))
    local v = g:linear(x, weights:linear(layer .. names.value, H, H))
    local context = g:attention(q, k, v, config.num_attention_heads, bias)
    local attended = g:linear(context, weights:linear(layer .. names.attended, H, H))
    x = g:norm(g:add(attended, x), weights:norm(layer .. names.attended_norm, H, eps))

    local inner = g[config.activation](g, g:linear(x, weights:linear(layer .. names.inner, I, H)))
    local outer = g:linear(inner, weights:linear(layer .. names.outer, H, I))
    x = g:norm(g:add(outer, x), weights:norm(layer .. names.outer_norm, H, eps))
    layers[#layers + 1] = x
  end
  return x, layers
end

--- The encoder: token ids to hidden states [T][H]. Second result: every layer's output, the embeddings' first.
function bert.encoder(g, config, weights)
  return bert.layers(g, config, weights, bert.embeddings(g, config, weights))
end

---- Heads, of hidden states x -----------------------------------------------------------------------------------------

--- A head on the first token: the linear `dense`, the graph's function `activation`, and the linear `out`. Returns logits
-- [B][labels].
function bert.first(g, config, weights, x, dense, activation, out)
  local H = config.hidden_size
  local pooled = g[activation](g, g:linear(g:pool(x, "first"), weights:linear(dense, H, H)))
  return g:linear(pooled, weights:linear(out, #config.labels, H))
end

--- A head on the marked tokens: a linear, an activation, a norm and the decoder. Returns logits of every word, [R][V]. transform:
-- { dense =, activation =, norm = }, and decoder and bias as weights:decoder takes them.
function bert.words(g, config, weights, x, transform)
  local E = config.embedding_size or config.hidden_size
  local marked = g:linear(g:gather(x, "marked"), weights:linear(transform.dense, E, config.hidden_size))
  marked = g:norm(g[transform.activation](g, marked), weights:norm(transform.norm, E, config.layer_norm_eps))
  return g:linear(marked, weights:decoder {
    name = transform.decoder, bias = transform.bias, table = "embeddings.word_embeddings.weight",
    N = config.vocab_size, K = E, tied = config:flag("tie_word_embeddings", true),
  })
end

--- BertForSequenceClassification: logits [B][labels].
function bert.classify(g, config, weights, x)
  return bert.first(g, config, weights, x, "pooler.dense", "tanh", "classifier")
end

--- BertForQuestionAnswering: logits of an answer's first and last token, [T][2].
function bert.qa(g, config, weights, x)
  return g:linear(x, weights:linear("qa_outputs", 2, config.hidden_size))
end

--- BertForTokenClassification: logits [T][labels].
function bert.ner(g, config, weights, x)
  return g:linear(x, weights:linear("classifier", #config.labels, config.hidden_size))
end

--- BertForMaskedLM: logits [R][V].
function bert.fill_mask(g, config, weights, x)
  return bert.words(g, config, weights, x, {
    dense = "cls.predictions.transform.dense", activation = config.activation, norm = "cls.predictions.transform.LayerNorm",
    decoder = "cls.predictions.decoder", bias = "cls.predictions.bias",
  })
end

return bert
