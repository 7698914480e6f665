--- attention: which attentions run in INT8, and their scales.
--
-- An INT8 attention reads queries, keys and values that the linear before it writes: u8 with the zero point 128 and one scale for
-- each head. The scale follows from the largest |x| that calibration saw in the head. Each attention gets `precision`, and if
-- that is "int8" also `scales`: { m = F32 [3H], by which the linear's results are multiplied, qk = F32 [A], the scale of Q
-- times the scale of K of each of A heads, v = F32 [A], the scale of V }.
local operator = require "perigee.operator"
local pgee = require "perigee.ffi"
local plan = require "perigee.plan"
local quant = require "perigee.quant"
local registry = require "perigee.quantize.settings.registry"
local tensor = require "perigee.tensor"

local attention = {}

--- With the setting "auto" an attention is INT8 if its SQNR, in dB, is at least this (lua/FIGURES.md says why).
attention.LEAST = 20

local Scales = {}
Scales.__index = Scales

function Scales:release()
  for _, key in ipairs { "m", "qk", "v" } do
    self[key]:release()
  end
end

-- The product of two scales must be a normal float, so scales are limited to this interval. No real model comes near its ends.
-- Values that are small against the smallest scale become 0; values too large for the largest scale are clipped.
local LEAST_SCALE, MOST_SCALE = 1e-15, 1e15

local function head_scale(min, max, first, D)
  local low, high = 0, 0
  for i = first, first + D - 1 do
    low, high = math.min(low, min[i]), math.max(high, max[i])
  end
  local scale = quant.range(low, high, { symmetric = true }).scale
  return math.min(math.max(scale, LEAST_SCALE), MOST_SCALE)
end

--- The scales of an attention of so many heads from { min =, max = F32 [3H] }.
function attention.scales(seen, heads)
  local W = #seen.min
  local D = W / 3 / heads
  local min, max = seen.min:numbers(W), seen.max:numbers(W)
  local m, qk, v = pgee.doubles(W), pgee.doubles(heads), pgee.doubles(heads)
  for h = 0, heads - 1 do
    local own = {}
    for part = 0, 2 do -- Q, K, V
      local first = (part * heads + h) * D
      own[part] = head_scale(min, max, first, D)
      for i = first, first + D - 1 do
        m[i] = 1 / own[part]
      end
    end
    qk[h], v[h] = own[0] * own[1], own[2]
  end
  local function of(numbers, n)
    return tensor.new("F32", n):put(numbers)
  end
  return setmetatable({ m = of(m, W), qk = of(qk, heads), v = of(v, heads) }, Scales)
end

--- The quantizer that a linear before an INT8 attention has.
function attention.quantizer(scales)
  return { mode = "static", symmetric = true, zero = 128, m = scales.m }
end

--- Returns the bias that an attention adds to its scores, as the engine takes it: F32 [heads][2 reach - 1], one value for each
-- distance of key and query; nil if it adds none. memo keeps it.
function attention.bias(node, memo)
  local bias, heads = node.bias, node.heads
  return bias and memo:get(("bias %s %d %s"):format(bias.table.name, bias.reach, tostring(bias.bucket)), function()
    local rows, stride = bias.table.tensor, 2 * bias.reach - 1
    local from, to = rows:numbers(nil, heads), pgee.doubles(heads * stride)
    for distance = 1 - bias.reach, bias.reach - 1 do
      local bucket, column = bias.bucket(distance), distance + bias.reach - 1
      if type(bucket) ~= "number" or bucket % 1 ~= 0 or bucket < 0 or bucket >= rows.shape[1] then
        error(("attention: the bucket of the distance %d is %s, expected an integer from 0 to %d, a row of %s"):format(distance,
          pgee.describe(bucket), rows.shape[1] - 1, bias.table.name), 0)
      end
      for h = 0, heads - 1 do
        to[h * stride + column] = from[bucket * heads + h]
      end
    end
    return tensor.new("F32", { heads, stride }):put(to)
  end)
end

--- Returns the SQNR of INT8 attention against FP32 attention, in dB. qkv: queries, keys and values of whole texts, F32 [T][3H];
-- batch: these texts, as attention.batch returns them; bias: what attention.bias returns.
function attention.sqnr(qkv, batch, heads, scales, bias)
  local T, W = #qkv, qkv.shape[2]
  local q = tensor.new("U8", { T, W })
  local want, got = tensor.new("F32", { T, W / 3 }), tensor.new("F32", { T, W / 3 })
  local scale = 1 / math.sqrt(W / 3 / heads)
  local quantize = attention.quantizer(scales)
  quantize.q = q
  operator.run("quantize", { x = qkv, quantize = quantize })
  operator.run("attention", { qkv = qkv, heads = heads, scale = scale, bias = bias, y = want }, batch)
  operator.run("attention", {
    qkv = q, heads = heads, scale = scale, qk_scale = scales.qk, v_scale = scales.v, bias = bias, y = got,
  }, batch)
  local db = want:sqnr(got)
  for _, t in ipairs { q, want, got } do
    t:release()
  end
  return db
end

--- Whole texts as the batch that sqnr takes, from a batch of run/inputs.lua.
function attention.batch(given)
  return plan.packed_batch(given.n, given.starts, given.ids, given.types)
end

local Found = {}
Found.__index = Found

function Found:release()
  if self.scales then
    self.scales:release()
  end
end

-- Looks an attention up in the statistics. Returns { sqnr =, scales = }; scales is nil if the attention will be FP32.
local function find(node, stats, wanted)
  local seen = stats:attention_of(node)
  local int8 = wanted == "int8" or wanted == "auto" and seen.sqnr >= attention.LEAST
  return setmetatable({ sqnr = seen.sqnr, scales = int8 and attention.scales(seen, node.heads) or nil }, Found)
end

--- Returns the graph whose attentions have `precision`, and `scales` if INT8. An attention is FP32 if the linear before it is
-- FP32. Without statistics all are FP32. An attention whose statistics were looked up also gets `sqnr`, in dB. memo keeps the
-- scales.
function attention.pass(graph, stats, chosen, memo)
  if chosen.attention == "int8" and not stats then
    error("quantize: INT8 attention needs statistics: stats = model:calibrate(texts)", 0)
  end
  return graph:rewrite(function(_, node)
    if node.op ~= "attention" then
      return
    end
    node.precision = "f32"
    if stats and chosen.attention ~= "f32" and node.inputs[1].precision == "int8" then
      local found = memo:get(("attention %s %s"):format(node.name, registry.key("attention", chosen)), function()
        return find(node, stats, chosen.attention)
      end)
      node.sqnr = found.sqnr
      if found.scales then
        node.precision, node.scales = "int8", found.scales
        node.inputs[1].quantize = attention.quantizer(found.scales)
      end
    end
  end)
end

return attention
