#!/usr/bin/env luajit
--- Answers each line of the input with a line of output, in order: a filter for pipelines and for batches of any size.
--
--   luajit recipes/pipe.lua MODEL --task classify --keep id < texts.jsonl > answers.jsonl
--   luajit recipes/pipe.lua MODEL --task embed --vectors npy --input texts.jsonl --output vectors.npy --resume
--   zcat dump.gz | luajit recipes/pipe.lua MODEL --lines | head                    (--help says all)
--
-- A line of the input is a JSON object, or with --lines a text. A line of the output is { kept fields, "result": answer }, or, if
-- the line could not be answered, { kept fields, "line": its number, "error": why }.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local json = require "perigee.base.json"
local jsonl = require "perigee.pipe.jsonl"
local loading = require "loading"
local meter = require "perigee.pipe.meter"
local arguments = require "pipe_arguments"
local perigee = require "perigee"
local sink = require "perigee.pipe.sink"
local source = require "perigee.pipe.source"
local system = require "perigee.os"
local vectors = require "perigee.pipe.vectors"
local utf8 = require "perigee.base.utf8"
local fail = common.fail

local SIGINT, SIGTERM = 2, 15

---- The model ---------------------------------------------------------------------------------------------------------

-- With --resume, models run on the native kernels alone, in FP32, too, because they give the same bits each time.
local function open(args)
  local path, kernel = args.model or loading.demo(), args.resume and "native" or nil
  arguments.check_model(args, path)
  if not loading.is_folder(path) then
    return perigee.open(path, { kernel = kernel })
  end
  local model = loading.load(path, args, { kernel = kernel })
  if args.activations == "f32" then
    return model
  end
  local wanted = args.calibration or args.activations == "static"
  local stats = wanted and loading.statistics(model, args, { progress = false }) or nil
  return model:quantize { activations = args.activations, stats = stats }
end

---- From a line to an input -------------------------------------------------------------------------------------------

-- The forms of input that a task takes, as a set.
local function forms_of(task)
  local forms = {}
  for _, form in ipairs(task.forms) do
    forms[form] = true
  end
  return forms
end

-- The input that two texts are to a task. The second one may be a list of texts.
local function pair_of(task, first, second)
  if not task.pair then
    return { first, second }
  elseif task.pair_list and type(second) ~= "table" then
    second = { second }
  end
  return { [task.pair[1]] = first, [task.pair[2]] = second }
end

-- A function of a row, { text =, failure = }, that returns its input. The function keeps what it read of JSON in row.line.
local function reader(args, task)
  local fields, words = task.pair or {}, forms_of(task).words
  local a, b = args.text or fields[1] or "text", args.pair or fields[2] or args.pairs
  local function of_text(row)
    local bad = utf8.malformed(row.text)
    if bad then
      fail("no valid UTF-8 at byte %d", bad)
    elseif not b then
      return row.text
    end
    local first, second = row.text:match "^([^\t]*)\t(.*)$"
    return pair_of(task, first or fail "expected two texts with a tab between them", second)
  end
  local function of_json(row)
    local line = jsonl.read(row.text)
    row.line = line
    if b then
      return pair_of(task, line:text(a), task.pair_list and line:texts(b) or line:text(b))
    elseif not words then
      return line:text(a)
    end
    local found = line:texts(a)
    return type(found) == "table" and { words = found } or found
  end
  local read = args.lines and of_text or of_json
  return function(row)
    if row.failure then
      fail("%s", row.failure)
    end
    return read(row)
  end
end

---- From an answer to a line ------------------------------------------------------------------------------------------

local WRITERS = { list = vectors.list, npy = vectors.bytes, base64 = function(v) return json.quote(vectors.base64(v)) end }

-- The default of a declaration's `result`: the answer without logits.
local function without_logits(answer)
  if type(answer) == "table" then
    answer.logits, answer.value = nil, nil
  end
  return answer
end

-- A function of an answer that returns its JSON; for .npy its bytes. written: the values of the options that task.written
-- describes.
local function writer(args, task, written)
  if task.vectors then
    local write = WRITERS[args.vectors]
    return function(vector)
      local text = write(vector)
      vector:release()
      return text
    end
  end
  local result = task.result or without_logits
  return function(answer)
    return json.line(result(answer, written))
  end
end

