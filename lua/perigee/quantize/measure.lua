--- Measure: the SQNR of a quantized model in dB, measured on what calibration kept.
--
-- The SQNR of a site compares the outputs of its linears, INT8 against FP32, on the rows that calibration sampled there. The
-- model does not run. The SQNR of the output compares the last hidden states over the first texts of calibration, which are
-- run. Every result is kept, so that the same settings are not measured twice.
local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"
local settle = require "perigee.graph.passes.settle"
local site_sqnr = require "perigee.quantize.site_sqnr"
local sites = require "perigee.graph.passes.sites"

local measure = {}

-- A text with all that the SQNR of a site depends on; nil if it cannot be measured: the site is FP32, or its activations are per
-- sequence while the sample has single rows.
local function key_of(site, own)
  if own.skip or own.per == "sequence" then
    return nil
  end
  return ("%s %s"):format(site.name, registry.key("sqnr", own))
end

-- dB of a site by each of several settings.
local function measure_site(q, site, owns)
  local graph, settled = q.model:graph "hidden", {}
  for i, own in ipairs(owns) do
    settled[i] = settle.site(graph, site, q.stats, own, q.memo)
  end
  return site_sqnr(graph, site, settled, { stats = q.stats, memo = q.memo, fp32 = q.model.memo })
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
