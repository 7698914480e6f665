--- Weights: a checkpoint's tensors as the parameters of a model definition.
--
-- The definition asks for parameters by name and shape. Then weights:check() raises one error that lists all tensors that are
-- missing or have another shape.
local nearest = require "perigee.base.nearest"

local Weights = {}
Weights.__index = Weights

--- checkpoint: an object with the methods names() and tensor(name, shape), which returns nil for an unknown name. shape: the
-- shape that check() will expect.
function Weights.new(checkpoint)
  return setmetatable({ checkpoint = checkpoint, parameters = {}, order = {}, checked = 0 }, Weights)
end

local function shape_text(shape)
  return "[" .. table.concat(shape, "][") .. "]"
end

--- The parameter of that name: { name =, shape =, tensor = }, its tensor nil until check() if the checkpoint lacks it.
function Weights:parameter(name, shape)
  local parameter = self.parameters[name]
  if parameter and shape_text(parameter.shape) ~= shape_text(shape) then
    error(("the definition asks for %s as %s and as %s"):format(name, shape_text(parameter.shape), shape_text(shape)), 0)
  elseif not parameter then
    parameter = { name = name, shape = shape, tensor = self.checkpoint:tensor(name, shape) }
    self.parameters[name] = parameter
    self.order[#self.order + 1] = parameter
  end
  return parameter
end

--- A table of `rows` vectors.
function Weights:table(name, rows, width)
  return self:parameter(name, { rows, width })
end

--- NAME.weight [N][K] and NAME.bias [N].
function Weights:linear(name, N, K)
  return { name = name, weight = self:parameter(name .. ".weight", { N, K }), bias = self:parameter(name .. ".bias", { N }) }
end

--- NAME.weight and NAME.bias, both [width].
function Weights:norm(name, width, eps)
  return {
    name = name, eps = eps,
    gamma = self:parameter(name .. ".weight", { width }), beta = self:parameter(name .. ".bias", { width }),
  }
end

local function has(self, name)
  if not self.names then
    self.names = {}
    for _, known in ipairs(self.checkpoint:names()) do
      self.names[known] = true
    end
  end
  return self.names[name]
end

--- The decoder, which turns hidden states into logits of words. d: { name =, bias =, table =, N =, K =, tied = }. The weight
-- [N][K] is NAME.weight if the checkpoint has it or if tied is false, else the table of words; neither is packed. The bias [N]
-- is NAME.bias if the checkpoint has it, else the tensor d.bias: if a checkpoint has both, transformers adds NAME.bias.
function Weights:decoder(d)
  local own, bias = d.name .. ".weight", d.name .. ".bias"
  local name = (has(self, own) or not d.tied) and own or d.table
  return {
    name = d.name, in_place = true, weight = self:parameter(name, { d.N, d.K }),
    bias = self:parameter(has(self, bias) and bias or d.bias, { d.N }),
  }
end

local function fault(parameter, names)
  local t = parameter.tensor
  if not t then
    return ("%s %s is missing%s"):format(parameter.name, shape_text(parameter.shape), nearest.hint(parameter.name, names))
  end
  local shape = t.shape
  if shape_text(shape) ~= shape_text(parameter.shape) then
    return ("%s is %s, expected %s"):format(parameter.name, shape_text(shape), shape_text(parameter.shape))
  end
  if t.dtype ~= "F32" and t.dtype ~= "F16" and t.dtype ~= "BF16" then
    return ("%s is of type %s, expected F32, F16 or BF16"):format(parameter.name, t.dtype)
  end
  local row, column = t:first_nonfinite()
  if row then
    return ("%s has NaN or infinity at [%d]%s"):format(parameter.name, row, column and ("[%d]"):format(column) or "")
  end
end

--- An error unless every parameter that was asked for exists, has its shape and is finite. An error forgets the parameters since
-- the last successful check, because they belong to a head that the checkpoint lacks. title: nil, or a function that returns the
-- first line of the error for the case that the only faults are missing tensors.
function Weights:check(title)
  local faults, names, asked, missing = {}, self.checkpoint:names(), #self.order, 0
  for i = self.checked + 1, asked do
    faults[#faults + 1] = fault(self.order[i], names)
    missing = missing + (self.order[i].tensor and 0 or 1)
  end
  if #faults == 0 then
    self.checked = asked
    return
  end
  for i = asked, self.checked + 1, -1 do
    self.parameters[self.order[i].name] = nil
    self.order[i] = nil
  end
  title = title and missing == #faults and title() or ("%s: %d of %d tensors that config.json asks for are not as they should be")
    :format(self.checkpoint.dir, #faults, asked)
  error(title .. ":\n  " .. table.concat(faults, "\n  "), 0)
end

return Weights