-- A function that makes a line of output: (row, its answer as JSON, the failure or nil, tokens that were cut off or nil).
local function recorder(args)
  local result, taken = json.quote(args.as) .. ":", { [args.as] = true, line = true, error = true, truncated = true }
  return function(row, answer, failure, dropped)
    local parts = {}
    for _, name in ipairs(row.line and (args.keep_all and row.line.names or args.keep) or {}) do
      parts[#parts + 1] = not taken[name] and row.line:member(name) or nil
    end
    if failure then
      parts[#parts + 1] = ('"line":%d,"error":%s'):format(row.number, json.quote(failure))
    else
      parts[#parts + 1] = result .. answer
      parts[#parts + 1] = dropped and ('"truncated":%d'):format(dropped)
    end
    return "{" .. table.concat(parts, ",") .. "}"
  end
end

---- Lines without an answer -------------------------------------------------------------------------------------------

-- Whether a line of the output, with its end, says that there is no answer: the record's last members are "line" and "error".
local function is_failure(line)
  return line:find('"error":"', 1, true) ~= nil and line:gsub("\\.", ""):find '[{,]"line":%d+,"error":"[^"]*"}\n$' ~= nil
end

-- Makes the counts of lines with and without an answer. They begin with those that the output has already (--resume).
local function new_tally(args, out)
  return { share = args.max_errors, lines = out.done, failures = out.failures, row = out.row, own = 0 }
end

-- Raises an error if too many lines have no answer. over: whether the input has ended.
local function judge(tally, over)
  local said
  if tally.share then
    if tally.failures > tally.share * tally.lines and (over or tally.share == 0 or tally.lines >= arguments.JUDGED) then
      said = ("more than --max-errors %g allows"):format(tally.share)
    end
  elseif tally.row >= arguments.JUDGED then
    said = ("the last %d lines in a row; with --max-errors 1 it goes on"):format(tally.row)
  elseif over and tally.lines > 0 and tally.failures == tally.lines then
    said = "all there are; with --max-errors 1 that is no failure"
  end
  if said then
    fail("%d of %d lines have no answer, %s%s", tally.failures, tally.lines, said,
      tally.first and "; the first: " .. tally.first or "")
  end
end

-- Counts a row. failure: why it has no answer; nil if it has one.
local function count(tally, row, failure)
  tally.lines = tally.lines + 1
  if not failure then
    tally.row = 0
    return
  end
  tally.failures, tally.row, tally.own = tally.failures + 1, tally.row + 1, tally.own + 1
  tally.first = tally.first or ("line %d: %s"):format(row.number, failure)
end

---- The pipe ----------------------------------------------------------------------------------------------------------

local NAN = "\0\0\192\127"

-- An iterator over the lines' answers. An error of the process, not of a line, is raised here, before any output is written.
-- state: lines, out and say, which are set once the output is open.
local function stream(args, model, task, options, state)
  local function rows()
    state.out:flush() -- a consumer gets the answers so far before this process waits for input
    state.say()
    local text, number, failure = state.lines:line()
    return text and { text = text, number = number, failure = failure }
  end
  return model:stream(rows, {
    task = task.name, field = reader(args, task), window = args.window, options = options,
    ready = function() return state.lines:ready() end,
  })
end

-- Runs until the input ends or a signal comes. Returns the counts.
local function run(args, write, answers, out)
  local record, tally = recorder(args), new_tally(args, out)
  local nothing = out.width and NAN:rep(out.width)
  for row, answer, failure, dropped in answers do
    if failure and out.width then -- the row in the .npy file is NaN and cannot say why
      io.stderr:write(("pipe: line %d: %s\n"):format(row.number, failure))
    end
    local text = answer and write(answer)
    out:answer(out.width and (text or nothing) or record(row, text, failure, dropped))
    count(tally, row, failure)
    local ok, why = pcall(judge, tally)
    if not ok then
      out:flush()
      error(why, 0)
    end
  end
  return tally
end

-- Refuses an output that is also the input: writing would erase the input before it was read, or --resume would take the input
-- for earlier answers.
local function check_output(args, fd)
  local input = system.stat(fd)
  local function is_input(file)
    local there = input and system.stat(file)
    return there and there.id == input.id
  end
  if not args.output then
    if (system.size(fd) or 0) > 0 and is_input(1) then
      fail "the input is the output, too: it would not end"
    end
  elseif is_input(system.target(args.output) .. ".part") then
    fail("'%s.part' is the input, and what is written before it becomes the output", args.output)
  elseif args.resume and is_input(args.output) then
    fail("'%s' is the input and the output: with --resume it would count as done", args.output)
  end
end

-- Returns the function that reports progress.
local function sayer(args, lines, out, size)
  local progress = meter(not args.quiet and args.progress)
  local function part()
    return size and size > 0 and math.min(lines.bytes / size, 1) or nil
  end
  return function(over)
    progress:say(out.count, out.count - out.done, not over and part() or nil, over)
  end
end

local function open_input(args)
  local fd, why = 0, nil
  if args.input then
    fd, why = system.open(args.input)
  end
  return fd or fail("cannot read '%s': %s", args.input, why)
end

local function main(args)
  system.occupy()
  system.catch(SIGINT, SIGTERM)
  local fd = open_input(args)
  check_output(args, fd)
  local model = open(args)
  local task = perigee.tasks.get(args.task or model.task)
  arguments.check_task(args, task.name)
  local options, written = arguments.options(args, task.name)
  local width = args.vectors == "npy" and task.run(model, {}, options).shape[2] or nil
  local state = {}
  local answers = stream(args, model, task, options, state)
  local out = sink {
    output = args.output, resume = args.resume, width = width, failed = width and function(row) return row:sub(1, 4) == NAN end
      or is_failure,
  }
  if out.complete then
    return
  end
  local lines = source(fd, args.max_bytes)
  state.out, state.lines, state.say = out, lines, sayer(args, lines, out, system.size(fd))
  lines:skip(out.done)
  local tally = run(args, writer(args, task, written), answers, out)
  state.say(true)
  if system.signal() then
    return
  elseif out.last then
    fail("'%s.part' has %d answers, the input %d lines: it is not of this input", args.output, out.done + 1, lines.number)
  end
  out:flush()
  judge(tally, true)
  out:finish()
  if tally.own > 0 then
    io.stderr:write(("pipe: %d of %d lines have no answer; the first: %s\n"):format(tally.own, out.count - out.done, tally.first))
  end
end

common.main(function()
  local ok, failure = pcall(function() main(arguments.read()) end)
  local signal = system.signal()
  if signal then
    return 128 + signal
  elseif not ok then
    error(failure, 0)
  end
end)
