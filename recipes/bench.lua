#!/usr/bin/env luajit
--- Measures how fast a model runs here, and compares that with the peaks of the CPU.
--
--   luajit recipes/bench.lua FOLDER                            one text of 128 tokens, static INT8
--   luajit recipes/bench.lua --random bert-large --batch 8     no checkpoint needed: random weights
--   luajit recipes/bench.lua FOLDER --lengths FILE --batch 32  texts of these lengths, one a line, in batches as they come
--   luajit recipes/bench.lua FOLDER --threads 1 --instances 4  four processes side by side that share the weights
--
-- It calibrates on random ids, because times do not depend on the values of weights and inputs. To compare runs, pin the process:
-- taskset -c 0 luajit ...
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local bench = require "perigee.bench"
local cpu = require "perigee.cpu"
local ffi = require "ffi"
local inputs = require "perigee.run.inputs"
local json = require "perigee.base.json"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local random = require "perigee.checkpoint.random"
local text_table = require "perigee.show.table"
local workload = require "perigee.bench.workload"
local C, fail = pgee.C, common.fail

---- Arguments ---------------------------------------------------------------------------------------------------------

local function isas()
  local known = {}
  for _, name in ipairs(cpu.isa_names()) do
    known[name] = true
  end
  return known
end

local function arguments()
  return common.arguments {
    name = "bench", description = "Times a model and compares its speed with the peaks of the CPU.",
    model = "Folder of a Hugging Face checkpoint",
    options = {
      { "random", { "choice", random.configs, help = "Random weights of this shape instead" } },
      { "activations", {
        "choice", { f32 = true, static = true, dynamic = true }, default = "static",
        help = "Where the scales of activations come from; f32: not quantized",
      } },
      { "batch", { "integer", 1, default = 1, help = "Texts in a batch" } },
      { "tokens", { "integer", 1, help = "Tokens of each text", said = "128, or all positions if those are fewer" } },
      { "lengths", {
        "text", argname = "file",
        help = "File of lengths in tokens, one a line, in place of --tokens; batches are taken as they come",
      } },
      "threads",
      { "instances", {
        "integer", 1, help = "Processes side by side, each pinned to as many CPUs as it has threads", said = "one, not pinned",
      } },
      { "isa", { "choice", isas(), argname = "name", help = "Instruction set", said = "the best that this CPU runs" } },
      "alpha",
      { "pages", {
        "choice", { normal = true, huge = true }, help = "Memory of the weights: in huge pages, or not", said = "normal",
      } },
      { "budget", { "integer", 1, help = "Maximum tokens that run at once; larger batches are cut", said = "the library's" } },
      { "seconds", { "number", 1e-6, 1e6, default = 2, help = "How long to time, at least" } },
      { "profile", { "flag", help = "Print where the time goes" } },
      "json",
      { "lockstep", { "flag", help = "Print ready; then on a line 'go' run once and print the seconds, on 'save PATH' write the "
        .. "hidden states, F32 [tokens][H], and print saved" } },
      { "ids", { "text", argname = "file", help = "File of all int32 token ids, for --lockstep" } },
    },
  }
end

local function check_arguments(args)
  if (args.model ~= nil) == (args.random ~= nil) then
    fail "expected the folder of a checkpoint or --random with a shape, and not both"
  elseif (args.ids ~= nil) ~= (args.lockstep ~= nil) then
    fail "--lockstep and --ids need each other"
  end
  if args.lengths then
    common.refuse(args, { "tokens" }, "with --lengths, which says how many tokens there are")
  end
  if args.lockstep then
    common.refuse(args, { "instances", "profile", "json", "seconds" },
      "with --lockstep, which runs one process, once for each line 'go'")
  elseif args.instances then
    common.refuse(args, { "profile" }, "with --instances: a profile is of one process")
  elseif args.json then
    common.refuse(args, { "profile" }, "with --json, which has the profile")
  end
  if args.activations == "f32" then
    common.refuse(args, { "alpha", "pages" }, "with --activations f32: it is for INT8")
  end
