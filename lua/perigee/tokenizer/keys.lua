--- The keys of tokenizer_config.json: what is done with each of them.
--
-- The table KEYS says for each key:
--   OBEYED     another module reads the key
--   INERT      the key changes no tokens in transformers 5, or it records how the file was made
--   check(x)   a function. It returns nil if the tokenizer already does what the value says. It returns a reason if the value
--              has no effect here; model:unused() lists that reason. It raises an error if the value would change tokens in an
--              unsupported way
-- A key that is not in the table is listed as unknown.
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local fail, given = read.fail, read.given

local M = {}

local OBEYED, INERT = "obeyed", "inert"

-- A check that lists the key with `reason`, unless its value is `usual` or null.
local function listed(usual, reason)
  return function(x)
    return x.value ~= usual and reason or nil
  end
end

-- A check that raises an error, unless the value is `usual` or null.
local function refused(usual, what)
  return function(x)
    if x.value ~= usual then
      fail("'%s': %s is %s, which is not supported (%s)", x.path, x.key, json.describe(x.value), what)
    end
  end
end

local function empty(value)
  return type(value) == "table" and next(value) == nil
end

-- The check of a key that some classes obey and other classes ignore. `agrees(x)`: whether the tokenizer does what the value
-- says even if its class does not read the key.
local function of_class(agrees)
  return function(x)
    if not x.class.takes[x.key] and not agrees(x) then
      return ("tokenizer_class %s does not read it"):format(x.class.name)
    end
  end
end

local function side(x)
  if x.value ~= "left" and x.value ~= "right" then
    fail("'%s': %s is %s, expected 'left' or 'right'", x.path, x.key, json.describe(x.value))
  end
end

local function chat()
  return "chats are not supported"
end

local KEYS = {
  -- special tokens
  added_tokens_decoder = OBEYED, additional_special_tokens = OBEYED, extra_special_tokens = OBEYED,
  split_special_tokens = refused(false, "special tokens in a text are always found"),
  -- how texts are cut
  do_lower_case = of_class(function(x) return x.value == x.lowers end),
  strip_accents = of_class(function(x) return x.value == false or x.lowers end),
  tokenize_chinese_chars = of_class(function(x) return x.value == true end),
  add_prefix_space = of_class(function(x) return x.value == x.prefixed end),
  trim_offsets = of_class(function(x) return x.value == true end),
  unk_id = of_class(function(x) return x.value == 0 end),
  keep_accents = listed(false, "version 5 of transformers always strips accents"),
  remove_space = listed(true, "version 5 of transformers does not read it"),
  do_basic_tokenize = listed(true, "version 5 of transformers always splits at spaces and punctuation first"),
  never_split = function(x)
    return not empty(x.value) and "version 5 of transformers does not read it; added tokens are never split" or nil
  end,
  word_tokenizer_type = refused("basic", "words are split as in BERT"),
  subword_tokenizer_type = refused("wordpiece", "words are split by WordPiece"),
  sp_model_kwargs = function(x)
    return not empty(x.value) and "version 5 of transformers does not read it" or nil
  end,
  add_bos_token = function(x)
    return x.value == true and "the post-processor says which special tokens are added" or nil
  end,
  -- how token sequences are truncated, padded and given to the model
  truncation_side = OBEYED, model_max_length = OBEYED, max_len = OBEYED, model_input_names = OBEYED,
  padding_side = function(x)
    side(x)
    return x.value == "left" and "sequences are not padded" or nil
  end,
  max_length = INERT, stride = INERT, truncation_strategy = INERT, pad_to_multiple_of = INERT, pad_token_type_id = INERT,
  -- how ids become text
  clean_up_tokenization_spaces = OBEYED, errors = INERT,
  clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output = listed(false,
    "texts of byte pair encoding are left as they are"),
  -- chats
  chat_template = chat, response_template = chat, response_schema = INERT, chat_control_tokens = chat,
  -- which code, which files
  tokenizer_class = OBEYED, use_fast = INERT, backend = INERT, legacy = INERT, from_slow = INERT, verbose = INERT,
  auto_map = function() return "code that comes with a checkpoint is not run" end,
  fast_tokenizer_files = function(x)
    for _, name in ipairs(type(x.value) == "table" and x.value or {}) do
      if name ~= "tokenizer.json" then
        fail("'%s': fast_tokenizer_files has %s, which is not supported, only tokenizer.json", x.path, json.describe(name))
      end
    end
  end,
  init_inputs = function(x)
    if not empty(x.value) then
      fail("'%s': init_inputs is not empty, which is not supported", x.path)
    end
  end,
  -- records
  name_or_path = INERT, special_tokens_map_file = INERT, tokenizer_file = INERT, vocab_file = INERT, merges_file = INERT,
  full_tokenizer_file = INERT, processor_class = INERT, is_local = INERT, local_files_only = INERT, files_loaded = INERT,
  transformers_version = INERT, _commit_hash = INERT, model_specific_special_tokens = OBEYED,
}
KEYS.add_eos_token = KEYS.add_bos_token
for _, key in ipairs { "vocab", "merges", "tokenizer_object", "gguf_file", "post_processor" } do
  KEYS[key] = refused(nil, "a vocabulary has a file of its own")
end

--- Checks every key of a checkpoint's tokenizer_config.json, and puts keys without effect on c.ignored. about: facts about the
-- tokenizer: class (classes.lua), lowers (it lower-cases texts), prefixed (it puts a space before texts).
function M.check(c, about)
  local path, x = c.files.tokenizer_config, setmetatable({}, { __index = about })
  for key, value in pairs(c.tokenizer_config) do
    x.path, x.key, x.value = path, key, value
    local known = KEYS[key] or tostring(key):find "_token$" and OBEYED
    local reason
    if not known then
      reason = "this key is not known"
    elseif type(known) == "function" and given(value) ~= nil then
      reason = known(x)
    end
    if reason then
      c.ignored:add(path, key, reason)
    end
  end
end

--- The side of a long text that is cut off, "left" or "right": truncation_side of tokenizer_config.json, else `other`, else
-- "right".
function M.truncation_side(c, other)
  local value = given(c.tokenizer_config.truncation_side)
  if value ~= nil then
    side { path = c.files.tokenizer_config, key = "truncation_side", value = value }
  end
  return value or other or "right"
end

--- Whether the model receives token types: as model_input_names of tokenizer_config.json says, else as the class does.
function M.gives_types(c, class)
  local names = given(c.tokenizer_config.model_input_names)
  if names == nil then
    return class.types == true
  end
  for _, name in ipairs(read.list(names, c.files.tokenizer_config, "model_input_names")) do
    if name == "token_type_ids" then
      return true
    end
  end
  return false
end

return M
