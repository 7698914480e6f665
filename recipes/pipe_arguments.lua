--- The arguments of pipe.lua: which there are, and which go together.
local common = require "common"
local loading = require "loading"
local task_options = require "task_options"
local tasks = require "perigee.tasks"
local fail = common.fail

local arguments = {}

--- Fields of a line that hold a task's input, unless others are named; two for tasks of two texts.
arguments.FIELDS = { qa = { "question", "context" }, rerank = { "query", "documents" } }

--- Lines after which a share of failures means something.
arguments.JUDGED = 256

--- The options of each task, as perigee.options describes them.
arguments.OPTIONS = {}
for name, task in pairs(tasks) do
  arguments.OPTIONS[name] = task.options
end

local ON_ERRORS = ("Share of lines, 0 to 1, that may have no answer; with more it ends with status 1, once there are %d lines or "
  .. "the input ends. 0: the first one ends it; 1: none does. Default: %d such lines in a row end it, or if there are no others")
  :format(arguments.JUDGED, arguments.JUDGED)

local function from_command_line()
  return common.arguments {
    name = "pipe", description = "Answers each line of the input with a line of output, in order.",
    epilog = "Status: 0 if the lines were answered, with an answer or with an error; 1 if something failed, or too many lines "
      .. "have no answer; 130 or 143 after Ctrl-C or SIGTERM, which end it with a whole line (a second one ends it at once).",
    model = "Artifact, or folder of a Hugging Face checkpoint", said = "the demo's checkpoint",
    options = common.join({
      { "task", { "choice", tasks, help = "What to do with each line", said = "what the checkpoint is for" } },
      { "input", { "text", argname = "file", help = "File to read", said = "standard input" } },
      { "output", {
        "text", argname = "file", help = "File to write: it is FILE.part until it is whole", said = "standard output",
      } },
      { "resume", {
        "flag", help = "Continue an interrupted run (same input and options). Does nothing if the file of --output exists",
      } },
      { "lines", { "flag", help = "Lines are texts, not JSON" } },
      { "pairs", { "flag", help = "With --lines: a line is two texts with a tab between, as it always is for qa and rerank" } },
      { "text", {
        "text", argname = "field", help = "Field that holds the text", said = "text; of qa question, of rerank query",
      } },
      { "pair", {
        "text", argname = "field", help = "Field that holds a second text",
        said = "none; of qa context, of rerank documents (a list)",
      } },
      { "keep", {
        "text", argname = "field", list = true, default = {}, said = "none", help = "Fields to write as they came, or all",
      } },
      { "as", { "text", argname = "field", default = "result", help = "Field to write the answer to" } },
      { "vectors", {
        "choice", { list = true, base64 = true, npy = true }, default = "list", help = "With embed: how to write vectors",
      } },
      { "scores", { "flag", help = "With classify: the scores of all labels" } },
    }, task_options.described(arguments.OPTIONS), {
      { "max_errors", { "number", 0, 1, argname = "share", help = ON_ERRORS } },
      { "max_bytes", { "integer", 1, 2 ^ 31, default = 2 ^ 24, help = "Most bytes of a line" } },
      { "window", { "integer", 1, default = 256, help = "Most lines that are read before they are answered" } },
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
      { "progress", { "flag", help = "Say on standard error how far it is. The default if that is a terminal" } },
      { "quiet", { "flag", help = "Say nothing on standard error but errors" } },
    }),
  }
end

local WRITTEN = { line = true, error = true, truncated = true } -- besides the answer

-- Options of which one excludes the other.
local function check_together(args)
  if args.resume and not args.output then
    fail "--resume goes on with a file: expected --output"
  elseif args.vectors == "npy" and not args.output then
    fail "--vectors npy needs a file: expected --output"
  elseif args.progress and args.quiet then
    fail "--progress and --quiet exclude each other: expected one of them"
  elseif args.scores and (args.given.top_k or args.given.threshold) then
    fail "--scores is of answers of one label; --top-k and --threshold give several, with their scores"
  end
  if args.vectors == "npy" then
    common.refuse(args, { "keep", "as" }, "with --vectors npy, a file that has vectors alone")
  end
  if args.lines then
    common.refuse(args, { "keep", "text", "pair" }, "with --lines: it names fields of JSON, and a line that is a text has none")
  else
    common.refuse(args, { "pairs" }, "without --lines: --pair names the field of the second text")
  end
end

local function check_fields(args)
  if WRITTEN[args.as] then
    fail("--as is %s, which is written already", args.as)
  end
  args.keep_all = args.keep[1] == "all" and #args.keep == 1
  for _, name in ipairs(args.keep) do
    if name == args.as or WRITTEN[name] then
      fail("--keep %s: that field is written here; --as names the answer's", name)
    end
  end
end

--- An error if an option was given that the task does not have.
function arguments.check_task(args, task)
  if task ~= "embed" then
    common.refuse(args, { "vectors" }, ("with the task %s, only with embed"):format(task))
  end
  if task ~= "classify" then
    common.refuse(args, { "scores" }, ("with the task %s, only with classify"):format(task))
  end
  if not arguments.FIELDS[task] and not table.concat(tasks[task].forms, " "):find "pair" then
    common.refuse(args, { "pair", "pairs" }, ("with the task %s, which takes one text"):format(task))
  end
  if task == "zeroshot" and not args.given.labels then
    fail "--task zeroshot chooses among labels: expected --labels a,b"
  end
end

--- The options of the task that were given, nil if there are none.
function arguments.options(args, task)
  local read = task_options.read(args, task, arguments.OPTIONS)
  local windows = (read and read.long or task == "qa" and "windows") == "windows"
  if not windows then
    common.refuse(args, { "stride" }, "without --long windows: it is what two windows have in common")
  end
  return read
end

--- An error if an option was given that has no effect on the model at `path`.
function arguments.check_model(args, path)
  if not loading.is_folder(path) then
    common.refuse(args, common.join({ "activations" }, common.CALIBRATING, common.LOADING),
      "on an artifact, which is run as it was saved; it is for a checkpoint's folder")
  elseif args.activations == "f32" then
    common.refuse(args, common.CALIBRATING, "with --activations f32: nothing is quantized")
  elseif args.activations == "dynamic" and not args.calibration then
    common.refuse(args, common.CALIBRATING, "without --calibration, which names texts to calibrate on")
  end
end

--- The arguments, checked as far as they can be without a model.
function arguments.read()
  local args = from_command_line()
  check_together(args)
  check_fields(args)
  if args.task then
    arguments.check_task(args, args.task)
  end
  return args
end

return arguments
