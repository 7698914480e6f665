--- tables: the embedding tables by the setting `tables`: as the checkpoint has them ("f32"), as F16, or as INT8 with one scale
-- for each row. A decoder that is tied to a table multiplies by the same bytes.
local quant = require "perigee.quant"

local Table = {}
Table.__index = Table

function Table:release()
  self.tensor:release()
  if self.scales then
    self.scales:release()
  end
end

local function made(parameter, type)
  local ok, t, scales = pcall(quant.table, parameter.tensor, type)
  if not ok then
    error(('tables is "%s", but %s has a value that does not fit: %s; use tables = "f32"'):format(type, parameter.name, t), 0)
  end
  return setmetatable({ tensor = t, scales = scales }, Table)
end

-- Returns the parameter with another tensor, and the parameter of the tensor's scales, nil if it has none. The memo keeps both
-- tensors.
local function converted(parameter, type, memo)
  if type == "f16" and parameter.tensor.dtype == "F16" then
    return parameter
  end
  local new = memo:get(("table %s %s"):format(type, parameter.name), function() return made(parameter, type) end)
  local scales = new.scales and { name = parameter.name .. ".scales", tensor = new.scales, shape = { parameter.shape[1] } }
  return { name = parameter.name, shape = parameter.shape, tensor = new.tensor }, scales
end

--- Returns the graph whose embed nodes have these tables; the fields word_scales, position_scales and type_scales are the
-- parameters of their scales. A linear that multiplies by such a table in place gets the same tensor, and the field `scales` in
-- its part. chosen: the settings. memo keeps the tensors.
return function(graph, chosen, memo)
  local type, of_name = chosen.tables, {}
  if type == "f32" then
    return graph
  end
  return graph:rewrite(function(_, node)
    local part = node.op == "linear" and node.parts[1]
    for _, key in ipairs(node.op == "embed" and { "word", "position", "type" } or {}) do
      if node[key] then
        local parameter, scales = converted(node[key], type, memo)
        node[key], node[key .. "_scales"] = parameter, scales
        of_name[parameter.name] = { parameter, scales }
      end
    end
    if part and part.in_place and of_name[part.weight.name] then
      local parameter, scales = unpack(of_name[part.weight.name])
      node.parts = { { name = part.name, bias = part.bias, in_place = true, weight = parameter, scales = scales } }
    end
  end)
end
