--- Comparison: the class of what evaluate.compare returns; prints it as a table.
local text_table = require "perigee.show.table"

local Comparison = {}
Comparison.__index = Comparison

local function points(value, form)
  return value == value and (form or "%.2f"):format(100 * value) or "-" -- NaN: not defined
end

local function signed(value)
  return points(value, "%+.2f")
end

local function difference_of(score)
  if not score.difference then
    return ""
  elseif not score.interval then
    return signed(score.difference)
  end
  return ("%s [%s, %s]"):format(signed(score.difference), signed(score.interval[1]), signed(score.interval[2]))
end

--- The scores times 100 as a table of text: a row for each metric; for each model a column, and after it a column of differences
-- from the first model, with intervals.
function Comparison:__tostring()
  local head, changed, speed = { " " }, { "answers changed" }, { "a second" }
  local rows = {}
  for k, own in ipairs(self.runs) do
    head[#head + 1] = own.name
    changed[#changed + 1] = k > 1 and (own.changed and tostring(own.changed) or ("%.4f"):format(own.distance)) or ""
    speed[#speed + 1] = ("%.1f"):format(own.per_second)
    for m, score in ipairs(own.scores) do
      rows[m] = rows[m] or { score.metric }
      table.insert(rows[m], points(score.value))
      if k > 1 then
        table.insert(rows[m], difference_of(score))
      end
    end
    if k > 1 then
      head[#head + 1] = "difference"
      changed[#changed + 1] = ""
      speed[#speed + 1] = ("%.2fx"):format(own.per_second / self.runs[1].per_second)
    end
  end
  if #self.runs > 1 then
    changed[1] = self.runs[2].changed and "answers changed" or "mean distance"
    rows[#rows + 1] = changed
  end
  rows[#rows + 1] = speed
  return text_table { head, unpack(rows) }
end

return Comparison
