-- Marked tokens from inputs to answers: batches carry them, runners cut them with the texts, graphs gather their rows.
local ffi = require "ffi"
local Graph = require "perigee.graph"
local fuse = require "perigee.passes.fuse"
local inputs = require "perigee.inputs"
local models = require "spec.support.models"
local perigee = require "perigee"
local Runner = require "perigee.runner"
local sites = require "perigee.passes.sites"

local model = perigee.load(models.path "gelu", { kernel = "auto" })

-- What a model gives whose head is the marked rows of the last hidden states.
local function marked_runner(budget)
  local g = Graph.new()
  local x = model.definition.encoder(g, model.config, model.weights)
  g.in_head = true
  g:output("rows", g:gather(x, "marked"))
  return Runner.new(model:lower(sites.find(fuse(g))), budget)
end

local function batch_of(list, every)
  local batch = inputs.batch(model, list, "here")
  batch.R = math.ceil(batch.T / every)
  batch.rows = ffi.new("int32_t[?]", batch.R)
  for r = 0, batch.R - 1 do
    batch.rows[r] = r * every
  end
  return batch
end

describe("marked tokens", function()
  local list = models.random_inputs(20, 30, model.vocabulary)

  it("have a row each, whatever the chunks", function()
    local hidden = model:hidden(list):totable()
    for _, every in ipairs { 1, 3, 50 } do
      local batch = batch_of(list, every)
      for _, budget in ipairs { 1, 40, 10000 } do
        local runner, seen = marked_runner(budget), 0
        runner:run(batch, function(output, _, _, _, mark)
          local rows = output "rows"
          for i = 1, #rows do
            assert.are.same(hidden[batch.rows[mark + i - 1] + 1], rows[i]:totable())
          end
          seen = seen + #rows
        end)
        assert.are.equal(batch.R, seen)
        runner:release()
      end
    end
  end)

  it("are none by default, and a head without any gives no rows", function()
    local batch = inputs.batch(model, list, "here")
    local runner = marked_runner()
    runner:run(batch, function(output)
      assert.are.equal(0, #output "rows")
    end)
    runner:release()
  end)

  it("are taken from a row for each token", function()
    local g = Graph.new()
    local x = g:push { op = "embed", inputs = {}, rows = "tokens", width = 8 }
    assert.are.same({ "sequences", "marked" }, { g:gather(x, "first").rows, g:gather(x, "marked").rows })
    assert.has_error(function() g:gather(x, "last") end, "gather last of [tokens][8], expected first or marked of tokens")
    assert.has_error(function() g:gather(g:pool(x, "mean"), "first") end,
      "gather first of [sequences][8], expected first or marked of tokens")
  end)
end)
