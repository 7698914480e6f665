--- BERT (Devlin et al. 2019, figure 1 and appendix A; the layer is Vaswani et al. 2017, figure 1, left): post-LN encoder.
--
-- `weights` makes parameters by their checkpoint names: weights:table(name, rows, width), weights:linear(name, N, K),
-- weights:norm(name, width, eps).
local bert = {}

-- config.json's hidden_act, and the graph's activation that computes it.
local activations = { gelu = "gelu", gelu_new = "gelu_tanh", gelu_pytorch_tanh = "gelu_tanh", relu = "relu" }

--- What a checkpoint calls the parts of layer %d. Relatives of BERT bring names of their own.
bert.names = {
  layer = "encoder.layer.%d.",
  query = "attention.self.query", key = "attention.self.key", value = "attention.self.value",
  attended = "attention.output.dense", attended_norm = "attention.output.LayerNorm",
  inner = "intermediate.dense", outer = "output.dense", outer_norm = "output.LayerNorm",
}

--- Checks config.json (perigee.config) and makes what the definition reads fields of `config`. keys: what a relative of BERT
-- calls some of the same values, { hidden_size = "dim", ... }.
function bert.check(config, keys)
  keys = keys or {}
  local function integer(name, high)
    config[name] = config:integer(keys[name] or name, 1, high)
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
  config.activation = activations[config:choice(keys.hidden_act or "hidden_act", activations, "gelu")]
  config:choice("position_embedding_type", { absolute = true }, "absolute")
  if H % heads ~= 0 then
    config:fail(keys.num_attention_heads or "num_attention_heads", ("a divisor of %s, which is %d"):format(
      keys.hidden_size or "hidden_size", H))
  end
  config:absent("is_decoder", "only encoders are supported")
  config:absent("add_cross_attention", "only encoders are supported")
end

--- The encoder: token ids to hidden states [T][H]. Second result: every layer's output, the embeddings' first. names: of the
-- layers' parts, and no_types where there is no table of token types.
function bert.encoder(g, config, weights, names)
  names = names or bert.names
  local H, I, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps

  local x = g:embed {
    word = weights:table("embeddings.word_embeddings.weight", config.vocab_size, H),
    position = weights:table("embeddings.position_embeddings.weight", config.max_position_embeddings, H),
    type = not names.no_types and weights:table("embeddings.token_type_embeddings.weight", config.type_vocab_size, H) or nil,
    offset = config.offset,
  }
  x = g:norm(x, weights:norm("embeddings.LayerNorm", H, eps))
  local layers = { x }

  for i = 0, config.num_hidden_layers - 1 do
    local layer = names.layer:format(i)
    local q = g:linear(x, weights:linear(layer .. names.query, H, H))
    local k = g:linear(x, weights:linear(layer .. names.key, H, H))
    local v = g:linear(x, weights:linear(layer .. names.value, H, H))
    local context = g:attention(q, k, v, config.num_attention_heads)
    local attended = g:linear(context, weights:linear(layer .. names.attended, H, H))
    x = g:norm(g:add(attended, x), weights:norm(layer .. names.attended_norm, H, eps))

    local inner = g[config.activation](g, g:linear(x, weights:linear(layer .. names.inner, I, H)))
    local outer = g:linear(inner, weights:linear(layer .. names.outer, H, I))
    x = g:norm(g:add(outer, x), weights:norm(layer .. names.outer_norm, H, eps))
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
