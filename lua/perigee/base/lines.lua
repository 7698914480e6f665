--- The lines of a text file, one by one: perigee.lines "texts.txt".
--
-- A line ends with LF or CR LF; the iterator removes these ends and a byte order mark at the file's beginning. A path that is not
-- that of a file or a pipe is an error at once. A line of more than 16 MiB is an error when it is reached. The file is read in
-- blocks, because the lines of Lua's io end at a zero byte.
local pgee = require "perigee.ffi"
local find = require "perigee.find"
local system = require "perigee.os"
local error = pgee.error

local BLOCK = 65536
local LONGEST = 2 ^ 24 -- bytes of a line, as recipes/pipe.lua has it by default

local unread = setmetatable({}, { __mode = "k" }) -- by iterator: its path, until its first call

local lines = {}

--- The absolute path of the file of an iterator that was not called yet; nil for anything else.
function lines.path(iterator)
  return unread[iterator]
end

local function open(_, path)
  if type(path) ~= "string" or path:find "%z" then
    error("lines: expected the path of a file, got " .. pgee.describe(path), pgee.blame())
  end
  local found = system.stat(path)
  if found and not found.regular and found.kind ~= "a named pipe" then -- a device such as /dev/zero has no end
    error(("lines: cannot read '%s': it is %s, expected a file or a pipe"):format(path, found.kind), pgee.blame())
  end
  local file, reason = io.open(path, "rb")
  if not file then
    error(("lines: cannot open '%s': %s"):format(path, reason:sub(#path + 3)), pgee.blame())
  end
  local text, at, first = "", 1, true

  -- Reads the next block behind the rest of the last one. Returns false at the end of the file.
  local function more()
    local block, failure = file:read(BLOCK)
    if failure then
      error(("lines: %s: %s"):format(path, failure))
    end
    text, at = text:sub(at) .. (block or ""), 1
    if #text > LONGEST + BLOCK then
      error(("lines: '%s' has a line of more than %d bytes, expected a text file"):format(path, LONGEST))
    end
    if first and #text >= 3 then
      text, first = text:gsub("^\239\187\191", ""), false
    end
    return block ~= nil
  end

  local function next_line()
    unread[next_line] = nil
    while file do
      local stop = text:find("\n", at, true)
      if stop then
        local line = text:sub(at, stop - 1)
        at = stop + 1
        return (line:gsub("\r$", ""))
      end
      if not more() then
        file:close()
        file = nil
        if text ~= "" then
          return (text:gsub("\r$", ""))
        end
      end
    end
  end
  unread[next_line] = find.absolute(path)
  return next_line
end

return setmetatable(lines, { __call = open })
