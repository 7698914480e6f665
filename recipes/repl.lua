#!/usr/bin/env luajit
--- A prompt with a model: calibrate, quantize, and change settings until the quality is good enough.
--
--   luajit recipes/repl.lua [MODEL] [--calibration FILE]     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local loading = require "loading"
local perigee = require "perigee"
local find = require "perigee.find"
local repl = require "perigee.repl"

common.main(function()
  local args = common.arguments {
    name = "repl", description = "A prompt for Lua. `model` is MODEL in FP32; an artifact is `q`, which answers and cannot "
      .. "be changed. With --calibration, `stats` has the "
      .. "statistics of the calibration, and `q` is the model in INT8.",
    epilog = "Without MODEL, the demo's model is loaded and calibrated on the demo's texts. If standard input is no terminal, "
      .. "its lines run without prompts up to the first error, and the status is then 1.",
    model = "Folder of a Hugging Face checkpoint, or an artifact", said = "the demo's, which `make demo` fetches",
    options = {
      { "calibration", {
        "text", argname = "file", help = "Texts to calibrate on: one text a line, JSON Lines, or labelled",
        said = "none, if there is a MODEL",
      } },
      "samples", "strict_files", "threads",
    },
  }
  local artifact = false
  if not args.model then
    args.model, args.calibration = loading.demo(), args.calibration or loading.CALIBRATION
  elseif not loading.is_folder(args.model) and common.exists(args.model) then
    common.refuse(args, { "calibration", "samples", "strict_files" }, "on an artifact, which is opened as it was saved")
    artifact = true
  elseif not args.calibration then
    common.refuse(args, { "samples" }, "without --calibration, which names the texts")
  end

  -- The session begins with these lines, as if they had been typed.
  local load = args.strict_files and "model = perigee.load(%q, { strict = true })" or "model = perigee.load %q"
  local setup = { 'perigee = require "perigee"', (artifact and "q = perigee.open %q" or load):format(find.absolute(args.model)) }
  if args.calibration then
    setup[3] = ("stats = model:calibrate(perigee.texts %q, { samples = %d })"):format(find.absolute(args.calibration),
      args.samples)
    setup[4] = "q = model:quantize { stats = stats }"
  end
  return repl.run {
    setup = setup,
    ready = function(env)
      if rawget(env, "model") then -- else it is an artifact, or the setup was interrupted
        loading.note_ignored(env.model, "model:unused() says why")
      end
    end,
    banner = ("Perigee %s. `:help` says what can be typed; Ctrl-D ends.\n"):format(perigee.version),
  }
end)
