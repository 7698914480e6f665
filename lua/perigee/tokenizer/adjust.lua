--- Adjustments: what sentence-transformers and transformers change in a tokenizer outside of its tokenizer.json. Functions take a
-- decoded tokenizer.json, `file`, and change it.
local models = require "perigee.tokenizer.models"
local given = require("perigee.tokenizer.read").given

local adjust = {}

--- Whether a normalizer makes texts lower case.
function adjust.lowers(normalizer)
  if type(normalizer) ~= "table" then
    return false
  end
  for _, part in ipairs(type(normalizer.normalizers) == "table" and normalizer.normalizers or {}) do
    if adjust.lowers(part) then
      return true
    end
  end
  return normalizer.type == "Lowercase" or normalizer.type == "BertNormalizer" and normalizer.lowercase == true
end

--- Makes texts lower case first, as sentence-transformers does if sentence_bert_config.json has do_lower_case.
function adjust.lower(file)
  if not adjust.lowers(file.normalizer) then
    file.normalizer = { type = "Sequence", normalizers = { { type = "Lowercase" }, given(file.normalizer) } }
  end
end

-- Texts that clean_up_tokenization_spaces replaces, in this order.
local CLEANED = {
  { " .", "." }, { " ?", "?" }, { " !", "!" }, { " ,", "," }, { " ' ", "'" }, { " n't", "n't" }, { " 'm", "'m" }, { " 's", "'s" },
  { " 've", "'ve" }, { " 're", "'re" },
}

--- If tokenizer_config.json has clean_up_tokenization_spaces, adds steps to the decoder that change a decoded text as
-- transformers does. A tokenizer of byte pair encoding gets none. c: the checkpoint; s: its small files (tokenizer/folder.lua).
function adjust.clean_up(c, file, s)
  if not s:flag("clean_up_tokenization_spaces", false) or models.type_of(file.model) == "BPE" then
    return
  elseif given(file.decoder) == nil then
    return c.ignored:add(s.path, "clean_up_tokenization_spaces", "tokenizer.json has no decoder whose text could be cleaned up")
  end
  local steps = { file.decoder, { type = "Fuse" } }
  for _, pair in ipairs(CLEANED) do
    steps[#steps + 1] = { type = "Replace", pattern = { String = pair[1] }, content = pair[2] }
  end
  file.decoder = { type = "Sequence", decoders = steps }
end

return adjust
