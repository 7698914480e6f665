-- Rows for some tokens alone, from inputs to answers: batches carry marks, runners cut them with the texts, and heads that read
-- the first or the marked tokens have the last layer compute no others: the same bits, in FP32 and INT8.
local ffi = require "ffi"
local gather = require "perigee.graph.passes.gather"
local Graph = require "perigee.graph"
local fuse = require "perigee.graph.passes.fuse"
local inputs = require "perigee.run.inputs"
local models = require "spec.support.models"
local perigee = require "perigee"
local Runner = require "perigee.run.runner"
local sites = require "perigee.graph.passes.sites"

local model = perigee.load(models.path "gelu", { kernel = "native" })
local list = models.random_inputs(20, 30, model.vocabulary)

-- The graph of a model whose head gives the rows that f(g, hidden) makes.
local function graph_of(f)
  local g = Graph.new()
  local x = model.definition.encoder(g, model.config, model.weights)
  g.in_head = true
  g:output("rows", f(g, x))
  return sites.find(fuse(g))
end

local function rows_of(mode)
  return function(g, x)
    return g:gather(x, mode)
  end
end

local function pooled(g, x)
  return g:pool(x, "first")
end

local function batch_of(every)
  local batch = inputs.batch(model, list, "here")
  batch.R = math.ceil(batch.T / every)
  batch.rows = ffi.new("int32_t[?]", batch.R)
  for r = 0, batch.R - 1 do
    batch.rows[r] = r * every
  end
  return batch
end

-- All rows that an encoder computes of such a graph.
local function run(encoder, graph, batch, budget)
  local runner, rows = Runner.new(encoder:lower(graph), budget), {}
  runner:run(batch, function(output, _, _, _, mark)
    local some = output "rows"
    assert.is_true(some.shape[1] == 0 or runner.outputs.rows.rows ~= "marked" or mark == #rows)
    for i = 1, #some do
      rows[#rows + 1] = some[i]:totable()
    end
  end)
  local steps = runner.plan:steps()
  runner:release()
  return rows, table.concat(steps, " ")
end

describe("marked tokens", function()
  it("have a row each, whatever the chunks", function()
    local hidden = model:hidden(list):totable()
    for _, every in ipairs { 1, 3, 50 } do
      local batch, want = batch_of(every), {}
      for r = 0, batch.R - 1 do
        want[r + 1] = hidden[batch.rows[r] + 1]
      end
      for _, budget in ipairs { 1, 40, 10000 } do
        assert.are.same(want, (run(model, graph_of(rows_of "marked"), batch, budget)))
      end
    end
  end)

  it("are none by default, and a head without any gives no rows", function()
    assert.are.same({}, (run(model, graph_of(rows_of "marked"), inputs.batch(model, list, "here"))))
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

describe("a head that reads some rows", function()
  local batch = batch_of(5)
  local pass = gather.pass

  teardown(function()
    gather.pass = pass
  end)

  -- With the pass and without it: rows, and the steps.
  local function both(encoder, f)
    gather.pass = pass
    local rows, steps = run(encoder, graph_of(f), batch)
    gather.pass = function(graph) return graph end
    local want, whole = run(encoder, graph_of(f), batch)
    gather.pass = pass
    return rows, want, steps, whole
  end

  local HEADS = { pooled, rows_of "first", rows_of "marked" }

  it("has the same bits as among all, in FP32", function()
    for _, f in ipairs(HEADS) do
      local rows, want, steps, whole = both(model, f)
      assert.are.same(want, rows)
      assert.matches("attention linear gather norm linear linear norm$", steps)
      assert.matches("attention linear norm linear linear norm %w+$", whole)
    end
  end)

  it("has the same bits in INT8, static and dynamic, with INT8 attention and without, with sites skipped", function()
    local stats = model:calibrate(list, { progress = false })
    for _, settings in ipairs {
      { activations = "static", attention = "int8" }, { activations = "static", attention = "f32" }, { activations = "dynamic" },
      { activations = "dynamic", per = "sequence" }, { skip = { "encoder.layer.1.output.dense" } },
      { skip = { "encoder.layer.1.attention.*" } },
      { sites = { ["encoder.layer.1.output.dense"] = { activations = "dynamic", per = "sequence" } } },
    } do
      settings.stats = stats
      local q = model:quantize(settings)
      for _, f in ipairs(HEADS) do
        local rows, want = both(q, f)
        assert.are.same(want, rows)
      end
      q:release()
    end
  end)

  -- Of each node from the last attention on.
  local function drawn(f, given)
    local text = {}
    for _, node in ipairs(pass(graph_of(f), given).nodes) do
      text[#text + 1] = ("%s %s"):format(node.op, node.rows)
      text = node.op == "attention" and { text[#text] } or text
    end
    return table.concat(text, ", ")
  end

  it("leaves what others read as it is", function()
    assert.are.equal("attention sequences, linear sequences, gather sequences, norm sequences, linear sequences, "
      .. "linear sequences, norm sequences", drawn(pooled))
    assert.are.equal("attention tokens, linear tokens, norm tokens, linear tokens, linear tokens, norm tokens, pool sequences, "
      .. "pool sequences, add sequences", drawn(function(g, x) return g:add(g:pool(x, "mean"), g:pool(x, "first")) end))
    assert.are.equal("attention tokens, linear tokens, norm tokens, linear tokens, linear tokens, norm tokens, "
      .. "gather sequences, gather marked", drawn(function(g, x) g:gather(x, "first") return g:gather(x, "marked") end))
    local whole = drawn(function(g, x)
      g:output("hidden", x)
      return g:pool(x, "first")
    end)
    assert.are.equal("attention tokens, linear tokens, norm tokens, linear tokens, linear tokens, norm tokens, pool sequences",
      whole)
  end)
end)
