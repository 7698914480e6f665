-- The bench: what it measures and says, the peer protocol, processes side by side, and random checkpoints.
local bench = require "perigee.bench"
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"
local inputs = require "perigee.run.inputs"
local models = require "spec.support.models"
local perigee = require "perigee"
local cpu = require "perigee.cpu"
local process = require "perigee.bench.process"
local random = require "perigee.checkpoint.random"
local workload = require "perigee.bench.workload"

-- A small model and its workload over inputs of these lengths, `size` to a batch.
local function load_of(lengths, size, options)
  local model = perigee.load(models.path "gelu", options)
  local batches, list = {}, bench.inputs_of(lengths, model.vocabulary)
  for first = 1, #list, size do
    batches[#batches + 1] = inputs.batch(model, { unpack(list, first, math.min(first + size - 1, #list)) }, "spec")
  end
  return workload.new(model, batches), list, model
end

describe("a workload", function()
  it("counts the tokens, and the multiply-adds as the plan does", function()
    local load, _, model = load_of({ 5, 9, 1, 30 }, 4)
    assert.are.same({ 45, 45 }, { load.tokens, load.longest })
    local H, I, L = 64, 150, 2
    local pairs_of_tokens = 5 ^ 2 + 9 ^ 2 + 1 + 30 ^ 2
    assert.are.equal(L * (45 * (4 * H * H + 2 * H * I) + 2 * pairs_of_tokens * H), load:work())
    model:release()
  end)

  it("has the model's hidden states, in one piece or in several", function()
    for _, budget in ipairs { 10, 1000 } do
      local load, list, model = load_of({ 5, 9, 1, 30 }, 4, { budget = budget, kernel = "native" })
      load:run(load.batches[1], true)
      local hidden = model:hidden(list)
      assert.are.equal(ffi.string(hidden:pointer(), 45 * 64 * 4), ffi.string(load.hidden, 45 * 64 * 4))
      model:release()
    end
  end)

  it("is timed in percentiles that ascend", function()
    local load, _, model = load_of({ 5, 9, 1, 30 }, 1)
    local t = load:time(0.02)
    assert.is_true(t.all.n >= 3 and t.batch.n == 4 * t.all.n)
    assert.is_true(0 < t.batch.min and t.batch.min <= t.batch.median and t.batch.median <= t.batch.p90)
    assert.is_true(t.batch.p90 <= t.batch.p99 and 4 * t.batch.min <= t.all.min)
    model:release()
  end)

  it("is profiled by the names of its steps; the parts are the whole", function()
    local load, _, model = load_of({ 5, 9 }, 1)
    local groups, work, steps = load:profile(3), 0, 0
    local names = {}
    for _, g in ipairs(groups) do
      names[g.name] = g
      work, steps = work + g.work, steps + g.steps
      assert.is_true(g.seconds > 0)
    end
    assert.are.equal(load:work(), work)
    assert.are.equal(#load.runner.plan:steps(), steps)
    local qkv = names["encoder.layer.*.attention.self.qkv"]
    assert.are.same({ "linear", "f32", 2, 2 * 14 * 64 * 192 }, { qkv.op, qkv.precision, qkv.steps, qkv.work })
    assert.are.equal(2 * 2 * 64 * 192 * 4, qkv.bytes - 2 * 2 * 192 * 4) -- two layers, two batches; and zeros for a bias
    assert.are.equal(2, names.attention.steps)
    model:release()
  end)
end)

describe("percentiles", function()
  it("are values of the list that as many do not exceed", function()
    local list = {}
    for i = 1, 200 do
      list[i] = i
    end
    assert.are.same({ 100, 180, 198 }, { bench.percentile(list, 0.5), bench.percentile(list, 0.9), bench.percentile(list, 0.99) })
    assert.are.equal(7, bench.percentile({ 7 }, 0.01))
  end)
end)

describe("verifying", function()
  it("accepts what is right", function()
    local model = perigee.load(models.path "gelu")
    assert.is_true(bench.verify(model))
    local stats = model:calibrate(bench.inputs(4, 20, model.vocabulary), { progress = false })
    local q = model:quantize { stats = stats }
    assert.is_true(bench.verify(q))
    q:release()
    model:release()
  end)

  it("says what is wrong: outputs that do not depend on inputs, or are not the reference's", function()
    local isa = ffi.new "int[1]"
    local function pretender(hidden, settings)
      return { model = { positions = 64, vocabulary = 97 }, settings = settings, hidden = hidden }
    end
    local same = pretender(function()
      return perigee.tensor.new("F32", { 12, 4 })
    end)
    local right, why = bench.verify(same)
    assert.is_false(right)
    assert.are.equal("two inputs that differ have the same hidden states", why)
    local off = pretender(function()
      require("perigee.ffi").C.pgee_isa(isa)
      local t = perigee.tensor.new("F32", { 12, 4 })
      for row = 1, 12 do
        t[row][1] = row + (isa[0] == 0 and row == 7 and 1e-6 or 0)
      end
      return t
    end, {})
    right, why = bench.verify(off)
    assert.is_false(right)
    assert.matches("not the reference's: SQNR", why, 1, true)
  end)
end)

describe("processes side by side", function()
  it("return what each returned, and wait for each other", function()
    local got = process.together(3, function(i, meet)
      meet()
      return "answer " .. i .. (" "):rep(10000)
    end)
    for i = 1, 3 do
      assert.are.equal("answer " .. i .. (" "):rep(10000), got[i])
    end
  end)

  it("that fail are an error that says which and why", function()
    for _, late in ipairs { false, true } do
      local ok, message = pcall(process.together, 2, function(i, meet)
        if late then
          meet()
        end
        if i == 2 then
          error("no such luck", 0)
        end
        return "fine"
      end)
      assert.is_false(ok)
      assert.are.equal("process 2: no such luck", message)
    end
  end)

  it("that end without a word are an error, too", function()
    local ok, message = pcall(process.together, 2, function(i, meet)
      if i == 1 then
        ffi.C._exit(3)
      end
      meet()
    end)
    assert.is_false(ok)
    assert.are.equal("process 1: ended early", message)
  end)

  it("run on the CPUs they are pinned to", function()
    local cpus = cpu.affinity()
    local got = process.together(#cpus, function(i)
      cpu.pin { cpus[i] }
      return table.concat(cpu.affinity(), " ")
    end)
    for i, number in ipairs(cpus) do
      assert.are.equal(tostring(number), got[i])
    end
    assert.are.same(cpus, cpu.affinity())
  end)
end)

describe("random checkpoints", function()
  it("are models of their shape, the same each time", function()
    local one, other = perigee.load(random.checkpoint "minilm"), perigee.load(random.checkpoint "minilm")
    assert.are.same({ 6, 384, 512, "embed" }, { one.config.num_hidden_layers, one.config.hidden_size, one.limit, one.task })
    local ids = { ids = { 5, 6, 7 } }
    local hidden = one:hidden(ids)
    assert.is_true(hidden:equals(other:hidden(ids)))
    assert.is_false(hidden:equals(one:hidden { ids = { 5, 6, 8 } }))
    assert.has_error(function() one:hidden "text" end, "random minilm has no tokenizer: give it { ids = ... }")
    one:release()
    other:release()
  end)

  it("have weights of deviation 0.02 around 0, and around 1 where a norm multiplies", function()
    local c = random.checkpoint "bert-base"
    local means = { ["a.weight"] = 0, ["LayerNorm.weight"] = 1, ["sa_layer_norm.weight"] = 1, ["LayerNorm.bias"] = 0 }
    for name, mean in pairs(means) do
      local t = c:tensor(name, { 100, 100 })
      local sum, squares = 0, 0
      for _, row in ipairs(t:totable()) do
        for _, v in ipairs(row) do
          sum, squares = sum + v, squares + (v - mean) ^ 2
        end
      end
      assert.near(mean, sum / 1e4, 1e-3)
      assert.near(0.02, math.sqrt(squares / 1e4), 1e-3)
    end
    assert.is_false(c:tensor("a", { 9 }):equals(c:tensor("b", { 9 })))
  end)

  it("are of the shapes that there are", function()
    for name, config in pairs(random.configs) do
      assert.is_string(config.model_type, name)
    end
    assert.has_error(function() random.checkpoint "bert" end,
      "random is the string 'bert', expected one of bert-base, bert-large, distilbert, "
      .. "electra-small, minilm, mpnet-base, roberta-base, xlmr-base")
  end)
end)

---- The recipe --------------------------------------------------------------------------------------------------------

local function run(words, input)
  local command = ("%s luajit recipes/bench.lua %s 2>&1; echo \"status $?\""):format(
    input and ("printf '%s' |"):format(input) or "", words)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

local embedder = models.path "embedder"

describe("recipes/bench.lua", function()
  after_each(files.clean)

  for _, mode in ipairs { "f32", "static", "dynamic" } do
    it("measures a checkpoint, " .. mode, function()
      local text, status = run(embedder .. " --seconds 0.05 --tokens 20 --batch 2 --threads 1 --json --activations " .. mode)
      assert.are.equal(0, status, text)
      local r = cjson.decode(text)
      assert.are.same({ mode, embedder, 2, 40, 1, 1 }, { r.activations, r.model, r.batch, r.tokens, r.batches, r.threads })
      assert.is_true(r.time.batch.min > 0 and r.tokens_per_second > 0 and r.memory.weights > 0)
      assert.matches("inputs that differ have outputs that differ", r.check)
      assert.are.equal(mode ~= "f32", r.settings ~= nil)
      local sum = 0
      for _, g in ipairs(r.profile) do
        sum = sum + g.seconds
      end
      assert.is_true(sum > 0 and next(r.kernels) ~= nil and #r.affinity >= 1)
    end)
  end

  it("prints all of it, by default for 128 tokens or all positions", function()
    local text, status = run(embedder .. " --seconds 0.05 --profile --isa ref")
    assert.are.equal(0, status, text)
    for _, word in ipairs {
      embedder, "static", "settings", "ISA ref", "affinity", "kernels", "work        64 tokens in 1 batches of 1", "peaks",
      "INT8 - GOPS", "p99", "tokens a second", "check", "equal to the reference's", "encoder.layer.*.output.dense",
      "attention", "embed",
    } do
      assert.matches(word, text, 1, true)
    end
  end)

  it("takes batches of texts of given lengths as they come", function()
    local text, status = run(("%s --seconds 0.01 --batch 2 --json --lengths '%s'"):format(embedder, files.write "3\n64\n5\n"))
    assert.are.equal(0, status, text)
    local r = cjson.decode(text)
    assert.are.same({ 72, 2 }, { r.tokens, r.batches })
    assert.are.equal(2 * r.time.all.n, r.time.batch.n)
  end)

  it("runs instances that share the weights", function()
    local text, status = run(embedder .. " --seconds 0.05 --threads 1 --instances 1 --json")
    assert.are.equal(0, status, text)
    local r = cjson.decode(text)
    assert.are.equal(1, #r.instances)
    assert.are.equal(1, #r.instances[1].affinity)
    assert.are.equal(r.instances[1].tokens_per_second, r.tokens_per_second)
    assert.is_true(r.instances[1].memory.own > 0)
    text = run(embedder .. " --seconds 0.05 --threads 1 --instances 1")
    assert.matches("instance 1  CPU %d+: median", text)
    assert.matches("together    %d+ tokens a second", text)
  end)

  it("answers in lockstep", function()
    local ids, list = ffi.new("int32_t[6]", 5, 6, 7, 8, 9, 10), { { ids = { 5, 6, 7 } }, { ids = { 8, 9, 10 } } }
    local path, out = files.write(ffi.string(ids, 24)), files.write ""
    local text, status = run(("%s --lockstep --batch 2 --tokens 3 --activations f32 --ids '%s'"):format(embedder, path),
      "go\\ngo\\nsave " .. out .. "\\n")
    assert.are.equal(0, status, text)
    local one, other = text:match "^ready\n(%d+%.%d+)\n(%d+%.%d+)\nsaved\n$"
    assert.is_true(tonumber(one) > 0 and tonumber(other) > 0, text)
    local model = perigee.load(embedder)
    local hidden = model:hidden(list)
    assert.are.equal(models.read(out), ffi.string(hidden:pointer(), 6 * 32 * 4))
    local lengths = files.write "2\n4\n"
    text, status = run(("%s --lockstep --batch 1 --lengths %s --activations f32 --ids %s"):format(embedder, lengths, path),
      "go\\nsave " .. out .. "\\n")
    assert.are.equal(0, status, text)
    list = { { ids = { 5, 6 } }, { ids = { 7, 8, 9, 10 } } }
    hidden = model:hidden(list)
    assert.are.equal(models.read(out), ffi.string(hidden:pointer(), 6 * 32 * 4))
    model:release()
    text, status = run(("%s --lockstep --batch 2 --tokens 3 --activations f32 --ids '%s'"):format(embedder, path), "stop\\n")
    assert.are.equal(1, status)
    assert.matches("expected a line 'go' or 'save PATH', got 'stop'", text, 1, true)
  end)

  it("ends with one line and status 1 when something is wrong", function()
    local short = files.write "1234"
    local isas = cpu.isa_names()
    table.sort(isas)
    for words, expected in pairs {
      [""] = "expected the folder of a checkpoint or --random with a shape, and not both",
      [embedder .. " --random minilm"] = "expected the folder of a checkpoint or --random with a shape, and not both",
      ["/nowhere"] = "cannot open '/nowhere'",
      [embedder .. " --tokens 65"] = "--tokens is 65, expected at most 64, the positions that the model has",
      [embedder .. " --isa mmx"] = "--isa is the string 'mmx', expected one of " .. table.concat(isas, ", "),
      [embedder .. " --threads 257"] = "--threads is 257, expected an integer from 1 to 256",
      [embedder .. " --threads x"] = "--threads is the string 'x', expected an integer from 1 to 256",
      [embedder .. " --threads 200 --instances 200"] = "200 instances of 200 threads need 40000 CPUs",
      [embedder .. " --alpha 1.5"] = "--alpha is '1.5', expected a number from 0 to 1, off, or auto",
      [embedder .. " --alpha 0.5 --activations f32"] = "--alpha has no effect with --activations f32: it is for INT8",
      [embedder .. " --pages huge --activations f32"] = "--pages has no effect with --activations",
      [embedder .. " --lengths /nowhere"] = "cannot open '/nowhere': No such file or directory",
      [embedder .. " --lengths /dev/null"] = "cannot read '/dev/null': it is a character device, expected a file or a pipe",
      [embedder .. " --lengths " .. files.write "3\n65\n"] = "line 2: '65', expected a number of tokens from 1 to 64",
      [embedder .. " --lengths " .. files.write "3\nx\n"] = "line 2: 'x', expected a number of tokens from 1 to 64",
      [embedder .. " --lengths /dev/null --tokens 3"] = "--tokens has no effect with --lengths",
      [embedder .. " --lockstep"] = "--lockstep and --ids need each other",
      [embedder .. " --ids /dev/null"] = "--lockstep and --ids need each other",
      [embedder .. " --lockstep --ids /nowhere"] = "/nowhere: No such file or directory",
      [embedder .. " --lockstep --ids " .. short] = "has 4 bytes, expected 256 for 64 int32",
      [embedder .. " --lockstep --instances 2 --ids " .. short] = "--instances has no effect with --lockstep",
      [embedder .. " --lockstep --profile --ids " .. short] = "--profile has no effect with --lockstep",
      [embedder .. " --lockstep --seconds 1 --ids " .. short] = "--seconds has no effect with --lockstep",
      [embedder .. " --profile --instances 1"] = "--profile has no effect with --instances: a profile is of one process",
      [embedder .. " --profile --json"] = "--profile has no effect with --json, which has the profile",
      [embedder .. " --model other"] = "the model is '" .. embedder .. "' and --model is 'other': expected one of them",
    } do
      local text, status = run(words)
      assert.are.equal(1, status, text)
      assert.matches(expected, text, 1, true)
      assert.matches("^error: [^\n]*\n$", text)
    end
  end)

  it("refuses options that are none", function()
    for _, words in ipairs {
      "--random gpt", "--activations int4", "--batch 0", "--batch 1.5", "--tokens x", "--seconds 0", "--alpha x", "--instances 0",
      "--speed 3",
    } do
      local text, status = run(embedder .. " " .. words)
      assert.is_true(status ~= 0, words)
      assert.matches("^error: [^\n]*%-%-%a+[^\n]*\n$", text)
    end
  end)
end)

describe("spec/bench/kernels.lua", function()
  after_each(files.clean)

  it("measures kernels and compares with the run before", function()
    local path = files.write "{}"
    local function measured()
      local pipe = assert(io.popen("luajit spec/bench/kernels.lua --isa ref --only 'norm width 384' --save " .. path))
      local text = pipe:read "*a"
      pipe:close()
      return text
    end
    assert.matches("norm static, width 384 +%d+%.%d+\n", measured())
    assert.matches("norm static, width 384 +%d+%.%d+ +x %d+%.%d%d", measured())
    local _, list = next(cjson.decode(models.read(path)))
    assert.are.equal(3, #list)
    assert.is_true(list[1].cycles > 0)
  end)
end)
