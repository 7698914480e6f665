local bert = require "perigee.graph.models.bert"
local fuse = require "perigee.graph.passes.fuse"
local Graph = require "perigee.graph"
local place = require "perigee.graph.passes.place"
local settings = require "perigee.quantize.settings"
local sites = require "perigee.graph.passes.sites"

-- Parameters without tensors: passes up to place look at names and shapes only.
local weights = {}

function weights.table(_, name, rows, width)
  return { name = name, shape = { rows, width } }
end

function weights.linear(_, name, N, K)
  return {
    name = name, weight = { name = name .. ".weight", shape = { N, K } }, bias = { name = name .. ".bias", shape = { N } },
  }
end

function weights.norm(_, name, width, eps)
  return { name = name, eps = eps, gamma = { shape = { width } }, beta = { shape = { width } } }
end

local config = {
  hidden_size = 8, intermediate_size = 32, num_hidden_layers = 2, num_attention_heads = 2, vocab_size = 10,
  max_position_embeddings = 16, type_vocab_size = 2, layer_norm_eps = 1e-12, activation = "gelu", labels = { "a", "b", "c" },
}

local function model(head)
  local g = Graph.new()
  local x = bert.encoder(g, config, weights)
  g.in_head = true
  g:output("y", head and bert.classify(g, config, weights, x) or x)
  return g
end

local function ops(graph)
  local list = {}
  for i, node in ipairs(graph.nodes) do
    list[i] = node.op
  end
  return table.concat(list, " ")
end

