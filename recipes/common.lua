--- What the recipes share: their arguments, and how they judge and print. A recipe that you copy can do without it.
local argparse = require "argparse"
local bench = require "perigee.bench"
local cjson = require "cjson"
local evaluate = require "perigee.evaluate"
local json = require "perigee.json"
local perigee = require "perigee"
local report = require "perigee.report"

local common = {}

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local top = here == "recipes" and "." or here:match "^(.*)/recipes$" or here .. "/.."
local DEMO = top .. "/build/demo/all-MiniLM-L6-v2"
local PAIRS = here .. "/data/pairs.tsv"

--- The texts to calibrate on unless others are named.
common.CALIBRATION = here .. "/data/calibration.txt"

---- Arguments ---------------------------------------------------------------------------------------------------------

--- Reads an alpha, for argparse.
function common.alpha(text)
  if text == "off" then
    return false
  end
  local alpha = tonumber(text)
  return alpha and alpha >= 0 and alpha <= 1 and alpha or nil, "expected a number from 0 to 1, or off, got " .. text
end

--- Reads an integer of at least 1, for argparse.
function common.count(text)
  local n = tonumber(text)
  return n and n >= 1 and n % 1 == 0 and n or nil, "expected an integer of at least 1, got " .. text
end

--- Reads seconds, for argparse.
function common.seconds(text)
  local n = tonumber(text)
  return n and n >= 0 and n < math.huge and n or nil, "expected seconds, a number of at least 0, got " .. text
end

