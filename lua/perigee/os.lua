--- System: file descriptors, signals and files that are replaced whole, for programs that read and write streams.
--
-- Nothing here waits without looking at whether an interrupt was asked for: what can wait does so in slices of time.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C = pgee.C

pgee.declare [[
  long read(int fd, void *to, size_t count);
  long write(int fd, const void *from, size_t count);
  long pwrite(int fd, const void *from, size_t count, long offset);
  long pread(int fd, void *to, size_t count, long offset);
  int open(const char *path, int flags, ...);
  int close(int fd);
  int fcntl(int fd, int command, ...);
  long readlink(const char *path, char *to, size_t count);
  long lseek(int fd, long offset, int whence);
  int ftruncate(int fd, long length);
  int fsync(int fd);
  int flock(int fd, int operation);
  int rename(const char *from, const char *to);
  int getpid(void);
  int kill(int pid, int signal);
  char *strerror(int number);
  void (*sysv_signal(int number, void (*handler)(int)))(int);
]]
pgee.declare "struct perigee_poll { int fd; short events, came; }; int poll(struct perigee_poll *list, unsigned long n, int ms);"
local S = ffi.C

local system = {}

local EINTR, EAGAIN, EPIPE = 4, 11, 32
local IN, OUT = 1, 4
local SLICE = 200 -- ms
local PIPE = 4096 -- bytes that a pipe takes at once if it takes any (PIPE_BUF)

--- Why the last call failed: "No space left on device".
function system.reason()
  return ffi.string(S.strerror(ffi.errno()))
end

local one = ffi.new "struct perigee_poll[1]"

-- Whether the descriptor can be read or written within so many milliseconds. What is closed or broken can: the call says so.
local function ready(fd, events, ms)
  one[0].fd, one[0].events, one[0].came = fd, events, 0
  return S.poll(one, 1, ms) > 0
end

--- Whether something can be read now; so it is at the end, too.
function system.readable(fd)
  return ready(fd, IN, 0)
end

--- Reads up to `count` bytes once there are some. Returns how many, 0 at the end; nil if interrupted; nil and why.
function system.read(fd, to, count)
  while C.pgee_interrupted() == 0 do
    if ready(fd, IN, SLICE) then
      local n = tonumber(S.read(fd, to, count))
      if n >= 0 then
        return n
      elseif ffi.errno() ~= EINTR and ffi.errno() ~= EAGAIN then
        return nil, system.reason()
      end
    end
  end
  return nil
end

-- How much of what is left is written at once: up to the last end of a line in it, if there is one.
local function portion(from, left)
  local most = math.min(left, PIPE)
  for n = most, 1, -1 do
    if from[n - 1] == 10 then
      return n
    end
  end
  return most
end

--- Writes text. Once interrupted it ends where a line ends, unless what reads takes the rest without a wait. Returns true; nil
-- and why if it could not be written, nil alone if interrupted. `bytes`: it has no lines.
function system.write(fd, text, bytes)
  local from, left, whole = ffi.cast("const uint8_t *", text), #text, true
  while left > 0 do
    if ready(fd, OUT, SLICE) then
      local n = tonumber(S.write(fd, from, bytes and math.min(left, PIPE) or portion(from, left)))
      if n > 0 then
        from, left = from + n, left - n
        whole = bytes or from[-1] == 10
      elseif n == 0 or ffi.errno() == EPIPE then
        return nil, n == 0 and "nothing was taken" or "the pipe is closed"
      elseif ffi.errno() ~= EINTR and ffi.errno() ~= EAGAIN then
        return nil, system.reason()
      end
    elseif whole and C.pgee_interrupted() ~= 0 then
      return nil
    end
  end
  return true
end

---- Signals -----------------------------------------------------------------------------------------------------------

local PIPE_SIGNAL = 13
local handler = ffi.typeof "void (*)(int)"
local IGNORED = ffi.cast(handler, 1)

--- From now on each of these signals asks for an interrupt, the first time; the second time it does what it does by default. A
-- closed pipe ends the process, whatever its parent had set. system.signal() tells which signal came.
function system.catch(...)
  for _, number in ipairs { ... } do
    local before = S.sysv_signal(number, ffi.cast(handler, C.pgee_interrupt)) -- once, and waits are ended by it
    if before == IGNORED then -- as of what runs behind a shell's back: it stays so
      S.sysv_signal(number, before)
    end
  end
  S.sysv_signal(PIPE_SIGNAL, nil)
end

