--- Sample: chooses inputs of a set for calibration, evenly spaced, without the inputs on which the model is then evaluated.

-- A key that equal inputs share. Questions are equal if their contexts are.
local function key(input)
  return type(input) == "string" and input or input.context or table.concat(input.words or input, "\0")
end

-- The inputs of a set. single: each pair becomes two texts, which is the input of an embedding model.
local function inputs_of(set, single)
  local list = {}
  for _, input in ipairs(set.documents or set.texts) do
    if single and type(input) == "table" then
      if #input ~= 2 then
        error(("%s has no texts, and an embedding model calibrates on texts"):format(set.path), 0)
      end
      list[#list + 1] = input[1]
      list[#list + 1] = input[2]
    else
      list[#list + 1] = input
    end
  end
  return list
end

local sample = {}

--- The list of the inputs of the set `from` without those of the set `without` (or nil), and the number of inputs left out.
function sample.candidates(from, without, single)
  local judged, list, out = {}, {}, 0
  for _, input in ipairs(without and inputs_of(without, single) or {}) do
    judged[key(input)] = true
  end
  for _, input in ipairs(inputs_of(from, single)) do
    if judged[key(input)] then
      out = out + 1
    else
      list[#list + 1] = input
    end
  end
  if #list == 0 then
    error(("%s: all of its inputs are in the set of the evaluation, expected another file for calibration"):format(from.path), 0)
  end
  return list, out
end

--- Up to `count` of these inputs, evenly spaced.
function sample.take(from, count, without, single)
  local list, chosen = sample.candidates(from, without, single), {}
  for i = 1, math.min(count, #list) do
    chosen[i] = list[math.floor((i - 1) * #list / math.min(count, #list)) + 1]
  end
  return chosen
end

return sample
