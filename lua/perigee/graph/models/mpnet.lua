--- MPNet (Song et al. 2020): BERT's encoder without token types, whose attention adds to each score a bias for the distance from
-- query to key, of which every head has one for each of 32 buckets (Raffel et al. 2020, section 2.1), the same in all layers.
local bert = require "perigee.graph.models.bert"
local roberta = require "perigee.graph.models.roberta"

local mpnet = { qa = bert.qa, ner = bert.ner, classify = roberta.classify, fill_mask = roberta.fill_mask }

local names = {
  layer = "encoder.layer.%d.",
  query = "attention.attn.q", key = "attention.attn.k", value = "attention.attn.v",
  attended = "attention.attn.o", attended_norm = "attention.LayerNorm",
  inner = "intermediate.dense", outer = "output.dense", outer_norm = "output.LayerNorm",
}

local BUCKETS = 32 -- as in transformers, which ignores relative_attention_num_buckets

--- The bucket, from 0, of a key that is `distance` tokens after the query. Half of them are for keys after it; of each half eight
-- are for the distances 0 to 7, one each, and eight for ranges that grow by the square root of 2, up to 128 and all beyond.
function mpnet.bucket(distance)
  local after, n = distance > 0 and BUCKETS / 2 or 0, math.abs(distance)
  if n < BUCKETS / 4 then
    return after + n
  end
  local bucket = BUCKETS / 4
  while bucket < BUCKETS / 2 - 1 and n * n >= 128 * 2 ^ (bucket - BUCKETS / 4) do -- in integers: exact
    bucket = bucket + 1
  end
  return after + bucket
end

function mpnet.check(config)
  bert.check(config, nil, { vocab_size = 30527 })
  roberta.positions(config, 1) -- as in transformers, which ignores pad_token_id
  config.type_vocab_size = 1
  config:integer("relative_attention_num_buckets", BUCKETS, 2 ^ 31 - 1, BUCKETS)
end

--- The encoder: token ids to hidden states [T][H], and every layer's output.
function mpnet.encoder(g, config, weights)
  local table = weights:table("encoder.relative_attention_bias.weight", config.relative_attention_num_buckets,
    config.num_attention_heads)
  local bias = { table = table, bucket = mpnet.bucket, reach = config.positions }
  return bert.layers(g, config, weights, bert.embeddings(g, config, weights, false), names, bias)
end

return mpnet
