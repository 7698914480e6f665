--- Random: checkpoints with random weights in memory, in the shapes of well-known models. They serve to measure speed without the
-- files of a model.
--
--   local random = require "perigee.checkpoint.random"
--   local model = perigee.load(random.checkpoint "bert-large")
--
-- Weights have nearly a normal distribution with deviation 0.02, as before training. The values of a parameter are the same on
-- every machine. There is no tokenizer: inputs are { ids = }.
local bit = require "bit"
local Ignored = require "perigee.base.ignored"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"

local M = {}

local function bert(H, layers, heads, I)
  return {
    model_type = "bert", hidden_size = H, num_hidden_layers = layers, num_attention_heads = heads, intermediate_size = I,
    vocab_size = 30522, max_position_embeddings = 512, type_vocab_size = 2, layer_norm_eps = 1e-12,
  }
end

local base = bert(768, 12, 12, 3072)

local function relative(model_type, vocabulary)
  return setmetatable({
    model_type = model_type, vocab_size = vocabulary, max_position_embeddings = 514, type_vocab_size = 1, layer_norm_eps = 1e-5,
    pad_token_id = 1,
  }, { __index = base })
end

--- The config.json of each checkpoint, by its name.
M.configs = {
  ["bert-large"] = bert(1024, 24, 16, 4096),
  ["bert-base"] = base,
  minilm = bert(384, 6, 12, 1536),
  distilbert = {
    model_type = "distilbert", dim = 768, n_layers = 6, n_heads = 12, hidden_dim = 3072, vocab_size = 30522,
    max_position_embeddings = 512,
  },
  ["electra-small"] = {
    model_type = "electra", hidden_size = 256, embedding_size = 128, num_hidden_layers = 12, num_attention_heads = 4,
    intermediate_size = 1024, vocab_size = 30522, max_position_embeddings = 512,
  },
  ["mpnet-base"] = relative("mpnet", 30527),
  ["roberta-base"] = relative("roberta", 50265),
  ["xlmr-base"] = relative("xlm-roberta", 250002),
}

-- A seed other than 0, the hash of a name.
local function seed_of(name)
  local h = 0x811c9dc5
  for i = 1, #name do
    h = bit.bxor(h, name:byte(i))
    h = bit.tobit(h * 403 + bit.lshift(h, 24)) -- FNV-1a's 16777619, kept exact
  end
  return h ~= 0 and h or 1
end

-- The sum of the four bytes of a random word has the mean 510 and nearly a normal distribution. This factor gives it deviation
-- 0.02.
local DEVIATION = 0.02 / math.sqrt(4 * (256 ^ 2 - 1) / 12)

-- Writes n values around `mean`, and returns the seed for the next values. The random words are Marsaglia's xorshift.
local function fill(to, n, seed, mean)
  local band, bxor, lshift, rshift = bit.band, bit.bxor, bit.lshift, bit.rshift
  local x = seed
  for i = 0, n - 1 do
    x = bxor(x, lshift(x, 13))
    x = bxor(x, rshift(x, 17))
    x = bxor(x, lshift(x, 5))
    local sum = band(x, 255) + band(rshift(x, 8), 255) + band(rshift(x, 16), 255) + rshift(x, 24)
    to[i] = mean + (sum - 510) * DEVIATION
  end
  return x
end

local Checkpoint = {}
Checkpoint.__index = Checkpoint

--- The parameter of that name, in the shape that is asked for. The values are around 1 for the weight of a norm, else around 0.
function Checkpoint.tensor(_, name, shape)
  local t, seed, mean = tensor.new("F32", shape), seed_of(name), name:find "[Nn]orm%.weight$" and 1 or 0
  local width = #shape > 1 and shape[#shape] or shape[1]
  local numbers = pgee.doubles(math.max(width, 1))
  local function put(rows)
    if #rows.shape == 1 then
      seed = fill(numbers, width, seed, mean)
      rows:put(numbers)
    else
      for i = 1, #rows do
        put(rows[i])
      end
    end
  end
  put(t)
  return t
end

--- Names for suggestions if a tensor is missing. No tensor is missing here, so there are no names.
function Checkpoint.names()
  return {}
end

--- No tensor is unused, because tensors are made when they are asked for.
function Checkpoint.unused()
  return {}
end

--- No limit besides the number of positions.
function Checkpoint.limit()
  return nil
end

--- The default pooling.
function Checkpoint.pooling()
  return { modes = { "mean" }, normalize = false }
end

--- No prompts.
function Checkpoint.prompts()
  return {}
end

function Checkpoint:tokenizer_files()
  error(("%s has no tokenizer: give it { ids = ... }"):format(self.dir), 0)
end

--- A checkpoint to give to perigee.load, by the name of its shape.
function M.checkpoint(name)
  options.choice(name, M.configs, "random")
  return setmetatable({
    dir = "random " .. name, config = M.configs[name], files = { config = "random " .. name }, ignored = Ignored.new(),
  }, Checkpoint)
end

--- Whether x is such a checkpoint.
function M.is(x)
  return getmetatable(x) == Checkpoint
end

return M
