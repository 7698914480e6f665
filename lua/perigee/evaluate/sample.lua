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

--- Up to `count` inputs of `from`. without: a set whose inputs are left out, or nil. Returns the list, and { all = how many there
-- were to choose from, out = how many were left out }.
return function(from, count, without, single)
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
  local chosen = {}
  for i = 1, math.min(count, #list) do
    chosen[i] = list[math.floor((i - 1) * #list / math.min(count, #list)) + 1]
  end
  return chosen, { all = #list, out = out }
end
