--- Sweep: SQNR over a range of alphas, of each site and of the output. The result prints itself as a table and a
-- curve. The model stays as it is.
--
--   local s = q:sweep { alpha = { 0, 1, 0.05 } }       -- from, to, step
--   s.alpha, s.output                                  -- lists: the alphas, the output's dB
--   s.sites[i]                                         -- { name =, linears =, sqnr = a list of dB, best = its alpha }
--   s.best                                             -- the alpha at which the output is best
--   q.alpha = s.best;  q.alpha = s:alphas()            -- for all; for each site its own
--   s:plot "encoder.layer.3.output.dense"              -- curves of sites beside the output's
local measure = require "perigee.quantize.measure"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local error = pgee.error
local plot = require "perigee.show.plot"
local progress = require "perigee.show.progress"
local text_table = require "perigee.show.table"
local settings = require "perigee.quantize.settings"

local Sweep = {}
Sweep.__index = Sweep

local COLUMNS = 5 -- of alphas that are printed
local MOST = 201  -- alphas

---- Options -----------------------------------------------------------------------------------------------------------

local KNOWN = { alpha = true, sites = true, output = true, progress = true }

local function alphas_of(given)
  given = given or { 0, 1, 0.05 }
  local from, to, step, more = unpack(type(given) == "table" and given or {})
  for _, v in ipairs { from or false, to or false, step or false } do
    if type(v) ~= "number" or not (v >= 0 and v <= 1) or more ~= nil then
      error("sweep: alpha is what to go through, { from, to, step }, each from 0 to 1; such as { 0, 1, 0.05 }", 0)
    end
  end
  if from > to or step <= 0 or (to - from) / step > MOST - 1 then
    error(("sweep: alpha goes from %g to %g in steps of %g, expected upwards in 1 to %d steps"):format(from, to, step, MOST), 0)
  end
  local list = {}
  for i = 0, math.floor((to - from) / step + 1e-9) do
    list[i + 1] = tonumber(("%.10g"):format(from + i * step))
  end
  return list
end

---- The run -----------------------------------------------------------------------------------------------------------

local sweep = {}

local function best_of(alphas, values)
  local best, most = nil, -math.huge
  for i, alpha in ipairs(alphas) do
    if values[i] and values[i] > most then
      best, most = alpha, values[i]
    end
  end
  return best
end

-- The settings for each alpha: of the sites that are swept, or of all.
local function candidates(q, alphas, swept)
  local list = {}
  for i, alpha in ipairs(alphas) do
    list[i] = swept and settings.at(q.settings, swept, { alpha = alpha })
      or settings.with(q.settings, { alpha = alpha })
  end
  return list
end

--- q:sweep(options). probe(): a model like q that is changed and released here. Options:
--   alpha     { from, to, step }; { 0, 1, 0.05 }
--   sites     a pattern: these change, the others stay as they are. Default: all
--   output    false: sites only, which takes less time
--   progress  as for calibrate
function sweep.run(q, probe, given)
  given = options.check(given, KNOWN, "sweep")
  if not q.stats or q.stats.released then
    error("sweep: there are no statistics to measure by", 0)
  end
  options.boolean(given.output, "sweep: output")
  local alphas, all = alphas_of(given.alpha), measure.sites(q)
  local swept = given.sites ~= nil and patterns.find(given.sites, all)
  local list = candidates(q, alphas, swept)
  local with_output = given.output ~= false and q.stats:can_judge()
  local tell, total, done = progress.of(given.progress, "sweeping"), #(swept or all) + (with_output and #alphas or 0), 0
  local function step()
    done = done + 1
    tell(done, total)
  end
  local self = { alpha = alphas, sites = {}, output = with_output and {} or nil, settings = q.settings }
  for _, site in ipairs(swept or all) do
    local sqnr = measure.site(q, site, list)
    if next(sqnr) then
      table.insert(self.sites, {
        name = site.name, linears = site.linears, sqnr = sqnr, best = best_of(alphas, sqnr),
        now = settings.of(q.settings, site).alpha,
      })
    end
    step()
  end
  if #self.sites == 0 and not with_output then
    error("sweep: nothing can be measured: the sites are FP32, or their activations are per sequence", 0)
  end
  if with_output then
    probe(list, function(i, db)
      self.output[i] = db
      step()
    end)
    self.best = best_of(alphas, self.output)
  end
  return setmetatable(self, Sweep)