local function list(graph, field)
  local found = {}
  for _, node in ipairs(graph.nodes) do
    found[#found + 1] = node[field]
  end
  return found
end

describe("bert", function()
  it("is drawn as in the paper", function()
    local layer = " linear linear linear attention linear add norm linear activation linear add norm"
    assert.are.equal("embed norm" .. layer .. layer, ops(model()))
  end)

  it("has a classifier over the first token", function()
    local g = model(true)
    assert.matches("pool linear activation linear$", ops(g))
    local logits = g.outputs[1].node
    assert.are.same({ "sequences", 3, "classifier" }, { logits.rows, logits.width, logits.parts[1].name })
  end)
end)

describe("fuse", function()
  it("leaves one operator for each step", function()
    local layer = " linear attention linear norm linear linear norm"
    assert.are.equal("embed norm" .. layer .. layer .. " pool linear linear", ops(fuse(model(true))))
  end)

  it("stacks Q, K and V in that order", function()
    local stacked = fuse(model()).nodes[3]
    local names = {}
    for i, part in ipairs(stacked.parts) do
      names[i] = part.name:match "%w+$"
    end
    assert.are.same({ 24, "query", "key", "value" }, { stacked.width, unpack(names) })
  end)

  it("gives a norm both sides of the add before it, and a linear its activation", function()
    local g = fuse(model())
    local norm = g.nodes[6]
    assert.are.equal("encoder.layer.0.attention.output.dense", norm.inputs[1].parts[1].name)
    assert.are.equal("embeddings.LayerNorm", norm.inputs[2].name)
    assert.are.same({ "gelu", "gelu" }, list(g, "activation"))
  end)

  it("changes nothing of the graph that it is given", function()
    local g = model()
    local before = tostring(g)
    fuse(g)
    assert.are.equal(before, tostring(g))
  end)

  local function linear(g, x, name)
    return g:linear(x, weights:linear(name, 4, 4))
  end

  local function start()
    local g = Graph.new()
    return g, g:embed { word = { shape = { 5, 4 } } }
  end

  it("stacks nothing that something else reads too, or that reads another input", function()
    for _, case in ipairs { "read", "other input", "same twice" } do
      local g, x = start()
      local q, k, v = linear(g, x, "q"), linear(g, x, "k"), linear(g, case == "other input" and g:relu(x) or x, "v")
      local y = g:attention(q, case == "same twice" and q or k, v, 2)
      g:output("y", case == "read" and g:add(y, k) or y)
      local attention
      for _, node in ipairs(fuse(g).nodes) do
        attention = node.op == "attention" and node or attention
      end
      assert.are.equal(3, #attention.inputs, case)
    end
  end)

  it("keeps an activation whose input something else reads", function()
    local g, x = start()
    local y = linear(g, x, "a")
    g:output("y", g:norm(g:add(g:relu(y), y), weights:norm("n", 4, 1e-5)))
    assert.are.equal("embed linear activation norm", ops(fuse(g)))
  end)

  it("puts an add that no norm takes into the linear before it", function()
    local g, x = start()
    local y = g:add(x, linear(g, x, "a"))
    local z = g:add(linear(g, g:norm(y, weights:norm("n", 4, 1e-5)), "b"), y)
    g:output("y", z)
    local fused = fuse(g)
    assert.are.equal("embed linear norm linear", ops(fused))
    assert.are.equal(fused.nodes[1], fused.nodes[2].residual)
    assert.are.equal(fused.nodes[2], fused.nodes[4].residual)
  end)
end)

describe("graph", function()
  it("refuses widths that do not fit", function()
    local g = Graph.new()
    local x = g:embed { word = { shape = { 5, 4 } } }
    assert.error_matches(function() g:linear(x, weights:linear("l", 4, 5)) end, "linear l takes 5 features, its input has 4")
    assert.error_matches(function() g:norm(x, weights:norm("n", 3, 1)) end, "norm n takes 3 features, its input has 4")
    assert.error_matches(function() g:add(x, g:pool(x, "first")) end, "add of %[tokens%]%[4%] and %[sequences%]%[4%]")
    assert.error_matches(function() g:attention(x, x, x, 3) end, "attention of 3 heads over widths 4, 4, 4")
  end)
end)

describe("sites", function()
  local graph = sites.find(fuse(model(true)))

  it("are what the encoder's linears read, with their names; heads have none", function()
    local names = {}
    for i, site in ipairs(sites.list(graph)) do
      names[i] = site.name
    end
    assert.are.same({
      "encoder.layer.0.attention.self.qkv", "encoder.layer.0.attention.output.dense", "encoder.layer.0.intermediate.dense",
      "encoder.layer.0.output.dense", "encoder.layer.1.attention.self.qkv", "encoder.layer.1.attention.output.dense",
      "encoder.layer.1.intermediate.dense", "encoder.layer.1.output.dense",
    }, names)
    assert.are.same({ 8, 8, 8, 32 }, { sites.list(graph)[1].width, sites.list(graph)[2].width, sites.list(graph)[3].width,
      sites.list(graph)[4].width })
  end)

  it("are shared by linears that read one input without being stacked", function()
    local g = Graph.new()
    local x = g:embed { word = { shape = { 5, 4 } } }
    local up, gate = g:linear(x, weights:linear("mlp.up", 4, 4)), g:linear(x, weights:linear("mlp.gate", 4, 4))
    g:output("y", g:norm(g:add(up, gate), weights:norm("n", 4, 1e-5)))
    local found = sites.find(fuse(g))
    assert.are.equal(1, #sites.list(found))
    assert.are.same({ "mlp.ug", { "mlp.up", "mlp.gate" } }, { sites.list(found)[1].name, sites.list(found)[1].linears })
  end)

  it("are observed once each, and every attention", function()
    local observed = list(sites.observe(graph), "op")
    local count = 0
    for _, op in ipairs(observed) do
      count = count + (op == "observe" and 1 or 0)
    end
    assert.are.equal(8 + 2, count)
    local names = {}
    for i, node in ipairs(sites.attentions(graph)) do
      names[i] = node.name
    end
    assert.are.same({ "encoder.layer.0.attention.self", "encoder.layer.1.attention.self" }, names)
  end)
end)

describe("place", function()
  local graph = sites.find(fuse(model(true)))

  it("is FP32 throughout without settings", function()
    assert.are.same({ "f32" }, { unpack(list(place(graph), "precision"), 1, 1) })
    assert.is_nil(table.concat(list(place(graph), "precision")):find "int8")
  end)

  it("is INT8 in the encoder but for what is skipped, FP32 in heads", function()
    local placed = place(graph, settings.new { skip = { "encoder.layer.0.*", "*.layer.1.attention.self.value" } })
    assert.are.same({ "f32", "f32", "f32", "f32", "f32", "int8", "int8", "int8", "f32", "f32" }, list(placed, "precision"))
  end)

  it("is an error if nothing is left to quantize", function()
    assert.has_error(function() place(graph, settings.new { skip = { "*" } }) end,
      "quantize matched no linear: the skip patterns keep all of them FP32")
  end)
end)
