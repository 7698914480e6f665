--- Change: a record of how two settings of a model differ, site by site, with the SQNR of each site by both. It prints itself.
--
--   change.sites    the sites that differ: { name =, linears =, changed = { alpha = { 0.75, 0.85 } }, before =, after = }, the
--                   last two in dB, false if not known. They are measured when they are first read
--   change.common   settings of the whole model that differ: { alpha = { 0.75, 0.85 } }
--   change.moved    linears that were not named but share a site with one that was
--   change.seconds  what it took, without measuring
local measure = require "perigee.quantize.measure"
local text_table = require "perigee.show.table"
local settings = require "perigee.quantize.settings"

local Change = {}
Change.__index = Change

local SHOWN = 12 -- sites that are printed

-- A site's SQNR is measured when it is first read.
local Row = {}

function Row.__index(row, key)
  local i = key == "before" and 1 or key == "after" and 2
  if not i then
    return nil
  end
  local of = rawget(row, "of")
  local q, chosen = of.models[i], of.settings[i]
  local db = measure.site(q, rawget(row, "site"), { chosen })[1]
  rawset(row, key, db or false)
  return db or false
end

local function differences(a, b)
  local changed = {}
  for _, key in ipairs(settings.OF_SITE) do
    if a[key] ~= b[key] then
      changed[key] = { a[key], b[key] }
    end
  end
  return next(changed) and changed
end

local function common_differences(a, b)
  local changed = {}
  for _, key in ipairs(settings.KEYS) do
    if key ~= "sites" and settings.literal(a, key) ~= settings.literal(b, key) then
      changed[key] = { a[key], b[key] }
    end
  end
  return changed
end

local change = {}

--- given: models = { q, q }, settings = { before, after }, names = { "before", "after" }, seconds =, moved =
function change.new(given)
  local self = { names = given.names or { "before", "after" }, seconds = given.seconds, moved = given.moved or {}, sites = {} }
  local a, b = given.settings[1], given.settings[2]
  self.settings, self.models = { a, b }, given.models
  self.common = common_differences(a, b)
  for _, site in ipairs(measure.sites(given.models[1])) do
    local changed = differences(settings.of(a, site), settings.of(b, site))
    if changed then
      table.insert(self.sites, setmetatable({
        name = site.name, linears = site.linears, changed = changed, site = site, of = self,
      }, Row))
    end
  end
  return setmetatable(self, Change)
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function word(value)
  if type(value) == "table" then
    return next(value) == nil and "none" or "by pattern"
  end
  return type(value) == "number" and ("%.6g"):format(value) or tostring(value)
end

local function text_of(changed)
  local words = {}
  for _, key in ipairs(settings.KEYS) do
    if changed[key] then
      words[#words + 1] = ("%s %s -> %s"):format(key, word(changed[key][1]), word(changed[key][2]))
    end
  end
  return table.concat(words, ", ")
end

local function duration(seconds)
  return seconds < 1 and ("%.0f ms"):format(seconds * 1000) or ("%.1f s"):format(seconds)
end

local function decibels(value)
  return value and ("%.2f"):format(value) or "-"
end

-- The rows whose SQNR changed most, in the order of the model.
local function shown(rows)
  if #rows <= SHOWN then
    return rows
  end
  local order = {}
  for i, row in ipairs(rows) do
    order[i] = { row = row, i = i, by = row.before and row.after and math.abs(row.after - row.before) or 0 }
  end
  table.sort(order, function(a, b) return a.by > b.by or a.by == b.by and a.i < b.i end)
  local list = {}
  for k = 1, SHOWN do
    list[k] = order[k]
  end
  table.sort(list, function(a, b) return a.i < b.i end)
  for k, entry in ipairs(list) do
    list[k] = entry.row
  end
  return list
end

-- "31.20 -> 32.75", the means over the sites whose SQNR is known on both sides; nil if there is none.
local function means(rows)
  local a, b, n = 0, 0, 0
  for _, row in ipairs(rows) do
    if row.before and row.after then
      a, b, n = a + row.before, b + row.after, n + 1
    end
  end
  return n > 0 and ("%.2f -> %.2f dB"):format(a / n, b / n)
end

local function head(self, alike)
  local parts = {}
  local text = next(self.common) and text_of(self.common) or alike
  parts[#parts + 1] = text or "several settings"
  parts[#parts + 1] = ("%d site%s"):format(#self.sites, #self.sites == 1 and "" or "s")
  parts[#parts + 1] = self.seconds and duration(self.seconds) or nil
  return table.concat(parts, ", ")
end

-- columns: as show/table.lua takes them.
local function print_in(self, columns)
  if #self.sites == 0 and not next(self.common) then
    return self.names[1] == "before" and "nothing changed" or "no difference"
  end
  local alike = self.sites[1] and text_of(self.sites[1].changed)
  for _, row in ipairs(self.sites) do
    alike = alike == text_of(row.changed) and alike or nil
  end
  local lines = { head(self, alike) }
  local rows = { { "site ", "SQNR " .. self.names[1], self.names[2], "dB", not alike and "" or nil } }
  local list = shown(self.sites)
  for _, row in ipairs(list) do
    local delta = row.before and row.after and ("%+.2f"):format(row.after - row.before) or "-"
    table.insert(rows, {
      row.name, decibels(row.before), decibels(row.after), delta, not alike and text_of(row.changed) or nil,
    })
  end
  if #list > 0 then
    lines[#lines + 1] = text_table(rows, columns)
  end
  local mean = #self.sites > 1 and means(self.sites)
  if mean then
    lines[#lines + 1] = ("mean over %d sites: %s%s"):format(#self.sites, mean, #list < #self.sites and
      ("; shown are the %d that changed most"):format(#list) or "")
  end
  if #self.moved > 0 then
    lines[#lines + 1] = "they share a site, so these moved too: " .. table.concat(self.moved, ", ")
  end
  return table.concat(lines, "\n")
end

function Change:__tostring()
  return print_in(self)
end

--- At a prompt it fits the terminal.
function Change:__show(style)
  return print_in(self, style.columns)
end

return change
