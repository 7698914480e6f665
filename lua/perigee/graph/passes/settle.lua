--- settle: decides what the settings leave to calibration. Every INT8 linear gets `own`, the settings of its site, in which
-- shift is true or false.
--
-- If shift is "auto", the SQNR of the site's linears on the rows that calibration sampled decides: the site is shifted if their
-- lowest SQNR is higher with a shift than without one. The kernels that measure have equal bits on every CPU, so the same
-- calibration gives the same decision.
local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"
local site_sqnr = require "perigee.quantize.site_sqnr"

local settle = {}

-- In dB. A smaller difference is a tie, because the last bits of a logarithm differ between C libraries.
local TIE = 1e-9

local function with(own, shift)
  local copy = {}
  for key, value in pairs(own) do
    copy[key] = value
  end
  copy.shift = shift
  return copy
end

-- A decision, as a memo keeps it.
local Decision = {}
Decision.__index = Decision

function Decision.release() end

--- The settings of a site with what they leave to calibration decided. graph: the graph of the site; own: the settings as
-- settings.of returns them. memo keeps the decision.
function settle.site(graph, site, stats, own, memo)
  if own.shift ~= "auto" then
    return own
  end
  local decision = memo:get(("settled %s %s"):format(site.name, registry.key("sqnr", own)), function()
    local db = site_sqnr(graph, site, { with(own, false), with(own, true) }, { stats = stats, memo = memo, fp32 = memo })
    return setmetatable({ shift = db[2] > db[1] + TIE }, Decision)
  end)
  return with(own, decision.shift)
end

--- The graph whose INT8 linears have `own`. It runs after place. chosen: the settings.
function settle.pass(graph, stats, chosen, memo)
  return graph:rewrite(function(_, node)
    if node.precision == "int8" then
      node.own = settle.site(graph, node.site, stats, settings.of(chosen, node.site), memo)
    end
  end)
end

return settle
