-- Artifacts among processes: what a fresh one answers, what it holds, what another library reads, and what is left when one is
-- killed while it saves. PERIGEE_KILLS=200 kills as often (`make kills`).
local artifacts = require "spec.support.artifacts"
local exact = require "spec.golden.exact"
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

pcall(ffi.cdef, "int kill(int pid, int signal);")
pcall(ffi.cdef, "int usleep(unsigned microseconds);")

local demo, why_no_demo = models.demo()
local hard = os.getenv "PERIGEE_HARD"

-- A process that runs a script of this tree: its standard output, to be read and closed.
local function start(script, environment)
  local path = files.write('package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path\n' .. script)
  return assert(io.popen(("%s exec luajit %s 2>&1"):format(environment or "", path)))
end

local function run(script, environment)
  local pipe = start(script, environment)
  local text = pipe:read "*a"
  pipe:close()
  return text
end

describe("a fresh process", function()
  after_each(files.clean)

  it("answers with the same bits, and saves the same bytes, on any ISA and by any threads", function()
    local of = exact.open "embedder"
    local q = exact.quantize(of, "static-attention")
    local path, again = artifacts.save(q), artifacts.path()
    local want = exact.hidden(q, of.inputs)
    for _, environment in ipairs { "PERIGEE_ISA=ref PERIGEE_THREADS=1", "PERIGEE_THREADS=3" } do
      local text = run(([[
        local exact, perigee = require "spec.golden.exact", require "perigee"
        local of = exact.open "embedder"
        exact.quantize(of, "static-attention"):save %q
        print(exact.hidden(perigee.open %q, of.inputs))
      ]]):format(again, path), environment)
      assert.equal(want .. "\n", text)
      assert.equal(models.read(path), models.read(again))
    end
  end)

  it("needs no definition of the model", function()
    local config = models.read(models.path "gelu" .. "/config.json"):gsub('"model_type": *"bert"', '"model_type": "mine"')
    local folder, path = models.variant(models.path "gelu", { ["config.json"] = config }), artifacts.path()
    local want = run(([[
      local bert, exact, perigee = require "perigee.graph.models.bert", require "spec.golden.exact", require "perigee"
      perigee.register_model("mine", { check = bert.check, encoder = bert.encoder, prefix = "bert" })
      local q = perigee.load(%q):quantize { activations = "dynamic" }
      q:save %q
      print(exact.hidden(q, { { ids = { 1, 2, 3 } } }))
    ]]):format(folder, path))
    assert.equal(exact.hidden(perigee.open(path), { { ids = { 1, 2, 3 } } }) .. "\n", want)
    assert.error_matches(function() perigee.load(folder) end, "model_type is the string 'mine'", 1, true)
  end)

  it("does without oneDNN, which the FP32 model that was saved had", function()
    local model = perigee.load(models.path "gelu")
    local text = run(([[
      local exact, perigee = require "spec.golden.exact", require "perigee"
      print(exact.hidden(perigee.open %q, { { ids = { 1, 2, 3 } } }))
    ]]):format(artifacts.save(model)), "PERIGEE_ONEDNN=/nowhere")
    local plain = perigee.load(models.path "gelu", { kernel = "native" })
    assert.equal(exact.hidden(plain, { { ids = { 1, 2, 3 } } }) .. "\n", text)
  end)

  it("starts no thread and loads no other library by opening and answering alone", function()
    local path = artifacts.save(perigee.load(models.path "embedder"):quantize { activations = "dynamic" })
    local text = run(([[
      local function threads()
        local pipe, count = io.popen "ls /proc/$PPID/task", 0
        for _ in pipe:lines() do count = count + 1 end
        return count
      end
      local perigee = require "perigee"
      perigee.threads(3)
      local before = threads()
      local a = perigee.open %q
      a:runner "embed"
      print(threads() - before)
      perigee.threads(1)
      a:embed "text"
      print(threads() - before)
      local maps = io.open "/proc/self/maps":read "*a"
      print(maps:find "dnnl" == nil, maps:find(%q, 1, true) ~= nil)
    ]]):format(path, path))
    assert.equal("0\n0\ntrue\ttrue\n", text)
  end)

  it("holds no more than the file and its workspace, and shares the file", function()
    if not demo or hard then
      return pending(why_no_demo or "sanitizers hold memory of their own")
    end
    local model = perigee.load(demo)
    local q = model:quantize { activations = "dynamic" }
    local path = artifacts.save(q)
    q:release()
    model:release()
    local function measured(count)
      local go, leave, pipes, lines = files.write "", files.write "", {}, {}
      os.remove(go)
      os.remove(leave)
      for i = 1, count do
        pipes[i] = io.popen(("exec luajit spec/support/serving.lua '%s' '%s' '%s'"):format(path, go, leave))
        assert.equal("ready", pipes[i]:read "*l")
      end
      assert(io.open(go, "w")):close()
      for i, pipe in ipairs(pipes) do
        local line = {}
        for word in pipe:read("*l"):gmatch "%d+" do
          line[#line + 1] = tonumber(word)
        end
        lines[i] = { rss = line[1], pss = line[2], file = line[3], workspace = line[4] }
      end
      assert(io.open(leave, "w")):close() -- all were there while each measured
      for _, pipe in ipairs(pipes) do
        pipe:close()
      end
      return lines
    end
    local one
    for _ = 1, 3 do -- where memory is scarce the system takes pages of files away
      one = measured(1)[1]
      if one.rss >= one.file then
        break
      end
    end
    assert.is_true(one.rss >= one.file and one.rss <= 1.1 * one.file + one.workspace, tostring(one.rss))
    local three = measured(3)
    for _, own in ipairs(three) do
      assert.is_true(own.pss <= 0.6 * one.pss, ("%d of %d"):format(own.pss, one.pss))
    end
  end)
end)

describe("the safetensors package of Python", function()
  after_each(files.clean)

  it("reads what is saved", function()
    local python = os.getenv "PERIGEE_PYTHON" or "python3"
    if os.execute(python .. " -c 'import numpy, safetensors' 2> /dev/null") ~= 0 then
      return pending "safetensors and numpy for Python are not here; PERIGEE_PYTHON names a python that has them"
    end
    local q = perigee.load(models.path "pairs"):quantize { activations = "dynamic" }
    local path = artifacts.save(q)
    local script = files.write(([[
import json, zlib
from safetensors import safe_open
with safe_open(%q, "numpy") as f:
    metadata, names = f.metadata(), sorted(f.keys())
    config = json.loads(metadata["config"])
    steps = json.loads(metadata["plan.classify"])["steps"]
    w = next(step[1]["w"] for step in steps if step[0] == "linear" and step[1]["w"].get("scales"))
    packed, scales, sums = (f.get_tensor(w[key]) for key in ("packed", "scales", "sums"))
    N, K = w["N"], w["K"]
    blocks = packed.reshape(-1, -(-K // 64), 16, 64, 4)  # [N/64][K/64][16][64][4]
    rows = blocks.transpose(0, 3, 1, 2, 4).reshape(blocks.shape[0] * 64, -1)[:N, :K].astype(int)
    print(config["model_type"], metadata["perigee.format"], N, K, str(packed.dtype), bool((rows.sum(1) == sums).all()))
    print(" ".join("%%.9g" %% v for v in (rows[0] * scales[0])[:4]))
]]):format(path))
    local pipe = io.popen(python .. " " .. script .. " 2>&1")
    local text = pipe:read "*a"
    pipe:close()
    local w = q:runner("classify").lowered.linears[1].args.w
    local row, values = w:unpack()[1], {}
    for i = 1, 4 do
      values[i] = row[i] * w.scales[1]
    end
    assert.matches(("^bert 1 %d %d int8 True\n"):format(w.N, w.K), text)
    local i = 0
    for word in text:match("\n(.*)\n"):gmatch "%S+" do
      i = i + 1
      assert.is_true(math.abs(tonumber(word) - values[i]) < 1e-6, text)
    end
    assert.equal(4, i)
  end)
end)

describe("a process that is killed while it saves", function()
  after_each(files.clean)

  it("leaves the file as it was or as it is to be, and nothing else", function()
    local kills, path = tonumber(os.getenv "PERIGEE_KILLS") or 12, artifacts.path()
    local of = exact.open "gelu"
    local function bytes_of(mode)
      local q = exact.quantize(of, mode)
      q:save(path)
      q:release()
      return models.read(path)
    end
    local modes = { "static-attention", "dynamic-asymmetric" }
    local known = { [bytes_of(modes[1])] = 1, [bytes_of(modes[2])] = 2 }
    local script = ([[
      local exact, ffi = require "spec.golden.exact", require "ffi"
      ffi.cdef "int getpid(void);"
      local of = exact.open "gelu"
      local models = { exact.quantize(of, %q), exact.quantize(of, %q) }
      io.stdout:setvbuf "no"
      print(ffi.C.getpid())
      while true do
        models[1]:save %q
        io.write "."
        models[2]:save %q
        io.write "."
      end
    ]]):format(modes[1], modes[2], path, path)
    local function litter()
      local pipe = io.popen("ls -A '" .. path:match "^(.*)/" .. "'")
      local names = pipe:read "*a"
      pipe:close()
      return select(2, names:gsub("%.saving%-", ""))
    end
    local random, seen, left = files.random(17), {}, 0
    for _ = 1, kills do
      local pipe = start(script)
      local pid = tonumber(pipe:read "*l")
      pipe:read(random(4)) -- saves, however long they take here; then into the middle of the next
      ffi.C.usleep(random(4000))
      assert.equal(0, ffi.C.kill(pid, 9))
      pipe:close()
      local which = known[models.read(path)]
      assert.is_truthy(which)
      perigee.open(path, { verify = true })
      seen[which] = true
      assert.is_true(litter() <= 1)
      left = left + litter()
    end
    if kills >= 100 then -- so many hit every moment
      assert.same({ true, true }, seen)
      assert.is_true(left > 0)
    end
    bytes_of(modes[1])
    assert.equal(0, litter())
  end)
end)
