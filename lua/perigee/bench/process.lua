--- Processes: which CPUs this one may run on, and children that work at the same time. For benches.
--
-- A child shares the memory of its parent until one of the two writes to it: quantize first, then fork.
local bit = require "bit"
local ffi = require "ffi"
local pgee = require "perigee.ffi"

pgee.declare [[
  int fork(void);
  int pipe(int fds[2]);
  int close(int fd);
  long read(int fd, void *to, size_t count);
  long write(int fd, const void *from, size_t count);
  int waitpid(int pid, int *status, int options);
  void _exit(int status);
  int sched_getaffinity(int pid, size_t size, void *mask);
  int sched_setaffinity(int pid, size_t size, const void *mask);
]]
local S = ffi.C

local process = {}

local MASK = 1024 -- bytes: 8192 CPUs

local function failed(what)
  error(("%s failed with errno %d"):format(what, ffi.errno()), 3)
end

--- The CPUs that this process may run on, ascending.
function process.cpus()
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

--- From now on this thread, and threads that it starts, run on these CPUs alone.
function process.pin(cpus)
  local mask = ffi.new("uint8_t[?]", MASK)
  for _, cpu in ipairs(cpus) do
    mask[cpu / 8] = bit.bor(mask[cpu / 8], bit.lshift(1, cpu % 8))
  end
  if S.sched_setaffinity(0, MASK, mask) < 0 then
    failed "sched_setaffinity"
  end
end

local function pipe()
  local fds = ffi.new "int[2]"
  if S.pipe(fds) < 0 then
    failed "pipe"
  end
  return fds[0], fds[1]
end

local function send(fd, text)
  local from, left = ffi.cast("const char *", text), #text
  while left > 0 do
    local n = tonumber(S.write(fd, from, left))
    if n <= 0 then
      return
    end
    from, left = from + n, left - n
  end
end

local chunk = ffi.new "char[4096]"

-- Up to `count` bytes; fewer if the other end is closed.
local function receive(fd, count)
  local parts, got = {}, 0
  while got < count do
    local n = tonumber(S.read(fd, chunk, math.min(count - got, 4096)))
    if n <= 0 then
      break
    end
    parts[#parts + 1] = ffi.string(chunk, n)
    got = got + n
  end
  return table.concat(parts)
end

-- A child's life. What it says: R when ready, then its result after a letter that tells whether it is one.
local function live(i, f, to_parent, go)
  local ready = false
  local ok, result = pcall(f, i, function()
    ready = true
    send(to_parent, "R")
    receive(go, 1) -- returns when the parent closes its end
  end)
  send(to_parent, (ready and "" or "R") .. (ok and "=" or "!") .. tostring(result))
  S._exit(0)
end

local function start(i, f, go, go_end)
  local from_child, to_parent = pipe()
  local pid = S.fork()
  if pid < 0 then
    failed "fork"
  elseif pid == 0 then
    S.close(from_child)
    S.close(go_end)
    live(i, f, to_parent, go)
  end
  S.close(to_parent)
  return { pid = pid, fd = from_child }
end

--- Runs f(i, meet) in `count` children, i from 1, and returns what each returned, as strings. In a child, meet() returns when all
-- have called it. If one fails, that is an error here, when all have ended.
function process.together(count, f)
  io.stdout:flush()
  io.stderr:flush()
  local go, go_end = pipe()
  local children, results, failure = {}, {}, nil
  for i = 1, count do
    children[i] = start(i, f, go, go_end)
  end
  for _, child in ipairs(children) do
    receive(child.fd, 1)
  end
  S.close(go)
  S.close(go_end)
  for i, child in ipairs(children) do
    local text = receive(child.fd, math.huge)
    S.close(child.fd)
    S.waitpid(child.pid, nil, 0)
    results[i] = text:sub(2)
    if text:sub(1, 1) ~= "=" then
      failure = failure or ("process %d: %s"):format(i, text == "" and "ended early" or results[i])
    end
  end
  if failure then
    error(failure, 0)
  end
  return results
end

return process
