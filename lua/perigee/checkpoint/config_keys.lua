--- config.json's keys: how Perigee treats each key that transformers 5 acts on in BERT and its relatives, and why.
--
--   keys.of.chunk_size_feed_forward      --> { "none", "a row's result does not depend on other rows" }
--   keys.check(config)                   -- raises errors for refused keys, puts listed keys on the list of ignored keys
--
-- The first word of a key's entry:
--   obeyed   a definition or a task reads the key, and raises an error if it cannot compute the value
--   none     the key has no effect on an answer: it is about training, about the file, or about how transformers runs a model
--   refused  the key is an error, unless its value has no effect: null, false, 0, an empty list or object
--   listed   the key is put on checkpoint.ignored, unless its value has no effect
local json = require "perigee.base.json"

local M = {}

local TRAINING, OUTPUT = "for training alone", "what else transformers returns"
local MEMORY = "how transformers runs a model, not what it computes"
local DECODER = "only encoders are supported"
local GENERATION = "for models that write text"

M.of = {
  -- The encoder.
  model_type = { "obeyed", "names the definition" },
  architectures = { "obeyed", "name the task" },
  vocab_size = { "obeyed", "words of the table" },
  hidden_size = { "obeyed", "width" }, dim = { "obeyed", "DistilBERT's hidden_size" },
  embedding_size = { "obeyed", "ELECTRA's width of embeddings" },
  num_hidden_layers = { "obeyed", "layers" }, n_layers = { "obeyed", "DistilBERT's num_hidden_layers" },
  num_attention_heads = { "obeyed", "heads" }, n_heads = { "obeyed", "DistilBERT's num_attention_heads" },
  intermediate_size = { "obeyed", "width inside" }, hidden_dim = { "obeyed", "DistilBERT's intermediate_size" },
  hidden_act = { "obeyed", "activation" }, activation = { "obeyed", "DistilBERT's hidden_act" },
  max_position_embeddings = { "obeyed", "positions" },
  type_vocab_size = { "obeyed", "token types" },
  layer_norm_eps = { "obeyed", "added to variances" },
  pad_token_id = { "obeyed", "RoBERTa's positions begin after it; elsewhere it is for training" },
  relative_attention_num_buckets = { "obeyed", "rows of MPNet's table of distances" },
  position_embedding_type = { "obeyed", "absolute; others are refused" },
  sinusoidal_pos_embds = { "obeyed", "the positions are a table in the file, however it was made" },
  tie_word_embeddings = { "obeyed", "whether the decoder is the table of words" },
  -- Tasks.
  id2label = { "obeyed", "names of labels" }, num_labels = { "obeyed", "how many labels" },
  label2id = { "obeyed", "zeroshot finds the entailment by it" },
  problem_type = { "obeyed", "what makes scores of logits" },
  sentence_transformers = { "obeyed", "rerank's activation" },
  sbert_ce_default_activation_function = { "obeyed", "rerank's activation" },
  is_causal = { "obeyed", "the default pooling" },
  tokenizer_class = { "obeyed", "the tokenizer" },
  -- Keys for models of another kind.
  is_decoder = { "refused", DECODER }, add_cross_attention = { "refused", DECODER }, is_encoder_decoder = { "refused", DECODER },
  cross_attention_hidden_size = { "refused", DECODER },
  pruned_heads = { "refused", "every layer has all of its heads; transformers 5 has no pruned heads" },
  per_layer_config = { "refused", "all layers have the same shape" },
  quantization_config = { "refused", "the weights are those of another quantization; take the checkpoint that it was made from" },
  compression_config = { "refused", "the weights are compressed; take the checkpoint that it was made from" },
  fusion_config = { "refused", "weights are not fused" },
  transformers_weights = { "refused", "the weights are in model.safetensors" },
  -- Keys that are listed.
  auto_map = { "listed", "code of the checkpoint's own is not run" },
  custom_pipelines = { "listed", "code of the checkpoint's own is not run" },
  -- Keys without effect on an answer.
  dtype = { "none", "weights are read in the type of the file; settings say how a model computes" },
  torch_dtype = { "none", "an older name of dtype" },
  chunk_size_feed_forward = { "none", "a row's result does not depend on other rows" },
  use_cache = { "none", GENERATION }, bos_token_id = { "none", GENERATION }, eos_token_id = { "none", GENERATION },
  output_hidden_states = { "none", OUTPUT }, output_attentions = { "none", OUTPUT }, return_dict = { "none", OUTPUT },
  hidden_dropout_prob = { "none", TRAINING }, attention_probs_dropout_prob = { "none", TRAINING },
  classifier_dropout = { "none", TRAINING }, dropout = { "none", TRAINING }, attention_dropout = { "none", TRAINING },
  qa_dropout = { "none", TRAINING }, seq_classif_dropout = { "none", TRAINING }, initializer_range = { "none", TRAINING },
  gradient_checkpointing = { "none", TRAINING }, finetuning_task = { "none", TRAINING },
  summary_type = { "none", "for multiple choice" }, summary_use_proj = { "none", "for multiple choice" },
  summary_activation = { "none", "for multiple choice" }, summary_proj_to_labels = { "none", "for multiple choice" },
  summary_first_dropout = { "none", TRAINING }, summary_last_dropout = { "none", TRAINING },
  attn_implementation = { "none", MEMORY }, distributed_config = { "none", MEMORY }, torchscript = { "none", MEMORY },
  transformers_version = { "none", "says what wrote the file" },
}

-- Whether a value has no effect.
local function is_empty(value)
  return value == nil or value == json.null or value == false or value == 0 or type(value) == "table" and next(value) == nil
end

--- Raises an error for a refused key, and puts listed keys on the list of ignored keys. config: a checkpoint/config.lua.
function M.check(config)
  for key, entry in pairs(M.of) do
    if not is_empty(config.json[key]) then
      if entry[1] == "refused" then
        config:fail(key, "none: " .. entry[2])
      elseif entry[1] == "listed" and config.ignored then
        config.ignored:add(config.path, key, entry[2])
      end
    end
  end
end

return M
