--- Paths: which files a checkpoint has next to its weights, as c.files of the checkpoint c (checkpoint/init.lua).
--
--   paths.find_modules(c)     -- c.modules, c.files.modules, c.folder
--   paths.find_tokenizer(c)   -- c.files.tokenizer, c.files.vocabulary ...; c.files.sentence_prompts, c.files.sentence_config
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local sentence = require "perigee.checkpoint.sentence"
local transformer_config = require "perigee.checkpoint.transformer_config"
local join = read.join

local paths = {}

-- The file names of SentencePiece models, in the order in which they are looked for.
local PIECES = { "sentencepiece.bpe.model", "spiece.model", "sentencepiece.model", "tokenizer.model" }

-- Files of a tokenizer whose presence shows that a folder has one.
local VOCABULARIES = { "tokenizer.json", "vocab.txt", "vocab.json", unpack(PIECES) }

-- c.files' keys of the files of a tokenizer.
local NAMES = {
  tokenizer = "tokenizer.json", vocabulary = "vocab.txt", pieces = "vocab.json", merges = "merges.txt",
  added_tokens = "added_tokens.json", config = "config.json", tokenizer_config = "tokenizer_config.json",
  special_tokens = "special_tokens_map.json",
}

local SENTENCE_PROMPTS = "config_sentence_transformers.json"
local NOT_READ = "sentence-transformers reads this file only if there is a modules.json"

-- The folder of the tokenizer's files. An adapter without a tokenizer has that of its base model.
local function tokenizer_folder(self)
  for _, name in ipairs(VOCABULARIES) do
    if json.exists(join(self.folder, name)) then
      return self.folder
    end
  end
  return self.base or self.folder
end

-- The files of sentence-transformers, which are read only if there is a modules.json.
local function find_sentence_files(self)
  local prompts = join(self.dir, SENTENCE_PROMPTS)
  prompts = json.exists(prompts) and prompts or nil
  if self.modules then
    self.files.sentence_prompts = prompts
    transformer_config.find(self)
    return
  end
  for _, path in ipairs { prompts or false, transformer_config.any_path(self) or false } do
    if path then
      self.ignored:add(path, "all keys", NOT_READ)
    end
  end
end

--- Reads modules.json, and finds the folder of the Transformer module.
function paths.find_modules(self)
  self.modules, self.files.modules = sentence.modules(self.dir)
  self.folder = sentence.folder(self.dir, self.modules)
end

--- Finds the files of the tokenizer, and those of sentence-transformers.
function paths.find_tokenizer(self)
  local folder = tokenizer_folder(self)
  local function path_of(name)
    local path = join(folder, name)
    return json.exists(path) and path or nil
  end
  for key, name in pairs(NAMES) do
    self.files[key] = path_of(name)
  end
  for _, name in ipairs(PIECES) do
    self.files.sentencepiece = self.files.sentencepiece or path_of(name)
  end
  find_sentence_files(self)
end

return paths
