--- Search: finds the alpha of every site at which the setting alpha is "auto".
--
-- The error of a site is that of measure.lua: the outputs of the site's linears, INT8 against FP32, on the rows that calibration
-- sampled. The search measures no smoothing (false) and the alphas of GRID. A site leaves its default alpha only if another
-- candidate has a smaller error. The kernels that measure have equal bits on every CPU, so the same calibration gives the same
-- alphas on every machine. The result is settings in which each alpha is written out: recipes and artifacts have the alphas
-- that were found, and later changes of other settings do not change them.
local measure = require "perigee.quantize.measure"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local settings = require "perigee.quantize.settings"

local search = {}

-- false, and 0 to 1 in steps of 0.05.
local GRID = { false }
for i = 0, 20 do
  GRID[#GRID + 1] = tonumber(("%.2f"):format(i / 20))
end
search.GRID = GRID

-- In dB. A smaller difference is a tie, because the last bits of a logarithm differ between C libraries. The earlier entry of
-- GRID wins a tie, and the default wins against all.
local TIE = 1e-9

-- Whether `a` is better than `b`, both in dB, and the difference is no tie. A number is better than nil and NaN.
local function better(a, b)
  if a == nil or a ~= a then
    return false
  end
  return b == nil or b ~= b or a > b + TIE
end

--- The best alpha of a site: false or a number. chosen: the settings of all else. If nothing can be measured at the site, because
-- it is FP32 or its activations are per sequence, the result is `default`.
function search.site(q, site, chosen, default)
  local list = { settings.at(chosen, { site }, { alpha = default }) }
  for i, alpha in ipairs(GRID) do
    list[i + 1] = settings.at(chosen, { site }, { alpha = alpha })
  end
  local sqnr, best = measure.site(q, site, list), nil
  for i in ipairs(GRID) do
    if better(sqnr[i + 1], best and sqnr[best]) then
      best = i + 1
    end
  end
  if best and better(sqnr[best], sqnr[1]) then
    return GRID[best - 1]
  end
  return default
end

local function is_auto(value)
  if type(value) == "table" then
    for _, alpha in pairs(value) do
      if alpha == "auto" then
        return true
      end
    end
  end
  return value == "auto"
end

--- Whether an alpha of the settings is "auto".
function search.wanted(chosen)
  local wanted = is_auto(chosen.alpha)
  for _, own in pairs(chosen.sites) do
    wanted = wanted or own.alpha == "auto"
  end
  return wanted
end

-- The settings with the default in place of every "auto".
local function without_auto(chosen)
  local given = {}
  for key, value in pairs(chosen.values) do
    given[key] = value
  end
  if type(given.alpha) == "table" then
    local rest = {}
    for p, alpha in pairs(given.alpha) do
      if alpha ~= "auto" then
        rest[p] = alpha
      end
    end
    given.alpha = rest
  elseif given.alpha == "auto" then
    given.alpha = nil
  end
  given.sites = {}
  for p, own in pairs(chosen.sites) do
    local rest = {}
    for key, value in pairs(own) do
      if not (key == "alpha" and value == "auto") then
        rest[key] = value
      end
    end
    given.sites[p] = rest
  end
  return settings.new(given), given
end

-- The settings in which each site has the alpha that was found. found: a list of { site, alpha }.
local function written_out(chosen, found)
  local base, given = without_auto(chosen)
  if chosen.alpha == "auto" then
    local map = {}
    for _, entry in ipairs(found) do
      local site, alpha = entry[1], entry[2]
      if alpha ~= settings.of(base, site).alpha then
        map[site.name] = alpha
      end
    end
    given.alpha = next(map) ~= nil and map or nil
    base = settings.new(given)
  end
  for _, entry in ipairs(found) do
    if settings.of(base, entry[1]).alpha ~= entry[2] then
      base = settings.at(base, { entry[1] }, { alpha = entry[2] })
    end
  end
  return base
end

--- The settings with an alpha, found by the search, in place of each "auto". Settings without "auto" are returned as they are.
-- q: a quantized model with statistics. told: as calibrate's option progress.
function search.resolve(q, chosen, told)
  if not search.wanted(chosen) then
    return chosen
  elseif not q.stats or q.stats.released then
    error('quantize: alpha is "auto", which is searched on the sample of the statistics: give stats = model:calibrate(texts), or '
      .. "a number", 0)
  end
  local all, base = measure.sites(q), (without_auto(chosen))
  settings.check_patterns(chosen, all)
  local tell, found = progress.of(told, "searching alphas"), {}
  for i, site in ipairs(all) do
    local own = settings.of(chosen, site)
    if own.alpha == "auto" then
      if pgee.C.pgee_interrupted() ~= 0 then
        error("interrupted", 0)
      end
      found[#found + 1] = { site, search.site(q, site, base, settings.ALPHA[own.activations]) }
    end
    tell(i, #all)
  end
  return written_out(chosen, found)
end

return search
