--- gather: takes the rows that a head reads before the last layer computes them, not after.
--
-- Some heads read only the rows of the first tokens, or of the marked tokens. This pass makes the norms, linears, activations and
-- sums before such a head compute these rows only, back to the last attention. That attention takes the queries of these rows,
-- and the keys and values of all rows. If a gathered node also reads a value that is computed for all tokens, such as a
-- residual, the pass puts a gather node on that value. Each row keeps its bits, so the pass changes only the time.
-- An INT8 linear with activations per sequence is left as it is, because its scale needs all rows of the sequence.
local settings = require "perigee.quantize.settings"

local gather = {}

-- Operators that compute each row from the same row of their inputs, and attention.
local BY_ROW = { linear = true, norm = true, activation = true, add = true, attention = true }
local ROWS = { first = "sequences", marked = "marked" }

-- Which rows of its input an operator reads: "first" or "marked"; nil if it reads others, too.
local function takes(node)
  return node.op == "gather" and node.mode or node.op == "pool" and node.mode == "first" and "first" or nil
end

local function needs_all(node, chosen)
  local own = node.precision == "int8" and settings.of(chosen, node.site)
  return own and own.activations == "dynamic" and own.per == "sequence"
end

-- Finds the nodes of which only some rows are read: { [node] = "first" or "marked" }.
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

--- Returns the graph with gathered rows. It runs after place and before quantize. chosen: the settings, nil in FP32.
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
