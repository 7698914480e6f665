--- quantize: INT8 weights for the linears placed there, and a quantizer for what each of their sites holds.
--
-- An INT8 linear gets `packed`, and `multiplier`, what its accumulators are multiplied by (F32 [N]); it reads the u8 form of
-- its input. Who produces the site quantizes it where it can: a norm (static or per token), a linear or an attention (static).
-- Elsewhere a node of its own does. Either way that node's `quantize` is { mode =, symmetric =, m =, and if static scale =,
-- zero = }.
local packed = require "perigee.packed"
local quant = require "perigee.quant"
local smooth = require "perigee.passes.smooth"

-- What can quantize its own result, and in which modes.
local ABSORBS = {
  norm = { static = true, token = true },
  linear = { static = true },
  attention = { static = true },
}

local Quantizer = {}
Quantizer.__index = Quantizer

function Quantizer:release()
  if self.m then
    self.m:release()
  end
end

-- The range of x / s over all channels, from the range of x in each: exact for every alpha.
local function smoothed_range(seen, factors, K)
  local min, max = seen.min:pointer(), seen.max:pointer()
  local s = factors and factors:pointer()
  local low, high = 0, 0
  for k = 0, K - 1 do
    local divisor = s and s[k] or 1
    low, high = math.min(low, min[k] / divisor), math.max(high, max[k] / divisor)
  end
  return low, high
end

local function make_quantizer(node, stats, chosen)
  local K, factors = node.site.width, node.factors or nil
  local quantizer = { mode = chosen.per, symmetric = chosen.symmetric }
  if chosen.activations == "static" then
    local low, high = smoothed_range(stats:site(node.site), factors, K)
    local range = quant.range(low, high, { symmetric = chosen.symmetric })
    quantizer.mode, quantizer.scale, quantizer.zero = "static", range.scale, range.zero
    quantizer.m = quant.multiplier(range.scale, factors or K)
  elseif factors then
    quantizer.m = quant.multiplier(1, factors)
  end
  return setmetatable(quantizer, Quantizer)
end

-- What the parts of a linear are called together.
local function names(node)
  local list = {}
  for i, part in ipairs(node.parts) do
    list[i] = part.name
  end
  return table.concat(list, "+")
end

--- memo: keeps what is made here, by what it depends on.
return function(graph, stats, chosen, memo)
  local holder = {} -- of a site's u8 form, by the node that holds its floats
  local function quantized(out, input, quantizer)
    if not holder[input] then
      local absorbs = ABSORBS[input.op]
      if absorbs and absorbs[quantizer.mode] then
        input.quantize = quantizer
        holder[input] = input
      else
        holder[input] = out:push {
          op = "quantize", inputs = { input }, rows = input.rows, width = input.width, quantize = quantizer,
        }
      end
    end
    return holder[input]
  end

  return graph:rewrite(function(out, node)
    if node.precision ~= "int8" then
      return
    end
    local alpha = node.alpha and ("%.17g"):format(node.alpha) or "off"
    local site, linear = node.site.name, names(node)
    local quantizer = memo:get(("quantizer %s %s %s %s"):format(site, alpha, chosen.per, chosen.symmetric), function()
      return make_quantizer(node, stats, chosen)
    end)
    node.packed = memo:get(("packed %s %s %s"):format(linear, alpha, chosen.weights), function()
      return packed.new(smooth.weights(node.parts), { per = chosen.weights, smooth = node.factors or nil })
    end)
    node.multiplier = memo:get(("multiplier %s %s %s %s %s"):format(linear, alpha, chosen.weights, chosen.per, chosen.symmetric),
      function()
        return quantizer.scale and node.packed:multiplier(quantizer.scale) or node.packed.scales
      end)
    node.inputs[1] = quantized(out, node.inputs[1], quantizer)
  end)
end
