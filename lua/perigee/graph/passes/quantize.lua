--- quantize: packs the weights of INT8 linears, and gives each of their sites a quantizer.
--
-- An INT8 linear gets `packed`, its weight, and `multiplier`, F32 [N], by which its accumulators are multiplied. It reads the u8
-- form of its input. The node that produces the site also quantizes it if it can: a norm (static or per token), a linear or an
-- attention (static). Otherwise the pass adds a quantize node. The node that quantizes gets `quantize`: { mode =, symmetric =,
-- m = }, and if static also scale and zero, and b if the site is shifted.
local packed = require "perigee.packed"
local quant = require "perigee.quant"
local ranges = require "perigee.quantize.ranges"
local registry = require "perigee.quantize.settings.registry"
local smooth = require "perigee.graph.passes.smooth"

-- The operators that can quantize their own result, and in which modes.
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
  if self.b then
    self.b:release()
  end
end

local function make_quantizer(node, stats, own)
  local K, factors = node.site.width, node.factors or nil
  local quantizer = { mode = own.per, symmetric = own.symmetric }
  if own.activations == "static" then
    local low, high = ranges.choose(own.range, stats:site(node.site), node, own.symmetric)
    local range = quant.range(low, high, { symmetric = own.symmetric })
    quantizer.mode, quantizer.scale, quantizer.zero = "static", range.scale, range.zero
    quantizer.m = quant.multiplier(range.scale, factors or K)
    quantizer.b = node.shift and quant.addend(node.shift, quantizer.m) or nil
  elseif factors then
    quantizer.m = quant.multiplier(1, factors)
  end
  return setmetatable(quantizer, Quantizer)
end

-- One name for all parts of a linear.
local function names(node)
  local list = {}
  for i, part in ipairs(node.parts) do
    list[i] = part.name
  end
  return table.concat(list, "+")
end

local quantize = {}

--- Returns the quantizer, the packed weight and the multiplier of an INT8 linear that has `alpha`, `factors`, `wmax` and `shift`,
-- as smooth.values returns them. own: the settings of its site, in which shift is true or false. memo keeps the results, under
-- keys that have all they depend on.
function quantize.values(node, stats, own, memo)
  local linear = names(node)
  local of_quantizer = registry.key("quantizer", own, node.alpha)
  local of_weight = ("%s %s"):format(linear, registry.key("weights", own, node.alpha))
  local quantizer = memo:get(("quantizer %s %s"):format(node.site.name, of_quantizer), function()
    return make_quantizer(node, stats, own)
  end)
  local weight = memo:get("packed " .. of_weight, function()
    return packed.new(smooth.weights(node.parts), { per = own.weights, smooth = node.factors or nil, pages = own.pages })
  end)
  local multiplier = memo:get(("multiplier %s %s"):format(of_weight, of_quantizer), function()
    return quantizer.scale and weight:multiplier(quantizer.scale) or weight.scales
  end)
  return quantizer, weight, multiplier
end

--- Returns the graph whose INT8 linears have packed weights and quantized inputs. It runs after smooth.
function quantize.pass(graph, stats, memo)
  local holder = {} -- { [node with the floats of a site] = node with the u8 form }
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
    local quantizer, weight, multiplier = quantize.values(node, stats, node.own, memo)
    node.packed, node.multiplier = weight, multiplier
    node.inputs[1] = quantized(out, node.inputs[1], quantizer)
  end)
end

return quantize
