--- Perigee: INT8 inference of BERT-family encoders on CPUs.
--
--   local perigee = require "perigee"
--   local model = perigee.load "path/to/checkpoint"
--   local stats = model:calibrate(perigee.texts "texts.txt", { samples = 256 })
--   local q = model:quantize { stats = stats }
--   local vectors = q:embed { "a text", "another" }
--
-- lua/API.md describes the whole interface.
local ffi = require "ffi"
local cpu = require "perigee.cpu"
local pgee = require "perigee.ffi"

local perigee = {}

--- The library's version, "0.1.0".
perigee.version = ffi.string(pgee.C.pgee_version())

--- perigee.threads(): how many threads a run uses. perigee.threads(n) sets it.
function perigee.threads(n)
  if n ~= nil then
    cpu.set_threads(n)
    return n
  end
  return (cpu.threads())
end

-- Fields that are loaded at their first use: modules, or functions of modules. A program that opens an artifact then does not
-- load the modules that make artifacts.
local LAZY = {
  -- perigee.load(dir, options): the FP32 model of a Hugging Face checkpoint folder. See model.lua.
  load = { "model", "load" },
  -- perigee.register_model(model_type, definition): makes checkpoints of that model_type known to load. See
  -- checkpoint/definitions.lua.
  register_model = { "checkpoint.definitions", "register" },
  -- perigee.register_task(name, declaration): makes a task known, with a method of its name for all models. See tasks/init.lua.
  register_task = { "tasks", "register" },
  -- perigee.open(path, options): the model that was saved to a file. See artifact/open.lua.
  open = { "artifact.open", "open" },
  -- perigee.lines(path): an iterator over a file's lines.
  lines = { "base.lines" },
  -- perigee.texts(path, options): the inputs of a file, or of several, to calibrate on. See evaluate/texts.lua.
  texts = { "evaluate.texts" },
  -- perigee.tensor, perigee.packed and so on: the objects to use by hand.
  tensor = { "tensor" }, observer = { "observer" }, packed = { "packed" }, linear = { "linear" }, quant = { "quant" },
  plan = { "plan" }, tokenizer = { "tokenizer" },
  evaluate = { "evaluate" }, settings = { "quantize.settings" }, plot = { "show.plot" }, tasks = { "tasks" },
}

return setmetatable(perigee, {
  __index = function(self, key)
    local from = LAZY[key]
    if from then
      local module = require("perigee." .. from[1])
      self[key] = from[2] and module[from[2]] or module
      return rawget(self, key)
    end
  end,
  __names = function() return { LAZY } end,
})
