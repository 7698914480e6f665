--- Sample: inputs of a set to calibrate on, evenly over it, without those that a model is then judged by.

-- What makes two inputs the same; of questions it is the context.
local function key(input)
  return type(input) == "string" and input or input.context or table.concat(input.words or input, "\0")
end

-- The inputs of a set; single: pairs as two texts, which is what a model of vectors is given.
local function inputs_of(set, single)
  local list = {}
  for _, input in ipairs(set.documents or set.texts) do
    if single and type(input) == "table" then
      if #input ~= 2 then
        error(("%s has no texts, which is what a model of vectors calibrates on"):format(set.path), 0)
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

--- The inputs of `from` without those of `without`, a set or nil: a list. Second result: how many were left out.
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
    error(("%s: all of it is what the model is judged by; calibrate on another file"):format(from.path), 0)
  end
  return list, out
end

--- Up to `count` of these, evenly over them: a list.
function sample.take(from, count, without, single)
  local list, chosen = sample.candidates(from, without, single), {}
  for i = 1, math.min(count, #list) do
    chosen[i] = list[math.floor((i - 1) * #list / math.min(count, #list)) + 1]
  end
  return chosen
end

return sample
