--- DistilBERT (Sanh et al. 2019): BERT's layers under other names, without token types and pooler.
local bert = require "perigee.models.bert"

local distilbert = {}

local keys = {
  hidden_size = "dim", num_attention_heads = "n_heads", num_hidden_layers = "n_layers", intermediate_size = "hidden_dim",
  hidden_act = "activation",
}

local names = {
  layer = "transformer.layer.%d.",
  query = "attention.q_lin", key = "attention.k_lin", value = "attention.v_lin",
  attended = "attention.out_lin", attended_norm = "sa_layer_norm",
  inner = "ffn.lin1", outer = "ffn.lin2", outer_norm = "output_layer_norm",
  no_types = true,
}

function distilbert.check(config)
  bert.check(config, keys)
  config.type_vocab_size, config.layer_norm_eps = 1, 1e-12 -- what the reference library has, whatever config.json says
end

--- The encoder: token ids to hidden states [T][H], and every layer's output. Sinusoidal positions are a table like any other.
function distilbert.encoder(g, config, weights)
  return bert.encoder(g, config, weights, names)
end

--- The head of DistilBertForSequenceClassification: hidden states to logits [B][labels].
function distilbert.classifier(g, config, weights, x)
  local H = config.hidden_size
  local pooled = g:relu(g:linear(g:pool(x, "first"), weights:linear("pre_classifier", H, H)))
  return g:linear(pooled, weights:linear("classifier", #config.labels, H))
end

return distilbert
