--- Load on recipes/serve.lua, beside what the engine alone does: make load.
--
--   luajit spec/bench/serve.lua CHECKPOINT TEXTS [SECONDS] [CONNECTIONS]
--
-- TEXTS: a file with a text a line. wrk (Debian: wrk) posts each as one request to /embed, over 64 connections for 60 seconds.
-- Before and after that, recipes/bench.lua measures the engine alone: texts of the same lengths, and one instance with one thread
-- for each worker of the server.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local json = require "perigee.base.json"
local perigee = require "perigee"
local server = require "spec.support.server"
local system = require "perigee.os"

local checkpoint, texts, seconds, connections = arg[1], arg[2], tonumber(arg[3] or 60), tonumber(arg[4] or 64)
local workers = #system.affinity()

local function shell(command)
  local process = assert(io.popen(command))
  local text = process:read "*a"
  process:close()
  return text
end

local function write(text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

---- What is asked -----------------------------------------------------------------------------------------------------

local bodies, lengths = {}, {}
local tokenizer = require("perigee.tokenizer").load(checkpoint)
for text in perigee.lines(texts) do
  if text ~= "" then
    bodies[#bodies + 1] = ("%q"):format(json.line { inputs = text })
    lengths[#lengths + 1] = #tokenizer:encode(text, nil, { max_tokens = 256 }).ids
  end
end
-- What wrk runs.
local SCRIPT = [[
local bodies = { %s }
local i = 0
request = function()
  i = i %% #bodies + 1
  return wrk.format("POST", "/embed", { ["content-type"] = "application/json" }, bodies[i])
end
]]
local script = write(SCRIPT:format(table.concat(bodies, ",\n")))
local lengths_file = write(table.concat(lengths, "\n") .. "\n")

---- The runs ------------------------------------------------------------------------------------------------------------

local model = perigee.load(checkpoint)
local stats = model:calibrate(perigee.lines "recipes/data/calibration.txt", { progress = false })
local path = os.tmpname()
model:quantize({ stats = stats }):save(path)

local function engine_alone()
  local command = "PERIGEE_LIB=$PWD/build/libperigee.so luajit recipes/bench.lua %s --lengths %s --batch 32 --threads 1 "
    .. "--instances %d --seconds %d --json 2> /dev/null"
  return json.decode(shell(command:format(checkpoint, lengths_file, workers, math.min(seconds, 10))))
end

local function load_server()
  local s = server.start({ "m=" .. path }, ("--workers %d"):format(workers))
  local text = shell(("wrk -t1 -c%d -d%ds --latency -s %s http://127.0.0.1:%d 2>&1"):format(connections, seconds, script, s.port))
  s:stop()
  return text
end

local before = engine_alone()
local text = load_server()
local after = engine_alone()

local rate = tonumber(text:match "Requests/sec:%s+([%d.]+)")
print(text)
local sum = 0
for _, n in ipairs(lengths) do
  sum = sum + n
end
local mean = sum / #lengths
local alone = { before.tokens_per_second / mean, after.tokens_per_second / mean }
print(("%d workers, %d connections, %d texts of %.0f tokens on average"):format(workers, connections, #lengths, mean))
print(("server %.0f texts/s; engine alone %.0f before and %.0f after; server / engine %.2f"):format(rate, alone[1], alone[2],
  rate / math.max(alone[1], alone[2])))
for _, name in ipairs { script, lengths_file, path } do
  os.remove(name)
end
