--- embed: one vector for each text, as sentence-transformers computes it. The hidden states are pooled. Then the modules after
-- the pooling run, if the checkpoint has any, for example a linear, or the division by the vector's length. If the checkpoint
-- says nothing about pooling, the vector is the mean of all tokens' hidden states, and it is not scaled.
local inputs = require "perigee.run.inputs"
local operator = require "perigee.operator"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local plan = require "perigee.plan"
local prompt_of = require "perigee.tasks.prompts"
local tensor = require "perigee.tensor"
local vectors = require "perigee.tasks.vectors"
local ffi = require "ffi"

local embed = {
  doc = "one vector of each text, pooled and scaled as the checkpoint says",
  forms = { "text", "pair", "ids" },
  architectures = { "ElectraForPreTraining" }, -- its discriminator's head answers no task
  head = { needs = "pooling" },
  vectors = true,
  evaluate = "perigee.evaluate.tasks.embed",
}

--- Adds one pooled output for each of the checkpoint's modes. A text's vector has them side by side.
function embed.head.draw(g, x, model)
  for i, mode in ipairs(model:pooling().modes) do
    g:output("pool " .. i, g:pool(x, mode))
  end
end

function embed.head.outputs(model)
  local outputs = {}
  for i = 1, #model:pooling().modes do
    outputs["pool " .. i] = { "sequences", model.config.hidden_size }
  end
  return outputs
end

---- Prompts -----------------------------------------------------------------------------------------------------------

-- The number of tokens that a prompt takes at the beginning of a sequence. The special tokens before the prompt count, too; a
-- special token after the prompt does not.
local function tokens_of(model, prompt)
  local e = model:tokenizer():encode(prompt)
  return #e.ids - (e.sequences[#e.ids] == 0 and 1 or 0)
end

-- Sequences first + 1 to last of a batch, for the engine. Each becomes two sequences: the first `skipped` tokens, and the rest,
-- which is pooled.
local function split(batch, first, last, skipped)
  local starts, token = ffi.new("int32_t[?]", 2 * (last - first) + 1), batch.starts[first]
  for s = first, last - 1 do
    starts[2 * (s - first) + 1] = batch.starts[s] - token + skipped
    starts[2 * (s - first) + 2] = batch.starts[s + 1] - token
  end
  return plan.packed_batch(2 * (last - first), starts, batch.ids + token, batch.types + token)
end

-- Runs the head over a batch. Returns a list of tensors [n][H], one for each mode of pooling.
local function pool_all(encoder, batch, modes)
  local parts, gathered = {}, encoder:run("embed", batch)
  for i = 1, #modes do
    parts[i] = gathered["pool " .. i] or error(("embed: the model's plan has no output 'pool %d'"):format(i), 0)
  end
  return parts
end

