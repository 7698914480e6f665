--- Bench: times functions side by side. They take turns, so that whatever else the machine does hits all of them alike.
local pgee = require "perigee.ffi"
local C = pgee.C

local bench = {}

--- Times a list of functions: { rounds = at least (7), seconds = at least, of all together (1) }. Returns for each { min =,
-- median = } in seconds. One round before the first warms up.
function bench.time(functions, given)
  local rounds, seconds = given and given.rounds or 7, given and given.seconds or 1
  local times = {}
  for i, f in ipairs(functions) do
    times[i] = {}
    f()
  end
  local start = C.pgee_seconds()
  while #times[1] < rounds or C.pgee_seconds() - start < seconds do
    for i, f in ipairs(functions) do
      local from = C.pgee_seconds()
      f()
      table.insert(times[i], C.pgee_seconds() - from)
    end
  end
  for i, list in ipairs(times) do
    table.sort(list)
    times[i] = { min = list[1], median = list[math.floor((#list + 1) / 2)] }
  end
  return times
end

--- B inputs of S token ids each, the same on every machine, for a model with that many words.
function bench.inputs(B, S, vocabulary)
  local state, list = 1, {}
  for b = 1, B do
    local ids = {}
    for i = 1, S do
      state = (state * 16807) % 2147483647 -- Park and Miller; exact in doubles
      ids[i] = state % vocabulary
    end
    list[b] = { ids = ids }
  end
  return list
end

return bench
