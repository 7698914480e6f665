-- A quantized model as a prompt shows it.
local models = require "spec.support.models"
local perigee = require "perigee"
local show = require "perigee.repl.show"

describe("a prompt", function()
  it("shows a quantized model as a table of its settings", function()
    local model = perigee.load(models.path "embedder")
    local q = model:quantize { activations = "dynamic", weights = "tensor" }
    local shown = show.text(q, { columns = 100, utf8 = true, cut = true })
    assert.matches("\ncalibration: none, nothing is smoothed\n", shown, 1, true)
    assert.matches('\nweights +"tensor" +not the default\n', shown)
    assert.matches('\nactivations +"dynamic"\n', shown)
    q:release()
    model:release()
  end)
end)
