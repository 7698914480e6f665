--- RoBERTa (Liu et al. 2019), and with it XLM-RoBERTa (Conneau et al. 2019) and CamemBERT (Martin et al. 2020): BERT's encoder,
-- in which positions are counted from the padding token's id + 1.
local bert = require "perigee.graph.models.bert"

local roberta = { prefix = "roberta", encoder = bert.encoder, qa = bert.qa, ner = bert.ner }

--- Positions as fairseq counts them: those of padding tokens are the padding id itself and count for nothing.
function roberta.positions(config, padding)
  config.offset, config.skip_padding = padding + 1, true
  config.positions = config.max_position_embeddings - config.offset
  if config.positions < 1 then
    config:fail("max_position_embeddings", ("more than %d: positions begin after pad_token_id"):format(config.offset))
  end
end

local RELATIVES = { camembert = true, ["xlm-roberta"] = true } -- whose default is BERT's vocabulary

function roberta.check(config)
  bert.check(config, nil, { vocab_size = not RELATIVES[config.model_type] and 50265 or nil })
  roberta.positions(config, config:integer("pad_token_id", 0, 2 ^ 31 - 1, 1))
end

--- RobertaForSequenceClassification: logits [B][labels].
function roberta.classify(g, config, weights, x)
  return bert.first(g, config, weights, x, "classifier.dense", "tanh", "classifier.out_proj")
end

--- RobertaForMaskedLM: logits [R][V].
function roberta.fill_mask(g, config, weights, x)
  return bert.words(g, config, weights, x, {
    dense = "lm_head.dense", activation = "gelu", norm = "lm_head.layer_norm",
    decoder = "lm_head.decoder", bias = "lm_head.bias",
  })
end

return roberta
