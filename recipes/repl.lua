#!/usr/bin/env luajit
--- A prompt with a model: calibrate, quantize, and turn settings until it is good.
--
--   luajit recipes/repl.lua [MODEL] [--calibration FILE]     (--help says all)
local here = arg[0]:match "^(.*)/[^/]*$" or "."
package.path = ("@/?.lua;@/../lua/?.lua;@/../lua/?/init.lua;@/../../lua/5.1/?.lua;@/../../lua/5.1/?/init.lua;"):gsub("@",
  { ["@"] = here }) .. package.path -- the modules of the source tree, or of the prefix that this was installed under
local argparse = require "argparse"
local common = require "common"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local repl = require "perigee.repl"

local parser = argparse("repl", "A prompt at which Lua is typed. `model` is MODEL in FP32; with --calibration, `stats` is what "
  .. "it was calibrated on, and `q` is the model in INT8.", "Without MODEL it is the demo's, calibrated on the demo's texts. "
  .. "Standard input that is no terminal is run line by line without prompts, up to the first error: status 1.")
parser:help_max_width(100)
parser:argument("model", "Folder of a Hugging Face checkpoint"):args "?"
parser:option("--calibration", "Texts to calibrate on, one a line")
parser:option("--samples", "How many of them to take. Default: 256", 256, common.count)
common.strict_files(parser)

local status

common.main(function()
  local args = parser:parse()
  if not args.model then
    args.model, args.calibration = common.demo(), args.calibration or common.CALIBRATION
  end

  -- The sitting begins with these lines, as if they had been typed.
  local load = args.strict_files and "model = perigee.load(%q, { strict = true })" or "model = perigee.load %q"
  local setup = { 'perigee = require "perigee"', load:format(pgee.absolute(args.model)) }
  if args.calibration then
    setup[3] = ("stats = model:calibrate(perigee.lines %q, { samples = %d })"):format(pgee.absolute(args.calibration),
      args.samples)
    setup[4] = "q = model:quantize { stats = stats }"
  end
  status = repl.run {
    setup = setup,
    ready = function(env)
      if env.model then -- else the setup was interrupted
        common.note_ignored(env.model)
      end
    end,
    banner = ("Perigee %s. `:help` says what can be typed; Ctrl-D ends.\n"):format(perigee.version),
  }
end)
os.exit(status)
