-- Sizes that a file or a caller gives: Lua must not read past the end of the array that a size is about. FFI arrays check no
-- index.
local artifacts = require "spec.support.artifacts"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local ranges = require "perigee.quantize.ranges"
local tensor = require "perigee.tensor"
local attention = require "perigee.graph.passes.attention"

local FOLDER = "spec/golden/tasks/"
local TEXT, OTHER = "how many people live here", "a city"

local function refused(why, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(why, message)
end

-- For each task: a checkpoint, a function that calls the task, the plan and its output.
local TASKS = {
  { "sentence", function(m) return m:embed { TEXT, OTHER } end, "embed", "pool 1" },
  { "nli", function(m) return m:classify { TEXT, OTHER } end, "classify", "logits" },
  { "qa", function(m) return m:qa { question = TEXT, context = OTHER } end, "qa", "logits" },
  { "ner", function(m) return m:ner { TEXT, OTHER } end, "ner", "logits" },
  { "mlm", function(m) return m:fill_mask { "how [MASK] people", "a [MASK]" } end, "fill_mask", "logits" },
}

describe("what is read by an index", function()
  after_each(files.clean)

  it("is as long as whoever reads it says", function()
    local t = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }
    assert.equal(6, t:numbers(2, 3)[5])
    assert.equal(4, t:numbers(nil, 3)[3])
    refused("numbers: this tensor is F32 %[2%]%[3%], expected %[2%]%[4%]", t.numbers, t, nil, 4)
    refused("numbers: this tensor is F32 %[2%]%[3%], expected %[3%]%[3%]", t.numbers, t, 3)
    refused("numbers: this tensor is I8, expected", tensor.new("I8", 2).numbers,
      tensor.new("I8", 2))
    refused("put: numbers is .*, expected an array of at least 6 doubles", t.put, t, tensor.from({ 1, 2 }):numbers())
    refused("put: numbers is nil", t.put, t)
  end)

  for _, of in ipairs(TASKS) do
    local name, ask, plan, output = unpack(of)
    it("is an output of the right kind, whatever an artifact's plan says: " .. plan, function()
      local model = perigee.load(FOLDER .. name)
      local parts = artifacts.parts(artifacts.save(model:quantize { activations = "static",
        stats = model:calibrate({ TEXT, OTHER }, { progress = false }) }))
      local saved = assert(parts.plans[plan], plan)
      local right = assert(saved.outputs[output], output)
      for index = 1, #saved.buffers do
        saved.outputs[output] = index
        pcall(function() -- it may be right by chance; it must not read what is not there
          ask(perigee.open(artifacts.write(parts)))
        end)
      end
      saved.outputs[output] = nil
      refused(".", function() ask(perigee.open(artifacts.write(parts))) end)
      saved.outputs[output] = right
      ask(perigee.open(artifacts.write(parts)))
    end)
  end

  it("is a logit of a token that the model has: fill_mask's targets", function()
    local folder = models.variant(FOLDER .. "mlm", {
      ["vocab.txt"] = models.read(FOLDER .. "mlm/vocab.txt") .. "beyond\n",
    })
    local model = perigee.load(folder)
    refused('fill_mask: targets%[1%] is "beyond", the token %d+, but the model has logits for tokens 0 to %d+', model.fill_mask,
      model, "how [MASK] people", { targets = { "beyond" } })
  end)

  it("is a statistic of as many channels as the model has", function()
    local function seen(K)
      return { min = tensor.new("F32", K), max = tensor.new("F32", K), sample = tensor.new("F32", { 2, K }), count = 2 }
    end
    local node = { site = { width = 8 }, factors = tensor.new("F32", 8), wmax = tensor.new("F32", 8) }
    refused("expected %[8%]", ranges.choose, "mse", seen(6), node, true)
    node.factors = tensor.new("F32", 4)
    refused("expected %[8%]", ranges.choose, "mse", seen(8), node, true)
    refused("expected %[12%]", attention.scales, { min = tensor.new("F32", 12), max = tensor.new("F32", 9) }, 2)
  end)
end)
