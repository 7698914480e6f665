--- XLM-RoBERTa (Conneau et al. 2019): BERT's encoder, in which positions are counted from the padding token's id + 1.
local bert = require "perigee.models.bert"

local roberta = { encoder = bert.encoder }

function roberta.check(config)
  bert.check(config)
  config.offset = config:integer("pad_token_id", 0, 2 ^ 31 - 1, 1) + 1
  config.positions = config.max_position_embeddings - config.offset
  if config.positions < 1 then
    config:fail("max_position_embeddings", ("more than %d: positions begin after pad_token_id"):format(config.offset))
  end
end

--- The head of XLMRobertaForSequenceClassification: hidden states to logits [B][labels].
function roberta.classifier(g, config, weights, x)
  local H = config.hidden_size
  local first = g:tanh(g:linear(g:pool(x, "first"), weights:linear("classifier.dense", H, H)))
  return g:linear(first, weights:linear("classifier.out_proj", #config.labels, H))
end

return roberta
