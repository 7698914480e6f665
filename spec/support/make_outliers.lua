--- Makes a random BERT in which a few channels have very large activations, as trained ones have them.
--
--   luajit spec/support/make_outliers.lua FOLDER [STRENGTH]         STRENGTH: 30 by default
--
-- Required as a module, it is a function (folder, strength). The files are the same on every machine.
--
-- Wherever linears read them, the values of CHANNELS of the hidden size lie around plus or minus `strength`, and those of other
-- channels around 0. embeddings.LayerNorm makes them so, and the residuals keep them so. A later norm divides all channels by
-- more because of the large ones; its weights undo that. The last norm makes the large channels as small as the others, so that
-- the output's SQNR counts all channels alike. The weights that read the large channels are smaller than others by a factor
-- strength ^ SMALLER. Their mean contribution is subtracted from the bias. The result of W8A8 is:
--   plain W8A8          loses: the scale that the large channels need is too coarse for the others
--   alpha = 0           loses: activations are divided by 1 / max|W| alone, and the large channels stay large
--   alpha = 1           loses: the whole range moves into the weights, and their scales become too coarse
--   an alpha between    recovers the accuracy
-- lua/FIGURES.md has the figures.
--
-- The vocabulary has letters, digits, signs and the words of recipes/data/calibration.txt, so the model takes texts.
if not pcall(require, "perigee.ffi") then
  package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
end
local ffi = require "ffi"
local bit = require "bit"
local files = require "spec.support.files"
local json = require "perigee.base.json"

local HIDDEN, LAYERS, HEADS, INNER, POSITIONS, WORDS = 256, 4, 4, 1024, 128, 1000
local CHANNELS, SIGNS = { 37, 101, 160, 222 }, { 1, -1, 1, -1 } -- from 0
local SPREAD = 0.25 -- of the large channels' values, relative to them
local SMALLER = 0.2

---- Values ------------------------------------------------------------------------------------------------------------

-- Returns n values with this standard deviation. Each is a sum of the four bytes of a number by Marsaglia's xorshift, which is
-- nearly normally distributed.
local function generator(seed)
  local x = seed
  return function(n, deviation)
    local list, unit = ffi.new("float[?]", n), deviation / math.sqrt(4 * (256 ^ 2 - 1) / 12)
    for i = 0, n - 1 do
      x = bit.bxor(x, bit.lshift(x, 13))
      x = bit.bxor(x, bit.rshift(x, 17))
      x = bit.bxor(x, bit.lshift(x, 5))
      local sum = bit.band(x, 255) + bit.band(bit.rshift(x, 8), 255) + bit.band(bit.rshift(x, 16), 255) + bit.rshift(x, 24)
      list[i] = (sum - 510) * unit
    end
    return list
  end
end

local function constant(n, value, special)
  local list = ffi.new("float[?]", n, value)
  for i = 0, n - 1 do
    list[i] = value
  end
  for _, k in ipairs(special and CHANNELS or {}) do
    list[k] = special
  end
  return list
end

-- Makes those weights in W [N][HIDDEN] smaller that read the large channels, and subtracts these channels' offset from the bias.
local function read_large(w, b, N, strength)
  for n = 0, N - 1 do
    for i, k in ipairs(CHANNELS) do
      w[n * HIDDEN + k] = w[n * HIDDEN + k] * strength ^ -SMALLER
      b[n] = b[n] - w[n * HIDDEN + k] * SIGNS[i] * strength
    end
  end
end

---- Tensors -----------------------------------------------------------------------------------------------------------

