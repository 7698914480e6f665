--- Processes: children that work at the same time, for benches.
--
-- A child shares the memory of its parent until one of the two writes to it: quantize first, then fork.
local ffi = require "ffi"
local processes = require "perigee.os.process"
local system = require "perigee.os"
local S = ffi.C

local process = {}

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

-- Reads `count` bytes; fewer if the other end is closed before.
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

-- The work of a child. It sends R to the parent when it is ready. At the end it sends = and its result, or ! and the error.
local function live(i, f, to_parent, go)
  local ready = false
  local ok, result = pcall(f, i, function()
    ready = true
    send(to_parent, "R")
    receive(go, 1) -- returns when the parent closes its end
  end)
  send(to_parent, (ready and "" or "R") .. (ok and "=" or "!") .. tostring(result))
  processes.exit(0)
end

local function start(i, f, go, go_end)
  local from_child, to_parent = processes.pipe()
  local pid = processes.fork()
  if pid == 0 then
    system.close(from_child)
    system.close(go_end)
    live(i, f, to_parent, go)
  end
  system.close(to_parent)
  return { pid = pid, fd = from_child }
end

--- Runs f(i, meet) in `count` child processes, i from 1. Returns a list of their results as strings. In a child, meet() waits
-- until all children have called it. If a child fails, that is an error here, after all have ended.
function process.together(count, f)
  io.stdout:flush()
  io.stderr:flush()
  local go, go_end = processes.pipe()
  local children, results, failure = {}, {}, nil
  for i = 1, count do
    children[i] = start(i, f, go, go_end)
  end
  for _, child in ipairs(children) do
    receive(child.fd, 1)
  end
  system.close(go)
  system.close(go_end)
  for i, child in ipairs(children) do
    local text = receive(child.fd, math.huge)
    system.close(child.fd)
    processes.wait(child.pid)
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
