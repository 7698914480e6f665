--- embed: one vector for each text, as sentence-transformers computes it: the hidden states pooled, and scaled to length 1
-- where the checkpoint says so. A checkpoint that says nothing about pooling gets the mean of all tokens, not scaled.
local inputs = require "perigee.inputs"
local operator = require "perigee.operator"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local plan = require "perigee.plan"
local tensor = require "perigee.tensor"
local ffi = require "ffi"

local embed = { forms = { "text", "pair", "ids" } }

--- Adds one pool for each of the checkpoint's modes, side by side in the vector.
function embed.head(g, x, model)
  for i, mode in ipairs(model:pooling().modes) do
    g:output("pool " .. i, g:pool(x, mode))
  end
end

local function side_by_side(parts, modes)
  if modes == 1 then
    return parts["pool 1"]
  end
  local rows, width = #parts["pool 1"], parts["pool 1"].shape[2]
  local all = tensor.new("F32", { rows, width * modes })
  local to = all:pointer()
  for i = 1, modes do
    local from = parts["pool " .. i]:pointer()
    for row = 0, rows - 1 do
      ffi.copy(to + (row * modes + i - 1) * width, from + row * width, width * 4)
    end
    parts["pool " .. i]:release()
  end
  return all
end

---- Prompts -----------------------------------------------------------------------------------------------------------

-- The text of a prompt: the one of that name, or the text itself; without one the checkpoint's default; nil if that is none.
local function prompt_of(model, given)
  if given == false then
    return nil
  elseif given ~= nil and type(given) ~= "string" then
    error(("embed: prompt is %s, expected the name of a prompt, a text, or false"):format(pgee.describe(given)), 0)
  end
  local prompts, default = model:prompts()
  local text = given and (prompts[given] or given) or default and prompts[default]
  return text ~= "" and text or nil
end

-- Tokens that a prompt takes at the beginning of a sequence, the special ones before it included: what it has alone, without the
-- special token at its end.
local function tokens_of(model, prompt)
  local e = model:tokenizer():encode(prompt)
  return #e.ids - (e.sequences[#e.ids] == 0 and 1 or 0)
end

-- The sequences of a chunk as two each: the first `skipped` tokens, and the rest, which is pooled.
local function split(batch, first, last, skipped)
  local starts, token = ffi.new("int32_t[?]", 2 * (last - first) + 1), batch.starts[first]
  for s = first, last - 1 do
    starts[2 * (s - first) + 1] = batch.starts[s] - token + skipped
    starts[2 * (s - first) + 2] = batch.starts[s + 1] - token
  end
  return plan.packed_batch(2 * (last - first), starts, batch.ids + token, batch.types + token)
end

-- What the head computes, over the tokens after the prompt alone.
local function pool_rest(encoder, batch, modes, skipped)
  for s = 1, batch.n do
    if batch.starts[s] - batch.starts[s - 1] <= skipped then
      error(("embed: input %d: its %d tokens are all of the prompt, which has %d"):format(batch.of[s],
        batch.starts[s] - batch.starts[s - 1], skipped), 0)
    end
  end
  local width, parts = encoder.model.config.hidden_size, {}
  for i = 1, #modes do
    parts["pool " .. i] = tensor.new("F32", { batch.n, width })
  end
  encoder:runner("hidden"):run(batch, function(output, first, last)
    local hidden, pooled = output "hidden", tensor.new("F32", { 2 * (last - first), width })
    for i, mode in ipairs(modes) do
      operator.run("pool", { x = hidden, mode = mode, y = pooled }, split(batch, first, last, skipped))
      local from, to = pooled:pointer(), parts["pool " .. i]:pointer()
      for s = first, last - 1 do
        ffi.copy(to + s * width, from + (2 * (s - first) + 1) * width, width * 4)
      end
    end
    hidden:release()
    pooled:release()
  end)
  return parts
end

---- Windows -----------------------------------------------------------------------------------------------------------

-- One row for each input: of several windows the mean, each counting as much as it has tokens.
local function join(vectors, batch)
  if batch.n == batch.count then
    return vectors
  end
  local width = vectors.shape[2]
  local from, to = vectors:numbers(), pgee.doubles(batch.count * width)
  for input, first, last in batch:groups() do
    local all = batch.starts[last] - batch.starts[first - 1]
    for k = 0, width - 1 do
      local sum = 0
      for s = first, last do
        sum = sum + from[(s - 1) * width + k] * (batch.starts[s] - batch.starts[s - 1])
      end
      to[(input - 1) * width + k] = sum / all
    end
  end
  vectors:release()
  return tensor.new("F32", { batch.count, width }):put(to)
end

---- The task ----------------------------------------------------------------------------------------------------------

-- The first values of each row. Frees the vectors given if there are fewer.
local function cut(vectors, dimensions)
  local n, width = vectors.shape[1], vectors.shape[2]
  if not dimensions or dimensions == width then
    return vectors
  elseif dimensions > width then
    vectors:release()
    error(("embed: dimensions is %d, expected an integer from 1 to %d, the length of the model's vectors"):format(dimensions,
      width), 0)
  end
  local short = tensor.new("F32", { n, dimensions })
  local from, to = vectors:pointer(), short:pointer()
  for row = 0, n - 1 do
    ffi.copy(to + row * dimensions, from + row * width, dimensions * 4)
  end
  vectors:release()
  return short
end

--- The options of embed, for options.read.
embed.options = inputs.options {
  prompt = { "other", help = "A text that goes before each, or a prompt's name in the checkpoint" },
  tables = { "flag", default = false },
  dimensions = { "integer", 1, help = "Only the first values of a vector, scaled to length 1 again if the model's are" },
}

--- model:embed(inputs, options): F32 [inputs][H], whose bytes t:pointer() gives to FFI code; one input (not in a list) gives a
-- vector [H]. Second result: the batch, which says what was truncated. Options:
--   prompt     what goes before every text: the name of a prompt in config_sentence_transformers.json, or a text; false: nothing,
--              not even that file's default. Whether its tokens are pooled is for the checkpoint to say
--   tables     true: lists of numbers in place of a tensor
--   dimensions only the first so many values of each vector (Matryoshka), an integer from 1 to H; they are scaled to length 1
--              if the model's vectors are
--   long       what becomes of long texts: "truncate" (default), "error", "windows", whose vectors' mean counts, before scaling
--   tokens, stride   of windows: tokens of each at most, and those that two have in common
function embed.run(encoder, given, opts)
  options.method(encoder, "embed")
  local read = options.read(opts, embed.options, "embed")
  local model = encoder.model
  local pooling, prompt = model:pooling(), prompt_of(model, read.prompt)
  local batch = inputs.batch(model, given, "embed", inputs.how(read, { forms = embed.forms, prompt = prompt }))
  local parts
  if prompt and pooling.skip_prompt then
    parts = pool_rest(encoder, batch, pooling.modes, tokens_of(model, prompt))
  else
    parts = encoder:run("embed", batch)
  end
  local vectors = cut(join(side_by_side(parts, #pooling.modes), batch), read.dimensions)
  if pooling.normalize then
    operator.run("unit", { x = vectors, y = vectors })
  end
  if read.tables then
    local lists = vectors:totable()
    vectors:release()
    return batch.single and lists[1] or lists, batch
  end
  return batch.single and vectors[1] or vectors, batch
end

return embed
