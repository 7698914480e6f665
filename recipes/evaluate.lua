#!/usr/bin/env luajit
--- Compares a model in FP32 and in INT8, static and dynamic, on a labelled set: how much accuracy quantizing costs.
--
--   luajit recipes/evaluate.lua FOLDER classify dev.tsv --calibration train.tsv       (--help says all)
--   luajit recipes/evaluate.lua FOLDER qa xquad.en.json --calibration squad.json --limit 200
--   luajit recipes/evaluate.lua FOLDER ner dev.conll --activations f32,static --alpha 0.8 --range mse
--   luajit recipes/evaluate.lua FOLDER retrieval cranfield --query-prompt query --document-prompt 'passage: '
--   luajit recipes/evaluate.lua model.int8.safetensors pairs dev.jsonl          an artifact, by itself
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local jobs = require "perigee.evaluate.tasks"
local judging = require "judging"
local loading = require "loading"
local options = require "perigee.options"
local perigee = require "perigee"
local task_options = require "task_options"
local evaluate = perigee.evaluate

---- Arguments ---------------------------------------------------------------------------------------------------------

-- Options that only a checkpoint has, and those of models in INT8 alone.
local QUANTIZING = common.join(common.CALIBRATING, { "alpha", "skip", "range", "settings" })
local OF_CHECKPOINT = common.join({ "activations" }, QUANTIZING, common.LOADING)

-- Reads the arguments that are not options: the model (unless --model names it), the task, and the files.
local function read_words(args)
  local words, at = args.words, 1
  local known = jobs.all()
  if args.model == nil or not (known[words[1]] and not known[words[2] or ""]) then
    local named = args.model
    args.model, at = words[1], 2
    if named and named ~= args.model then
      common.fail("the model is '%s' and --model is '%s': expected one of them", args.model, named)
    end
  end
  args.task, args.files = words[at], { unpack(words, at + 1) }
  if not known[args.task or ""] then
    common.fail("the task is %s, expected one of %s", args.task and "'" .. args.task .. "'" or "missing",
      table.concat(options.names(known), ", "))
  elseif #args.files == 0 then
    common.fail("there is no labelled file, expected one or several behind the task %s", args.task)
  end
end

local function arguments()
  local args = common.arguments {
    name = "evaluate", description = "Judges a model in FP32 and INT8 on a labelled set.",
    model = "Folder of a Hugging Face checkpoint, or an artifact, which is judged by itself",
    add = function(parser, name)
      parser:argument("words", "MODEL TASK FILE...: the model, what is asked of it ("
        .. table.concat(options.names(jobs.all()), ", ") .. "), and the labelled set: a file, several, or a folder"):args "*"
      parser:usage(("Usage: %s [OPTION...] MODEL TASK FILE..."):format(name))
    end,
    options = common.join({
      { "activations", {
        "choice", { f32 = true, static = true, dynamic = true }, list = true, default = { "f32", "static", "dynamic" },
        help = "Models to compare. The others are compared with the first one",
      } },
    }, common.CALIBRATING, { "alpha", "skip", "range", { "settings", { "table", help = "More settings, as a Lua table" } } },
    common.LABELLED, { { "limit", { "integer", 1, help = "Max items of the set", said = "all" } } },
    task_options.described(jobs.options()), {
      { "resamples", { "integer", 0, 1e6, default = 1000, help = "Samples of the bootstrap; 0: no intervals" } },
      { "seed", { "integer", -2 ^ 31, 2 ^ 32 - 1, default = 1, help = "Of the bootstrap" } },
    }, common.LOADING, { "threads", "json" }),
  }
  read_words(args)
  return args
end

-- Raises an error if an option was given that has no effect.
local function check_arguments(args)
  local artifact = not loading.is_folder(args.model)
  local int8 = not artifact and (#args.activations > 1 or args.activations[1] ~= "f32")
  if artifact then
    common.refuse(args, OF_CHECKPOINT, "on an artifact, which is judged as it was saved; it is for a checkpoint's folder")
  elseif not int8 then
    common.refuse(args, QUANTIZING, "with --activations f32 alone: nothing is quantized")
  elseif not (" " .. table.concat(args.activations, " ") .. " "):find " static " then
    common.refuse(args, { "range" }, "without static among --activations: dynamic scales come from the values at hand")
  end
  if artifact or #args.activations == 1 then
    common.refuse(args, { "resamples", "seed" }, "on one model: intervals are of differences between models")
  elseif args.resamples == 0 then
    common.refuse(args, { "seed" }, "with --resamples 0")
  end
  for name in pairs(args.settings or {}) do
    if name == "stats" or name == "activations" or args.given[name] then
      common.fail("--settings has %s, which %s says", tostring(name), name == "stats" and "--calibration"
        or common.flag(tostring(name)))
    end
  end
end

---- Models ------------------------------------------------------------------------------------------------------------

-- Statistics over inputs evenly spaced over the files, without those that the models are judged by, and a text that says how many
-- inputs of which files they are.
local function calibrated(model, set, args)
  local inputs = loading.calibration(model, args, { without = set })
  local stats, origin = model:calibrate(inputs, { samples = args.samples }), perigee.texts.origin(inputs)
  local warning = stats:warning()
  return stats, ("%d of %d inputs of %s%s%s"):format(stats.texts, #inputs, table.concat(origin.files, ", "),
    origin.out > 0 and (", without %d that are judged by"):format(origin.out) or "", warning and "; " .. warning or "")
end

local NAMES = { f32 = "FP32", static = "INT8 static", dynamic = "INT8 dynamic" }

-- The models to compare, { name, model } each, and the text that says what they were calibrated on.
local function models_of(set, args, how)
  if not loading.is_folder(args.model) then
    return { { "artifact", (perigee.open(args.model)) } }
  end
  local model = loading.load(args.model, args)
  evaluate.check(model, set, how) -- finds errors before calibration, which takes long
  local list, stats, said = {}, nil, nil
  for i, mode in ipairs(args.activations) do
    local q = model
    if mode ~= "f32" then
      if not stats then
        stats, said = calibrated(model, set, args)
      end
      local given = { stats = stats, activations = mode, alpha = args.alpha, skip = args.skip, range = args.range }
      for name, value in pairs(args.settings or {}) do
        given[name] = value
      end
      q = model:quantize(given)
    end
    list[i] = { NAMES[mode], q }
  end
  return list, said
end

local function print_result(result, args)
  print(("model        %s"):format(result.model))
  print(("task         %s: %d items of %s (%s)%s"):format(result.task, result.n, table.concat(result.files, ", "), result.form,
    result.skipped and (", without %d that nobody could label"):format(result.skipped) or ""))
  if result.calibration then
    print(("calibration  %s"):format(result.calibration))
  end
  print(("threads      %d\n"):format(result.threads))
  print(tostring(result))
  if #result.runs > 1 and args.resamples > 0 then
    print(("\nScores times 100; [95 %% intervals] of differences from %s by a paired bootstrap, %d samples."):format(
      result.runs[1].name, args.resamples))
  end
end

common.main(function()
  local args = arguments()
  check_arguments(args)
  local how = task_options.read(args, args.task, jobs.options()) or {}
  how.task, how.resamples, how.seed = args.task, args.resamples, args.seed
  local set = loading.labelled(args.files, args)
  local list, said = models_of(set, args, how)
  local result = evaluate.compare(list, set, how)
  result.model, result.threads, result.calibration = args.model, perigee.threads(), said
  for i, entry in ipairs(list) do
    result.runs[i].settings = entry[2].settings and tostring(entry[2].settings) or nil
  end
  return (args.json and judging.print_json or print_result)(result, args)
end)
