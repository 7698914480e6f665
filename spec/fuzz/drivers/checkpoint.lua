--- Checkpoint folders: one file of a small checkpoint is replaced. An input has a line "CHECKPOINT/FILE", and then the bytes of
-- the file.
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

local driver = { titled = true }

local FOLDERS = { "embedder", "distilbert", "bert-heads", "regression" }
local LARGEST = 65536 -- bytes of a file that is a seed

-- Files by name, of each folder; tokenizer.json is one that the folder's tokenizer makes unnecessary.
local TOKENIZER = [[{"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":1,"content":"[CLS]","special":true,
"single_word":false,"lstrip":false,"rstrip":false,"normalized":false}],"normalizer":{"type":"BertNormalizer","clean_text":true,
"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":
{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[
{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[1],
"tokens":["[CLS]"]}}},"decoder":{"type":"WordPiece","prefix":"##","cleanup":true},"model":{"type":"WordPiece","unk_token":"[UNK]",
"continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"##b":4}}}]]

local contents = {}
for _, name in ipairs(FOLDERS) do
  local pipe = assert(io.popen(("cd '%s' && find . -type f"):format(models.path(name))))
  contents[name] = { ["tokenizer.json"] = TOKENIZER }
  for file in pipe:lines() do
    if not file:find "values.safetensors" and not file:find "texts.json" then
      contents[name][file:sub(3)] = models.read(models.path(name) .. "/" .. file)
    end
  end
  pipe:close()
end

function driver.seeds()
  local list = {}
  for name, folder in pairs(contents) do
    for file, bytes in pairs(folder) do
      for _ = 1, #bytes <= LARGEST and (file:find "json" and 4 or 1) or 0 do
        list[#list + 1] = ("%s/%s\n%s"):format(name, file, bytes)
      end
    end
  end
  table.sort(list)
  return list
end

local function use(dir)
  local model = perigee.load(dir)
  model:embed { "a text", "ab a" }
  model:tokenizer():encode("a ab [CLS]", "b")
  if model.task and model.task ~= "embed" then
    pcall(model[model.task], model, { "a text" })
  end
  local q = model:quantize { activations = "dynamic" }
  q:embed { "a text" }
  tostring(q:explain())
end

function driver.run(input)
  local name, file, bytes = input:match "^([%w-]+)/([%w_./-]+)\n(.*)$"
  if not contents[name] or file:find("..", 1, true) then
    return
  end
  local folder = { [file] = bytes }
  for other, text in pairs(contents[name]) do
    if other ~= "tokenizer.json" and folder[other] == nil then
      folder[other] = text
    end
  end
  local dir = files.folder(folder)
  local ok, failure = pcall(use, dir)
  files.clean()
  if not ok then
    error(failure, 0)
  end
end

return driver
