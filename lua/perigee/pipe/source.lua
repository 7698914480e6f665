--- Source: reads the lines of a file descriptor as they arrive. Lines are numbered and of bounded length, and the source tells
-- whether the next line has arrived.
--
-- A line ends with LF or CR LF; the last line may have no end. A byte order mark at the beginning is left out. Unlike
-- perigee.lines, a source returns a line as soon as it has arrived, never waits for more than the line asked for, and can be
-- interrupted.
local ffi = require "ffi"
local options = require "perigee.options"
local raise = require("perigee.ffi").raise
local system = require "perigee.os"

local Source = {}
Source.__index = Source

local BLOCK = 65536

-- Reads the next block. After an interrupt or at the end of the input it sets s.ended.
local function more(s)
  local n, why = system.read(s.fd, s.block, BLOCK)
  if why then
    error(("cannot read the input after line %d: %s"):format(s.number, why), 0)
  elseif not n or n == 0 then
    s.ended = true
    return
  end
  s.bytes = s.bytes + n
  local rest = s.text:sub(s.at)
  if #rest > 0 then -- parts of a line wait in a list, so that a long line is not copied with each block
    s.held, s.parts[#s.parts + 1] = s.held + #rest, rest
  end
  if s.held > s.longest then
    s.parts, s.over = {}, true
  end
  s.text, s.at = ffi.string(s.block, n), 1
end

-- Makes the next line of the parts that wait and of the block up to byte `last`. The line after it begins at byte `after`.
local function take(s, last, after)
  s.parts[#s.parts + 1] = s.text:sub(s.at, last)
  local length, over = s.held + last - s.at + 1, s.over
  local line = table.concat(s.parts)
  if s.number == 0 then
    line = line:gsub("^\239\187\191", "")
  end
  s.at, s.parts, s.held, s.over, s.number = after, {}, 0, false, s.number + 1
  if over or length > s.longest then
    return "", s.number, ("the line has %d bytes, at most %d are taken"):format(length, s.longest)
  end
  return (line:gsub("\r$", "")), s.number
end

--- Waits for the next line. Returns the line, its number, and an error text if the line is too long (then it is ""). Returns
-- nil at the end of the input and after an interrupt.
function Source:line()
  while true do
    local stop = self.text:find("\n", self.at, true)
    if stop then
      return take(self, stop - 1, stop + 1)
    elseif self.ended then
      if system.signal() or self.held == 0 and self.at > #self.text then
        return nil
      end
      return take(self, #self.text, #self.text + 1)
    end
    more(self)
  end
end

--- Whether the next line has arrived completely, so that line() returns at once.
function Source:ready()
  if not self.ended and not self.text:find("\n", self.at, true) and system.readable(self.fd) then
    more(self)
  end
  return self.ended or self.text:find("\n", self.at, true) ~= nil
end

--- Skips the first `count` lines. Returns how many lines there were.
function Source:skip(count)
  options.integer(raise(options.given, count, "skip: count", "how many lines"), 0, 2 ^ 53, "skip: count")
  while self.number < count and self:line() do end -- luacheck: ignore 542
  return self.number
end

--- fd: a file descriptor. longest: bytes that a line may have.
return function(fd, longest)
  options.integer(raise(options.given, fd, "source: fd", "a file descriptor"), 0, 2 ^ 31 - 1, "source: fd")
  options.integer(raise(options.given, longest, "source: longest", "bytes of a line"), 1, 2 ^ 53, "source: longest")
  return setmetatable({
    fd = fd, longest = longest, text = "", at = 1, parts = {}, held = 0, number = 0, bytes = 0,
    block = ffi.new("char[?]", BLOCK),
  }, Source)
end
