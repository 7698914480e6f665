--- Collect: a hostile garbage collector. Before a call into the library, when its arguments are made, all garbage is collected.
-- Memory that is reachable only through a C pointer in the arguments is then freed, and the sanitizers of `make hard` report
-- that C reads it. Between calls the collector never pauses: a new cycle begins when one has ended. In "short" it begins when
-- the memory in use is as much as at the end of the last cycle.
--
-- The environment variable PERIGEE_COLLECT asks for it. A collection takes 2 ms, so even "full" leaves out calls of long loops:
local KINDS = {
  -- What CI has time for:
  short = { early = 8, of_early = 16, of_later = 4000, pause = 100, step = 400 },
  -- Of a function's first 8 calls in a test about one:
  sampled = { early = 8, of_early = 8, of_later = 1000, pause = 0, step = 400 },
  -- All of a function's first 64 calls in a test:
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

-- Functions that are handed on as pointers.
local PLAIN = { pgee_interrupt = true }

--- From now on modules that take pgee.C get functions that collect. For spec/helper.lua, before modules are loaded.
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