local function tensors_of(strength, vocabulary)
  local random, list = generator(20240229), {}
  local function add(name, shape, values)
    local n = 1
    for _, size in ipairs(shape) do
      n = n * size
    end
    list[#list + 1] = { name, "F32", shape, ffi.string(values, n * 4) }
  end
  -- special, offset: the weight and the bias of the large channels.
  local function norm(name, weight, special, offset)
    add(name .. ".weight", { HIDDEN }, constant(HIDDEN, weight, special))
    local bias = random(HIDDEN, 0.02)
    for i, k in ipairs(offset and CHANNELS or {}) do
      bias[k] = SIGNS[i] * offset
    end
    add(name .. ".bias", { HIDDEN }, bias)
  end
  local function linear(name, N, K, reads_large)
    local w, b = random(N * K, 1 / math.sqrt(K)), random(N, 0.02)
    if reads_large then
      read_large(w, b, N, strength)
    end
    add(name .. ".weight", { N, K }, w)
    add(name .. ".bias", { N }, b)
  end

  add("embeddings.word_embeddings.weight", { vocabulary, HIDDEN }, random(vocabulary * HIDDEN, 1))
  add("embeddings.position_embeddings.weight", { POSITIONS, HIDDEN }, random(POSITIONS * HIDDEN, 0.2))
  add("embeddings.token_type_embeddings.weight", { 2, HIDDEN }, random(2 * HIDDEN, 0.1))
  norm("embeddings.LayerNorm", 1, SPREAD * strength, strength)
  -- The factor by which a norm shrinks the other channels when its input has the large channels.
  local usual = math.sqrt((#CHANNELS * strength ^ 2 * (1 + SPREAD ^ 2) + HIDDEN - #CHANNELS) / HIDDEN)
  for i = 0, LAYERS - 1 do
    local layer = ("encoder.layer.%d."):format(i)
    for _, part in ipairs { "query", "key", "value" } do
      linear(layer .. "attention.self." .. part, HIDDEN, HIDDEN, true)
    end
    linear(layer .. "attention.output.dense", HIDDEN, HIDDEN)
    norm(layer .. "attention.output.LayerNorm", usual)
    linear(layer .. "intermediate.dense", INNER, HIDDEN, true)
    linear(layer .. "output.dense", HIDDEN, INNER)
    norm(layer .. "output.LayerNorm", usual, i == LAYERS - 1 and usual / strength or nil)
  end
  return list
end

---- The vocabulary ----------------------------------------------------------------------------------------------------

-- Returns the most frequent words of a text file, in order.
local function frequent(path, count)
  local counts, words = {}, {}
  for line in io.lines(path) do
    for word in line:lower():gmatch "%a%a+" do
      counts[word] = (counts[word] or 0) + 1
    end
  end
  for word in pairs(counts) do
    words[#words + 1] = word
  end
  table.sort(words, function(a, b) return counts[a] > counts[b] or counts[a] == counts[b] and a < b end)
  return { unpack(words, 1, count) }
end

local function vocabulary_of()
  local pieces = { "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]" }
  for c = 33, 126 do
    local character = string.char(c)
    if not character:find "%u" then
      pieces[#pieces + 1] = character
      pieces[#pieces + 1] = character:find "%w" and "##" .. character or nil
    end
  end
  for _, word in ipairs(frequent("recipes/data/calibration.txt", WORDS)) do
    pieces[#pieces + 1] = word
  end
  return pieces
end

---- Files -------------------------------------------------------------------------------------------------------------

local function write(path, bytes)
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  assert(file:close())
end

local function make(folder, strength)
  strength = strength or 30
  assert(type(strength) == "number" and strength >= 1, "the strength is a number of at least 1")
  local pieces = vocabulary_of()
  require("perigee.os").make_folder(folder)
  write(folder .. "/config.json", json.canonical {
    model_type = "bert", architectures = { "BertModel" }, hidden_act = "gelu", hidden_size = HIDDEN, num_hidden_layers = LAYERS,
    num_attention_heads = HEADS, intermediate_size = INNER, max_position_embeddings = POSITIONS, type_vocab_size = 2,
    vocab_size = #pieces, layer_norm_eps = 1e-12, pad_token_id = 0,
  } .. "\n")
  write(folder .. "/vocab.txt", table.concat(pieces, "\n") .. "\n")
  write(folder .. "/tokenizer_config.json", json.canonical {
    do_lower_case = true, model_max_length = POSITIONS, tokenizer_class = "BertTokenizer",
  } .. "\n")
  write(folder .. "/model.safetensors", files.pack(tensors_of(strength, #pieces)))
  return folder
end

if arg and (arg[0] or ""):find "make_outliers%.lua$" then
  assert(arg[1], "usage: luajit spec/support/make_outliers.lua FOLDER [STRENGTH]")
  make(arg[1], tonumber(arg[2] or 30))
end

return make
