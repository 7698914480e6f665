--- Live: the bytes that the library holds. The result depends neither on what the collector has done before nor on what LuaJIT
-- has compiled.
--
--   live()            -- collects all garbage, and returns the bytes held
--   live.during(f)    -- returns the bytes that f leaves behind, and the maximum that it holds meanwhile. The collector does
--                        not run in f, so only f's own releases count. Negative if f releases more than it makes
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
