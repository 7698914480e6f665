--- The operating system: file descriptors, signals, terminals and files. Calls about processes are in os/process.lua.
--
-- These two modules declare the functions of the C library that the others call. A function here that may wait does so in slices
-- of time, and between two slices it looks whether an interrupt was asked for.
local ffi = require "ffi"
local find = require "perigee.find"
local pgee = require "perigee.ffi"
local C = pgee.C

-- LuaJIT accepts functions that are declared again, but no struct. Therefore the structs below have no names: this module can be
-- loaded twice.
ffi.cdef [[
  long read(int fd, void *to, size_t count);
  long write(int fd, const void *from, size_t count);
  long pwrite(int fd, const void *from, size_t count, long offset);
  long pread(int fd, void *to, size_t count, long offset);
  int open(const char *path, int flags, ...);
  int close(int fd);
  int fcntl(int fd, int command, ...);
  int ioctl(int fd, unsigned long request, ...);
  int isatty(int fd);
  int poll(void *list, unsigned long count, int milliseconds);
  int statx(int folder, const char *path, int flags, unsigned mask, void *to);
  long readlink(const char *path, char *to, size_t count);
  long lseek(int fd, long offset, int whence);
  int ftruncate(int fd, long length);
  int fsync(int fd);
  int flock(int fd, int operation);
  int rename(const char *from, const char *to);
  int mkdir(const char *path, unsigned mode);
  char *strerror(int number);

  void (*signal(int number, void (*handler)(int)))(int);
  void (*sysv_signal(int number, void (*handler)(int)))(int);

  void *malloc(size_t bytes);
  void free(void *pointer);
  char *strdup(const char *text);
]]
local S = ffi.C

local system = {}

local EINTR, EAGAIN, EPIPE = 4, 11, 32

--- Why the last call failed: "No space left on device".
function system.reason()
  return ffi.string(S.strerror(ffi.errno()))
end

---- Reading and writing -----------------------------------------------------------------------------------------------

local IN, OUT = 1, 4
local SLICE = 200 -- ms
local PIPE = 4096 -- a pipe that can take anything takes this many bytes at once (PIPE_BUF)

local one = ffi.new "struct { int fd; short events, came; }[1]"

-- Whether the descriptor can be read or written within `ms` milliseconds (negative: any time). The answer is also yes if the
-- other end is closed or broken: the call that reads or writes then reports it.
local function ready(fd, events, ms)
  one[0].fd, one[0].events, one[0].came = fd, events, 0
  return S.poll(one, 1, ms) > 0
end

--- Whether a read would return at once. At the end of the input it would.
function system.readable(fd)
  return ready(fd, IN, 0)
end

--- Waits until something can be read. Returns false if a signal ended the wait and an interrupt was asked for.
function system.wait_readable(fd)
  while C.pgee_interrupted() == 0 do
    if ready(fd, IN, -1) then
      return true
    end
  end
  return false
end

--- Waits for input and reads up to `count` bytes. Returns the number of bytes, 0 at the end; nil if interrupted; nil and the
-- reason if reading failed.
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

-- How many of the `left` bytes are written at once: up to the last end of a line among those that a pipe takes at once, or all
-- of those if there is no end of a line.
local function portion(from, left)
  local max = math.min(left, PIPE)
  for n = max, 1, -1 do
    if from[n - 1] == 10 then
      return n
    end
  end
  return max
end

--- Writes a text. After an interrupt it stops at the end of a line, unless the reader takes the rest without a wait. Returns
-- true; nil if it stopped because of an interrupt; nil and the reason if writing failed. bytes: true if the text has no lines.
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

local INTERRUPT, PIPE_SIGNAL = 2, 13
local handler = ffi.typeof "void (*)(int)"
local IGNORED = ffi.cast(handler, 1)

--- For programs without a prompt. From now on each of these signals asks for an interrupt when it comes first; the second time
-- it has its default effect. A closed pipe ends the process, also if the parent process had the signal ignored. system.signal()
-- returns which signal came.
function system.catch(...)
  for _, number in ipairs { ... } do
    local before = S.sysv_signal(number, ffi.cast(handler, C.pgee_interrupt)) -- sysv: one time, and the signal ends waits
    if before == IGNORED then -- a shell does this for programs in the background; they stay undisturbed
      S.sysv_signal(number, before)
    end
  end
  S.sysv_signal(PIPE_SIGNAL, nil)
end