local function is_there(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

--- The demo's checkpoint, an error if it is not there.
function common.demo()
  if not is_there(DEMO .. "/config.json") then
    error("there is no demo model in " .. DEMO .. "; `make demo` fetches it, or name a checkpoint", 0)
  end
  return DEMO
end

--- The same rewritten as a DistilBERT, the first time that it is asked for.
function common.distilbert()
  local folder = DEMO .. "-as-distilbert"
  if not is_there(folder .. "/config.json") then
    require "as_distilbert"(common.demo(), folder)
  end
  return folder
end

--- multilingual-e5-small as an XLM-RoBERTa, an error if it is not there.
function common.xlmr()
  local folder = top .. "/build/demo/multilingual-e5-small-xlmr"
  if not is_there(folder .. "/config.json") then
    error("there is no model in " .. folder .. "; `make models` fetches it, or name a checkpoint with --model", 0)
  end
  return folder
end

local DEFAULTS = { -- what --model is without a folder, in words
  [common.demo] = "the demo's, which `make demo` fetches",
  [common.distilbert] = "the demo's, rewritten as a DistilBERT",
  [common.xlmr] = "multilingual-e5-small, which `make models` fetches",
}

--- A parser of the arguments that all recipes that judge have; fields are named as the options are. demo: what --model is by
-- default, common.demo if nil.
function common.parser(name, description, demo)
  local parser = argparse(name, description)
  parser:option("--model", "Folder of a Hugging Face checkpoint. Default: " .. DEFAULTS[demo or common.demo])
  parser:option("--calibration", "Texts to calibrate on, one a line, or a labelled file. Default: recipes/data/calibration.txt")
  parser:option("--samples", "How many of them to take. Default: 256", 256, common.count)
  parser:option("--skip", "Keep linears in FP32: a name, or a pattern such as 'encoder.layer.0.*'. May be repeated"):count "*"
  parser:option("--weights", "What one weight scale covers", "row"):choices { "row", "tensor" }
  parser:option("--eval", "Labelled file to judge by; lua/README.md says in which forms. Default: recipes/data/pairs.tsv")
  parser:option("--max-tokens", "Most tokens of a text. Default: what the checkpoint says", nil, common.count)
  parser:option("--threads", "Threads. Default: one for each physical core, or PERIGEE_THREADS", nil, common.count)
  common.strict_files(parser)
  return parser
end

--- Adds the option --strict-files, for common.load.
function common.strict_files(parser)
  parser:flag("--strict-files", "Refuse a checkpoint whose files have a key that has no effect here")
end

--- Says on standard error, in one line, which keys of the model's files have no effect. It says nothing if there are none.
function common.note_ignored(model)
  local _, ignored = model:unused()
  if #ignored > 0 then
    io.stderr:write("note: ", ignored:summary(), "; model:unused() says why\n")
  end
end

--- perigee.load(path, options), with args.strict_files and args.max_tokens among the options. Keys of the checkpoint's files that
-- have no effect are an error with args.strict_files; else a line on standard error names them, unless args.quiet.
function common.load(path, args, options)
  options = options or {}
  options.strict, options.max_tokens = args.strict_files, args.max_tokens
  local model = perigee.load(path, options)
  if not args.quiet then
    common.note_ignored(model)
  end
  return model
end

--- What the parser makes of the command line.
function common.parse(parser, demo)
  local args = parser:parse()
  args.model = args.model or (demo or common.demo)()
  args.calibration = args.calibration or common.CALIBRATION
  if args.threads then
    perigee.threads(args.threads)
  end
  return args
end

--- The arguments of a recipe that quantizes once; add(parser) adds its own.
function common.arguments(name, description, add, demo)
  local parser = common.parser(name, description, demo)
  parser:option("--alpha", "SmoothQuant's alpha, 0 to 1, or off. Default: 0.75 if static, 0.6 if dynamic", nil, common.alpha)
  parser:option("--seconds", "How long each timing goes on, at least. Default: 1", 1, common.seconds)
  parser:flag("--explain", "Print what runs each linear")
  parser:flag("--json", "Print one JSON object instead of text")
  add(parser)
  return common.parse(parser, demo)
end

-- Without the line of a recipe that called what raised it, which a user has not written; where a bug is stays.
local function without_line(message)
  local path, rest = tostring(message):match "^([^\n]-)%.lua:%d+: (.*)$"
  local folder = here:match "[^/]*$"
  return path and (path:match "([^/]*)/[^/]*$" or folder) == folder and not rest:find "^attempt to " and rest or tostring(message)
end

--- Runs a recipe; its errors end it with one line and status 1. So does a full disk: what it prints may be all that is kept.
-- With PERIGEE_TRACE in the environment it says where it was.
function common.main(f)
  local ok, failure = xpcall(f, function(message)
    return os.getenv "PERIGEE_TRACE" and debug.traceback(message, 2) or without_line(message)
  end)
  if ok then
    ok, failure = io.stdout:flush()
    failure = not ok and "what is printed cannot be written: " .. failure
  end
  if not ok then
    io.stderr:write("error: ", tostring(failure), "\n")
    os.exit(1)
  end
end

---- Texts -------------------------------------------------------------------------------------------------------------

local read = {} -- the text of each file by its path: each is read once, for a pipe has nothing to read after that

local function contents_of(path)
  if not read[path] then
    local file, reason = io.open(path, "rb")
    if not file then
      error(reason, 0)
    end
    read[path], reason = file:read "*a"
    file:close()
    if not read[path] then
      error(("%s: %s"):format(path, reason), 0)
    end
  end
  return read[path]
end

-- A labelled file, or one of texts alone.
local function labelled(path, plain)
  contents_of(path)
  return evaluate.read(path, { contents = read, plain = plain })
end

--- The inputs to calibrate on: a list. Those of a labelled file are taken without their labels. It is an error to calibrate on
-- what the model is then judged by.
function common.calibration(args)
  if contents_of(args.calibration) == contents_of(args.eval or PAIRS) then
    error(("%s is the file that the model is judged by; calibrate on another one"):format(args.calibration), 0)
  end
  return labelled(args.calibration, true).texts
end

---- Judging -----------------------------------------------------------------------------------------------------------

local SHAPES = { { 1, 32 }, { 1, 128 }, { 32, 128 } }

local function speed(model, q, seconds)
  local list = {}
  for _, shape in ipairs(SHAPES) do
    local B, S = shape[1], math.min(shape[2], model.positions)
    local inputs = bench.inputs(B, S, model.vocabulary)
    local times = bench.time({
      function() model:hidden(inputs):release() end,
      function() q:hidden(inputs):release() end,
    }, { seconds = seconds })
    list[#list + 1] = { batch = B, tokens = S, fp32 = times[1], int8 = times[2] }
  end
  return list
end

--- What the model is judged by: a labelled set, whose `some` are up to 256 inputs to compare hidden states on; and whether its
-- labels mean something to this model.
function common.evaluation(model, args)
  local set = labelled(args.eval or PAIRS)
  set.some = {}
  for i = 1, math.min(#set.texts, 256) do
    local input = set.texts[i]
    set.some[i] = type(input) == "table" and model.task == "embed" and input[1] or input
  end
  return set, args.eval ~= nil or model.task == "embed"
end

--- Compares a quantized model with its FP32 model: quality, speed, memory. Returns what print_result prints.
function common.judge(model, q, args)
  local result = { model = model.dir, task = model.task, settings = tostring(q.settings), threads = perigee.threads() }
  local set, judged = common.evaluation(model, args)
  if judged then
    local fp32, int8 = evaluate.run(model, set), evaluate.run(q, set)
    result.metric = { name = fp32.metric, file = set.path, n = fp32.n, fp32 = fp32.value, int8 = int8.value }
  end
  result.distance = evaluate.distance(model, q, set.some)
  result.speed = speed(model, q, args.seconds)
  result.memory = { fp32 = model:memory(), int8 = q:memory() }
  return result
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function ms(seconds)
  return ("%.2f"):format(seconds * 1e3)
end

local function speed_table(list)
  local rows = { { "texts x tokens", "FP32 ms", "median", "texts/s", "INT8 ms", "median", "texts/s", "INT8 is" } }
  for i, s in ipairs(list) do
    rows[i + 1] = {
      ("%d x %d"):format(s.batch, s.tokens), ms(s.fp32.min), ms(s.fp32.median), ("%.0f"):format(s.batch / s.fp32.min),
      ms(s.int8.min), ms(s.int8.median), ("%.0f"):format(s.batch / s.int8.min), ("%.2fx faster"):format(s.fp32.min / s.int8.min),
    }
  end
  return report.table(rows)
end

local function megabytes(bytes)
  return ("%.1f MB"):format(bytes / 1e6)
end

-- The same as JSON can say it: null for what it has no number for (a correlation that is not defined, the SQNR of what is equal),
-- and UTF-8 whatever paths and labels are.
local function sayable(value)
  if type(value) == "table" then
    local copy = {}
    for key, inside in pairs(value) do
      copy[key] = sayable(inside)
    end
    return copy
  elseif type(value) == "string" then
    return json.utf8(value)
  end
  return type(value) == "number" and value - value ~= 0 and cjson.null or value
end

--- Prints a table as one JSON object.
function common.print_json(result)
  print(cjson.encode(sayable(result)))
end

--- Prints what judge returned, as text or, if args.json, as one JSON object. head: lines that come first.
function common.print_result(result, args, explained)
  if args.json then
    return common.print_json(result)
  end
  local d, m = result.distance, result.metric
  print(("model       %s (%s)"):format(result.model, result.task))
  print(("settings    %s"):format(result.settings))
  print(("statistics  %s"):format(result.statistics or "none: nothing is smoothed"))
  print(("threads     %d"):format(result.threads))
  if explained then
    print("\n" .. tostring(explained))
  end
  local cut = d.truncated > 0 and (", %d of them truncated"):format(d.truncated) or ""
  print(("\nquality against FP32, %d inputs%s"):format(d.n, cut))
  print(("  hidden states   SQNR %.1f dB; cosine of a token's: mean %.5f, least %.5f"):format(d.sqnr, d.tokens.mean,
    d.tokens.least))
  if d.vectors then
    print(("  text vectors    cosine: mean %.5f, least %.5f"):format(d.vectors.mean, d.vectors.least))
  end
  if d.agreement then
    print(("  labels          the same for %.2f %%"):format(100 * d.agreement))
  end
  if m then
    print(("  %s on %s (%d): FP32 %.4f, INT8 %.4f"):format(m.name, m.file, m.n, m.fp32, m.int8))
  end
  print("\nspeed (least and median time; the two take turns)")
  print("  " .. speed_table(result.speed):gsub("\n", "\n  "))
  print("\nmemory          FP32       INT8")
  print(("  weights  %9s  %9s"):format(megabytes(result.memory.fp32.weights), megabytes(result.memory.int8.weights)))
  print(("  runs     %9s  %9s"):format(megabytes(result.memory.fp32.workspace), megabytes(result.memory.int8.workspace)))
end

return common
