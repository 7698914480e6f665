--- Roofline: the highest speed that a matrix product can have on a machine (Williams, Waterman and Patterson 2009).
--
-- A product cannot be faster than the peak of its type, nor faster than its operands arrive. Its arithmetic intensity, operations
-- per byte, says which of the two limits it: below the machine's balance point (peak / bandwidth) it is memory-bound.
local machine = require "perigee.analyze.machine"

local roofline = {}

--- Bytes of an element by type: of the rows that a linear reads, of its weights, and of its result.
roofline.BYTES = {
  f32 = { input = 4, weight = 4, output = 4 },
  bf16 = { input = 2, weight = 2, output = 4 },
  int8 = { input = 1, weight = 1, output = 4 },
}

--- The nearest level of memory that holds so many bytes. Bytes are divided among the cores, so that all L2 caches together count.
-- Returns "l2", "l3" or "memory".
function roofline.level(m, bytes)
  if m.cache.l2 and m.bandwidth.l2 and bytes <= m.cache.l2 * m.cores then
    return "l2"
  elseif m.cache.l3 and m.bandwidth.l3 and bytes <= m.cache.l3 then
    return "l3"
  end
  return "memory"
end

local distance = {}
for i, level in ipairs(machine.LEVELS) do
  distance[level] = i
end

--- The bound of one linear.
--   m       a machine
--   linear  { M = rows, N = output channels, K = input channels }
--   type    "f32", "bf16" or "int8"
--   weights bytes of all weights of the model in this type: they decide where the weights lie. Default: of this linear
-- Returns {
--   operations  2 M N K
--   weights     where the weights lie: "l2", "l3", "memory"
--   level       the farthest level that the product reads: where the weights lie, or the rows and results if these lie farther
--   bytes       that this level delivers
--   intensity   operations / bytes
--   balance     the intensity at which the machine changes from memory-bound to compute-bound
--   seconds     the shortest time that is possible, operations_per_second the highest speed
--   bound       "compute", or the level that limits it
-- }; nil if the machine has no instructions of this type.
function roofline.linear(m, linear, type, weights)
  local peak, size = m.peak[type], roofline.BYTES[type]
  if not peak then
    return nil
  end
  local M, N, K = linear.M, linear.N, linear.K
  local operations, panel = 2 * M * N * K, N * K * size.weight
  local activations = M * K * size.input + M * N * size.output
  local at = roofline.level(m, weights or panel)
  local level, near, bytes, near_bytes = at, roofline.level(m, activations), panel, activations
  if distance[near] > distance[level] then
    level, near, bytes, near_bytes = near, level, near_bytes, bytes
  elseif near == level then
    bytes, near_bytes = bytes + near_bytes, 0
  end
  local seconds, bound = operations / peak, "compute"
  if bytes / m.bandwidth[level] > seconds then
    seconds, bound = bytes / m.bandwidth[level], level
  end
  if near_bytes / m.bandwidth[near] > seconds then
    seconds, bound = near_bytes / m.bandwidth[near], near
  end
  return {
    operations = operations, weights = at, level = level, bytes = bytes, intensity = operations / bytes,
    balance = peak / m.bandwidth[level], seconds = seconds, operations_per_second = operations / seconds, bound = bound,
  }
end

--- Bytes of the weights of some linears, { { N =, K =, steps = how often }... }, in a type.
function roofline.weights(linears, type)
  local sum = 0
  for _, l in ipairs(linears) do
    sum = sum + l.N * l.K * (l.steps or 1) * roofline.BYTES[type].weight
  end
  return sum
end

--- The bounds of a model's linears in each type that the machine has.
-- linears: list of { name =, M =, N =, K =, steps = how many layers have it }.
-- Returns a list, one for each linear, of { name =, M =, N =, K =, steps =, f32 =, int8 =, bf16 =, speedup = { int8 =, bf16 = }
-- }. f32, int8 and bf16 are what roofline.linear returns: the bound of one of the `steps` layers. The weights of all linears
-- together decide in which level of memory they lie. speedup.int8 = f32.seconds / int8.seconds, and speedup.bf16 likewise.
function roofline.linears(m, linears)
  local weights, list = {}, {}
  for type in pairs(roofline.BYTES) do
    weights[type] = roofline.weights(linears, type)
  end
  for i, l in ipairs(linears) do
    local row = { name = l.name, M = l.M, N = l.N, K = l.K, steps = l.steps or 1, speedup = {} }
    for type in pairs(roofline.BYTES) do
      row[type] = roofline.linear(m, l, type, weights[type])
    end
    for _, type in ipairs { "int8", "bf16" } do
      row.speedup[type] = row[type] and row.f32.seconds / row[type].seconds or nil
    end
    list[i] = row
  end
  return list
end

--- The shortest time of all linears of a list that roofline.linears returned, in seconds.
function roofline.seconds(bounds, type)
  local sum = 0
  for _, row in ipairs(bounds) do
    sum = sum + (row[type] and row[type].seconds * row.steps or math.huge)
  end
  return sum
end

return roofline
