#!/usr/bin/env luajit
--- Where a model's time goes, what INT8 can give at most, and how fast another machine would be.
--
--   luajit recipes/analyze.lua FOLDER                                        hot spots, roofline, ceilings of this machine
--   luajit recipes/analyze.lua --random bert-large --machine icelake-8380    the same, and a prediction; random weights
--   luajit recipes/analyze.lua FOLDER --machine mine.lua --report report.html
--   luajit recipes/analyze.lua FOLDER --check                                predicts other ISAs of this machine and measures
--   them
--
-- recipes/ANALYZE.md explains the figures. It calibrates on random ids: times do not depend on what the numbers are.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local analyze = require "perigee.analyze"
local bench = require "perigee.bench"
local file = require "perigee.base.file"
local html = require "perigee.analyze.html"
local inputs = require "perigee.run.inputs"
local json = require "perigee.base.json"
local machine = require "perigee.analyze.machine"
local measure = require "perigee.analyze.measure"
local perigee = require "perigee"
local random = require "perigee.checkpoint.random"
local report = require "perigee.analyze.report"
local terminal = require "perigee.show.terminal"
local workload = require "perigee.bench.workload"
local fail = common.fail

local function arguments()
  return common.arguments {
    name = "analyze",
    description = "Says where a model's time goes, what INT8 can give at most, and what another machine would give.",
    model = "Folder of a Hugging Face checkpoint",
    options = {
      { "random", { "choice", random.configs, help = "Random weights of this shape instead" } },
      { "batch", { "integer", 1, default = 1, help = "Texts in a batch" } },
      { "tokens", { "integer", 1, help = "Tokens of each text", said = "128, or all positions if those are fewer" } },
      { "machine", {
        "text", default = "this", help = "Machine to predict: this (no prediction), " .. table.concat(machine.NAMES, ", ")
          .. ", or a file FILE.lua that describes one",
      } },
      { "clock", {
        "choice", { base = true, turbo = true }, default = "base", help = "Which clock of the described machine counts",
      } },
      "threads",
      { "seconds", { "number", 0, 1e6, default = 5, help = "How long to measure, at least" } },
      { "check", { "flag", help = "Predict the other ISAs of this machine, and measure them" } },
      { "report", { "text", argname = "file", help = "HTML file to write, complete in itself" } },
      "json",
    },
  }
end

-- Whether the predictions for other ISAs hold on this machine.
local function checks(model, encoder, measured, seconds)
  local list = bench.inputs(measured.batch, measured.tokens, model.vocabulary)
  return measure.check(workload.new(encoder, { inputs.batch(model, list, "analyze") }), seconds)
end

common.main(function()
  local args = arguments()
  if (args.model ~= nil) == (args.random ~= nil) then
    fail "expected the folder of a checkpoint or --random with a shape, and not both"
  elseif args.machine == "this" then
    common.refuse(args, { "clock" }, "without --machine, which names the machine that it is about")
  end
  local there = args.machine ~= "this" and machine.load(args.machine, args.clock) or nil
  local model = perigee.load(args.random and random.checkpoint(args.random) or args.model)
  local tokens = args.tokens or math.min(128, model.positions)
  if tokens > model.positions then
    fail("--tokens is %d, expected at most %d, the positions that the model has", tokens, model.positions)
  end

  local measured = measure.model(model, { batch = args.batch, tokens = tokens, seconds = args.seconds })
  local result = analyze.of(measured, measure.machine(), there)
  result.model, result.isas = model.dir, measure.isas()
  result.checks = args.check and checks(model, measured.encoders[2], measured, args.seconds) or nil

  if args.report then
    local written, why = file.replace(args.report, html.page(result))
    if not written then
      fail("--report is '%s', which cannot be written: %s", args.report, why)
    end
  end
  print(args.json and json.canonical(result) or report.text(result, terminal.columns()))
end)
