--- SentencePiece models: the bytes of sentencepiece.bpe.model beside a config.json.
local files = require "spec.support.files"
local json = require "perigee.base.json"
local tokenizer = require "perigee.tokenizer"

local driver = {}

local SETTINGS = { "XLMRobertaTokenizer", "CamembertTokenizer", "XLNetTokenizer" }
local TEXTS = { "", "Hello world", "a\204\136 \239\183\186 \240\159\152\128\226\150\129", "<s>a</s>\255" }

function driver.seeds()
  local whole = json.text "spec/golden/tokenizer/unigram.model"
  return {
    whole,
    "\10\14\10\5<unk>\21\0\0\0\0\24\2\10\12\10\3<s>\21\0\0\0\0\24\3" ..
      "\10\13\10\4</s>\21\0\0\0\0\24\3\10\8\10\1a\21\0\0\192\191",
  }
end

function driver.run(bytes)
  local kind = SETTINGS[#bytes % #SETTINGS + 1]
  local dir = files.folder {
    ["sentencepiece.bpe.model"] = bytes, ["config.json"] = '{"model_type":"xlm-roberta"}',
    ["tokenizer_config.json"] = json.canonical { tokenizer_class = kind, mask_token = "<mask>" },
  }
  local ok, t = pcall(tokenizer.load, dir)
  files.clean()
  if not ok then
    error(t, 0)
  end
  for _, text in ipairs(TEXTS) do
    t:decode(t:encode(text, nil, { max_tokens = 64 }).ids)
  end
end

return driver
