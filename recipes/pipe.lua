#!/usr/bin/env luajit
--- Texts in, answers out, a line each, in order: a filter for pipelines and batches of any size.
--
--   luajit recipes/pipe.lua --model MODEL --task classify --keep id < texts.jsonl > answers.jsonl
--   luajit recipes/pipe.lua --model MODEL --task embed --vectors npy --input texts.jsonl --output vectors.npy --resume
--   zcat dump.gz | luajit recipes/pipe.lua --model MODEL --lines | head                    (--help says all)
--
-- A line of the input is a JSON object, or a text with --lines. A line of the output is { kept fields, "result": answer }, or {
-- kept fields, "line": its number, "error": what was wrong }.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("@/?.lua;@/../lua/?.lua;@/../lua/?/init.lua;@/../../lua/5.1/?.lua;@/../../lua/5.1/?/init.lua;"):gsub("@",
  { ["@"] = here }) .. package.path -- the modules of the source tree, or of the prefix that this was installed under
local argparse = require "argparse"
local common = require "common"
local jsonl = require "perigee.jsonl"
local meter = require "perigee.meter"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local sink = require "perigee.sink"
local source = require "perigee.source"
local system = require "perigee.system"
local task_options = require "task_options"
local vectors = require "perigee.vectors"

local SIGINT, SIGTERM = 2, 15

-- Fields of a line that hold a task's input, unless others are named; two for tasks of two texts.
local FIELDS = { qa = { "question", "context" }, rerank = { "query", "documents" } }

local function fail(...)
  error(string.format(...), 0)
end

---- Arguments ---------------------------------------------------------------------------------------------------------

local function arguments()
  local parser = argparse("pipe", "Answers each line of the input with a line of output, in order.", "Status: 0 if all "
    .. "lines were answered, with an answer or with an error; 1 if something failed; 130 or 143 after Ctrl-C or SIGTERM, which "
    .. "end it with a whole line (a second one ends it at once).")
  parser:help_max_width(110)
  parser:option("--model", "Artifact, or folder of a Hugging Face checkpoint. Default: the demo's")
  parser:option("--task", "What to do with each line. Default: what the checkpoint is for"):choices {
    "embed", "classify", "rerank", "qa", "ner", "zeroshot", "fill-mask",
  }
  parser:option("--input", "File to read. Default: standard input")
  parser:option("--output", "File to write: it is FILE.part until it is whole. Default: standard output"):argname "<FILE>"
  parser:flag("--resume", "Go on where an interrupted process stopped, with the same input and options; nothing if FILE is there")
  parser:flag("--lines", "Lines are texts, not JSON; two texts have a tab between them")
  parser:option("--text", "Field that holds the text. Default: text; of qa question, of rerank query")
  parser:option("--pair", "Field that holds a second text. Default: none; of qa context, of rerank documents (a list)")
  parser:option("--keep", "Fields to write as they came: names with commas, or all"):count "*"
  parser:option("--as", "Field to write the answer to", "result")
  parser:option("--vectors", "How to write vectors", "list"):choices { "list", "base64", "npy" }
  parser:flag("--scores", "With classify: the scores of all labels")
  task_options.add(parser)
  parser:flag("--strict", "Stop at the first line that has no answer: status 1")
  parser:option("--longest", "Most bytes of a line. Default: 16777216", 2 ^ 24, common.count)
  parser:option("--window", "Most lines that are read before they are answered. Default: 256", 256, common.count)
  parser:option("--activations", "Of a folder: how to run it", "dynamic"):choices { "dynamic", "static", "f32" }
  parser:option("--calibration", "Of a folder: texts to calibrate on, one a line. With static: recipes/data/calibration.txt")
  parser:option("--max-tokens", "Of a folder: most tokens of a text. Default: what the checkpoint says", nil, common.count)
  common.strict_files(parser)
  parser:option("--threads", "Threads. Default: one for each physical core, or PERIGEE_THREADS", nil, common.count)
  parser:flag("--progress", "Say on standard error how far it is. Default: if that is a terminal")
  parser:flag("--quiet", "Never say it")
  return parser:parse()
end

local WRITTEN = { line = true, error = true, truncated = true } -- besides the answer

