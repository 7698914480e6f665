--- Measure: the SQNR of a quantized model in dB, measured on what calibration kept.
--
-- The SQNR of a site compares the outputs of its linears, INT8 against FP32, on the rows that calibration sampled there. The
-- model does not run. The SQNR of the output compares the last hidden states over the first texts of calibration, which are
-- run. Every result is kept, so that the same settings are not measured twice.
local linear = require "perigee.linear"
local lower = require "perigee.graph.passes.lower"
local quant = require "perigee.quant"
local quantize = require "perigee.graph.passes.quantize"
local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"
local sites = require "perigee.graph.passes.sites"
local smooth = require "perigee.graph.passes.smooth"

local measure = {}

-- A text with all that the SQNR of a site depends on; nil if it cannot be measured: the site is FP32, or its activations are per
-- sequence while the sample has single rows.
local function key_of(site, own)
  if own.skip or own.per == "sequence" then
    return nil
  end
  return ("%s %s"):format(site.name, registry.key("sqnr", own))
end

-- FP32's output of a linear over the sample.
local function reference(q, node, x)
  local memo = q.model.memo:aside()
  local ok, result = pcall(function()
    return linear(x, lower.packed_f32(memo, node.parts), { bias = lower.bias(memo, node.parts) })
  end)
  memo:release()
  if not ok then
    error(result, 0)
  end
  return result
end

-- dB of a linear by the settings of its site.
local function test(q, node, parts, own, x, expected, shared)
  local memo = shared:aside()
  local made = {}
  local ok, result = pcall(function()
    local alpha, factors, wmax = smooth.values(node.site, parts, q.stats, own, memo)
    local quantizer, weight = quantize.values({
      site = node.site, parts = node.parts, alpha = alpha, factors = factors, wmax = wmax,
    }, q.stats, own, memo)
    made[1] = quant.quantize(x, {
      symmetric = quantizer.symmetric, scale = quantizer.scale, zero = quantizer.zero, smooth = factors or nil,
    })
    made[2] = linear(made[1], weight, { bias = lower.bias(memo, node.parts) })
    return expected:sqnr(made[2])
  end)
  for _, object in ipairs(made) do
    object:release()
  end
  memo:release()
  if not ok then
    error(result, 0)
  end
  return result
end

local function measure_node(q, node, parts, owns, x)
  local expected, shared = reference(q, node, x), q.memo:aside()
  local ok, result = pcall(function()
    local list = {}
    smooth.values(node.site, parts, q.stats, owns[1], shared) -- what all have in common is made once
    for i, own in ipairs(owns) do
      list[i] = test(q, node, parts, own, x, expected, shared)
    end
    return list
  end)
  expected:release()
  shared:release()
  if not ok then
    error(result, 0)
  end
  return result
end

-- dB of a site by each of several settings. If its linears are multiplied separately, the lowest dB among them counts.
local function measure_site(q, site, owns)
  local graph = q.model:graph "hidden"
  local parts, least = smooth.parts(graph), {}
  for _, node in ipairs(graph.nodes) do
    if node.site and node.site.name == site.name then
      for i, db in ipairs(measure_node(q, node, parts[node.site], owns, q.stats:site(site).sample)) do
        least[i] = math.min(least[i] or db, db)
      end
    end
  end
  return least
end

--- dB of a site by each settings of a list: { [i] = dB }, without an entry where it cannot be measured.
function measure.site(q, site, list)
  local known, missing, keys, owns = {}, {}, {}, {}
  if not q.stats or q.stats.released then
    return known
  end
  for i, chosen in ipairs(list) do
    local own = settings.of(chosen, site)
    keys[i] = key_of(site, own)
    if keys[i] and q.measured[keys[i]] == nil and not missing[keys[i]] then
      owns[#owns + 1] = own
      missing[#missing + 1], missing[keys[i]] = keys[i], true
    end
  end
  for i, db in ipairs(#owns > 0 and measure_site(q, site, owns) or {}) do
    q.measured[missing[i]] = db
  end
  for i in ipairs(list) do
    known[i] = keys[i] and q.measured[keys[i]]
  end
  return known
end

--- dB of the last hidden states over the kept texts, by the settings in force.
function measure.output(q)
  if not q.stats or not q.stats:can_judge() then
    error("sqnr: the output is judged by texts that calibration kept, and there are none", 0)
  end
  local key = "output " .. tostring(q.settings)
  if not q.measured[key] then
    local there = q.runners.hidden
    local hidden = q:gather("hidden", q.stats.kept.inputs, "sqnr").hidden
    q.measured[key] = q.stats.kept.hidden:sqnr(hidden)
    hidden:release()
    if not there then
      q.runners.hidden:release()
      q.runners.hidden = nil
    end
  end
  return q.measured[key]
end

--- The sites of a quantized model, in order.
function measure.sites(q)
  return sites.list(q.model:graph "hidden")
end

return measure
