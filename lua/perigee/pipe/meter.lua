--- Meter: prints on standard error how many lines are done, how fast that is, and how long the rest will take.
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local C = pgee.C

local Meter = {}
Meter.__index = Meter

local function clock(seconds)
  return ("%d:%02d:%02d"):format(math.floor(seconds / 3600), math.floor(seconds / 60) % 60, seconds % 60)
end

--- A meter. shown: whether it prints; nil: if standard error is a terminal. On a terminal it overwrites its line twice a second;
-- elsewhere it prints a new line every ten seconds.
local function new(shown)
  local terminal = system.is_terminal(2)
  if shown == nil then
    shown = terminal
  end
  return setmetatable({
    shown = shown, every = terminal and 0.5 or 10, head = terminal and "\r" or "", tail = terminal and "\27[K" or "\n",
    last = terminal and "\n" or "", began = C.pgee_seconds(), said = 0,
  }, Meter)
end

-- How long the rest will take at the speed since the first call. part: how much of the input is done, 0 to 1.
local function left(self, part, seconds)
  self.first = self.first or part
  return part > self.first and clock(seconds * (1 - part) / (part - self.first)) .. " left" or nil
end

--- Prints the progress, unless it was printed a moment ago. lines: lines that are done; here: how many of them this process did;
-- part: how much of the input is done, 0 to 1, or nil if that is not known; over: whether all is done, which is always printed.
function Meter:say(lines, here, part, over)
  local now = C.pgee_seconds()
  if not self.shown or not over and now - self.said < self.every then
    return
  end
  self.said = now
  local seconds = now - self.began
  local text = ("%d lines, %.0f a second"):format(lines, here / math.max(seconds, 1e-9))
  if part and not over then
    text = ("%s, %.1f %%, %s"):format(text, 100 * part, left(self, part, seconds) or "-")
  end
  io.stderr:write(self.head, text, self.tail, over and self.last or "")
  io.stderr:flush()
end

return new