end

---- The result --------------------------------------------------------------------------------------------------------

local function sweep_check(self, name)
  if getmetatable(self) ~= Sweep then
    error(("%s is a method of a sweep: call it with a colon, as in s:%s()"):format(name, name))
  end
end

--- For each site the alpha at which it is best: { site = alpha }, as q.alpha takes it.
function Sweep:alphas()
  sweep_check(self, "alphas")
  local map = {}
  for _, site in ipairs(self.sites) do
    map[site.name] = site.best
  end
  return map
end

--- Curves of SQNR over alpha: the output's, and those of the sites that a pattern matches, as many as a plot holds.
function Sweep:plot(pattern)
  sweep_check(self, "plot")
  local series = {}
  if type(pattern) ~= "nil" and type(pattern) ~= "string" then
    error(("plot: the pattern is %s, expected the name of a site or a pattern"):format(pgee.describe(pattern)))
  end
  if self.output then
    series[1] = { name = "output", y = self.output }
  end
  for _, site in ipairs(self.sites) do
    if #series < 6 and (pattern and patterns.matches(pattern, site) or not pattern and #series == 0) then
      series[#series + 1] = { name = site.name, y = site.sqnr }
    end
  end
  if pattern and #series == (self.output and 1 or 0) then
    error(("plot: %s matches no site of the sweep%s"):format(pgee.describe(pattern),
      nearest.hint(pattern, patterns.names(self.sites))))
  end
  return plot.curve { series = series, x = self.alpha, title = "SQNR over alpha", xlabel = "alpha", ylabel = "dB" }
end

-- The indices of a few of all alphas for the columns, evenly spread, with the first and the last one.
local function columns_of(count)
  local list = {}
  for c = 0, math.min(COLUMNS, count) - 1 do
    list[#list + 1] = 1 + math.floor(c * (count - 1) / math.max(1, math.min(COLUMNS, count) - 1) + 0.5)
  end
  return list
end

local function row_of(name, now, best, sqnr, places, alphas)
  local at
  for i, alpha in ipairs(alphas) do
    at = alpha == best and i or at
  end
  local row = {
    name, now == false and "off" or now and ("%.4g"):format(now) or "", ("%.4g"):format(best), ("%.2f"):format(sqnr[at]),
  }
  for _, i in ipairs(places) do
    row[#row + 1] = ("%.1f"):format(sqnr[i])
  end
  return row
end

--- Each site's SQNR at a few of the alphas, and at its best, as text of so many columns (as many as it takes if nil).
function Sweep:table(columns)
  sweep_check(self, "table")
  options.integer(columns, 0, 2 ^ 31, "table: columns")
  local places = columns_of(#self.alpha)
  local rows = { { "site ", "now", "best", "dB" } }
  for _, i in ipairs(places) do
    table.insert(rows[1], ("%.4g"):format(self.alpha[i]))
  end
  for _, site in ipairs(self.sites) do
    rows[#rows + 1] = row_of(site.name, site.now, site.best, site.sqnr, places, self.alpha)
  end
  if self.output then
    rows[#rows + 1] = row_of("output", nil, self.best, self.output, places, self.alpha)
  end
  return text_table(rows, columns, { "now" })
end

--- How a prompt prints it.
function Sweep:__show(style)
  return self:table(style and style.columns) .. "\n\n" .. self:plot():text(style)
end

function Sweep:__tostring()
  return self:__show()
end

return sweep