local function check_arguments(args)
  args.keep = task_options.names(args.keep)
  if args.resume and not args.output then
    fail "--resume goes on with a file: expected --output"
  elseif args.vectors == "npy" and not args.output then
    fail "--vectors npy needs a file: expected --output"
  elseif args.lines and #args.keep > 0 then
    fail "--keep is for fields, which --lines has none of"
  elseif WRITTEN[args.as] then
    fail("--as is %s, which is written already", args.as)
  elseif args.task == "zeroshot" and #args.labels == 0 then
    fail "--task zeroshot chooses among labels: expected --labels a,b"
  elseif args.scores and (args.top_k or args.threshold) then
    fail "--scores is of answers of one label; --top-k and --threshold give several, with their scores"
  end
  args.keep_all = args.keep[1] == "all" and #args.keep == 1
  for _, name in ipairs(args.keep) do
    if name == args.as or WRITTEN[name] then
      fail("--keep %s: that field is written here; --as names the answer's", name)
    end
  end
end

---- The model ---------------------------------------------------------------------------------------------------------

local function is_folder(path)
  local file = io.open(path .. "/config.json")
  return file ~= nil and file:close()
end

-- What may be gone on with later is computed by kernels that give the same bits each time, in FP32, too.
local function open(args)
  local path, kernel = args.model or common.demo(), args.resume and "auto" or nil
  if not is_folder(path) then
    return perigee.open(path, { kernel = kernel })
  end
  local model = common.load(path, args, { kernel = kernel })
  if args.activations == "f32" then
    return model
  end
  local texts = args.calibration or args.activations == "static" and common.CALIBRATION
  local stats = texts and model:calibrate(perigee.lines(texts), { progress = false }) or nil
  return model:quantize { activations = args.activations, stats = stats }
end

---- From a line to an input -------------------------------------------------------------------------------------------

-- A function of a row, { text =, failure = }, that returns its input and keeps what it read.
local function reader(args, task)
  local fields = FIELDS[task] or {}
  local a, b = args.text or fields[1] or "text", args.pair or fields[2]
  local function of_text(row)
    local bad = jsonl.malformed(row.text)
    if bad then
      fail("no valid UTF-8 at byte %d", bad)
    elseif not b then
      return row.text
    end
    local first, second = row.text:match "^([^\t]*)\t(.*)$"
    return first or fail "expected two texts with a tab between them", second
  end
  local function of_json(row)
    row.line = jsonl.read(row.text)
    if not b then
      return task == "ner" and row.line:texts(a) or row.line:text(a)
    end
    return row.line:text(a), task == "rerank" and row.line:texts(b) or row.line:text(b)
  end
  local read = args.lines and of_text or of_json
  return function(row)
    if row.failure then
      fail("%s", row.failure)
    end
    local first, second = read(row)
    if task == "qa" then
      return { question = first, context = second }
    elseif task == "rerank" then
      return { query = first, documents = type(second) == "table" and second or { second } }
    elseif task == "ner" and type(first) == "table" then
      return { words = first }
    end
    return second and { first, second } or first
  end
end

---- From an answer to a line ------------------------------------------------------------------------------------------

local WRITERS = { list = vectors.list, npy = vectors.bytes, base64 = function(v) return jsonl.quote(vectors.base64(v)) end }

-- A function of an answer that returns it as JSON; as bytes for .npy. What its score was made of is left out.
local function writer(args, task)
  if task == "embed" then
    local write = WRITERS[args.vectors]
    return function(vector)
      local text = write(vector)
      vector:release()
      return text
    end
  elseif task == "classify" and not (args.scores or args.top_k or args.threshold) then
    return function(answer)
      return jsonl.write { label = answer.label, score = answer.score }
    end
  end
  return function(answer)
    answer.logits, answer.value = nil, nil
    return jsonl.write(answer)
  end
end

