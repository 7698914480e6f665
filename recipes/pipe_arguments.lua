--- The arguments of pipe.lua: their descriptions, and the checks of which ones go together.
local common = require "common"
local loading = require "loading"
local task_options = require "task_options"
local inputs = require "perigee.run.inputs"
local perigee = require "perigee"
local fail = common.fail

local arguments = {}

--- How many lines are needed before the share of lines without an answer is judged.
arguments.JUDGED = 256

-- A field of all tasks' declarations: { NAME = value }. field: "options" or "written"; a task without it has none.
local function by_task(field)
  local values = {}
  for name, task in pairs(perigee.tasks.all()) do
    values[name] = task[field] or {}
  end
  return values
end

-- The names of the tasks for which f(declaration) is true, in order.
local function tasks_that(f)
  local names = {}
  for _, name in ipairs(perigee.tasks.names()) do
    names[#names + 1] = f(perigee.tasks.get(name)) and name or nil
  end
  return names
end

-- For the help: which fields of a line hold the texts, by task. which: 1 or 2.
local function said_of_field(which, default)
  local parts = { default }
  for _, name in ipairs(tasks_that(function(task) return task.pair end)) do
    local task = perigee.tasks.get(name)
    parts[#parts + 1] = ("of %s %s%s"):format(name, task.pair[which], which == 2 and task.pair_list and " (a list)" or "")
  end
  return table.concat(parts, "; ", 1, 1) .. (#parts > 1 and "; " .. table.concat(parts, ", ", 2) or "")
end

local ON_ERRORS = ("Share of lines, 0 to 1, that may have no answer; with more it ends with status 1, once there are %d lines or "
  .. "the input ends. 0: the first one ends it; 1: none does. Default: %d such lines in a row end it, or if there are no others")
  :format(arguments.JUDGED, arguments.JUDGED)

local function from_command_line()
  local of_two_texts = table.concat(tasks_that(function(task) return task.pair end), " and ")
  local of_vectors = table.concat(tasks_that(function(task) return task.vectors end), ", ")
  return common.arguments {
    name = "pipe", description = "Answers each line of the input with a line of output, in order.",
    epilog = "Status: 0 if the lines were answered, with an answer or with an error; 1 if something failed, or too many lines "
      .. "have no answer; 130 or 143 after Ctrl-C or SIGTERM, which end it with a whole line (a second one ends it at once).",
    model = "Artifact, or folder of a Hugging Face checkpoint", said = "the demo's checkpoint",
    options = common.join({
      { "task", { "choice", perigee.tasks.all(), help = "What to do with each line", said = "what the checkpoint is for" } },
      { "input", { "text", argname = "file", help = "File to read", said = "standard input" } },
      { "output", {
        "text", argname = "file", help = "File to write: it is FILE.part until it is whole", said = "standard output",
      } },
      { "resume", {
        "flag", help = "Continue an interrupted run (same input and options). Does nothing if the file of --output exists",
      } },
      { "lines", { "flag", help = "Lines are texts, not JSON" } },
      { "pairs", {
        "flag", help = "With --lines: a line is two texts with a tab between, as it always is for " .. of_two_texts,
      } },
      { "text", {
        "text", argname = "field", help = "Field that holds the text", said = said_of_field(1, "text"),
      } },
      { "pair", {
        "text", argname = "field", help = "Field that holds a second text",
        said = said_of_field(2, "none"),
      } },
      { "keep", {
        "text", argname = "field", list = true, default = {}, said = "none", help = "Fields to write as they came, or all",
      } },
      { "as", { "text", argname = "field", default = "result", help = "Field to write the answer to" } },
      { "vectors", {
        "choice", { list = true, base64 = true, npy = true }, default = "list",
        help = ("With %s: how to write vectors"):format(of_vectors),
      } },
      { "require", {
        "text", argname = "file", list = true, path = true, said = "none",
        help = "Lua file to run first. It can register tasks and models",
      } },
    }, task_options.described(by_task "written"), task_options.described(by_task "options"), {
      { "max_errors", { "number", 0, 1, argname = "share", help = ON_ERRORS } },
      { "max_bytes", { "integer", 1, 2 ^ 31, default = 2 ^ 24, help = "Max bytes of a line" } },
      { "window", { "integer", 1, default = 256, help = "Max lines that are read before they are answered" } },
      { "activations", {
        "choice", { dynamic = true, static = true, f32 = true }, default = "dynamic",
        help = "Of a folder: where the scales of activations come from; f32: not quantized",
      } },
      { "calibration", {
        "text", list = true, path = true, said = "with static recipes/data/calibration.txt, else none",
        help = "Of a folder: files to calibrate on: one text a line, or labelled",
      } },
      "calibration_text", "calibration_pair", "calibration_part", "calibration_as", "samples",
    }, common.LOADING, {
      "threads",
      { "progress", { "flag", help = "Print progress on standard error. The default if that is a terminal" } },
      { "quiet", { "flag", help = "Print only errors on standard error" } },
    }),
  }
end

local WRITTEN = { line = true, error = true, truncated = true } -- fields of the output besides the answer and the kept fields

-- Raises an error if two options exclude each other.
local function check_together(args)
  if args.resume and not args.output then
    fail "--resume continues a file: expected --output"
  elseif args.vectors == "npy" and not args.output then
    fail "--vectors npy needs a file: expected --output"
  elseif args.progress and args.quiet then
    fail "--progress and --quiet exclude each other: expected one of them"
  end
  if args.vectors == "npy" then
    common.refuse(args, { "keep", "as" }, "with --vectors npy: the file has only vectors")
  end
  if args.lines then
    common.refuse(args, { "keep", "text", "pair" }, "with --lines: it names fields of JSON objects, and the lines are texts")
  else
    common.refuse(args, { "pairs" }, "without --lines: --pair names the field of the second text")
  end
end

local function check_fields(args)
  if WRITTEN[args.as] then
    fail("--as is %s, a field that pipe.lua writes itself; expected another name", args.as)
  end
  args.keep_all = args.keep[1] == "all" and #args.keep == 1
  for _, name in ipairs(args.keep) do
    if name == args.as or WRITTEN[name] then
      fail("--keep %s: pipe.lua writes that field itself; --as gives the answer's field another name", name)
    end
  end
end

-- Raises an error if an option was given together with one that excludes it. written: the options that change what is written,
-- { NAME = { unless = { ... } } }.
local function check_written(args, written)
  for name, entry in pairs(written or {}) do
    for _, other in ipairs(args.given[name] and entry.unless or {}) do
      if args.given[other] then
        common.refuse(args, { name }, "with " .. common.flag(other))
      end
    end
  end
end

--- Raises an error if an option was given that the task `name` does not have, or if one is missing that it needs.
function arguments.check_task(args, name)
  local task = perigee.tasks.get(name)
  if not task.vectors then
    common.refuse(args, { "vectors" }, ("with the task %s, only with %s"):format(name,
      table.concat(tasks_that(function(other) return other.vectors end), ", ")))
  end
  task_options.read(args, name, by_task "written")
  check_written(args, task.written)
  if not task.pair and not table.concat(task.forms, " "):find "pair" then
    common.refuse(args, { "pair", "pairs" }, ("with the task %s, which takes one text"):format(name))
  end
  for option, entry in pairs(task.options) do
    if entry.required and not args.given[option] then
      fail("--task %s needs %s: expected %s", name, common.flag(option), entry.required)
    end
  end
end

--- The options of the task that were given, nil if there are none; and those that change what is written, a table.
function arguments.options(args, name)
  local read = task_options.read(args, name, by_task "options")
  if (read and read.long or inputs.default_long(perigee.tasks.get(name).forms)) ~= "windows" then
    common.refuse(args, { "stride" }, "without --long windows: it is the number of tokens that two windows share")
  end
  return read, task_options.read(args, name, by_task "written") or {}
end

--- Raises an error if an option was given that has no effect on the model at `path`.
function arguments.check_model(args, path)
  if not loading.is_folder(path) then
    common.refuse(args, common.join({ "activations" }, common.CALIBRATING, common.LOADING),
      "on an artifact, which runs as it was saved; it is for a checkpoint's folder")
  elseif args.activations == "f32" then
    common.refuse(args, common.CALIBRATING, "with --activations f32: nothing is quantized")
  elseif args.activations == "dynamic" and not args.calibration then
    common.refuse(args, common.CALIBRATING, "without --calibration, which names texts to calibrate on")
  end
end

-- Runs the files of --require, because what they register is in the help and among the values of --task.
local function run_required()
  for i = 1, #arg do
    local file = arg[i]:match "^%-%-require=(.*)$" or arg[i] == "--require" and arg[i + 1]
    if file then
      local chunk, why = loadfile(file)
      if not chunk then
        fail("--require: %s", why)
      end
      chunk()
    end
  end
end

--- Reads the arguments and checks them as far as that is possible without a model.
function arguments.read()
  run_required()
  local args = from_command_line()
  check_together(args)
  check_fields(args)
  if args.task then
    arguments.check_task(args, args.task)
  end
  return args
end

return arguments
