--- Distance: how far a quantized model is from its FP32 model on a list of inputs, without labels. perigee.evaluate documents the
-- result.
local checked = require "perigee.evaluate.checked"

-- The cosines of each row of one matrix with the same row of the other: mean and minimum.
local function cosines(a, b)
  local sum, min = 0, math.huge
  for i = 1, #a do
    local cosine = checked.cosine(a, i, b, i)
    sum, min = sum + cosine, math.min(min, cosine)
  end
  return { mean = sum / #a, min = min }
end

-- The fraction of inputs for which two classifiers give the same label.
local function agreement(model, q, inputs)
  local reference, test = {}, {}
  for i, answer in ipairs((model:classify(inputs))) do
    reference[i] = answer.label
  end
  for i, answer in ipairs((q:classify(inputs))) do
    test[i] = answer.label
  end
  return checked.accuracy(test, reference)
end

return function(model, q, inputs)
  local reference, batch = model:hidden(inputs)
  local test = q:hidden(inputs)
  local result = {
    n = #inputs, truncated = #batch.truncated, sqnr = reference:sqnr(test), tokens = cosines(reference, test),
  }
  reference:release()
  test:release()
  if model.task == "embed" then
    local a, b = model:embed(inputs), q:embed(inputs)
    result.vectors = cosines(a, b)
    a:release()
    b:release()
  elseif model.task == "classify" and model.config.problem ~= "regression" then
    result.agreement = agreement(model, q, inputs)
  end
  return result
end
