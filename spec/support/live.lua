--- Live: bytes that the library holds, whatever the collector has done so far and whatever was compiled.
--
--   live()            -- once all that nothing can reach is collected
--   live.during(f)    -- what f leaves behind, and the most that it holds meanwhile, with its own releases only: nothing is
--                        collected in it. Negative if it releases more than it makes
local pgee = require "perigee.ffi"
local C = pgee.C

local function live()
  jit.flush() -- compiled traces keep objects that they were recorded with
  local before
  repeat -- a finalizer keeps what it refers to until it has run
    before = collectgarbage "count"
    collectgarbage()
  until collectgarbage "count" >= before
  return tonumber(C.pgee_live_bytes())
end

local function during(f)
  local before = live()
  collectgarbage "stop"
  C.pgee_peak_reset()
  local ok, failure = pcall(f)
  local after, peak = tonumber(C.pgee_live_bytes()), tonumber(C.pgee_peak_bytes())
  collectgarbage "restart"
  if not ok then
    error(failure, 0)
  end
  return after - before, peak - before
end

return setmetatable({ during = during }, { __call = live })