-- A function of a row, its answer as JSON, what was wrong, and tokens dropped, that returns the record.
local function recorder(args)
  local result, taken = jsonl.quote(args.as) .. ":", { [args.as] = true, line = true, error = true, truncated = true }
  return function(row, json, failure, dropped)
    local parts = {}
    for _, name in ipairs(row.line and (args.keep_all and row.line.names or args.keep) or {}) do
      parts[#parts + 1] = not taken[name] and row.line:member(name) or nil
    end
    if failure then
      parts[#parts + 1] = ('"line":%d,"error":%s'):format(row.number, jsonl.quote(failure))
    else
      parts[#parts + 1] = result .. json
      parts[#parts + 1] = dropped and ('"truncated":%d'):format(dropped)
    end
    return "{" .. table.concat(parts, ",") .. "}"
  end
end

---- The pipe ----------------------------------------------------------------------------------------------------------

-- Runs until the input ends or a signal comes. part() is how large a part of the input was read, if that is known. Returns what
-- could not be answered: how many lines, and the first of them. options: the task's.
local function run(args, model, task, options, lines, out, part)
  local progress = meter(not args.quiet and args.progress) -- nil, unless one of the two was asked for
  local write, record, failures, first = writer(args, task), recorder(args), 0, nil
  local nothing = out.width and ("\0\0\192\127"):rep(out.width) -- NaN
  local function rows()
    out:flush() -- nobody waits for what is done
    progress:say(out.count, out.count - out.done, part and part())
    local text, number, failure = lines:line()
    return text and { text = text, number = number, failure = failure }
  end
  for row, answer, failure, dropped in model:stream(rows, {
    task = task, field = reader(args, task), window = args.window, options = options,
    ready = function() return lines:ready() end,
  }) do
    if failure then
      failures, first = failures + 1, first or ("line %d: %s"):format(row.number, failure)
      if args.strict then
        out:flush()
        error(first, 0)
      elseif out.width then -- its row says only that there is none
        io.stderr:write(("pipe: line %d: %s\n"):format(row.number, failure))
      end
    end
    local text = answer and write(answer)
    out:answer(out.width and (text or nothing) or record(row, text, failure, dropped))
  end
  progress:say(out.count, out.count - out.done, nil, true)
  return failures, first
end

-- What is written must not be what is read: the input would be gone before it was read, or taken for the output of before.
local function check_output(args, fd)
  local input = pgee.absolute("/proc/self/fd/" .. fd)
  if not args.output then
    if (system.size(fd) or 0) > 0 and input == pgee.absolute "/proc/self/fd/1" then
      fail "the input is the output, too: it would not end"
    end
  elseif input == pgee.absolute(pgee.absolute(args.output) .. ".part") then
    fail("'%s.part' is the input, and what is written before it becomes the output", args.output)
  elseif args.resume and input == pgee.absolute(args.output) then
    fail("'%s' is the input and the output: with --resume it would count as done", args.output)
  end
end

local function main(args)
  check_arguments(args)
  system.occupy()
  system.catch(SIGINT, SIGTERM)
  if args.threads then
    perigee.threads(args.threads)
  end
  local fd, why = 0, nil
  if args.input then
    fd, why = system.open(args.input)
  end
  if not fd then
    fail("cannot read '%s': %s", args.input, why)
  end
  check_output(args, fd)
  local model = open(args)
  local task = args.task or model.task
  local options, width = task_options.read(args, task), nil
  if args.vectors == "npy" then
    if task ~= "embed" then
      fail("--vectors npy is for embed, not for %s", task)
    end
    width = model:embed({}, options).shape[2]
  end
  local out = sink { output = args.output, resume = args.resume, width = width }
  if out.complete then
    return
  end
  local lines, size = source(fd, args.longest), system.size(fd)
  lines:skip(out.done)
  local part = size and size > 0 and function() return math.min(lines.bytes / size, 1) end
  local failures, first = run(args, model, task, options, lines, out, part)
  if system.signal() then
    return
  elseif out.last then
    fail("'%s.part' has %d answers, the input %d lines: it is not of this input", args.output, out.done + 1, lines.number)
  end
  out:finish()
  if failures > 0 then
    io.stderr:write(("pipe: %d of %d lines have no answer; the first: %s\n"):format(failures, out.count - out.done, first))
  end
end

common.main(function()
  local ok, failure = pcall(main, arguments())
  local signal = system.signal()
  if signal then
    os.exit(128 + signal)
  elseif not ok then
    error(failure, 0)
  end
end)
