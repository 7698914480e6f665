--- gather: takes the rows that a head reads before the last layer computes them, not after.
--
-- Where the first token's row, or the marked tokens', is all that is read of a value, what makes it runs on these alone: norms,
-- linears, activations, sums, back to the last attention, which takes the queries of these rows and the keys and values of all.
-- Every row has the bits that it has among the others, so nothing changes but the time. What is computed for all tokens and read
-- beside it, such as a residual, is gathered there.
-- An INT8 linear whose activations are quantized per sequence needs the range of all of a sequence's rows, and stays as it is.
local settings = require "perigee.quantize.settings"

local gather = {}

-- What computes each row from the same row of its inputs, and attention.
local BY_ROW = { linear = true, norm = true, activation = true, add = true, attention = true }
local ROWS = { first = "sequences", marked = "marked" }

-- Which rows an operator takes of what it reads: "first" or "marked"; nil if others, too.
local function takes(node)
  return node.op == "gather" and node.mode or node.op == "pool" and node.mode == "first" and "first" or nil
end

local function needs_all(node, chosen)
  local own = node.precision == "int8" and settings.of(chosen, node.site)
  return own and own.activations == "dynamic" and own.per == "sequence"
end

-- Which rows are all that is read of each node: { node = "first" or "marked" }.
local function find(graph, chosen)
  local users, found = graph:users(), {}
  for i = #graph.nodes, 1, -1 do
    local node = graph.nodes[i]
    local mode
    for j, user in ipairs(users[node]) do
      local wanted = user.op and (takes(user) or user.op ~= "attention" and found[user]) or false
      mode = j == 1 and wanted or mode == wanted and mode or false
    end
    if mode and BY_ROW[node.op] and node.rows == "tokens" and not needs_all(node, chosen) then
      found[node] = mode
    end
  end
  return found
end

--- After place, before quantize. chosen: the settings, nil in FP32.
function gather.pass(graph, chosen)
  local found, gathered = find(graph, chosen), { first = {}, marked = {} }
  return graph:rewrite(function(out, node, old)
    local mode = found[old]
    if not mode then
      return takes(old) and found[old.inputs[1]] and node.inputs[1] or nil
    end
    node.rows = ROWS[mode]
    if node.op == "attention" then
      node.queries = mode
      return
    end
    for i, input in ipairs(node.inputs) do
      if input.rows == "tokens" then
        gathered[mode][input] = gathered[mode][input] or out:gather(input, mode)
        node.inputs[i] = gathered[mode][input]
      end
    end
  end)
end

return gather
