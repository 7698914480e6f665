--- Quantized: an INT8 model. It is a function of the checkpoint, the statistics and the settings, kept up linear by linear: new
-- settings recompute only what depends on what changed.
local Encoder = require "perigee.encoder"
local lower = require "perigee.passes.lower"
local Memo = require "perigee.memo"
local pgee = require "perigee.ffi"
local place = require "perigee.passes.place"
local quantize = require "perigee.passes.quantize"
local report = require "perigee.report"
local Runner = require "perigee.runner"
local selection = require "perigee.passes.select"
local settings = require "perigee.settings"
local smooth = require "perigee.passes.smooth"

local Quantized = Encoder.extend {}

-- Fields of the model that a quantized one has, too.
local OF_MODEL = { dir = true, config = true, limit = true, task = true, positions = true, vocabulary = true }

-- q.alpha reads a setting; q.alpha = 0.8 sets it.
function Quantized.__index(q, key)
  if OF_MODEL[key] then
    return rawget(q, "model")[key]
  end
  local value = Quantized[key]
  if value == nil then
    value = rawget(q, "settings")[key]
  end
  return value
end

-- What __index knows besides methods, for whoever lists names.
function Quantized.__names()
  return { OF_MODEL, settings.new().values }
end

local change

function Quantized.__newindex(q, key, value)
  change(q, { [key] = value })
end

--- From a graph to INT8: each pass takes a graph and returns one.
function Quantized:lower(graph)
  graph = place(graph, self.settings)
  graph = smooth.pass(graph, self.stats, self.settings, self.memo)
  graph = quantize.pass(graph, self.stats, self.settings, self.memo)
  rawset(self, "choices", selection.run(selection.weights(graph), { known = self.choices }))
  return lower.pass(selection.pass(graph, self.choices), { memo = self.memo })
end

-- New runners of the heads, by the settings in force; all or none.
local function make_runners(q, heads)
  local runners = {}
  local ok, failure = pcall(function()
    for head in pairs(heads) do
      runners[head] = Runner.new(q:lower(q.model:graph(head)), q.model.budget)
    end
  end)
  if not ok then
    for _, runner in pairs(runners) do
      runner:release()
    end
    error(failure, 0)
  end
  return runners
end

-- Brings everything in line with new settings. If that fails, the old ones stay in force and nothing else has changed.
local function apply(q, new, heads)
  local before = q.settings
  rawset(q, "settings", new)
  local ok, result = pcall(q.memo.renew, q.memo, function()
    return make_runners(q, heads)
  end)
  if not ok then
    rawset(q, "settings", before)
    error(result, 0)
  end
  q:release_runners()
  rawset(q, "runners", result)
end

function change(q, changes)
  local ok, failure = pcall(function()
    apply(q, settings.with(q.settings, changes, 0), q.runners)
  end)
  if not ok then
    error(failure, 3)
  end
end

--- q:set { alpha = 0.8 }: changes settings. What does not depend on them stays. An error leaves the model as it was.
function Quantized:set(changes)
  change(self, changes)
end

--- q:select(options): times the kernels of its linears anew, whatever is remembered, and uses what is faster; the bits stay. The
-- options are those of passes/select.lua's run. Returns what it chose.
function Quantized:select(given)
  local chosen = { fresh = true }
  for key, value in pairs(given or {}) do
    chosen[key] = value
  end
  local weights = {}
  for _, linear in ipairs(self:runner(self.model.task).lowered.linears) do
    weights[#weights + 1] = linear.node.packed
  end
  rawset(self, "choices", selection.run(weights, chosen))
  apply(self, self.settings, self.runners)
  return self.choices
end

--- What runs each linear and how well it is quantized, as a table that prints itself.
function Quantized:explain()
  return report.explain(self)
end

--- Frees everything that the model holds. It is made again, from the statistics, when it is needed.
function Quantized:release()
  self:release_runners()
  self.memo:release()
end

function Quantized:__tostring()
  return ("%s: %s, INT8, settings %s"):format(self.model.dir, self.model.config.model_type, tostring(self.settings))
end

local quantized = {}

--- For Model:quantize. given: settings, and stats, what model:calibrate returned; without it only dynamic activations are
-- possible, and nothing is smoothed.
function quantized.new(model, given)
  if type(given) ~= "table" then
    error("quantize: expected a table of settings, got " .. pgee.describe(given), 0)
  end
  local chosen = {}
  for key, value in pairs(given) do
    chosen[key] = value
  end
  local stats = chosen.stats
  chosen.stats = nil
  local new = settings.new(chosen, 0)
  if stats == nil and new.activations == "static" then
    error("quantize: static activations need statistics: stats = model:calibrate(texts)", 0)
  elseif stats ~= nil and (type(stats) ~= "table" or type(stats.sites) ~= "table") then
    error("quantize: stats is " .. pgee.describe(stats) .. ", expected what model:calibrate returns", 0)
  end
  local q = setmetatable({
    model = model, stats = stats, settings = new, memo = Memo.new(), runners = {}, choices = {},
  }, Quantized)
  apply(q, new, { [model.task] = true })
  return q
end

return quantized