end

---- What is timed -----------------------------------------------------------------------------------------------------

-- The model in the precision that --activations asks for.
local function encoder_of(model, args)
  if args.activations == "f32" then
    return model
  end
  local sample = bench.inputs(2, math.min(64, model.positions), model.vocabulary) -- few: the ISA may be the reference's
  local stats = model:calibrate(sample, { progress = false })
  local q = model:quantize { activations = args.activations, alpha = args.alpha, pages = args.pages, stats = stats }
  stats:release()
  return q
end

local function read_lengths(path, positions)
  local lengths = {}
  for line in perigee.lines(path) do
    local n = tonumber(line)
    if not (n and n >= 1 and n <= positions and n % 1 == 0) then
      fail("%s, line %d: '%s', expected a number of tokens from 1 to %d", path, #lengths + 1, line, positions)
    end
    lengths[#lengths + 1] = n
  end
  return #lengths > 0 and lengths or fail("%s has no lengths", path)
end

-- A list: the number of tokens of each text.
local function lengths_of(model, args)
  if args.lengths then
    return read_lengths(args.lengths, model.positions)
  end
  local tokens, lengths = args.tokens or math.min(128, model.positions), {}
  if tokens > model.positions then
    fail("--tokens is %d, expected at most %d, the positions that the model has", tokens, model.positions)
  end
  for i = 1, args.batch do
    lengths[i] = tokens
  end
  return lengths
end

-- Reads the token ids of the texts from a file that has the ids of all texts one after another.
local function read_ids(path, lengths)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  local ids, at, list = ffi.cast("const int32_t *", bytes), 0, {}
  for i, length in ipairs(lengths) do
    list[i] = { ids = {} }
    for j = 1, at + length <= #bytes / 4 and length or 0 do
      list[i].ids[j] = ids[at + j - 1]
    end
    at = at + length
  end
  return #bytes == at * 4 and list or fail("%s has %d bytes, expected %d for %d int32", path, #bytes, at * 4, at)
end

-- Batches of inputs.lua, of up to `size` inputs each.
local function batches_of(model, list, size)
  local batches = {}
  for i, input in ipairs(list) do
    if i % size == 1 or size == 1 then
      batches[#batches + 1] = inputs.new(model)
    end
    batches[#batches]:add(input)
  end
  return batches
end

---- In lockstep with another program ------------------------------------------------------------------------------------

local function save(load, path)
  local file = assert(io.open(path, "wb"))
  for _, batch in ipairs(load.batches) do
    load:run(batch, true)
    assert(file:write(ffi.string(load.hidden, batch.T * load.width * 4)))
  end
  assert(file:close())
end

local function lockstep(load)
  io.stdout:setvbuf "line"
  print "ready"
  for line in io.lines() do
    local path = line:match "^save (.+)"
    if path then
      save(load, path)
      print "saved"
    elseif line == "go" then
      local began = C.pgee_seconds()
      load:once()
      print(("%.9f"):format(C.pgee_seconds() - began))
    else
      fail("expected a line 'go' or 'save PATH', got '%s'", line)
    end
  end
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function line(name, ...)
  print(("%-11s "):format(name) .. string.format(...))
end

local function percent(share)
  return share and ("%.1f %%"):format(100 * share) or "-"
end

local function print_described(r)
  local kernels = {}
  for name, count in pairs(r.kernels) do
    kernels[#kernels + 1] = ("%s (%d linears)"):format(name, count)
  end
  table.sort(kernels)
  line("model", "%s, %s", r.model, r.activations)
  if r.settings then
    line("settings", "%s", r.settings)
  end
  line("CPU", "%s; ISA %s; oneDNN %s", r.cpu, r.isa, r.onednn or "not found")
  local amx = cpu.amx_unused()
  if amx and amx:find("Linux refused", 1, true) then
    line("", "%s", amx)
  end
  line("threads", "%d; affinity %s", r.threads, table.concat(r.affinity, " "))
  line("kernels", "%s", table.concat(kernels, ", "))
  line("work", "%d tokens in %d batches of %d, %.2f G multiply-adds", r.tokens, r.batches, r.batch, r.multiply_adds / 1e9)
end

local function print_profile(r)
  local rows, total = { { "step ", "linear ", "steps", "ms", "of all", "GOPS", "of peak" } }, 0
  for _, g in ipairs(r.profile) do
    total = total + g.seconds
  end
  for i, g in ipairs(r.profile) do
    rows[i + 1] = {
      g.op .. (g.precision and " " .. g.precision or ""), g.op == "linear" and g.name or "", ("%d"):format(g.steps),
      ("%.3f"):format(g.seconds * 1e3), percent(g.seconds / total), g.gops and ("%.0f"):format(g.gops) or "", percent(g.share),
    }
  end
  print("\n" .. text_table(rows))
end

local function print_measured(r)
  local p, b, all = r.peaks, r.time.batch, r.time.all
  line("peaks", "INT8 %s GOPS, FP32 %s GFLOPS, memory %.1f GB/s", p.int8 and ("%.0f"):format(p.int8 / 1e9) or "-",
    p.f32 and ("%.0f"):format(p.f32 / 1e9) or "-", p.read / 1e9)
  line("batch, ms", "min %.3f, median %.3f, p90 %.3f, p99 %.3f (%d runs)", b.min * 1e3, b.median * 1e3, b.p90 * 1e3, b.p99 * 1e3,
    b.n)
  if r.batches > 1 then
    line("all, ms", "min %.2f, median %.2f (%d runs)", all.min * 1e3, all.median * 1e3, all.n)
  end
  line("speed", "%.0f tokens a second; %s of the %s peak; weights read at %s of memory's", r.tokens_per_second,
    percent(r.share.peak), r.settings and "INT8" or "FP32", percent(r.share.read))
  local huge = r.memory.huge and (", %.1f MB in huge pages"):format(r.memory.huge / 1e6) or ""
  line("memory", "weights %.1f MB, runs %.1f MB%s", r.memory.weights / 1e6, r.memory.workspace / 1e6, huge)
end

local function print_together(r)
  for i, one in ipairs(r.instances) do
    local b = one.time.batch
    local memory = one.memory and ("%.1f MB of its own, %.1f MB with its share of the rest"):format(one.memory.own / 1e6,
      one.memory.with_share / 1e6) or "not known without /proc"
    line("instance " .. i, "CPU %s: median %.3f ms, p99 %.3f ms, %.0f tokens a second; memory: %s",
      table.concat(one.affinity, " "), b.median * 1e3, b.p99 * 1e3, one.tokens_per_second, memory)
  end
  line("together", "%.0f tokens a second", r.tokens_per_second)
end

common.main(function()
  local args = arguments()
  check_arguments(args)
  if args.isa then
    cpu.set_isa(args.isa)
  end
  if args.threads then
    perigee.threads(args.threads)
  end
  local model = perigee.load(args.random and random.checkpoint(args.random) or args.model, { budget = args.budget })
  local lengths = lengths_of(model, args)
  local list = args.ids and read_ids(args.ids, lengths) or bench.inputs_of(lengths, model.vocabulary)
  local batches = batches_of(model, list, args.batch)
  local encoder = encoder_of(model, args)
  local function make()
    return workload.new(encoder, batches)
  end
  if args.lockstep then
    return lockstep(make())
  end

  local right, wrong = bench.verify(encoder)
  local result = args.instances and bench.together(args.instances, make, args.seconds) or bench.measure(make(), args.seconds)
  result.activations, result.batch = args.activations, args.batch
  result.check = right and ("inputs that differ have outputs that differ, %s the reference's"):format(
    args.activations == "f32" and "close to" or "equal to") or "WRONG: " .. wrong

  if args.json then
    print(json.canonical(result))
  else
    print_described(result);
    (result.instances and print_together or print_measured)(result)
    line("check", "%s", result.check)
    if args.profile and result.profile then
      print_profile(result)
    end
  end
  return not right and 1 or nil
end)
