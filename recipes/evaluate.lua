#!/usr/bin/env luajit
--- What quantizing costs: a model in FP32 and in INT8, static and dynamic, side by side on a labelled set.
--
--   luajit recipes/evaluate.lua FOLDER classify dev.tsv --calibration train.tsv
--   luajit recipes/evaluate.lua FOLDER qa xquad.en.json --calibration squad.json --limit 200
--   luajit recipes/evaluate.lua FOLDER ner dev.conll --mode static --settings '{ alpha = 0.8, observer = "mse" }'
--   luajit recipes/evaluate.lua FOLDER retrieval cranfield --query-prompt query --document-prompt 'passage: '
--   luajit recipes/evaluate.lua model.int8.safetensors pairs dev.jsonl          an artifact, by itself
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("@/?.lua;@/../lua/?.lua;@/../lua/?/init.lua;@/../../lua/5.1/?.lua;@/../../lua/5.1/?/init.lua;"):gsub("@",
  { ["@"] = here }) .. package.path -- the modules of the source tree, or of the prefix that this was installed under
local argparse = require "argparse"
local common = require "common"
local perigee = require "perigee"
local evaluate = perigee.evaluate

---- Arguments ---------------------------------------------------------------------------------------------------------

-- A column: its number, or its name.
local function column(text)
  return tonumber(text) or text
end

local function settings(text)
  local chunk, why = loadstring("return " .. text, "=settings")
  if not chunk then
    return nil, why
  end
  local ok, value = pcall(setfenv(chunk, {}))
  return ok and type(value) == "table" and value or nil, "expected a Lua table such as { alpha = 0.7 }, got " .. text
end

local function arguments()
  local parser = argparse("evaluate", "Judges a model in FP32 and INT8 on a labelled set.")
  parser:argument("model", "Folder of a Hugging Face checkpoint, or an artifact, which is judged by itself")
  parser:argument("task", "What is asked of it"):choices {
    "embed", "classify", "pairs", "regression", "qa", "ner", "retrieval", "rerank", "zeroshot",
  }
  parser:argument("files", "The labelled set: a file, several, or a folder"):args "+"
  parser:option("--calibration", "Files to calibrate on, labelled or one text a line. What is judged by is left out. Default: "
    .. "recipes/data/calibration.txt"):args "+":count "*"
  parser:option("--samples", "How many of their inputs to take, evenly. Default: 256", 256, common.count)
  parser:option("--mode", "fp32, static, dynamic. May be repeated. Default: all three; the first is compared with"):count "*"
    :choices { "fp32", "static", "dynamic" }
  parser:option("--limit", "Take so many items", nil, common.count)
  parser:option("--as", "What the files are, if not what they look like"):choices {
    "tsv", "csv", "jsonl", "json", "conll", "trec", "parallel", "retrieval",
  }
  for _, role in ipairs { "text", "pair", "label" } do
    parser:option("--" .. role, ("Column of the %s: its name in the header, or its number"):format(role), nil, column)
  end
  parser:option("--part", "Part of a file that has several. Default: test")
  parser:option("--alpha", "SmoothQuant's alpha, 0 to 1, or off", nil, common.alpha)
  parser:option("--skip", "Keep linears in FP32: a name, or a pattern such as 'encoder.layer.0.*'. May be repeated"):count "*"
  parser:option("--settings", "More settings, as a Lua table", nil, settings)
  parser:option("--threads", "Threads. Default: one for each physical core, or PERIGEE_THREADS", nil, common.count)
  parser:option("--max-tokens", "Most tokens of a text. Default: what the checkpoint says", nil, common.count)
  parser:option("--resamples", "Samples of the bootstrap. Default: 1000; 0: no intervals", 1000, tonumber)
  parser:option("--seed", "Of the bootstrap. Default: 1", 1, tonumber)
  parser:option("--language", "qa: compare answers as MLQA does for that language, such as de")
  parser:flag("--strict", "ner: only B- opens an entity")
  parser:option("--prompt", "embed: goes before each text; a prompt's name in the checkpoint, or its text")
  parser:option("--query-prompt", "retrieval: the same for queries")
  parser:option("--document-prompt", "retrieval: the same for documents")
  parser:option("--template", "zeroshot: the hypothesis, such as 'This example is {}.'")
  parser:option("--labels", "zeroshot: the labels to choose from. Default: the file's"):args "+"
  common.strict_files(parser)
  parser:flag("--json", "Print one JSON object instead of text")
  return parser:parse()
