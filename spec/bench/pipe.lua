--- Compares the CPU time of recipes/pipe.lua with that of the engine alone: `make bench-pipe`, with TEXTS=4000 on some texts.
--
-- Both classify the texts of SST-2's training set with the artifact of minilm-sst2, on one thread. The pipe is a process that
-- reads and writes JSON; its time is that from its start to its end. The engine runs in this process on the same texts as tokens.
-- The two take turns, and the minimum time of each counts. The status is 1 if the ratio is above 1.1.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local inputs = require "perigee.run.inputs"
local json = require "perigee.base.json"
local models = require "spec.support.models"
local perigee = require "perigee"

local ROUNDS, MOST = 3, 1.1

local shared, why = models.shared()
local folder = shared and models.tuned "minilm-sst2" or error(why, 0)
local count = tonumber(arg[1]) or math.huge
perigee.threads(1)

local place = "build/bench"
os.execute("mkdir -p " .. place)
local saved, lines, answers = place .. "/minilm-sst2.safetensors", place .. "/sst2.jsonl", place .. "/answers.jsonl"
perigee.load(folder):quantize({ activations = "dynamic" }):save(saved)
local model = perigee.open(saved)

local file, n = assert(io.open(lines, "w")), 0
local batches = {}
for line in perigee.lines(shared .. "/data/sst2/sentiment-train") do
  if n == count then
    break
  end
  local text, label = line:match "^(.*)\t(%d)$"
  if n % 256 == 0 then
    batches[#batches + 1] = inputs.new(model.model)
  end
  batches[#batches]:add(text)
  n = n + 1
  assert(file:write(('{"id":%d,"text":%s,"label":%s}\n'):format(n, json.quote(text), label)))
end
assert(file:close())

local function engine()
  local runner, before = model:runner "classify", os.clock()
  for _, batch in ipairs(batches) do
    runner:run(batch, function() end)
  end
  return os.clock() - before
end

local function pipe()
  local process = assert(io.popen(("bash -c 'TIMEFORMAT=\"%%U %%S\"; time luajit recipes/pipe.lua %s --threads 1 "
    .. "--keep id --quiet < %s > %s' 2>&1"):format(saved, lines, answers)))
  local text = process:read "*a"
  process:close()
  local user, system = text:match "^([%d.]+) ([%d.]+)\n$"
  return user and user + system or error("the pipe failed: " .. text, 0)
end

local best = { engine = math.huge, pipe = math.huge }
for _ = 1, ROUNDS do
  best.engine, best.pipe = math.min(best.engine, engine()), math.min(best.pipe, pipe())
end
local written = 0
for _ in io.lines(answers) do
  written = written + 1
end
assert(written == n, "the pipe wrote another number of answers")
local ratio = best.pipe / best.engine
print(("%d texts: the engine %.2f s of CPU time, the pipe %.2f s, %.3f times as much"):format(n, best.engine, best.pipe, ratio))
os.exit(ratio <= MOST and 0 or 1)
