-- Predictions: the time on one ISA follows from a profile on another one. It measures time, so it is here.
local bench = require "perigee.bench"
local cpu = require "perigee.cpu"
local inputs = require "perigee.run.inputs"
local measure = require "perigee.analyze.measure"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local random = require "perigee.checkpoint.random"
local skip = require "spec.support.skip"
local workload = require "perigee.bench.workload"
local C = pgee.C

local both = C.pgee_isa_runs(C.PGEE_AVXVNNI) == 1 and C.pgee_isa_runs(C.PGEE_AVX512VNNI) == 1
local it = os.getenv "PERIGEE_HARD" and skip "times of a build with sanitizers say nothing"
  or not both and skip "this CPU does not have both AVX-VNNI and AVX512-VNNI" or it

describe("a prediction", function()
  it("of AVX-VNNI from AVX512-VNNI is within 20 % of what is measured", function()
    local threads = cpu.threads()
    cpu.set_threads(1)
    local model = perigee.load(random.checkpoint "minilm")
    local list = bench.inputs(1, 128, model.vocabulary)
    local stats = model:calibrate(list, { progress = false })
    local q = model:quantize { stats = stats }
    local load, nearest = workload.new(q, { inputs.batch(model, list, "spec") }), math.huge
    cpu.with_isa(C.PGEE_AVX512VNNI, function()
      for _ = 1, 5 do -- other programs may take the processor while one of the two is measured
        for _, one in ipairs(measure.check(load, 2)) do
          nearest = one.to == "avxvnni" and math.min(nearest, math.abs(one.error)) or nearest
        end
        if nearest < 0.2 then
          break
        end
      end
    end)
    stats:release()
    q:release()
    model:release()
    cpu.set_threads(threads)
    assert.is_true(nearest < 0.2, ("off by %.0f %%"):format(100 * nearest))
  end)
end)
