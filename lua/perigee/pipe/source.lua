--- Source: the lines of a file descriptor as they come: numbered, of bounded length, and whether the next one is there already.
--
-- A line ends with LF or CR LF, the last one perhaps with nothing; a byte order mark is not text. Unlike perigee.lines it never
-- reads further than asked, gives what is there at once, and looks at interrupts while it waits.
local ffi = require "ffi"
local options = require "perigee.options"
local raise = require("perigee.ffi").raise
local system = require "perigee.os"

local Source = {}
Source.__index = Source

local BLOCK = 65536

-- Adds the next block to what is there. Once interrupted or at the end there is no more.
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
  if #rest > 0 then -- parts of a line wait in a list, or long ones would be copied again and again
    s.held, s.parts[#s.parts + 1] = s.held + #rest, rest
  end
  if s.held > s.longest then
    s.parts, s.over = {}, true
  end
  s.text, s.at = ffi.string(s.block, n), 1
end

-- What is held up to a position of the block, as the next line.
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

--- The next line, its number, and what is wrong with it if it is too long; nil at the end and once interrupted. Waits for it.
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

--- Whether the next line is there. A long line is not, while the rest of it comes: nobody is to wait for that.
function Source:ready()
  if not self.ended and not self.text:find("\n", self.at, true) and system.readable(self.fd) then
    more(self)
  end
  return self.ended or self.text:find("\n", self.at, true) ~= nil
end

--- Goes on behind so many lines. Returns how many there were.
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
