--- diff: for q:diff(other). class: the metatable of quantized models.
local Change = require "perigee.quantize.change"
local measure = require "perigee.quantize.measure"
local options = require "perigee.options"
local patterns = require "perigee.base.patterns"
local pgee = require "perigee.ffi"
local search = require "perigee.tune.search"
local settings = require "perigee.quantize.settings"

return function(q, other, class)
  options.method(q, "diff")
  local of = getmetatable(other) == class and other or q
  if type(other) == "table" and other == q.model then
    error("diff: the other model is FP32, which has no settings; q:sqnr() and q:explain() compare with FP32, "
      .. "q:diff(another) with another quantized model or with settings", 0)
  elseif type(other) ~= "table" then
    error(("diff: expected a quantized model, settings, or a table of settings, got %s"):format(pgee.describe(other)), 0)
  elseif of == q and other ~= q then
    other = { settings = search.resolve(q, settings.is(other) and other or settings.new(other)) }
    settings.check_patterns(other.settings, measure.sites(q))
  elseif table.concat(patterns.names(measure.sites(of)), " ") ~= table.concat(patterns.names(measure.sites(q)), " ") then
    error("diff: the other model has other sites", 0)
  end
  return Change.new { models = { q, of }, settings = { q.settings, other.settings }, names = { "this", "other" } }
end
