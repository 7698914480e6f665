-- The setting floats = "bf16": which linears it changes, and what else stays as it is.
local artifacts = require "spec.support.artifacts"
local engine = require "spec.support.engine"
local files = require "spec.support.files"
local perigee = require "perigee"

local TEXT = "some [MASK] and [MASK]"

local function open(given)
  local model = perigee.load "spec/golden/tasks/mlm"
  local settings = { activations = "dynamic" }
  for key, value in pairs(given or {}) do
    settings[key] = value
  end
  return model:quantize(settings)
end

-- How many rows of explain have each precision.
local function precisions(q)
  local counts = {}
  for _, row in ipairs(q:explain().rows) do
    counts[row.precision] = (counts[row.precision] or 0) + 1
  end
  return counts
end

local function scores(q)
  local list = {}
  for i, mask in ipairs(q:fill_mask(TEXT, { top_k = 5 })) do
    for j, answer in ipairs(mask) do
      list[5 * i + j] = ("%s %.17g"):format(answer.text, answer.score)
    end
  end
  return list
end

describe('the setting floats = "bf16"', function()
  after_each(files.clean)

  it("changes the linears that are not INT8, and names their kernel", function()
    local f32, bf16, skipped = open(), open { floats = "bf16" }, open { floats = "bf16", skip = "*.0.*" }
    local count = precisions(f32)
    assert.same({ int8 = count.int8, bf16 = count.f32 }, precisions(bf16))
    assert.is_nil(precisions(skipped).f32)
    assert(precisions(skipped).bf16 > count.f32)
    for _, row in ipairs(bf16:explain().rows) do
      assert.equal(row.precision == "bf16", row.kernel:match " bf16$" ~= nil, row.name)
    end
    assert.matches('floats = "bf16"', tostring(bf16.settings), 1, true)
    assert.not_matches("floats", tostring(f32.settings))
  end)

  it("gives the same answer, up to the precision of BF16", function()
    local want, got = open():fill_mask(TEXT, { top_k = 1 }), open { floats = "bf16" }:fill_mask(TEXT, { top_k = 1 })
    for i, mask in ipairs(want) do
      assert.equal(mask[1].text, got[i][1].text)
      assert.near(mask[1].score, got[i][1].score, 0.02 * mask[1].score)
    end
  end)

  it("gives the same bits on every ISA", function()
    local want
    for _, isa in ipairs(engine.isas()) do
      local got = engine.with_isa(isa, function() return scores(open { floats = "bf16" }) end)
      want = want or got
      assert.same(want, got)
    end
  end)

  it("gives the same bits if it is turned on later, and the old ones if it is undone", function()
    local q = open()
    local before = scores(q)
    q.floats = "bf16"
    assert.same(scores(open { floats = "bf16" }), scores(q))
    assert.not_same(before, scores(q))
    q:undo()
    assert.same(before, scores(q))
  end)

  it("is saved with its weights in BF16", function()
    local q = open { floats = "bf16" }
    local path = artifacts.save(q)
    local a = perigee.open(path)
    assert.same(scores(q), scores(a))
    assert.equal("bf16", a.floats)
    assert.same(precisions(q), precisions(a))
    local decoder = a:explain().rows
    decoder = decoder[#decoder]
    assert.equal("bf16", decoder.precision)
  end)
end)
