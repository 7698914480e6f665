--- lower: from a graph to a plan of the engine. Every node becomes one operator, every value a buffer.
--
-- A value has up to two forms: floats, if any node reads them, and u8 with its node's quantizer, which INT8 linears read. FP32
-- linears use the kernel that `kernel` names: "native", Perigee's own, whose bits are the same on every CPU; or "onednn".
local attention = require "perigee.graph.passes.attention"
local plan = require "perigee.plan"
local quant = require "perigee.quant"
local smooth = require "perigee.graph.passes.smooth"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local ffi = require "ffi"

local lower = {}

---- Parameters, kept in the model's memo ------------------------------------------------------------------------------

local function f32(memo, parameter)
  return parameter and memo:get("f32 " .. parameter.name, function()
    return parameter.tensor:f32()
  end)
end

--- The biases of a linear's parts, one after another, F32 [N]; nil if it has none.
function lower.bias(memo, parts)
  if #parts == 1 or not parts[1].bias then
    return f32(memo, parts[1].bias)
  end
  local names, N = {}, 0
  for i, part in ipairs(parts) do
    names[i], N = part.bias.name, N + part.bias.shape[1]
  end
  return memo:get("f32 " .. table.concat(names, "+"), function()
    local all, at = tensor.new("F32", N), 0
    local to = all:pointer()
    for _, part in ipairs(parts) do
      local one = part.bias.tensor:f32()
      ffi.copy(to + at, one:pointer(), #one * 4)
      at = at + #one
      one:release()
    end
    return all
  end)
end

-- The names of a linear's parts.
local function names_of(parts)
  local names = {}
  for i, part in ipairs(parts) do
    names[i] = part.name
  end
  return table.concat(names, "+")
end

--- The bias of a linear, F32 [N] or nil. If its site is shifted, the product of its weights and the shift is in it.
function lower.bias_of(memo, node)
  local bias = lower.bias(memo, node.parts)
  if not node.shift then
    return bias
  end
  return memo:get("shifted bias " .. names_of(node.parts), function()
    return quant.shifted_bias(smooth.weights(node.parts), node.shift, bias)
  end)
end

-- The weights of a linear's parts, packed as floats. precision: "f32" or "bf16". A table of embeddings is used in place if the
-- precision is "f32".
local function packed_floats(memo, parts, precision)
  local weight, scales = parts[1].weight, parts[1].scales
  local function in_place()
    return packed.new(weight.tensor, { in_place = true, scales = scales and scales.tensor })
  end
  if parts[1].in_place and precision == "f32" then
    return memo:get(("in place %s %s"):format(weight.name, weight.tensor.dtype), in_place)
  elseif parts[1].in_place then -- a copy of its own: a table is read in place as FP32 only
    return memo:get(("packed %s %s %s"):format(precision, weight.name, weight.tensor.dtype), function()
      local own = in_place()
      local wide = own:unpack()
      local w = packed.new(wide, { dtype = precision })
      wide:release()
      own:release()
      return w
    end)
  end
  local names = {}
  for i, part in ipairs(parts) do
    names[i] = part.weight.name -- linears that share weights share the packed ones
  end
  return memo:get(("packed %s %s"):format(precision, table.concat(names, "+")), function()
    return packed.new(smooth.weights(parts), { dtype = precision })
  end)
end

--- The weights of a linear's parts, packed as they are.
function lower.packed_f32(memo, parts)
  return packed_floats(memo, parts, "f32")
end

---- Values ------------------------------------------------------------------------------------------------------------

-- Returns a table of the nodes whose F32 result is read. Its value is "quantized" if only quantize nodes read it. Else it is
-- "exact": an operator that takes floats, a residual input or an output of the graph reads it. activation_of may take the faster
-- rounded GELU where the value is not "exact". The first input of an INT8 node does not count, because that node reads u8.
local function float_readers(graph)
  local read = {}
  for _, node in ipairs(graph.nodes) do
    for i, input in ipairs(node.inputs) do
      if i > 1 or node.precision ~= "int8" then
        read[input] = node.op == "quantize" and read[input] ~= "exact" and "quantized" or "exact"
      end
    end
  end
  for _, output in ipairs(graph.outputs) do
    read[output.node] = "exact"
  end
  return read
end

local ROUNDED = { gelu = "gelu_rounded", gelu_tanh = "gelu_tanh_rounded" }

-- The activation of a linear. The rounded form of GELU is faster. It stands in if the result is only used in 8 bits: if nothing
-- but quantize nodes reads the floats. This is the only place that decides so; the kernels do what the plan says.
local function activation_of(node, read)
  return read[node] ~= "exact" and ROUNDED[node.activation] or node.activation or "identity"
end

-- The fields of an operator's quantizer, with new buffers for the u8 form of a node; nil if the node has no u8 form.
local function quantizer(p, node)
  local q = node.quantize
  if not q then
    return nil
  end
  local fields = {
    mode = q.mode, symmetric = q.symmetric, zero = q.zero, m = q.m, b = q.b, q = p:buffer("U8", node.rows, node.width),
  }
  if q.mode ~= "static" then
    fields.row_scale, fields.row_zero = p:buffer("F32", node.rows), p:buffer("I32", node.rows)
  end
  return fields
end

---- Operators: what each kind of node pushes --------------------------------------------------------------------------

local push = {}

function push.embed(p, node, value, c)
  local args = {
    word = node.word.tensor, position = node.position and node.position.tensor, type = node.type and node.type.tensor,
    position_offset = node.offset, skip_padding = node.skip_padding, y = value.y,
    word_scales = node.word_scales and node.word_scales.tensor,
    position_scales = node.position_scales and node.position_scales.tensor,
    type_scales = node.type_scales and node.type_scales.tensor,
  }
  p:embed(args)
  c.embeds[#c.embeds + 1] = args
end

function push.linear(p, node, value, c)
  local x, residual = c.values[node.inputs[1]], node.inputs[2] and c.values[node.inputs[2]].y
  local args = {
    bias = lower.bias_of(c.memo, node), residual = residual, y = value.y, quantize = value.quantize,
    activation = activation_of(node, c.read),
  }
  if node.precision == "int8" then
    args.x, args.w, args.scale, args.kernel = x.quantize.q, node.packed, node.multiplier, node.kernel or "native"
    args.zero, args.row_scale, args.row_zero = x.quantize.zero, x.quantize.row_scale, x.quantize.row_zero
  else
    args.x, args.w = x.y, packed_floats(c.memo, node.parts, node.precision)
    args.kernel = (node.precision == "bf16" or node.parts[1].in_place) and "native" or c.kernel
  end
  p:linear(args)
  c.linears[#c.linears + 1] = { node = node, args = args, quantize = node.precision == "int8" and node.inputs[1].quantize or nil }
end

function push.norm(p, node, value, c)
  p:norm {
    x = c.values[node.inputs[1]].y, residual = node.inputs[2] and c.values[node.inputs[2]].y,
    gamma = f32(c.memo, node.gamma), beta = f32(c.memo, node.beta), eps = node.eps, y = value.y, quantize = value.quantize,
  }
end

function push.attention(p, node, value, c)
  local stacked, int8 = node.inputs[1], node.precision == "int8"
  if #node.inputs ~= 1 then
    error("an attention whose queries, keys and values are not one linear cannot be run", 0)
  end
  p:attention {
    qkv = int8 and c.values[stacked].quantize.q or c.values[stacked].y,
    qk_scale = int8 and node.scales.qk or nil, v_scale = int8 and node.scales.v or nil,
    queries = node.queries,
    heads = node.heads, scale = 1 / math.sqrt(node.width / node.heads), bias = attention.bias(node, c.memo),
    y = value.y, quantize = value.quantize,
  }
  c.attentions[#c.attentions + 1] = node
end

function push.quantize(p, node, value, c)
  p:quantize { x = c.values[node.inputs[1]].y, quantize = value.quantize }
end

function push.pool(p, node, value, c)
  p:pool { x = c.values[node.inputs[1]].y, mode = node.mode, y = value.y }
end

function push.gather(p, node, value, c)
  p:gather { x = c.values[node.inputs[1]].y, mode = node.mode, y = value.y }
end

function push.observe(p, node, _, c)
  p:observe { x = c.values[node.inputs[1]].y, observer = c.observers[node.site.name] }
end

--- Returns { plan = sealed, outputs = { name = buffer }, linears = { { node =, args = }... }, attentions = { node... },
-- embeds = { args... } }, the lists in order.
--   memo        keeps the FP32 parameters
--   kernel      the kernel of FP32 linears: "native" (default) or "onednn"
--   observers   { [name of a site] = observer }, if the graph has observe nodes
--   plan        takes the buffers and operators in place of a new plan, as artifact/save.lua's recorder does
--   visit       function(node), called before a node's operator is pushed
function lower.pass(graph, options)
  local p, read = options.plan or plan.new(), float_readers(graph)
  local c = {
    values = {}, linears = {}, attentions = {}, embeds = {}, memo = options.memo, kernel = options.kernel or "native",
    observers = options.observers, read = read,
  }
  for _, node in ipairs(graph.nodes) do
    if not push[node.op] then
      error(("the engine has no operator for the graph's %s where it stands"):format(node.op), 0)
    end
    local value = { quantize = quantizer(p, node) }
    if read[node] and node.op ~= "quantize" then
      value.y = p:buffer("F32", node.rows, node.width)
    end
    c.values[node] = value
    if options.visit then
      options.visit(node)
    end
    push[node.op](p, node, value, c)
  end
  local outputs, list = {}, {}
  for i, output in ipairs(graph.outputs) do
    list[i] = c.values[output.node].y
    outputs[output.name] = list[i]
  end
  p:seal(list)
  return { plan = p, outputs = outputs, linears = c.linears, attentions = c.attentions, embeds = c.embeds }
end

return lower
