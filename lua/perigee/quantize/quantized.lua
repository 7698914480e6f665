--- Quantized: an INT8 model. It is a function of the checkpoint, the statistics and the settings. New settings recompute only the
-- linears that they affect.
local attention = require "perigee.graph.passes.attention"
local Change = require "perigee.quantize.change"
local diff = require "perigee.quantize.diff"
local Encoder = require "perigee.run.encoder"
local gather = require "perigee.graph.passes.gather"
local lower = require "perigee.graph.passes.lower"
local measure = require "perigee.quantize.measure"
local Memo = require "perigee.quantize.memo"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local place = require "perigee.graph.passes.place"
local plot_site = require "perigee.quantize.plot_site"
local quantize = require "perigee.graph.passes.quantize"
local recipe = require "perigee.quantize.recipe"
local save = require "perigee.artifact.save"
local search = require "perigee.tune.search"
local report = require "perigee.run.report"
local Runner = require "perigee.run.runner"
local selection = require "perigee.graph.passes.select"
local sensitivity = require "perigee.tune.sensitivity"
local settings = require "perigee.quantize.settings"
local settle = require "perigee.graph.passes.settle"
local shown = require "perigee.quantize.shown"
local smooth = require "perigee.graph.passes.smooth"
local Statistics = require "perigee.quantize.statistics"
local sweep = require "perigee.quantize.sweep"
local tables = require "perigee.graph.passes.tables"
local tasks = require "perigee.tasks"
local raise = pgee.raise

local Quantized = Encoder.extend {}

-- Fields of the model that a quantized one has, too.
local OF_MODEL = { dir = true, config = true, limit = true, task = true, positions = true, vocabulary = true }

-- The fields of a model are in a table under this key, so that every assignment to a name goes to __newindex.
local OWN = {}

local function object(own)
  return setmetatable({ [OWN] = own }, Quantized)
end

-- q.alpha reads a setting; q.alpha = 0.8 sets it.
function Quantized.__index(q, key)
  local own = rawget(q, OWN)
  if OF_MODEL[key] then
    return own.model[key]
  end
  local value = own[key]
  if value == nil then
    value = Quantized[key]
  end
  if value == nil then
    value = own.settings[key]
  end
  return value
end

-- Tables of the names that __index knows besides methods, for completion at the prompt.
function Quantized.__names()
  return { OF_MODEL, settings.new().values }
end

-- What a prompt shows after q.alpha = 0.8.
function Quantized.__changed(q)
  return q[OWN].last
end

local change

function Quantized.__newindex(q, key, value)
  raise(change, q, settings.with, { [key] = value })
end

local function to_int8(q, graph, memo)
  graph = gather.pass(place(tables(graph, q.settings, memo), q.settings), q.settings)
  graph = smooth.pass(settle.pass(graph, q.stats, q.settings, memo), q.stats, memo)
  graph = quantize.pass(graph, q.stats, memo)
  return attention.pass(graph, q.stats, q.settings, memo)
end

--- From a graph to a plan.
function Quantized:lower(graph)
  graph = to_int8(self, graph, self.memo)
  self[OWN].choices = selection.run(selection.weights(graph), { known = self.choices })
  return lower.pass(selection.pass(graph, self.choices), { memo = self.memo })
end

-- New runners of the heads, by the settings in force. If one fails, the others are released.
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

-- Puts new settings into force. If that fails, the model keeps its old state.
local function apply(q, new, heads)
  new = search.resolve(q, new)
  Statistics.check_needed(q.stats, new, q.stats and {} or measure.sites(q))
  local before = q.settings
  q[OWN].settings = new
  local ok, result = pcall(q.memo.renew, q.memo, function()
    return make_runners(q, heads)
  end)
  if not ok then
    q[OWN].settings = before
    error(result, 0)
  end
  q:release_runners()
  q[OWN].runners = result
end

local HISTORY = 100 -- settings to go back to

