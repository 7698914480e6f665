--- embed: one vector for each text, as sentence-transformers computes it: the hidden states pooled, and scaled to length 1
-- where the checkpoint says so. A checkpoint that says nothing about pooling gets the mean of all tokens, not scaled.
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local ffi = require "ffi"
local C, check = pgee.C, pgee.check

local embed = {}

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

--- encoder:embed(inputs): F32 [inputs][H]; one input (not in a list) gives a vector [H]. Second result: the batch, which says
-- what was truncated.
function embed.run(encoder, given)
  options.method(encoder, "embed")
  local pooling = encoder.model:pooling()
  local parts, batch = encoder:gather("embed", given, "embed", { forms = { "text", "pair", "ids" } })
  local vectors = side_by_side(parts, #pooling.modes)
  if pooling.normalize then
    local args = ffi.new("pgee_unit_args", tensor.handle(vectors), tensor.handle(vectors))
    check(C.pgee_run(C.PGEE_UNIT, args, nil))
  end
  return batch.single and vectors[1] or vectors, batch
end

return embed
