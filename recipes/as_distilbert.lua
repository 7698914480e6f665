#!/usr/bin/env luajit
--- Rewrites a BERT embedder as a DistilBERT, which has no token types. All tokens of a single text have type 0, so the
-- embedding of type 0 is added to the embedding of every position. The answers are equal to 1e-5. The pooler is left out,
-- because embedders do not use it.
--
--   luajit recipes/as_distilbert.lua FOLDER OUT
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local checkpoint = require "perigee.checkpoint"
local file = require "perigee.base.file"
local json = require "perigee.base.json"
local system = require "perigee.os"
local safetensors = require "perigee.safetensors"

-- A tensor's name in BERT, without "encoder.layer.0.", and in DistilBERT, without "transformer.layer.0.".
local LAYER = {
  ["attention.self.query"] = "attention.q_lin", ["attention.self.key"] = "attention.k_lin",
  ["attention.self.value"] = "attention.v_lin", ["attention.output.dense"] = "attention.out_lin",
  ["attention.output.LayerNorm"] = "sa_layer_norm", ["intermediate.dense"] = "ffn.lin1", ["output.dense"] = "ffn.lin2",
  ["output.LayerNorm"] = "output_layer_norm",
}

local function renamed(name)
  local layer, part, kind = name:match "^encoder%.layer%.(%d+)%.(.*)%.(%a+)$"
  return layer and ("transformer.layer.%s.%s.%s"):format(layer, LAYER[part] or part, kind)
    or name:match "^embeddings%." and name ~= "embeddings.token_type_embeddings.weight" and name
end

local function config_of(c)
  if c.model_type ~= "bert" or (c.layer_norm_eps or 1e-12) ~= 1e-12 then
    error("expected a BERT whose layer_norm_eps is 1e-12, which DistilBERT has", 0)
  end
  return {
    model_type = "distilbert", architectures = { "DistilBertModel" }, dim = c.hidden_size, n_heads = c.num_attention_heads,
    n_layers = c.num_hidden_layers, hidden_dim = c.intermediate_size, activation = c.hidden_act, vocab_size = c.vocab_size,
    max_position_embeddings = c.max_position_embeddings, pad_token_id = c.pad_token_id,
  }
end

local function put(path, bytes)
  local ok, why = file.replace(path, bytes)
  if not ok then
    common.fail("%s", why)
  end
end

local FILES = {
  "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "modules.json", "sentence_bert_config.json",
  "config_sentence_transformers.json", "1_Pooling/config.json",
}

local function rewrite(from, to)
  local c = checkpoint.open(from)
  local config, tensors = config_of(c.config), {}
  for _, name in ipairs(c:names()) do
    local new = renamed(name)
    if new then
      tensors[new] = c:tensor(name)
    end
  end
  local positions = c:tensor("embeddings.position_embeddings.weight"):f32():copy()
  local numbers = positions:numbers(nil, config.dim)
  local row = c:tensor("embeddings.token_type_embeddings.weight")[1]:numbers(config.dim)
  for i = 0, #positions * config.dim - 1 do
    numbers[i] = numbers[i] + row[i % config.dim]
  end
  positions:put(numbers)
  tensors["embeddings.position_embeddings.weight"] = positions
  system.make_folder(to .. "/1_Pooling")
  for _, name in ipairs(FILES) do
    local original = io.open(from .. "/" .. name, "rb")
    if original then
      put(to .. "/" .. name, original:read "*a")
      original:close()
    end
  end
  safetensors.write(to .. "/model.safetensors", tensors, { format = "pt" })
  put(to .. "/config.json", json.canonical(config)) -- last: a folder with this file is complete
end

if arg and arg[0] and arg[0]:match "as_distilbert%.lua$" then
  common.main(function()
    local args = common.arguments {
      name = "as_distilbert", description = "Rewrites a BERT embedder as a DistilBERT that gives the same answers.", options = {},
      add = function(parser)
        parser:argument("folder", "A BERT's checkpoint")
        parser:argument("out", "The new checkpoint's folder")
      end,
    }
    rewrite(args.folder, args.out)
    print(args.out)
  end)
end
return rewrite
