--- Progress: a bar on standard error for long work.
local pgee = require "perigee.ffi"
local system = require "perigee.os"

local progress = {}

local WIDTH = 40

local function silent() end

-- A function that draws a bar. label: the name of the work.
local function bar(label)
  return function(done, total)
    local full = math.floor(WIDTH * done / total + 0.5)
    io.stderr:write(("\r%s [%s%s] %d/%d%s"):format(label, ("#"):rep(full), ("."):rep(WIDTH - full), done, total,
      done == total and "\n" or ""))
    io.stderr:flush()
  end
end

--- A function (done, total) to call after each step of the work. given: the user's choice. A function is returned as it is; true
-- gives a bar; false gives a function that does nothing; nil gives a bar if standard error is a terminal.
function progress.of(given, label)
  if type(given) == "function" then
    return given
  elseif given == nil then
    given = system.is_terminal(2)
  elseif type(given) ~= "boolean" then
    error(("%s: progress is %s, expected true, false, or a function (done, total)"):format(label, pgee.describe(given)), 0)
  end
  return given and bar(label) or silent
end

return progress
