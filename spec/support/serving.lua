--- Serving: a process that answers from an artifact and prints how much memory it holds, for specs and benches.
--
--   luajit spec/support/serving.lua ARTIFACT [GO LEAVE]      prints Rss, Pss, the file's size and the workspace's, in bytes
--
-- It measures the worst case: it has read the whole file (`verify`), the workspace has grown step by step, and garbage of calls
-- is not yet collected. Rss includes LuaJIT, the C library and Perigee. GO and LEAVE are names of files. With them the process
-- prints "ready", measures when GO exists, and ends when LEAVE exists. So several processes can be measured while all run.
local here = arg[0]:match "^(.*)/spec/support/[^/]*$" or "."
package.path = ("@/lua/?.lua;@/lua/?/init.lua;"):gsub("@", { ["@"] = here }) .. package.path
local path, go, leave = unpack(arg)

local a = require("perigee").open(path, { verify = true })
local input = ("a text of some words "):rep(20)
if not pcall(a.tokenizer, a) then
  input = { ids = {} }
  for i = 1, 102 do
    input.ids[i] = i
  end
end
for i = 1, 40 do
  local inputs = {}
  for k = 1, i % 5 do
    inputs[k] = input
  end
  a:embed(inputs)
end

local function wait(name)
  while not io.open(name) do
    os.execute "sleep 0.02"
  end
end

io.stdout:setvbuf "no"
if go then
  print "ready"
  wait(go)
end
local rollup, memory = io.open("/proc/self/smaps_rollup"):read "*a", a:memory()
print(1024 * rollup:match "Rss: +(%d+)", 1024 * rollup:match "Pss: +(%d+)", memory.file, memory.workspace)
if leave then
  wait(leave)
end