--- For programs with a prompt. From now on Ctrl-C only asks the run in progress to stop, as pgee_interrupt does. Returns a
-- function that restores the effect that Ctrl-C had before.
function system.catch_interrupts()
  local before = S.signal(INTERRUPT, ffi.cast(handler, C.pgee_interrupt))
  return function()
    S.signal(INTERRUPT, before)
  end
end

--- The number of the signal that asked for an interrupt; nil if none did.
function system.signal()
  local number = C.pgee_interrupted()
  return number ~= 0 and number or nil
end

---- Terminals ---------------------------------------------------------------------------------------------------------

--- Whether a file descriptor (2 is standard error) is a terminal.
function system.is_terminal(fd)
  return S.isatty(fd) == 1
end

--- The width in columns of the terminal behind a file descriptor; nil if it is no terminal.
function system.columns(fd)
  local TIOCGWINSZ, size = 0x5413, ffi.new "unsigned short[4]" -- rows, columns
  return S.ioctl(fd, TIOCGWINSZ, size) == 0 and size[1] > 0 and size[1] or nil
end

---- Files -------------------------------------------------------------------------------------------------------------

local READ, WRITE = 0, 1
local GET_FLAGS = 1 -- of fcntl
local END = 2 -- of lseek

--- Opens /dev/null for each of standard input, output and error that is closed. Otherwise the next file that is opened would
-- become one of them. Reading or writing there still fails.
function system.occupy()
  for fd = 0, 2 do
    if S.fcntl(fd, GET_FLAGS) < 0 then
      S.open("/dev/null", fd == 0 and WRITE or READ)
    end
  end
end

--- Opens a file for reading. Returns its descriptor; nil and the reason if that failed.
function system.open(path)
  local fd = S.open(path, READ)
  if fd < 0 then
    return nil, system.reason()
  end
  return fd
end

function system.close(fd)
  S.close(fd)
end

--- The size of a file in bytes; nil for something without a size, such as a pipe.
function system.size(fd)
  local here = S.lseek(fd, 0, 1)
  if here < 0 then
    return nil
  end
  local size = S.lseek(fd, 0, END)
  S.lseek(fd, here, 0)
  return tonumber(size)
end

-- struct statx of Linux, 256 bytes.
local status = ffi.typeof [[
  struct {
    uint32_t mask, block; uint64_t attributes; uint32_t links, user, group; uint16_t mode, none; uint64_t inode, size;
    uint64_t times[10]; uint32_t special[2], major, minor; uint64_t rest[14];
  }
]]

-- By the upper four bits of the mode.
local KINDS = {
  [1] = "a named pipe", [2] = "a character device", [4] = "a directory", [6] = "a block device", [8] = "a file",
  [12] = "a socket",
}

--- Describes a path or a file descriptor: { kind = "a directory", regular = false, bytes = 4096, id = "...", owner = number of a
-- user, mode = its lower twelve bits }. Equal ids mean the same file. Returns nil if the system call fails; the second result is
-- then true if nothing has that path.
function system.stat(file)
  local HERE, EMPTY_PATH, BASIC = -100, 0x1000, 0x7ff
  local ENOENT, ENOTDIR = 2, 20
  local to = status()
  local is_path = type(file) == "string"
  if S.statx(is_path and HERE or file, is_path and file or "", is_path and 0 or EMPTY_PATH, BASIC, to) ~= 0 then
    return nil, ffi.errno() == ENOENT or ffi.errno() == ENOTDIR
  end
  local kind = math.floor(to.mode / 4096)
  return {
    kind = KINDS[kind] or "no file", regular = kind == 8, bytes = tonumber(to.size),
    id = ("%d:%d:%s"):format(to.major, to.minor, tostring(to.inode)), owner = tonumber(to.user), mode = to.mode % 4096,
  }
end

--- Makes a folder and the folders above it. It reports no failure: the caller writes into the folder next, and that fails then.
function system.make_folder(folder)
  for slash in (folder .. "/"):gmatch "()/" do
    S.mkdir(folder:sub(1, slash - 1), 493) -- rwxr-xr-x
  end
end

--- Makes a folder that only this user can read and write. It reports no failure, and changes no folder that is there.
function system.make_private_folder(folder)
  S.mkdir(folder, 448) -- rwx------
end

--- The path at which a file written to `path` will be: if `path` is a link, the target of the link.
function system.target(path)
  return S.readlink(path, ffi.new "char[1]", 1) > 0 and find.absolute(path) or path
end

return system
