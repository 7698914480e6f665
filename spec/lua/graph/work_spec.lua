-- How a plan's work is divided, by counting: the shapes of BERT-large, whose layers are all alike, so one of them tells.
local bench = require "perigee.bench"
local inputs = require "perigee.run.inputs"
local live = require "spec.support.live"
local perigee = require "perigee"
local plan = require "perigee.plan"
local random = require "perigee.checkpoint.random"

-- One layer, and few words.
local function bert_large()
  local checkpoint = random.checkpoint "bert-large"
  checkpoint.config = setmetatable({ num_hidden_layers = 1, vocab_size = 1000 }, { __index = checkpoint.config })
  return perigee.load(checkpoint, { kernel = "native" })
end

local function packed(model, B, S)
  local batch = inputs.batch(model, bench.inputs(B, S, model.vocabulary), "spec")
  return plan.packed_batch(batch.n, batch.starts, batch.ids, batch.types)
end

describe("the plan of BERT-large", function()
  local model = bert_large()
  local stats = model:calibrate(bench.inputs(2, 16, model.vocabulary), { progress = false })
  local encoders = {
    f32 = model, static = model:quantize { stats = stats, attention = "int8" },
    dynamic = model:quantize { activations = "dynamic" },
  }

  it("gives no thread more than 10 % above the mean of its multiply-adds, of 2, 8 and 32", function()
    for name, encoder in pairs(encoders) do
      local p = encoder:runner("hidden").plan
      for _, B in ipairs { 1, 8 } do
        local batch = packed(model, B, 128)
        local whole = 128 * B * 12 * 1024 ^ 2 + B * 2 * 128 ^ 2 * 1024
        for _, threads in ipairs { 1, 2, 8, 32 } do
          local sum, most = 0, 0
          for _, work in ipairs(p:work(batch, threads)) do
            sum, most = sum + work, math.max(most, work)
          end
          assert.equal(whole, sum)
          assert.is_true(most <= 1.1 * sum / threads, ("%s, %dx128, %d threads: %d of %d"):format(name, B, threads, most, sum))
        end
      end
    end
  end)

  it("needs the memory that it says before, and what holds the answer", function()
    for name, encoder in pairs(encoders) do
      local list, runner = bench.inputs(3, 100, model.vocabulary), encoder:runner "hidden"
      local hidden
      local _, took = live.during(function() hidden = encoder:hidden(list) end)
      local said, answer = runner.plan:bytes { tokens = 512, sequences = 8, longest = 128 }, 300 * 1024 * 4
      assert.equal(said, runner:bytes())
      assert.is_true(took >= said + answer and took < said + answer + 1000, ("%s: %d, said %d"):format(name, took, said + answer))
      hidden:release()
    end
  end)

  it("has 7 steps for a layer and 2 before them, with activations quantized as they come 9: a barrier between each", function()
    for name, steps in pairs { f32 = 9, static = 9, dynamic = 11 } do
      assert.equal(steps, #encoders[name]:runner("hidden").plan:steps(), name)
    end
  end)

  teardown(function()
    stats:release()
    for _, encoder in pairs(encoders) do
      encoder:release()
    end
  end)
end)
