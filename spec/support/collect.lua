--- Collect: a hostile collector. Before a call into the library, when its arguments are there, all garbage is collected: what
-- only a pointer among the arguments would keep is freed, and the sanitizers of `make hard` see C read it.
--
-- The environment variable PERIGEE_COLLECT=N asks for it before about one call of N, chosen by a fixed sequence; 1: every call.
-- Between calls the collector never pauses: a new cycle begins when one has ended.
local pgee = require "perigee.ffi"

local collect = { calls = 0, collections = 0 }

local rate, state = nil, 1

local function step()
  collect.calls = collect.calls + 1
  state = (state * 16807) % 2147483647
  if state % rate == 0 then
    collect.collections = collect.collections + 1
    collectgarbage()
  end
end

-- Functions that are handed on as pointers.
local PLAIN = { pgee_interrupt = true }

--- From now on modules that take pgee.C get functions that collect. For spec/helper.lua, before modules are loaded.
function collect.start(every)
  local C = pgee.C
  rate = every
  collectgarbage("setpause", 0)
  collectgarbage("setstepmul", every < 50 and 5000 or 400)
  pgee.C = setmetatable({}, {
    __index = function(self, name)
      local value = C[name]
      if type(value) == "cdata" and not PLAIN[name] then
        local f = value
        value = function(...)
          step()
          return f(...)
        end
      end
      rawset(self, name, value)
      return value
    end,
  })
end

return collect
