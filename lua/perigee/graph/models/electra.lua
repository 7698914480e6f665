--- ELECTRA (Clark et al. 2020): BERT's encoder over embeddings that may be narrower than it, brought to its width by a linear.
local bert = require "perigee.graph.models.bert"

local electra = { qa = bert.qa, ner = bert.ner }

function electra.check(config)
  bert.check(config, nil, { hidden_size = 256, num_attention_heads = 4, intermediate_size = 1024 })
  config:integer("embedding_size", 1, 32768, 128)
end

--- The encoder: token ids to hidden states [T][H], and every layer's output.
function electra.encoder(g, config, weights)
  local x = bert.embeddings(g, config, weights)
  if config.embedding_size ~= config.hidden_size then
    x = g:linear(x, weights:linear("embeddings_project", config.hidden_size, config.embedding_size))
  end
  return bert.layers(g, config, weights, x)
end

--- ElectraForSequenceClassification: logits [B][labels].
function electra.classify(g, config, weights, x)
  return bert.first(g, config, weights, x, "classifier.dense", "gelu", "classifier.out_proj")
end

--- ElectraForMaskedLM, of a generator: logits [R][V].
function electra.fill_mask(g, config, weights, x)
  return bert.words(g, config, weights, x, {
    dense = "generator_predictions.dense", activation = "gelu", norm = "generator_predictions.LayerNorm",
    decoder = "generator_lm_head", bias = "generator_lm_head.bias",
  })
end

return electra
