--- Bench of opening: from the start of a process to its first answer, over artifacts that are made here.
--
--   luajit spec/support/bench_open.lua [artifact...]
--
-- Fresh processes, one after another, one thread, the file in the page cache: the least and the median time of each from before
-- the process is made until it has ended, its text one of at most 16 tokens. Without
-- arguments the artifacts are MiniLM's (the demo's), and those of random weights in the shapes of XLM-R base and BERT-large.
local here = arg[0]:match "^(.*)/spec/support/[^/]*$" or "."
package.path = ("@/lua/?.lua;@/lua/?/init.lua;@/?.lua;"):gsub("@", { ["@"] = here }) .. package.path
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local random = require "perigee.random"
local report = require "perigee.report"
local tokenizer = require "perigee.tokenizer"

local ROUNDS = 25

local function folder_of()
  local pipe = assert(io.popen "mktemp -d")
  local folder = pipe:read "*l"
  pipe:close()
  return folder
end

-- A dynamic INT8 model as an artifact. tokens_of: a folder whose tokenizer it gets, for random weights have none.
local function make(path, checkpoint, tokens_of)
  local model = perigee.load(checkpoint)
  if tokens_of then
    model.tokens_of = tokenizer.load(tokens_of)
  end
  local q = model:quantize { activations = "dynamic" }
  q:save(path)
  q:release()
  model:release()
  return path
end

local SCRIPT = [[
package.path = "%s/lua/?.lua;%s/lua/?/init.lua;" .. package.path
local a = require("perigee").open %q
local given = %s
a:hidden(given)
]]

local function script_of(path, given)
  local name = os.tmpname()
  local file = assert(io.open(name, "w"))
  file:write(SCRIPT:format(here, here, path, given))
  file:close()
  return name
end

local function time(command)
  local times = {}
  for i = 1, ROUNDS do
    local began = pgee.C.pgee_seconds()
    assert(os.execute(command) == 0)
    times[i] = (pgee.C.pgee_seconds() - began) * 1e3
  end
  table.sort(times)
  return times
end

local TEXT = '"a text of a few words, not more than these"'
local IDS = "{ ids = { 0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 2 } }"

local function main(paths)
  local list, folder = {}, folder_of()
  for i, path in ipairs(paths) do
    list[i] = { path, path, TEXT }
  end
  if #paths == 0 then
    local demo = assert(models.demo())
    list[1] = { "MiniLM-L6, a text", make(folder .. "/minilm", demo), TEXT }
    list[2] = { "XLM-R base, ids", make(folder .. "/xlmr", random.checkpoint "xlmr-base"), IDS }
    list[3] = { "BERT-large, a text", make(folder .. "/large", random.checkpoint "bert-large", demo), TEXT }
  end
  local rows = { { "artifact ", "MB", "least ms", "median ms" } }
  for _, one in ipairs(list) do
    local script = script_of(one[2], one[3])
    local times = time("PERIGEE_THREADS=1 exec luajit " .. script)
    os.remove(script)
    local file = assert(io.open(one[2]))
    rows[#rows + 1] = {
      one[1], ("%.0f"):format(file:seek "end" / 1e6), ("%.1f"):format(times[1]), ("%.1f"):format(times[math.ceil(#times / 2)]),
    }
    file:close()
  end
  local began = time "exec luajit -e ''"
  rows[#rows + 1] = { "luajit that does nothing", "-", ("%.1f"):format(began[1]), ("%.1f"):format(began[math.ceil(#began / 2)]) }
  os.execute("rm -r " .. folder)
  print(report.table(rows))
end

main(arg)