-- New settings in force, made by make(settings, ...); returns what changed.
local function put(q, make, ...)
  local before, began = q.settings, pgee.C.pgee_seconds()
  apply(q, make(before, ...), q.runners)
  q[OWN].last = Change.new { models = { q, q }, settings = { before, q.settings }, seconds = pgee.C.pgee_seconds() - began }
  return q.last
end

-- The same, and undo can take it back.
function change(q, ...)
  local before = q.settings
  local record = put(q, ...)
  if tostring(q.settings) ~= tostring(before) then
    table.insert(q.history, before)
    if #q.history > HISTORY then
      table.remove(q.history, 1)
    end
  end
  return record
end

local function set(q, pattern, changes)
  options.method(q, "set")
  if changes == nil then
    if type(pattern) ~= "table" then
      error(("set: expected a table of settings, got %s"):format(pgee.describe(pattern)), 0)
    end
    return change(q, settings.with, pattern)
  end
  local found = patterns.find(pattern, measure.sites(q))
  local record = change(q, settings.at, found, changes)
  record.moved = patterns.not_named(pattern, found)
  return record
end

--- q:set { alpha = 0.8 }: changes settings for the whole model, the sites' own values of them included.
-- q:set("encoder.layer.3.*", { alpha = 0.85 }): changes those of the sites that a name or a pattern matches: activations,
-- symmetric, per, weights, alpha, shift, skip, range. Only the linears that a change affects are computed again. After an error
-- the model keeps its old state. Returns a record of what changed (quantize/change.lua).
function Quantized:set(pattern, changes)
  local record = raise(set, self, pattern, changes)
  return record
end

