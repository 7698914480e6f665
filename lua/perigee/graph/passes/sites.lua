--- sites: finds what linears read. A site is the input shared by one or more linears of the encoder; it is where activations
-- are observed, smoothed and quantized, and what alpha belongs to.
--
-- Every linear of the encoder gets `site`: { name =, linears = { names... }, width = K }. A site that feeds one linear has its
-- name. One that feeds several has what their names begin with and the initials of the rest: query, key and value of
-- "encoder.layer.0.attention.self" read the site "encoder.layer.0.attention.self.qkv". An attention is no site, but is observed,
-- too: its queries, keys and values. It gets `name`, what those linears' names begin with: "encoder.layer.0.attention.self".
--
-- Names are unique. If two linears share a weight, the second one is "NAME#2" (graph.lua). The same holds for two sites, or two
-- attentions, that would have the same name.
local Graph = require "perigee.graph"

local sites = {}

-- The linears' names without "#2" at their ends.
local function plain(linears)
  local list = {}
  for i, name in ipairs(linears) do
    list[i] = name:gsub("#%d+$", "")
  end
  return list
end

-- A name for several linears: their common parent, then the initial of each one's own name.
local function name_of(linears)
  linears = plain(linears)
  local parent = linears[1]:match "^(.*%.)" or ""
  local initials = {}
  for i, name in ipairs(linears) do
    while name:sub(1, #parent) ~= parent do
      parent = parent:sub(1, -2):match "^(.*%.)" or ""
    end
    initials[i] = name
  end
  for i, name in ipairs(initials) do
    initials[i] = name:sub(#parent + 1, #parent + 1)
  end
  return parent .. table.concat(initials)
end

-- Gives the graph's sites and attentions their names.
local function name_all(graph)
  local uses = {}
  for _, site in ipairs(sites.list(graph)) do
    site.name = #site.linears == 1 and site.linears[1] or Graph.unique(uses, name_of(site.linears))
  end
  for _, node in ipairs(graph.nodes) do
    if node.op == "attention" and node.inputs[1].site then
      node.name = Graph.unique(uses, node.inputs[1].site.name:match "^(.*)%." or "attention")
    end
  end
  return graph
end

--- The graph with the sites found.
function sites.find(graph)
  local by_input = {}
  return name_all(graph:rewrite(function(_, node)
    if node.op == "linear" and not node.head then
      local input = node.inputs[1]
      local site = by_input[input] or { linears = {}, width = input.width }
      by_input[input] = site
      for _, part in ipairs(node.parts) do
        table.insert(site.linears, part.name)
      end
      node.site = site
    end
  end))
end

--- The graph's sites in order.
function sites.list(graph)
  local list, seen = {}, {}
  for _, node in ipairs(graph.nodes) do
    if node.site and not seen[node.site] then
      seen[node.site] = true
      list[#list + 1] = node.site
    end
  end
  return list
end

local function push_observe(out, x, site)
  out:push { op = "observe", inputs = { x }, rows = x.rows, width = x.width, site = site }
end

--- The graph with an observe node before every attention.
function sites.observe_attention(graph)
  return graph:rewrite(function(out, node)
    if node.op == "attention" then
      push_observe(out, node.inputs[1], { name = node.name })
    end
  end)
end

--- The graph with an observe node at every site and before every attention, for calibration.
function sites.observe(graph)
  local seen = {}
  return sites.observe_attention(graph:rewrite(function(out, node)
    if node.site and not seen[node.site] then
      seen[node.site] = true
      push_observe(out, node.inputs[1], node.site)
    end
  end))
end

--- The graph's attentions in order.
function sites.attentions(graph)
  local list = {}
  for _, node in ipairs(graph.nodes) do
    if node.op == "attention" then
      list[#list + 1] = node
    end
  end
  return list
end

return sites
