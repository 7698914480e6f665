--- Collect: the figures of a report about a quantized model, as one table that report/html.lua, JSON and CSV are made of.
local bench = require "perigee.bench"
local cpu = require "perigee.cpu"
local inputs = require "perigee.run.inputs"
local measure = require "perigee.quantize.measure"
local pgee = require "perigee.ffi"
local quantize = require "perigee.graph.passes.quantize"
local settings = require "perigee.quantize.settings"
local settle = require "perigee.graph.passes.settle"
local smooth = require "perigee.graph.passes.smooth"
local workload = require "perigee.bench.workload"

local collect = {}

local OUTLIERS = 3 -- channels that are named for each site

---- Sites -------------------------------------------------------------------------------------------------------------

-- The largest magnitude of each channel, shifted and divided by the factors if there are any: a list, its greatest value, and its
-- median.
local function magnitudes(seen, factors, shift, K)
  local min, max = (shift and seen.low or seen.min):numbers(K), (shift and seen.high or seen.max):numbers(K)
  local s, z, list = factors and factors:numbers(K), shift and shift:numbers(K), {}
  for k = 0, K - 1 do
    local middle = z and z[k] or 0
    list[k + 1] = math.max(middle - min[k], max[k] - middle) / (s and s[k] or 1)
  end
  local sorted = { unpack(list) }
  table.sort(sorted)
  return list, sorted[K], bench.percentile(sorted, 0.5)
end

-- { largest =, median =, channels = the numbers of the largest channels, from 0 }.
local function spread(seen, factors, shift, K)
  local list, largest, median = magnitudes(seen, factors, shift, K)
  local order = {}
  for k = 1, K do
    order[k] = k
  end
  table.sort(order, function(a, b) return list[a] > list[b] or list[a] == list[b] and a < b end)
  local channels = {}
  for i = 1, math.min(OUTLIERS, K) do
    channels[i] = order[i] - 1
  end
  return { largest = largest, median = median, channels = channels }
end

-- The share of the sampled values that the static scale of a site clips; nil if its scales are dynamic.
local function clip_rate(seen, quantizer, factors, shift, K)
  if not quantizer.scale then
    return nil
  end
  local x, s, rows, clipped = seen.sample:numbers(nil, K), factors and factors:numbers(K), #seen.sample, 0
  local z = shift and shift:numbers(K)
  local low, high = (-0.5 - quantizer.zero) * quantizer.scale, (255.5 - quantizer.zero) * quantizer.scale
  for k = 0, K - 1 do
    local factor, middle = s and s[k] or 1, z and z[k] or 0
    local below, above = low * factor + middle, high * factor + middle
    for r = 0, rows - 1 do
      local value = x[r * K + k]
      if value < below or value > above then
        clipped = clipped + 1
      end
    end
  end
  return clipped / (rows * K)
end

-- The nodes of the linears of each site, by the site's name.
local function nodes_of(graph)
  local found = {}
  for _, node in ipairs(graph.nodes) do
    if node.site then
      found[node.site.name] = found[node.site.name] or node
    end
  end
  return found
end

local function row_of(q, site, node, parts)
  local own, seen, K = settings.of(q.settings, site), q.stats:site(site), site.width
  local row = {
    name = site.name, linears = site.linears, width = K, precision = own.skip and "f32" or "int8",
    sqnr = measure.site(q, site, { q.settings })[1], before = spread(seen, nil, nil, K),
  }
  if own.skip then
    return row
  end
  local memo = q.memo:aside()
  local ok, failure = pcall(function()
    local settled = settle.site(q.model:graph "hidden", site, q.stats, own, memo)
    local alpha, factors, wmax, shift = smooth.values(site, parts, q.stats, settled, memo)
    local quantizer = quantize.values({
      site = site, parts = node.parts, alpha = alpha, factors = factors, wmax = wmax, shift = shift,
    }, q.stats, settled, memo)
    row.alpha, row.clipped = alpha, clip_rate(seen, quantizer, factors, shift, K)
    row.after = (factors or shift) and spread(seen, factors, shift, K) or nil
  end)
  memo:release()
  if not ok then
    error(failure, 0)
  end
  return row
end

local function sites_of(q)
  local graph, list = q.model:graph "hidden", {}
  local nodes, parts = nodes_of(graph), {}
  for site, own in pairs(smooth.parts(graph)) do
    parts[site.name] = own
  end
  for i, site in ipairs(measure.sites(q)) do
    list[i] = row_of(q, site, nodes[site.name], parts[site.name])
  end
  return list
end

---- The whole ---------------------------------------------------------------------------------------------------------

local function settings_of(q)
  local default, list = settings.new { activations = q.settings.activations }, {}
  for i, key in ipairs(settings.KEYS) do
    local value = settings.literal(q.settings, key)
    list[i] = { name = key, value = value, default = value == settings.literal(default, key) }
  end
  return list
end

local TOKENS, ROUNDS = 128, 5 -- of the run that is profiled

local function steps_of(q)
  local batch = inputs.new(q.model)
  for _, input in ipairs(bench.inputs(1, math.min(TOKENS, q.model.positions), q.model.vocabulary)) do
    batch:add(input)
  end
  return workload.new(q, { batch }):profile(ROUNDS)
end

local function environment()
  local onednn, reason = cpu.onednn()
  return {
    { name = "Perigee", value = require("perigee").version }, { name = "CPU", value = cpu.name() },
    { name = "kernels", value = cpu.isa_name() }, { name = "threads", value = tostring((cpu.threads())) },
    { name = "oneDNN", value = tostring(onednn or "not used: " .. reason) }, { name = "LuaJIT", value = jit.version },
    { name = "date", value = os.date "!%Y-%m-%d %H:%M UTC" },
  }
end

-- The curves of a sweep over alpha, as plain lists.
local function sweep_of(q)
  local swept = q:sweep { alpha = { 0, 1, 0.1 }, progress = false }
  local result = { alpha = swept.alpha, output = swept.output, best = swept.best, sites = {} }
  for i, site in ipairs(swept.sites) do
    result.sites[i] = { name = site.name, sqnr = site.sqnr, best = site.best }
  end
  return result
end

--- The figures about a quantized model. given: the options of report.write. Without statistics there are no sites and no sweep.
function collect.run(q, given)
  local stats = q.stats and not q.stats.released and q.stats or nil
  local began = pgee.C.pgee_seconds()
  local r = {
    model = q.model.dir, architecture = q.model.config.model_type, task = q.model.task, settings = settings_of(q),
    statistics = stats and tostring(stats) or "none: nothing is smoothed", warning = stats and stats:warning() or nil,
    memory = { fp32 = q.model:memory(), int8 = q:memory() }, files = given.files, distance = given.distance,
    comparison = given.comparison, speed = given.speed, steps = steps_of(q), environment = environment(), recipe = q:recipe(),
    command = given.command, output = stats and stats:can_judge() and q:sqnr() or nil, sites = stats and sites_of(q) or {},
  }
  if stats and given.sweep ~= false and next(q:sqnr "*") then
    r.sweep = sweep_of(q)
  end
  r.seconds = pgee.C.pgee_seconds() - began
  return r
end

return collect