-- Changes y, means weighted by positions counted from 1, into means weighted by the positions in the whole sequence, counted
-- from skipped + 1. lengths: { [row from 0] = tokens }, the rows to change. mean: the unweighted means.
local function count_from(y, mean, lengths, skipped)
  local weighted, plain, width = y:numbers(), mean:numbers(#y, y.shape[2]), y.shape[2]
  for row, n in pairs(lengths) do
    local own, more = n * (n + 1) / 2, skipped * n
    for k = row * width, (row + 1) * width - 1 do
      weighted[k] = (own * weighted[k] + more * plain[k]) / (own + more)
    end
  end
  y:put(weighted)
end

-- Pools sequences first + 1 to last of a batch without their first `skipped` tokens. Writes the results to rows first + 1 to last
-- of `into`. hidden: the hidden states of these sequences.
local function pool_chunk(hidden, mode, batch, first, last, skipped, into)
  local width, halves, lengths = into.shape[2], split(batch, first, last, skipped), {}
  local function pooled(by)
    local y = tensor.new("F32", { 2 * (last - first), width })
    operator.run("pool", { x = hidden, mode = by, y = y }, halves)
    return y
  end
  for s = first, last - 1 do
    lengths[2 * (s - first) + 1] = batch.starts[s + 1] - batch.starts[s] - skipped
  end
  local y = pooled(mode)
  if mode == "weighted" then
    local mean = pooled "mean"
    count_from(y, mean, lengths, skipped)
    mean:release()
  end
  local from, to = y:pointer(), into:pointer()
  for s = first, last - 1 do
    ffi.copy(to + s * width, from + (2 * (s - first) + 1) * width, width * 4)
  end
  y:release()
end

-- Computes what the head computes, but pools only the tokens after the prompt. skipped: the number of the prompt's tokens.
local function pool_rest(encoder, batch, modes, skipped)
  for s = 1, batch.n do
    if batch.starts[s] - batch.starts[s - 1] <= skipped then
      error(("embed: input %d: its %d tokens are all of the prompt, which has %d; no token is left to pool"):format(batch.of[s],
        batch.starts[s] - batch.starts[s - 1], skipped), 0)
    end
  end
  local parts = {}
  for i = 1, #modes do
    parts[i] = tensor.new("F32", { batch.n, encoder.model.config.hidden_size })
  end
  encoder:runner("hidden"):run(batch, function(output, first, last)
    local hidden = output "hidden"
    for i, mode in ipairs(modes) do
      pool_chunk(hidden, mode, batch, first, last, skipped, parts[i])
    end
    hidden:release()
  end)
  return parts
end

---- Windows -----------------------------------------------------------------------------------------------------------

-- Returns one row for each input. The row of an input with several windows is their mean, weighted by their numbers of tokens.
local function join(pooled, batch)
  if batch.n == batch.count then
    return pooled
  end
  local width = pooled.shape[2]
  local from, to = pooled:numbers(batch.n), pgee.doubles(batch.count * width)
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
  pooled:release()
  return tensor.new("F32", { batch.count, width }):put(to)
end

---- The task ----------------------------------------------------------------------------------------------------------

--- The options of embed, for options.read.
embed.options = inputs.options {
  prompt = { "other", help = "Text to put before each input, or the name of one of the checkpoint's prompts" },
  tables = { "flag", default = false },
  dimensions = { "integer", 1, help = "Only the first values of a vector, scaled to length 1 again if the model's are" },
  normalize = { "flag", help = "Whether vectors are scaled to length 1. Default: as the checkpoint says" },
}

--- model:embed(inputs, options): one vector for each input, F32 [inputs][H]; t:pointer() gives its bytes to FFI code. One input
-- (not in a list) gives a vector [H]. Second result: the batch, whose `truncated` lists the inputs that were cut. Options:
--   prompt      the text that goes before every input: the name of a prompt in config_sentence_transformers.json, or the text
--               itself; false: no prompt, not even that file's default. The checkpoint says whether the prompt's tokens are
--               pooled
--   tables      true: the result is lists of numbers instead of a tensor
--   dimensions  an integer from 1 to H: only this many first values of each vector (Matryoshka). They are scaled to length 1 if
--               the model's vectors are
--   normalize   true or false: whether vectors are scaled to length 1; default: as the checkpoint says
--   long        what happens to a long text: "truncate" (default); "error"; "windows": its vector is the mean over its windows,
--               before the scaling
--   tokens      max tokens of a sequence; default: the model's limit
--   stride      tokens that two neighbouring windows share
function embed.run(encoder, given, opts)
  options.method(encoder, "embed")
  local read = options.read(opts, embed.options, "embed")
  local model = encoder.model
  local pooling, prompt = model:pooling(), prompt_of(model, read.prompt, "embed", "SentenceTransformer")
  local batch = inputs.batch(model, given, "embed", inputs.how(read, { forms = embed.forms, prompt = prompt }, "embed"))
  local parts = prompt and pooling.skip_prompt and pool_rest(encoder, batch, pooling.modes, tokens_of(model, prompt))
    or pool_all(encoder, batch, pooling.modes)
  local all = vectors.finish(join(vectors.side_by_side(parts), batch), pooling, read)
  local broken = all:first_nonfinite()
  if broken then -- the hidden states are finite: Runner:run has looked
    error(("embed: input %d: the vector is not finite: the checkpoint's modules after the pooling make it too large"):format(
      broken), 0)
  end
  if read.tables then
    local lists = all:totable()
    all:release()
    return batch.single and lists[1] or lists, batch
  end
  return batch.single and all[1] or all, batch
end

return embed
