--- Collect: a hostile garbage collector. Before a call into the library, when its arguments are made, all garbage is collected.
-- Memory that is reachable only through a C pointer in the arguments is then freed, and the sanitizers of `make hard` report
-- that C reads it. Between calls the collector never pauses: a new cycle begins when one has ended. With "short", it pauses until
-- the memory in use is as much as at the end of the last cycle.
--
-- The environment variable PERIGEE_COLLECT chooses a kind. A collection takes 2 ms, so no kind collects before every call. In
-- each test, one of `of_early` of a function's first `early` calls collects, and one of `of_later` of its later calls. `pause`
-- and `step` are the collector's parameters.
local KINDS = {
  -- .ci/run takes this kind, to save time:
  short = { early = 8, of_early = 16, of_later = 4000, pause = 100, step = 400 },
  -- About one of a function's first 8 calls:
  sampled = { early = 8, of_early = 8, of_later = 1000, pause = 0, step = 400 },
  -- All of a function's first 64 calls:
  full = { early = 64, of_early = 1, of_later = 300, pause = 0, step = 1000 },
}
local busted = require "busted"
local pgee = require "perigee.ffi"

local collect = { calls = 0, collections = 0 }

local kind, state, called = nil, 1, {}

local function one_of(n)
  state = (state * 16807) % 2147483647 -- the same sequence in every run
  return state % n == 0
end

local function before(name)
  called[name] = (called[name] or 0) + 1
  collect.calls = collect.calls + 1
  if one_of(called[name] <= kind.early and kind.of_early or kind.of_later) then
    collect.collections = collect.collections + 1
    collectgarbage()
  end
end

-- These functions are passed to C as pointers, so they cannot be replaced by a Lua function.
local PLAIN = { pgee_interrupt = true }

--- From now on, modules that take functions from pgee.C get functions that collect. spec/helper.lua calls this before it loads
-- other modules.
function collect.start(name)
  local C = pgee.C
  kind = KINDS[name] or error(("PERIGEE_COLLECT is '%s', expected 'short', 'sampled' or 'full'"):format(name))
  collectgarbage("setpause", kind.pause)
  collectgarbage("setstepmul", kind.step)
  busted.subscribe({ "test", "start" }, function()
    called = {}
  end)
  pgee.C = setmetatable({}, {
    __index = function(self, key)
      local value = C[key]
      if type(value) == "cdata" and not PLAIN[key] then
        local f = value
        value = function(...)
          before(key)
          return f(...)
        end
      end
      rawset(self, key, value)
      return value
    end,
  })
end

return collect
