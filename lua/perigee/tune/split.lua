--- Split: divides data into a part to tune on and a part to judge on.
local options = require "perigee.options"
local pgee = require "perigee.ffi"

-- Places of at most `count` of n items, evenly spaced.
local function places(n, count)
  local list = {}
  for i = 1, math.min(n, count) do
    list[i] = math.floor((i - 1) * n / math.min(n, count)) + 1
  end
  return list
end

--- Returns two parts of the data: the items at odd places, and those at even places, among at most `samples` items that are taken
-- evenly. data: a set that perigee.evaluate.read returned, or a list of inputs. A part has `texts`, and `labels` if it is a set.
-- A set whose items belong together, of documents and queries, cannot be split: that is an error.
return function(data, samples)
  local is_set = type(data) == "table" and type(data.texts) == "table" and type(data.labels) == "table"
  if not is_set then
    if type(data) ~= "table" then
      error(("tune: data is %s, expected what perigee.evaluate.read returns, or a list of inputs"):format(pgee.describe(data)), 0)
    end
    options.list(data, "tune: data is a list of inputs")
    data = { texts = data }
  elseif data.documents or #data.texts ~= #data.labels then
    error("tune: a set of documents and queries cannot be split into two parts; give a list of inputs", 0)
  end
  local parts = { {}, {} }
  for i = 1, 2 do
    for key, value in pairs(data) do
      parts[i][key] = value
    end
    parts[i].texts, parts[i].labels = {}, is_set and {} or nil
  end
  for k, at in ipairs(places(#data.texts, samples)) do
    local part = parts[2 - k % 2]
    table.insert(part.texts, data.texts[at])
    if is_set then
      table.insert(part.labels, data.labels[at])
    end
  end
  if #parts[2].texts < 2 then
    error(("tune: the data have %d items, expected at least 4: half of them tune, half of them judge"):format(#data.texts), 0)
  end
  return parts[1], parts[2]
end
