--- Loads models and texts according to the options of common.lua.
local common = require "common"
local evaluate = require "perigee.evaluate"
local perigee = require "perigee"
local exists, fail = common.exists, common.fail

local loading = {}

local DEMO = common.top .. "/build/demo/all-MiniLM-L6-v2"

--- Default files: texts for calibration, and labelled pairs for evaluation.
loading.CALIBRATION, loading.PAIRS = common.here .. "/data/calibration.txt", common.here .. "/data/pairs.tsv"

--- Whether there is a folder of that name.
function loading.is_folder(path)
  return exists(path .. "/.")
end

---- Models ------------------------------------------------------------------------------------------------------------

--- The folder of the demo's checkpoint; an error if it does not exist.
function loading.demo()
  if not exists(DEMO .. "/config.json") then
    fail("no model is named, and the demo's is not in %s. Name the folder of a checkpoint, or run `make demo` in the source tree",
      DEMO)
  end
  return DEMO
end

--- Says on standard error, in one line, which keys of the model's files have no effect. It says nothing if there are none. how:
-- how the user learns the reasons.
function loading.note_ignored(model, how)
  local _, ignored = model:unused()
  if #ignored > 0 then
    io.stderr:write("note: ", ignored:summary(), "; ", how, "\n")
  end
end

--- perigee.load(path, options), with args.strict_files and args.max_tokens among the options. Keys of the checkpoint's files that
-- have no effect are an error with args.strict_files; else a line on standard error names them, unless args.quiet.
function loading.load(path, args, given)
  given = given or {}
  given.strict, given.max_tokens = args.strict_files, args.max_tokens
  local model = perigee.load(path, given)
  if not args.quiet then
    loading.note_ignored(model, "with --strict-files they are an error that says why")
  end
  return model
end

---- Texts -------------------------------------------------------------------------------------------------------------

--- The inputs of the files that args names, or of the default, for model:calibrate, as perigee.texts returns them. more: further
-- options of perigee.texts.
function loading.calibration(model, args, more)
  if not args.calibration then
    common.refuse(args, { "calibration_text", "calibration_pair", "calibration_part", "calibration_as" },
      "without --calibration, which names the files that it is about")
  end
  local given = {
    text = args.calibration_text, pair = args.calibration_pair, part = args.calibration_part, as = args.calibration_as,
    called = "--calibration-", single = model.task == "embed",
  }
  for name, value in pairs(more or {}) do
    given[name] = value
  end
  return perigee.texts(args.calibration or loading.CALIBRATION, given)
end

--- Calibrates on these inputs. If they have too few tokens, a line on standard error says so. For programs that do not print the
-- statistics, which say so, too.
function loading.statistics(model, args, given)
  given = given or {}
  given.samples = args.samples
  local stats = model:calibrate(loading.calibration(model, args), given)
  if stats:warning() then
    io.stderr:write("note: ", tostring(stats), "\n")
  end
  return stats
end

--- Reads the labelled set of files according to the options of common.LABELLED.
function loading.labelled(paths, args, contents)
  return evaluate.read(paths, {
    as = args.as, text = args.text, pair = args.pair, label = args.label, part = args.part, header = args.header,
    limit = args.limit, called = "--", contents = contents,
  })
end

return loading
