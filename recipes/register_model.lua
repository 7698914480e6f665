#!/usr/bin/env luajit
--- Adds an architecture from a script: RoBERTa with its norms before attention and feed-forward (--encoder-normalize-before of
-- fairseq, RobertaPreLayerNorm of transformers). Then such a checkpoint loads, calibrates, quantizes and answers like any other.
--
--   luajit recipes/register_model.lua [MODEL]            MODEL: the folder of such a checkpoint. Default: random weights
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local bert = require "perigee.graph.models.bert"
local perigee = require "perigee"
local roberta = require "perigee.graph.models.roberta"

-- The keys of config.json and the heads are RoBERTa's. prefix: in a model with a head, the names of the encoder's tensors begin
-- with it.
local definition = {
  prefix = "roberta_prelayernorm",
  check = roberta.check, classify = roberta.classify, qa = roberta.qa, ner = roberta.ner, fill_mask = roberta.fill_mask,
}

--- The encoder: token ids to hidden states [T][H]. Second result: the embeddings and the output of each layer; the last output is
-- normalized.
function definition.encoder(g, config, weights)
  local H, I, eps = config.hidden_size, config.intermediate_size, config.layer_norm_eps
  local x = bert.embeddings(g, config, weights)
  local layers = { x }
  for i = 0, config.num_hidden_layers - 1 do
    local layer = ("encoder.layer.%d."):format(i)
    local normed = g:norm(x, weights:norm(layer .. "attention.LayerNorm", H, eps))
    local q = g:linear(normed, weights:linear(layer .. "attention.self.query", H, H))
    local k = g:linear(normed, weights:linear(layer .. "attention.self.key", H, H))
    local v = g:linear(normed, weights:linear(layer .. "attention.self.value", H, H))
    local context = g:attention(q, k, v, config.num_attention_heads)
    x = g:add(g:linear(context, weights:linear(layer .. "attention.output.dense", H, H)), x)

    normed = g:norm(x, weights:norm(layer .. "intermediate.LayerNorm", H, eps))
    local inner = g[config.activation](g, g:linear(normed, weights:linear(layer .. "intermediate.dense", I, H)))
    x = g:add(g:linear(inner, weights:linear(layer .. "output.dense", H, I)), x)
    layers[#layers + 1] = x
  end
  x = g:norm(x, weights:norm("LayerNorm", H, eps))
  layers[#layers] = x
  return x, layers
end

perigee.register_model("roberta-prelayernorm", definition)

---- The architecture is known now; the rest uses it ------------------------------------------------------------------

-- A model of random weights, for a user without such a checkpoint.
local function random()
  local weights = require "perigee.checkpoint.random"
  weights.configs.prelayernorm = {
    model_type = "roberta-prelayernorm", hidden_size = 128, num_hidden_layers = 2, num_attention_heads = 4,
    intermediate_size = 512, vocab_size = 1000, max_position_embeddings = 130, type_vocab_size = 1, pad_token_id = 1,
  }
  return weights.checkpoint "prelayernorm"
end

local function main()
  local args = common.arguments {
    name = "register_model", description = "Makes a pre-norm RoBERTa known, then loads, quantizes and explains one.",
    model = "Folder of such a checkpoint", said = "one of random weights", options = { "threads" },
  }
  local model = perigee.load(args.model or random())
  local inputs = {}
  for i = 1, 16 do -- a checkpoint with a tokenizer takes texts
    inputs[i] = { ids = {} }
    for j = 1, 5 + i do
      inputs[i].ids[j] = (i * 31 + j * 17) % model.vocabulary
    end
  end
  local stats = model:calibrate(inputs, { progress = false })
  local q = model:quantize { stats = stats }
  print(model)
  print(q:explain())
  print(("hidden states in INT8: %.1f dB"):format(model:hidden(inputs):sqnr((q:hidden(inputs)))))
end

if arg and arg[0] and arg[0]:match "register_model%.lua$" then
  common.main(main)
end