--- The number of the signal that came, nil if none did.
function system.signal()
  local number = C.pgee_interrupted()
  return number ~= 0 and number or nil
end

---- Files -------------------------------------------------------------------------------------------------------------

local READ, WRITE, READ_WRITE, CREATE, FOLDER = 0, 1, 2, 64, 65536
local GET_FLAGS = 1 -- of fcntl
local ALONE, NOW = 2, 4
local END = 2

--- Takes those of standard input, output and error that are closed, or a file that is opened would be taken for them. To read or
-- write there stays an error.
function system.occupy()
  for fd = 0, 2 do
    if S.fcntl(fd, GET_FLAGS) < 0 then
      S.open("/dev/null", fd == 0 and WRITE or READ)
    end
  end
end

--- Opens a file to read. Returns its descriptor; nil and why.
function system.open(path)
  local fd = S.open(path, READ)
  if fd < 0 then
    return nil, system.reason()
  end
  return fd
end

--- Bytes of a file; nil of what has no length, such as a pipe.
function system.size(fd)
  local here = S.lseek(fd, 0, 1)
  if here < 0 then
    return nil
  end
  local size = S.lseek(fd, 0, END)
  S.lseek(fd, here, 0)
  return tonumber(size)
end

local File = {}
File.__index = File

local function failed(path)
  error(("cannot write '%s': %s"):format(path, system.reason()), 0)
end

local TRIES = 100 -- to open a file that other processes finish meanwhile

--- The path at which a file written to `path` will be: if `path` is a link, the target of the link.
function system.target(path)
  return S.readlink(path, ffi.new "char[1]", 1) > 0 and pgee.absolute(path) or path
end

-- Opens path.part and takes its lock. Returns nil if another process renamed or replaced the file between these two steps.
local function open_part(part)
  local fd = S.open(part, READ_WRITE + CREATE, ffi.cast("int", 438)) -- rw-rw-rw-, less what umask takes
  if fd < 0 then
    failed(part)
  elseif S.flock(fd, ALONE + NOW) ~= 0 then
    local why = ffi.errno() == EAGAIN and "another process is writing it" or system.reason()
    S.close(fd)
    error(("cannot write '%s': %s"):format(part, why), 0)
  end
  local opened, named = pgee.stat(fd), pgee.stat(part)
  if opened and named and opened.id == named.id then
    return fd
  end
  S.close(fd)
end

--- A file that appears at `path` (or at the target of a link there) only when it is complete: writes go to path.part, which
-- finish renames. If another process is writing path.part, that is an error. If an earlier process left a path.part, its
-- content is kept. Errors blame nobody.
function system.file(path)
  local there = pgee.stat(path)
  if there and not there.regular then -- a file would take the place of it
    error(("cannot write '%s': it is %s, expected a file"):format(path, there.kind), 0)
  end
  path = system.target(path)
  local part, fd = path .. ".part", nil
  local other = pgee.stat(part)
  if other and not other.regular then -- opening a pipe would wait for its other end
    error(("cannot write '%s': it is %s, expected a file"):format(part, other.kind), 0)
  end
  for _ = 1, TRIES do
    fd = fd or open_part(part)
  end
  if not fd then
    error(("cannot write '%s': other processes replaced it %d times"):format(part, TRIES), 0)
  end
  return setmetatable({ path = path, part = part, fd = fd, size = system.size(fd) }, File)
end

--- Up to `count` bytes from a position on.
function File:read(count, at)
  local buffer = ffi.new("char[?]", count)
  local n = tonumber(S.pread(self.fd, buffer, count, at))
  return n < 0 and error(("cannot read '%s': %s"):format(self.part, system.reason()), 0) or ffi.string(buffer, n)
end

--- Cuts it off behind so many bytes; writing goes on there.
function File:cut(bytes)
  if S.ftruncate(self.fd, bytes) ~= 0 or S.lseek(self.fd, bytes, 0) < 0 then
    failed(self.part)
  end
end

--- Writes over what is at a position.
function File:over(text, at)
  if S.pwrite(self.fd, text, #text, at) ~= #text then
    failed(self.part)
  end
end

--- Makes what was written durable and gives it its name, in the place of what had it.
function File:finish()
  if S.fsync(self.fd) ~= 0 or S.rename(self.part, self.path) ~= 0 then
    failed(self.part)
  end
  local folder = S.open(self.path:match "^(.*/)[^/]*$" or ".", READ + FOLDER)
  if folder >= 0 then
    S.fsync(folder)
    S.close(folder)
  end
  S.close(self.fd)
end

return system
