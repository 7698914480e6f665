--- Measures the part of an INT8 model's run that is FP32 or BF16: the heads, and attention that calibration left in FP32.
--
--   make bench-heads                                     random MiniLM and BERT-base with their head for fill_mask
--   make bench-heads HEADS='FOLDER...'                   checkpoints, calibrated on recipes/data/calibration.txt
--   make bench-heads HEADS='--activations dynamic --plain FOLDER...'                 without statistics: attention is FP32
--   make bench-heads HEADS='--floats bf16'               with linears in BF16 that are not INT8
--
-- It runs the head of the checkpoint's task (for embedders, hidden states; for fill_mask, texts with one mask), and takes the
-- minimum time of each step.
package.path = "./lua/?.lua;./lua/?/init.lua;" .. package.path
local argparse = require "argparse"
local bench = require "perigee.bench"
local inputs = require "perigee.run.inputs"
local perigee = require "perigee"
local random = require "perigee.checkpoint.random"
local text_table = require "perigee.show.table"
local workload = require "perigee.bench.workload"

local parser = argparse("spec/bench/heads.lua", "What of a run is FP32.")
parser:argument("folders", "Checkpoints"):args "*"
parser:option("--activations", "static or dynamic", "static"):choices { "static", "dynamic" }
parser:flag("--plain", "Without statistics")
parser:option("--floats", "f32 or bf16", "f32"):choices { "f32", "bf16" }
parser:option("--rounds", "Times that each is run", 20, tonumber)
local args = parser:parse()

local SHAPES = { { 1, 32 }, { 1, 128 }, { 8, 128 }, { 1, 384 } }

-- Returns the models to run, a list of { name, model, texts to calibrate on }.
local function models()
  local list = {}
  for i, folder in ipairs(args.folders) do
    list[i] = { folder:match "([^/]+)/*$", perigee.load(folder), perigee.lines "recipes/data/calibration.txt" }
  end
  for i, name in ipairs(#list == 0 and { "minilm", "bert-base" } or {}) do
    local checkpoint = random.checkpoint(name)
    checkpoint.config = setmetatable({ architectures = { "BertForMaskedLM" } }, { __index = checkpoint.config })
    local model = perigee.load(checkpoint)
    list[i] = { "random " .. name, model, bench.inputs(2, 64, model.vocabulary) }
  end
  return list
end

local function batch_of(model, B, S)
  local batch, marked = inputs.batch(model, bench.inputs(B, S, model.vocabulary), "bench"), {}
  for b = 1, model.task == "fill_mask" and B or 0 do
    marked[b] = batch.starts[b - 1] + math.floor(S / 2)
  end
  return #marked > 0 and batch:mark(marked) or batch
end

local function row(name, q, B, S)
  local load = workload.new(q, { batch_of(q.model, B, S) })
  load.runner = q:runner(q.model.task == "embed" and "hidden" or q.model.task)
  local all, f32, steps = 0, 0, {}
  for _, group in ipairs(load:profile(args.rounds)) do
    all = all + group.seconds
    if group.precision == "f32" or group.precision == "bf16" then
      f32, steps[#steps + 1] = f32 + group.seconds, ("%s %.2f ms"):format(group.name, 1e3 * group.seconds)
    end
  end
  return { name, q.model.task, ("%dx%d"):format(B, S), ("%.2f"):format(1e3 * all), ("%.1f %%"):format(100 * f32 / all),
    table.concat(steps, ", ") }
end

perigee.threads(1)
local rows = { { "model ", "head ", "texts", "ms", "FP32 or BF16", "steps that are" } }
for _, entry in ipairs(models()) do
  local name, model, texts = unpack(entry)
  local stats = not args.plain and model:calibrate(texts, { progress = false, samples = 256 }) or nil
  local q = model:quantize { activations = args.activations, floats = args.floats, stats = stats }
  for _, shape in ipairs(SHAPES) do
    rows[#rows + 1] = row(name, q, shape[1], math.min(shape[2], model.positions))
  end
  q:release()
end
print(text_table(rows))
