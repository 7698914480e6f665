--- BERT (Devlin et al. 2019, figure 1 and appendix A; the layer is Vaswani et al. 2017, figure 1, left): post-LN encoder.
--
-- `weights` makes parameters by their checkpoint names: weights:table(name, rows, width), weights:linear(name, N, K),
-- weights:norm(name, width, eps).
local bert = {}

-- config.json's hidden_act, and the graph's activation that computes it.
local activations = { gelu = "gelu", gelu_new = "gelu_tanh", gelu_pytorch_tanh = "gelu_tanh", relu = "relu" }

--- Checks config.json (perigee.config) and makes what the definition reads fields of `config`.
function bert.check(config)
  local H = config:integer("hidden_size", 1, 32768)
  config:integer("num_hidden_layers", 1, 1024)
  config:integer("intermediate_size", 1, 32768)
  config:integer("vocab_size", 1, 2 ^ 31 - 1)
  config:integer("max_position_embeddings", 1, 2 ^ 31 - 1)
  config:integer("type_vocab_size", 1, 2 ^ 31 - 1, 2)
  config:number("layer_norm_eps", 0, 1, 1e-12)
  config:choice("hidden_act", activations, "gelu")
  config:choice("position_embedding_type", { absolute = true }, "absolute")
  local heads = config:integer("num_attention_heads", 1, 32768)
  if H % heads ~= 0 then
    config:fail("num_attention_heads", ("a divisor of hidden_size, which is %d"):format(H))
  end
  config:absent("is_decoder", "only encoders are supported")
  config:absent("add_cross_attention", "only encoders are supported")
end

--- The encoder: token ids to hidden states [T][H]. g.layers collects every layer's output, the embeddings' first.
function bert.encoder(g, config, weights)
  local H, I, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
  local activation = activations[config.hidden_act]

  local x = g:embed {
    word = weights:table("embeddings.word_embeddings.weight", config.vocab_size, H),
    position = weights:table("embeddings.position_embeddings.weight", config.max_position_embeddings, H),
    type = weights:table("embeddings.token_type_embeddings.weight", config.type_vocab_size, H),
  }
  x = g:norm(x, weights:norm("embeddings.LayerNorm", H, eps))
  local layers = { x }

  for i = 0, config.num_hidden_layers - 1 do
    local layer = ("encoder.layer.%d."):format(i)
    local q = g:linear(x, weights:linear(layer .. "attention.self.query", H, H))
    local k = g:linear(x, weights:linear(layer .. "attention.self.key", H, H))
    local v = g:linear(x, weights:linear(layer .. "attention.self.value", H, H))
    local context = g:attention(q, k, v, config.num_attention_heads)
    local attended = g:linear(context, weights:linear(layer .. "attention.output.dense", H, H))
    x = g:norm(g:add(attended, x), weights:norm(layer .. "attention.output.LayerNorm", H, eps))

    local inner = g[activation](g, g:linear(x, weights:linear(layer .. "intermediate.dense", I, H)))
    local outer = g:linear(inner, weights:linear(layer .. "output.dense", H, I))
    x = g:norm(g:add(outer, x), weights:norm(layer .. "output.LayerNorm", H, eps))
    layers[#layers + 1] = x
  end
  return x, layers
end

--- The head of BertForSequenceClassification: hidden states to logits [B][labels].
function bert.classifier(g, config, weights, x)
  local H = config.hidden_size
  local pooled = g:tanh(g:linear(g:pool(x, "first"), weights:linear("pooler.dense", H, H)))
  return g:linear(pooled, weights:linear("classifier", #config.labels, H))
end

return bert
