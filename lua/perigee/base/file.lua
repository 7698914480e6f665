--- Files that are replaced as a whole: `path` has its old content until the new content is complete and on the disk.
--
--   file.replace(path, text)        -- writes a text. Returns true; nil and the reason if that failed
--   local f = file.part(path)       -- for long work: path.part, which f:finish() renames to path
local ffi = require "ffi"
local system = require "perigee.os"
local S = ffi.C

local file = {}

local READ, READ_WRITE, CREATE, FOLDER = 0, 2, 64, 65536
local ALONE, NOW = 2, 4 -- of flock
local EAGAIN = 11

local File = {}
File.__index = File

local function failed(path)
  error(("cannot write '%s': %s"):format(path, system.reason()), 0)
end

local TRIES = 100 -- to open a path.part while other processes rename theirs
local PAUSE = 10 -- ms between two tries to take a lock

-- Takes the lock of a descriptor. Tries for up to `wait` milliseconds. Returns whether it has the lock; if not, errno says why.
local function lock(fd, wait)
  for _ = 0, wait, PAUSE do
    if S.flock(fd, ALONE + NOW) == 0 then
      return true
    elseif ffi.errno() ~= EAGAIN or wait == 0 then
      return false
    end
    S.poll(nil, 0, PAUSE)
    ffi.errno(EAGAIN)
  end
  return false
end

-- Opens path.part and takes its lock. Returns nil if another process renamed or replaced the file between these two steps.
local function open_part(part, wait)
  local fd = S.open(part, READ_WRITE + CREATE, ffi.cast("int", 438)) -- rw-rw-rw-, less what umask takes
  if fd < 0 then
    failed(part)
  elseif not lock(fd, wait) then
    local why = ffi.errno() == EAGAIN and "another process is writing it" or system.reason()
    system.close(fd)
    error(("cannot write '%s': %s"):format(part, why), 0)
  end
  local opened, named = system.stat(fd), system.stat(part)
  if opened and named and opened.id == named.id then
    return fd
  end
  system.close(fd)
end

-- An error if a pipe, a device or a folder has that path: a file must not take its place, and opening a pipe may wait for ever.
local function check_regular(path)
  local there = system.stat(path)
  if there and not there.regular then
    error(("cannot write '%s': it is %s, expected a file"):format(path, there.kind), 0)
  end
end

--- A file that appears at `path` (or at the target of a link there) only when it is complete: writes go to path.part, which
-- finish renames. If another process is writing path.part, that is an error. If an earlier process left a path.part, its
-- content is kept. Errors blame nobody. wait: how many milliseconds to wait for another process that is writing; default 0.
function file.part(path, wait)
  check_regular(path)
  path = system.target(path)
  local part, fd = path .. ".part", nil
  check_regular(part)
  for _ = 1, TRIES do
    fd = fd or open_part(part, wait or 0)
  end
  if not fd then
    error(("cannot write '%s': other processes replaced it %d times"):format(part, TRIES), 0)
  end
  return setmetatable({ path = path, part = part, fd = fd, size = system.size(fd) }, File)
end

--- Reads up to `count` bytes from the position `at`.
function File:read(count, at)
  local buffer = ffi.new("char[?]", count)
  local n = tonumber(S.pread(self.fd, buffer, count, at))
  return n < 0 and error(("cannot read '%s': %s"):format(self.part, system.reason()), 0) or ffi.string(buffer, n)
end

--- Cuts the file to so many bytes. The next write goes to its end.
function File:cut(bytes)
  if S.ftruncate(self.fd, bytes) ~= 0 or S.lseek(self.fd, bytes, 0) < 0 then
    failed(self.part)
  end
end

--- Overwrites the bytes from the position `at`.
function File:over(text, at)
  local from, left = ffi.cast("const char *", text), #text
  while left > 0 do
    local n = tonumber(S.pwrite(self.fd, from, left, at))
    if n <= 0 then
      failed(self.part)
    end
    from, left, at = from + n, left - n, at + n
  end
end

--- Writes the content to the disk and renames path.part to path, which replaces a file that is there.
function File:finish()
  if S.fsync(self.fd) ~= 0 or S.rename(self.part, self.path) ~= 0 then
    failed(self.part)
  end
  local folder = S.open(self.path:match "^(.*/)[^/]*$" or ".", READ + FOLDER)
  if folder >= 0 then
    S.fsync(folder)
    system.close(folder)
  end
  system.close(self.fd)
end

local WAIT = 1000 -- ms; another process that replaces the same file takes a few

--- Makes `text` the content of `path`. Returns true; nil and the reason if that failed: then `path` is as it was.
function file.replace(path, text)
  local opened, f = pcall(file.part, path, WAIT)
  if not opened then
    return nil, f
  end
  local ok, why = pcall(function()
    f:cut(0)
    f:over(text, 0)
    f:finish()
  end)
  if not ok then
    os.remove(f.part)
    system.close(f.fd)
  end
  return ok or nil, why
end

return file
