--- Bench of opening: from the start of a process to its first answer, over artifacts that are made here.
--
--   luajit spec/bench/open.lua [artifact...]
--
-- Each artifact is opened by fresh processes, one after another, with one thread, while its file is in the page cache. A process
-- answers one text of at most 16 tokens. The bench prints five things:
--   Time: the minimum and the median, from before a process is made until it has ended.
--   CPU time: the minimum. Other programs of the machine change it less.
--   Rss: of a process that has read all of the file and has answered for a while (spec/support/serving.lua). The workspace is
--   subtracted. Rss is printed as a part of the file's size.
--   Pss: of each of four such processes. It divides shared pages among the processes.
--   Saving: the seconds that it took.
-- Without arguments it makes four artifacts: the demo's model (MiniLM), and random weights in the shapes of XLM-R base, with F32
-- and with INT8 tables, and of BERT-large. XLM-R has the tokenizer of multilingual-e5-small (250,000 pieces) if `make models` has
-- fetched it.
local here = arg[0]:match "^(.*)/spec/bench/[^/]*$" or "."
package.path = ("@/lua/?.lua;@/lua/?/init.lua;@/?.lua;"):gsub("@", { ["@"] = here }) .. package.path
local ffi = require "ffi"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local find = require "perigee.find"
local random = require "perigee.checkpoint.random"
local text_table = require "perigee.show.table"
local tokenizer = require "perigee.tokenizer"

local ROUNDS = 25

local function folder_of()
  local pipe = assert(io.popen "mktemp -d")
  local folder = pipe:read "*l"
  pipe:close()
  return folder
end

local saving = {} -- seconds, by path

-- A dynamic INT8 model as an artifact. tokens_of: a folder whose tokenizer it gets, for random weights have none. tables: the
-- setting.
local function make(path, checkpoint, tokens_of, tables)
  local model = perigee.load(checkpoint)
  if tokens_of then
    model.tokens_of = tokenizer.load(tokens_of)
  end
  local q = model:quantize { activations = "dynamic", tables = tables }
  local began = pgee.C.pgee_seconds()
  q:save(path)
  saving[path] = ("%.1f"):format(pgee.C.pgee_seconds() - began)
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

local FOUR = [[cd %s
  for i in 1 2 3 4; do %s go leave > said.$i & done
  until [ $(cat said.* | grep -c ready) = 4 ]; do sleep 0.05; done
  touch go
  until [ $(cat said.* | wc -l) = 8 ]; do sleep 0.05; done
  touch leave; wait; grep -hv ready said.*]]

-- What a process holds, and what each of four holds at once, in parts of the artifact's size.
local function held(path)
  local folder = folder_of()
  local one = ("PERIGEE_THREADS=1 luajit %s/spec/support/serving.lua %s"):format(find.absolute(here), find.absolute(path))
  local pipe = assert(io.popen(one .. "\n" .. FOUR:format(folder, one)))
  local alone, shares
  for line in pipe:lines() do
    local rss, pss, file, workspace = line:match "(%d+)%s+(%d+)%s+(%d+)%s+(%d+)"
    if alone then
      shares = (shares or 0) + (pss - workspace) / file / 4
    end
    alone = alone or (rss - workspace) / file
  end
  pipe:close()
  os.execute("rm -r " .. folder)
  return ("%.3f"):format(alone), ("%.3f"):format(shares)
end

ffi.cdef "int getrusage(int who, long *usage);"

-- Milliseconds of CPU that the processes which this one waited for have taken.
local function cpu()
  local RUSAGE_CHILDREN, usage = -1, ffi.new "long[18]" -- seconds, microseconds of the program; of the system
  assert(ffi.C.getrusage(RUSAGE_CHILDREN, usage) == 0)
  return tonumber(usage[0] + usage[2]) * 1e3 + tonumber(usage[1] + usage[3]) / 1e3
end

-- { least, median, least of CPU } of a command, as text.
local function time(command)
  local times, cpus = {}, {}
  for i = 1, ROUNDS do
    local began, before = pgee.C.pgee_seconds(), cpu()
    assert(os.execute(command) == 0)
    times[i], cpus[i] = (pgee.C.pgee_seconds() - began) * 1e3, cpu() - before
  end
  table.sort(times)
  table.sort(cpus)
  return ("%.1f"):format(times[1]), ("%.1f"):format(times[math.ceil(ROUNDS / 2)]), ("%.1f"):format(cpus[1])
end

local TEXT = '"a text of a few words, not more than these"'
local IDS = "{ ids = { 0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 2 } }"

local E5 = "build/demo/multilingual-e5-small-xlmr"

local function main(paths)
  local list, folder = {}, folder_of()
  for i, path in ipairs(paths) do
    list[i] = { path, path, TEXT }
  end
  if #paths == 0 then
    local demo = assert(models.demo())
    list[1] = { "MiniLM-L6, a text", make(folder .. "/minilm", demo), TEXT }
    local e5 = models.exists(E5 .. "/tokenizer.json") and E5 or nil
    local xlmr = make(folder .. "/xlmr", random.checkpoint "xlmr-base", e5)
    list[2] = { "XLM-R base, " .. (e5 and "a text" or "ids"), xlmr, e5 and TEXT or IDS }
    list[3] = { list[2][1] .. ", INT8 tables", make(folder .. "/tables", random.checkpoint "xlmr-base", e5, "int8"), list[2][3] }
    list[4] = { "BERT-large, a text", make(folder .. "/large", random.checkpoint "bert-large", demo), TEXT }
  end
  local rows = { { "artifact ", "MB", "least ms", "median ms", "CPU ms", "held", "of four", "saved in s" } }
  for _, one in ipairs(list) do
    local script = script_of(one[2], one[3])
    local file = assert(io.open(one[2]))
    local row = { one[1], ("%.0f"):format(file:seek "end" / 1e6), time("PERIGEE_THREADS=1 exec luajit " .. script) }
    row[6], row[7] = held(one[2])
    row[8] = saving[one[2]] or "-"
    rows[#rows + 1] = row
    file:close()
    os.remove(script)
  end
  local nothing = { "luajit that does nothing", "-", time "exec luajit -e ''" }
  nothing[6], nothing[7], nothing[8] = "-", "-", "-"
  rows[#rows + 1] = nothing
  os.execute("rm -r " .. folder)
  print(text_table(rows))
end

main(arg)
