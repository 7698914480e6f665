--- DistilBERT (Sanh et al. 2019): BERT's layers under other names, without token types and pooler.
local bert = require "perigee.graph.models.bert"

local distilbert = { qa = bert.qa, ner = bert.ner }

local names = {
  layer = "transformer.layer.%d.",
  query = "attention.q_lin", key = "attention.k_lin", value = "attention.v_lin",
  attended = "attention.out_lin", attended_norm = "sa_layer_norm",
  inner = "ffn.lin1", outer = "ffn.lin2", outer_norm = "output_layer_norm",
}

-- Keys of config.json. The first three can also have BERT's names, which come first, as in transformers.
local function keys_of(config)
  local function key(bert_name, own)
    return config:has(bert_name) and bert_name or own
  end
  return {
    hidden_size = key("hidden_size", "dim"), num_attention_heads = key("num_attention_heads", "n_heads"),
    num_hidden_layers = key("num_hidden_layers", "n_layers"), intermediate_size = "hidden_dim", hidden_act = "activation",
  }
end

function distilbert.check(config)
  bert.check(config, keys_of(config), { num_hidden_layers = 6 })
  config.type_vocab_size, config.layer_norm_eps = 1, 1e-12 -- as in transformers, whatever config.json says
end

--- The encoder: token ids to hidden states [T][H], and every layer's output. Sinusoidal positions are a table like any other.
function distilbert.encoder(g, config, weights)
  return bert.layers(g, config, weights, bert.embeddings(g, config, weights, false), names)
end

--- DistilBertForSequenceClassification: logits [B][labels].
function distilbert.classify(g, config, weights, x)
  return bert.first(g, config, weights, x, "pre_classifier", "relu", "classifier")
end

--- DistilBertForMaskedLM: logits [R][V].
function distilbert.fill_mask(g, config, weights, x)
  return bert.words(g, config, weights, x, {
    dense = "vocab_transform", activation = config.activation, norm = "vocab_layer_norm",
    decoder = "vocab_projector", bias = "vocab_projector.bias",
  })
end

return distilbert
