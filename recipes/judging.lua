--- Functions with which the recipes that quantize compare the INT8 model with the FP32 model, and print the results. A recipe
-- that you copy works without them.
local bench = require "perigee.bench"
local common = require "common"
local evaluate = require "perigee.evaluate"
local jobs = require "perigee.evaluate.tasks"
local json = require "perigee.base.json"
local loading = require "loading"
local perigee = require "perigee"
local text_table = require "perigee.show.table"
local utf8 = require "perigee.base.utf8"

local judging = {}

---- Arguments ---------------------------------------------------------------------------------------------------------

local function seconds(text)
  return { "number", 0, 1e6, default = 1, help = text }
end

--- The arguments of a recipe that compares models. name, description, own (the recipe's own options): see common.arguments.
function judging.arguments(name, description, own)
  local args = common.arguments {
    name = name, description = description, model = "Folder of a Hugging Face checkpoint",
    said = "the demo's, which `make demo` fetches",
    options = common.join(own, common.LOADING, common.CALIBRATING, { "skip", "weights", "eval" }, common.LABELLED, { "threads" }),
  }
  args.model = args.model or loading.demo()
  if not args.eval then
    common.refuse(args, common.LABELLED, "without --eval, which names the labelled file that it is about")
  end
  return args
end

--- The same for a recipe that quantizes once.
function judging.quantizing(name, description, own)
  local args = judging.arguments(name, description, common.join(own, {
    "alpha", "tables",
    { "save", { "text", argname = "file", help = "Write the quantized model to a file, an artifact", said = "it is not kept" } },
    { "report", {
      "text", argname = "file", help = "Write a report to a file whose name ends in .html, .json or .csv", said = "none",
    } },
    { "seconds", seconds "How long each timing goes on, at least" },
    { "explain", { "flag", help = "Print what runs each linear" } },
    "json",
  }))
  if args.report then
    require("perigee.report").form(args.report) -- an error before the work
  end
  if args.no_calibration then
    common.refuse(args, common.CALIBRATING, "with --no-calibration: leave out one of the two")
    if args.alpha then
      common.fail("--alpha %s has no effect with --no-calibration: smoothing needs statistics; leave out one of the two",
        args.alpha)
    end
  end
  return args
end

---- Texts -------------------------------------------------------------------------------------------------------------

local contents = {} -- the text of each file by its path: each is read once, for a pipe has nothing to read after that

local function contents_of(path)
  if not contents[path] then
    local text, why = json.text(path, true)
    contents[path] = text or common.fail("%s", why)
  end
  return contents[path]
end

--- The list of inputs for calibration. It is an error if the model is then evaluated on the same file.
function judging.calibration(model, args)
  for _, path in ipairs(args.calibration or { loading.CALIBRATION }) do
    if contents_of(path) == contents_of(args.eval or loading.PAIRS) then
      common.fail("%s is the file that the model is judged by; calibrate on another one", path)
    end
  end
  return loading.calibration(model, args, { contents = contents })
end

--- Returns the labelled set on which the model is evaluated, and whether the set's labels mean something to this model.
-- set.some: up to 256 inputs of the set, on which hidden states are compared.
function judging.evaluation(model, args)
  local path = args.eval or loading.PAIRS
  contents_of(path)
  local set = loading.labelled(path, args, contents)
  set.some = {}
  for i = 1, math.min(#set.texts, 256) do
    local input = set.texts[i]
    set.some[i] = type(input) == "table" and model.task == "embed" and input[1] or input
  end
  return set, args.eval ~= nil or model.task == "embed"
end

---- Judging -----------------------------------------------------------------------------------------------------------

local SHAPES = { { 1, 32 }, { 1, 128 }, { 32, 128 } }

local function speed(model, q, at_least)
  local list = {}
  for _, shape in ipairs(SHAPES) do
    local B, S = shape[1], math.min(shape[2], model.positions)
    local inputs = bench.inputs(B, S, model.vocabulary)
    local times = bench.time({
      function() model:hidden(inputs):release() end,
      function() q:hidden(inputs):release() end,
    }, { seconds = at_least })
    list[#list + 1] = { batch = B, tokens = S, fp32 = times[1], int8 = times[2] }
  end
  return list
end

local function size_of(path)
  local file = io.open(path, "rb")
  local bytes = file and file:seek "end"
  return file and file:close() and bytes or 0
end

-- Bytes of the checkpoint's weights, and of the artifact. The artifact is written to args.save, or to a temporary file.
local function file_sizes(model, q, args)
  local fp32 = 0
  for _, path in ipairs(model.checkpoint.files.weights) do
    fp32 = fp32 + size_of(path)
  end
  local path = args.save or os.tmpname()
  local ok, why = pcall(q.save, q, path)
  local int8 = ok and size_of(path)
  if not args.save then
    os.remove(path)
  elseif not ok then
    error(why, 0)
  end
  return fp32, int8 or nil
end

--- Compares a quantized model with its FP32 model: quality, speed, memory. Returns what print_result prints.
function judging.judge(model, q, args)
  local result = { model = model.dir, task = model.task, settings = tostring(q.settings), threads = perigee.threads() }
  local set, judged = judging.evaluation(model, args)
  local comparison
  if judged then
    comparison = evaluate.compare({ { "FP32", model }, { "INT8", q } }, set, { resamples = args.report and 1000 or 0 })
    local fp32, int8 = comparison.runs[1].scores[1], comparison.runs[2].scores[1]
    result.metric = { name = fp32.metric, file = set.path, n = comparison.n, fp32 = fp32.value, int8 = int8.value }
  end
  result.distance = evaluate.distance(model, q, set.some)
  result.speed = speed(model, q, args.seconds)
  result.memory = { fp32 = model:memory(), int8 = q:memory() }
  result.memory.fp32.file, result.memory.int8.file = file_sizes(model, q, args)
  result.saved = args.save
  if args.report then
    q:report(args.report, {
      distance = result.distance, comparison = comparison, speed = result.speed,
      files = { fp32 = result.memory.fp32.file, int8 = result.memory.int8.file }, command = common.command(nil, { unpack(arg) }),
    })
    result.report = args.report
  end
  return result
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function ms(time)
  return ("%.2f"):format(time * 1e3)
end

local function speed_table(list)
  local rows = { { "texts x tokens", "FP32 ms", "min", "texts/s", "INT8 ms", "min", "texts/s", "INT8 is" } }
  for i, s in ipairs(list) do
    local fp32, int8 = s.fp32, s.int8
    rows[i + 1] = {
      ("%d x %d"):format(s.batch, s.tokens), ms(fp32.median), ms(fp32.min), ("%.0f"):format(s.batch / fp32.median),
      ms(int8.median), ms(int8.min), ("%.0f"):format(s.batch / int8.median),
      ("%.2fx faster"):format(fp32.median / int8.median),
    }
  end
  return text_table(rows)
end

local function megabytes(bytes)
  return bytes and ("%.1f MB"):format(bytes / 1e6) or "-"
end

local MEMORY = {
  { "weights", "packed weights" }, { "tables", "embedding tables" }, { "workspace", "runs" }, { "file", "file" },
}

local function memory_table(memory)
  local rows = { { "memory ", "FP32", "INT8" } }
  for i, row in ipairs(MEMORY) do
    rows[i + 1] = { "  " .. row[2], megabytes(memory.fp32[row[1]]), megabytes(memory.int8[row[1]]) }
  end
  return text_table(rows)
end

local function print_quality(d, m)
  local cut = d.truncated > 0 and (", %d of them truncated"):format(d.truncated) or ""
  print(("\nquality against FP32, %d inputs%s"):format(d.n, cut))
  print(("  hidden states   SQNR %.1f dB; cosine of a token's: mean %.5f, min %.5f"):format(d.sqnr, d.tokens.mean,
    d.tokens.min))
  if d.vectors then
    print(("  text vectors    cosine: mean %.5f, min %.5f"):format(d.vectors.mean, d.vectors.min))
  end
  if d.agreement then
    print(("  labels          the same for %.2f %%"):format(100 * d.agreement))
  end
  if m then
    print(("  %s on %s (%d): FP32 %.4f, INT8 %.4f"):format(m.name, m.file, m.n, m.fp32, m.int8))
  end
end

-- Commands that one would run next.
local function print_next(result, args)
  local artifact = args.save or "model.safetensors"
  local texts = args.calibration and args.calibration[1] or loading.CALIBRATION
  print "\nnext:"
  if not args.save then
    local words = { unpack(arg) }
    words[#words + 1], words[#words + 2] = "--save", artifact
    print("  " .. common.command(nil, words))
  end
  print("  " .. common.command("pipe", { artifact, "--lines" }) .. " < texts.txt")
  print("  " .. common.command("repl", { result.model, "--calibration", texts }))
  if jobs.all()[result.task] then
    local file = result.metric and result.metric.file or "labelled.tsv"
    print("  " .. common.command("evaluate", { result.model, result.task, file }))
  end
end

-- The same value in a form that JSON can express: null for a number that is not finite (an undefined correlation, the SQNR of
-- equal tensors), and texts as valid UTF-8, because paths and labels may have other bytes.
local function sayable(value)
  if type(value) == "table" then
    local copy = {}
    for key, inside in pairs(value) do
      copy[key] = sayable(inside)
    end
    return copy
  elseif type(value) == "string" then
    return utf8.repair(value)
  end
  return type(value) == "number" and value - value ~= 0 and json.null or value
end

--- Prints a table as one JSON object.
function judging.print_json(result)
  print(json.canonical(sayable(result)))
end

--- Prints what judge returned, as text or, if args.json, as one JSON object. explained: what explain() returned, or nil.
function judging.print_result(result, args, explained)
  if args.json then
    result.linears, result.attention = explained and explained.rows, explained and explained.attention
    return judging.print_json(result)
  end
  print(("model       %s (%s)"):format(result.model, result.task))
  print(("settings    %s"):format(result.settings))
  print(("statistics  %s"):format(result.statistics or "none: nothing is smoothed"))
  print(("threads     %d"):format(result.threads))
  if explained then
    print("\n" .. tostring(explained))
  end
  print_quality(result.distance, result.metric)
  print("\nspeed (median and min time; the two take turns; ratios are of medians)")
  print("  " .. speed_table(result.speed):gsub("\n", "\n  "))
  print("\n" .. memory_table(result.memory))
  if result.report then
    print("\nreport      " .. result.report)
  end
  print_next(result, args)
end

return judging
