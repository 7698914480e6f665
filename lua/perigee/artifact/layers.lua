--- layers: the layers after the pooling of an artifact (checkpoint/layers.lua), "model.pooling.layers" of its metadata, in which
-- tensors are named. Errors name the place and blame nobody.
local check = require "perigee.artifact.check"
local operator = require "perigee.operator"

local layers = {}

-- The field `residual` of a dense layer. true: the layer adds its input to its result. A name: it adds its input's product with
-- that tensor.
local function residual(value, place)
  return value == true or type(value) == "string" and value or check.fail(value, place, "true or the name of a tensor")
end

local KINDS = {
  dense = check.object {
    op = check.text, name = check.text, weight = check.text, bias = check.maybe(check.text),
    activation = check.choice(operator.ACTIVATIONS), residual = check.maybe(residual),
  },
  norm = check.object { op = check.text, name = check.text, gamma = check.text, beta = check.text, eps = check.number },
  unit = check.object { op = check.text, name = check.text },
}

--- Checks one layer.
function layers.check(value, place)
  check.map(check.any)(value, place)
  check.inside(check.choice(KINDS), value.op, place, "op")
  return KINDS[value.op](value, place)
end

-- The file's tensor of that name: F32, of a shape in which nil stands for any size.
local function tensor_of(artifact, name, place, n, k)
  local t = check.at(place, artifact.file.tensor, artifact.file, name)
  local shape = t.shape
  if t.dtype ~= "F32" or #shape ~= (k and 2 or 1) or shape[1] ~= (n or shape[1]) or k and shape[2] ~= k then
    check.wrong(place, " is the tensor '%s', %s [%s], expected F32 [%s]%s", name, t.dtype, table.concat(shape, "]["), n or "any",
      k and ("[%d]"):format(k) or "")
  end
  return t
end

-- Each: function(tensor of a field by its shape, layer, width, place) -> width after it.
local WIDTHS = {
  dense = function(take, layer, width, place)
    local N = take("weight", nil, width).shape[1]
    if layer.bias then
      take("bias", N)
    end
    if type(layer.residual) == "string" then
      take("residual", N, width)
    elseif layer.residual and N ~= width then
      check.wrong(place, ".residual is true, expected a tensor, since the input has %d values and the result %d", width, N)
    end
    return N
  end,
  norm = function(take, _, width)
    take("gamma", width)
    take("beta", width)
    return width
  end,
  unit = function(_, _, width) return width end,
}

--- The layers with tensors in place of their names. width: that of the pooled vectors.
function layers.of(artifact, saved, width)
  local list, place = {}, { "model", "pooling", "layers" }
  for i, layer in ipairs(saved) do
    local own = {}
    for key, value in pairs(layer) do
      own[key] = value
    end
    place[4] = i
    width = WIDTHS[layer.op](function(key, n, k)
      place[5] = key
      own[key] = tensor_of(artifact, layer[key], place, n, k)
      place[5] = nil
      return own[key]
    end, layer, width, place)
    list[i] = own
  end
  return list
end

return layers