local function undo(q)
  options.method(q, "undo")
  local before = q.history[#q.history]
  if not before then
    error("undo: nothing has been changed", 0)
  end
  local record = put(q, function() return before end)
  table.remove(q.history)
  return record
end

--- q:undo(): takes back the last change. Each further call takes back one more, up to a hundred. Returns a record of what
-- changed.
function Quantized:undo()
  local record = raise(undo, self)
  return record
end

--- q:diff(other): returns a record of how this model's settings differ from others, with the SQNR of each site by both. other: a
-- quantized model of the same shape, settings that q:settings() returned, or a table of settings.
function Quantized:diff(other)
  local record = raise(diff, self, other, Quantized)
  return record
end

--- q:recipe(): Lua text that makes this model again, bit for bit. It returns the model. See quantize/recipe.lua.
function Quantized:recipe()
  raise(options.method, self, "recipe")
  return recipe(self)
end

--- q:save(path, { tokenizer = true }): writes the model to one file, which perigee.open answers from. A file that is there is
-- replaced once the new one is complete; the model stays as it is. A tokenizer that cannot be used is an error unless it is left
-- out: false. See artifact/save.lua.
function Quantized:save(path, given)
  raise(options.method, self, "save")
  raise(save, path, {
    model = self.model, settings = self.settings, calibration = self.calibration, memo = self.memo:aside(), options = given,
    lower = function(graph, how)
      return lower.pass(to_int8(self, graph, how.memo), how)
    end,
  })
end

---- How good it is ----------------------------------------------------------------------------------------------------

--- q:sqnr(): returns the SQNR of the output in dB: the last hidden states of INT8 against those of FP32, over the first texts of
-- calibration (at most 16). q:sqnr(pattern): { site = dB }, measured on the rows that calibration sampled, without a run.
function Quantized:sqnr(pattern)
  raise(options.method, self, "sqnr")
  if pattern == nil then
    local db = raise(measure.output, self)
    return db
  end
  local map = {}
  for _, site in ipairs(raise(patterns.find, pattern, measure.sites(self))) do
    map[site.name] = raise(measure.site, self, site, { self.settings })[1]
  end
  return map
end

-- Makes another model from the same statistics, gives it the settings of a list one after another, and calls told(i, dB of the
-- output) after each. Releases that model at the end.
local function try_each(q, list, told)
  local probe = object {
    model = q.model, stats = q.stats, settings = q.settings, memo = Memo.new(), runners = {}, choices = q.choices, history = {},
    measured = q.measured,
  }
  local ok, failure = pcall(function()
    for i, chosen in ipairs(list) do
      apply(probe, chosen, { hidden = true })
      told(i, measure.output(probe))
    end
  end)
  probe:release()
  if not ok then
    error(failure, 0)
  end
end

--- q:sweep { alpha = { from, to, step }, sites = pattern, output = false }: SQNR of each site and of the output over a range of
-- alphas, as a table that prints itself and has curves. The model stays as it is. See quantize/sweep.lua.
function Quantized:sweep(given)
  raise(options.method, self, "sweep")
  local result = raise(sweep.run, self, function(list, told) try_each(self, list, told) end, given)
  return result
end

--- q:sensitivity { tokens =, without = }: the SQNR of the output if one site or attention alone is INT8, and if it alone is FP32,
-- for each of them: a table that prints itself. The model stays as it is. See tune/sensitivity.lua.
function Quantized:sensitivity(given)
  raise(options.method, self, "sensitivity")
  local result = raise(sensitivity.run, self, given)
  return result
end

--- q:report(path, options): writes settings, quality, sites, alpha curves, times and how to make the model again to one file. Its
-- name ends in .html, .json or .csv. Returns the figures as a table. See report/init.lua.
function Quantized:report(path, given)
  local figures = raise(require("perigee.report").write, self, path, given)
  return figures
end

--- q:plot(site): draws the largest magnitude of each channel of one site, before and after smoothing. site: a name or pattern.
function Quantized:plot(pattern)
  local drawing = raise(plot_site, self, pattern)
  return drawing
end

---- Its kernels -------------------------------------------------------------------------------------------------------

local function select_kernels(q, given)
  options.method(q, "select")
  q[OWN].choices = selection.anew(q:runner(tasks.head_of(q.model.task)).lowered, given)
  apply(q, q.settings, q.runners)
  return q.choices
end

--- q:select(options): times the kernels of its linears again, whatever the file of choices says, and uses the faster ones. The
-- bits stay the same. Options: those of run in graph/passes/select.lua. Returns what it chose.
function Quantized:select(given)
  local choices = raise(select_kernels, self, given)
  return choices
end

--- Returns a table that prints which kernel runs each linear, and the SQNR of each linear in dB.
function Quantized:explain()
  raise(options.method, self, "explain")
  return report.explain(self)
end

--- Frees the memory of the model. It is made again from the statistics when it is needed.
function Quantized:release()
  raise(options.method, self, "release")
  self:release_runners()
  self.memo:release()
end

function Quantized:__tostring()
  return ("%s: %s, INT8, settings %s"):format(self.model.dir, self.model.config.model_type, tostring(self.settings))
end

--- At a prompt: the settings, one a line, and what is known of the quality.
Quantized.__show = shown

local quantized = {}

--- For Model:quantize. given: settings, and stats, which model:calibrate returned. Without stats only dynamic activations are
-- possible, and no site is smoothed.
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
  local new = settings.new(chosen)
  if type(stats) ~= "nil" and (type(stats) ~= "table" or type(stats.site) ~= "function") then
    error("quantize: stats is " .. pgee.describe(stats) .. ", expected what model:calibrate returns", 0)
  elseif stats == nil and new.activations ~= "static" and type(chosen.alpha) == "number" then
    Statistics.refuse_alpha(chosen.alpha)
  end
  local q = object {
    model = model, stats = stats, settings = new, memo = Memo.new(), runners = {}, choices = {}, history = {}, measured = {},
    calibration = stats and stats.digest and stats:digest() or nil,
  }
  apply(q, new, { [tasks.head_of(model.task)] = true })
  return q
end

return quantized