end

---- Calibration -------------------------------------------------------------------------------------------------------

-- Inputs to calibrate on, and a line that says what they are.
local function calibration(model, set, args)
  local files, own = {}, {}
  for _, list in ipairs(args.calibration) do
    for _, path in ipairs(list) do
      files[#files + 1] = path
    end
  end
  if files[1] then
    own.text, own.pair, own.part = args.text, args.pair, args.part and "train"
  else
    files[1] = common.CALIBRATION
  end
  own.plain = true
  local from, single = evaluate.read(files, own), model.task == "embed"
  local chosen, counts = evaluate.sample(from, args.samples, set, single), evaluate.candidates(from, set, single)
  return chosen, ("%d of %d inputs of %s%s"):format(#chosen, counts.all, table.concat(files, ", "),
    counts.out > 0 and (", without %d that are judged by"):format(counts.out) or "")
end

---- Models ------------------------------------------------------------------------------------------------------------

local function is_folder(path)
  local file = io.open(path .. "/config.json")
  return file ~= nil and file:close()
end

local NAMES = { fp32 = "FP32", static = "INT8 static", dynamic = "INT8 dynamic" }

-- The models to compare, { name, model } each, and what was calibrated on.
local function models_of(set, args, how)
  if not is_folder(args.model) then
    for _, name in ipairs { "alpha", "settings", "max_tokens" } do
      if args[name] ~= nil then
        error(("--%s is for a checkpoint; an artifact is judged as it is"):format((name:gsub("_", "-"))), 0)
      end
    end
    return { { "artifact", (perigee.open(args.model)) } }
  end
  local model = common.load(args.model, args)
  evaluate.check(model, set, how) -- before anything takes long
  local modes, list, stats, said = args.mode[1] and args.mode or { "fp32", "static", "dynamic" }, {}, nil, nil
  for i, mode in ipairs(modes) do
    local q = model
    if mode ~= "fp32" then
      if not stats then
        local inputs
        inputs, said = calibration(model, set, args)
        stats = model:calibrate(inputs, { samples = #inputs })
      end
      local given = { stats = stats, activations = mode, alpha = args.alpha, skip = args.skip }
      for name, value in pairs(args.settings or {}) do
        given[name] = value
      end
      q = model:quantize(given)
    end
    list[i] = { NAMES[mode], q }
  end
  return list, said
end

common.main(function()
  local args = arguments()
  if args.threads then
    perigee.threads(args.threads)
  end
  local set = evaluate.read(args.files, {
    as = args.as, text = args.text, pair = args.pair, label = args.label, part = args.part, limit = args.limit,
  })
  local how = {
    task = args.task, resamples = args.resamples, seed = args.seed, language = args.language, strict = args.strict or nil,
    prompt = args.prompt, query_prompt = args.query_prompt, document_prompt = args.document_prompt, template = args.template,
    labels = args.labels,
  }
  local list, calibrated = models_of(set, args, how)
  local result = evaluate.compare(list, set, how)
  result.model, result.threads, result.calibration = args.model, perigee.threads(), calibrated
  for i, entry in ipairs(list) do
    result.runs[i].settings = entry[2].settings and tostring(entry[2].settings) or nil
  end

  if args.json then
    return common.print_json(result)
  end
  print(("model        %s"):format(result.model))
  print(("task         %s: %d items of %s (%s)%s"):format(result.task, result.n, table.concat(result.files, ", "), result.form,
    result.skipped and (", without %d that nobody could label"):format(result.skipped) or ""))
  if calibrated then
    print(("calibration  %s"):format(calibrated))
  end
  print(("threads      %d\n"):format(result.threads))
  print(tostring(result))
  if #list > 1 and args.resamples > 0 then
    print(("\nScores times 100; [95 %% intervals] of differences from %s by a paired bootstrap, %d samples."):format(list[1][1],
      args.resamples))
  end
end)
