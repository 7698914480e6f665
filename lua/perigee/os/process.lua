--- The operating system: processes, their environment, and the CPUs that they run on.
local bit = require "bit"
local ffi = require "ffi"
local system = require "perigee.os"

ffi.cdef [[
  unsigned getuid(void);
  int execvp(const char *file, char *const *arguments);
  int setenv(const char *name, const char *value, int overwrite);
  int kill(int pid, int signal);
  int fork(void);
  int pipe(int fds[2]);
  int waitpid(int pid, int *status, int options);
  void _exit(int status);
  int sched_getaffinity(int pid, size_t size, void *mask);
  int sched_setaffinity(int pid, size_t size, const void *mask);
]]
local S = ffi.C

local process = {}

local function failed(what)
  error(("%s failed: %s"):format(what, system.reason()), 0)
end

local MASK = 1024 -- bytes: 8192 CPUs

--- The numbers of the CPUs that this process may run on, ascending.
function process.affinity()
  local mask, list = ffi.new("uint8_t[?]", MASK), {}
  if S.sched_getaffinity(0, MASK, mask) < 0 then
    failed "sched_getaffinity"
  end
  for cpu = 0, MASK * 8 - 1 do
    if bit.band(mask[cpu / 8], bit.lshift(1, cpu % 8)) ~= 0 then
      list[#list + 1] = cpu
    end
  end
  return list
end

--- From now on this thread, and the threads that it starts, run on these CPUs only.
function process.pin(cpus)
  local mask = ffi.new("uint8_t[?]", MASK)
  for _, cpu in ipairs(cpus) do
    mask[cpu / 8] = bit.bor(mask[cpu / 8], bit.lshift(1, cpu % 8))
  end
  if S.sched_setaffinity(0, MASK, mask) < 0 then
    failed "sched_setaffinity"
  end
end

--- A pipe: the descriptor to read from, and the one to write to.
function process.pipe()
  local fds = ffi.new "int[2]"
  if S.pipe(fds) < 0 then
    failed "pipe"
  end
  return fds[0], fds[1]
end

--- Starts a child process, a copy of this one. Returns 0 in the child, and the child's id in the parent.
function process.fork()
  local pid = S.fork()
  if pid < 0 then
    failed "fork"
  end
  return pid
end

--- Waits until a child process has ended.
function process.wait(pid)
  S.waitpid(pid, nil, 0)
end

--- The number of the user that this process runs as.
function process.user()
  return tonumber(S.getuid())
end

--- Sets a variable of the environment, for this process and the programs that it starts.
function process.set_environment(name, value)
  S.setenv(name, value, 1)
end

--- Replaces this process by a program. words: the program and its arguments. If it returns, that failed, which is an error.
function process.become(words)
  local list, kept = ffi.new("char *[?]", #words + 1), {}
  for i, word in ipairs(words) do
    kept[i] = ffi.new("char[?]", #word + 1, word)
    list[i - 1] = kept[i]
  end
  io.stdout:flush()
  S.execvp(words[1], list)
  error(("cannot start '%s': %s"):format(words[1], system.reason()), 0)
end

--- Ends this process at once: buffers of the io library are not written, and finalizers do not run.
function process.exit(code)
  S._exit(code)
end

return process
