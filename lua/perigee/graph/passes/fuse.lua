--- fuse: turns a graph as a paper draws it into a graph in which each node is one operator of the engine.
--
--   q, k, v linears over one input, read by one attention alone   -> one linear of three parts, [T][3H]
--   an activation over a linear that nothing else reads           -> the linear's activation
--   an add that only a norm reads                                 -> the norm's residual
--   any other add over a linear that nothing else reads           -> the linear's residual
--
-- The sum is the same float addition in either place.
local function alone(users, node, op)
  local list = users[node]
  return #list == 1 and (op == nil or list[1].op == op)
end

local function stackable(users, old)
  local q, k, v = unpack(old.inputs)
  for _, node in ipairs { q, k, v } do
    if node.op ~= "linear" or not alone(users, node) or node.inputs[1] ~= q.inputs[1] then
      return false
    end
    if (node.parts[1].bias == nil) ~= (q.parts[1].bias == nil) then
      return false
    end
  end
  return q ~= k and k ~= v and q ~= v
end

local function place(graph)
  local place_of = {}
  for i, node in ipairs(graph.nodes) do
    place_of[node] = i
  end
  return place_of
end

-- The index of the input of an add that is a linear and can take the other input as its residual. The other input must be
-- computed before the linear.
local function absorber(users, order, old)
  for i = 1, 2 do
    local linear, other = old.inputs[i], old.inputs[3 - i]
    if linear.op == "linear" and alone(users, linear) and order[other] < order[linear] then
      return i
    end
  end
end

local rules = {}

function rules.attention(out, node, old, users)
  if not stackable(users, old) then
    return
  end
  local parts, width = {}, 0
  for i, linear in ipairs(node.inputs) do
    parts[i] = linear.parts[1]
    width = width + linear.width
    out:remove(linear)
  end
  local first = node.inputs[1]
  local stacked = out:push {
    op = "linear", inputs = first.inputs, rows = first.rows, width = width, parts = parts, head = first.head,
  }
  node.inputs = { stacked }
end

function rules.activation(_, node, old, users)
  local linear = node.inputs[1]
  if linear.op == "linear" and alone(users, old.inputs[1]) and not linear.activation and not linear.residual then
    linear.activation = node.kind
    return linear
  end
end

function rules.add(_, node, old, users, order)
  if alone(users, old, "norm") then
    return -- the norm's rule takes it
  end
  local i = absorber(users, order, old)
  if i and not node.inputs[i].residual then
    local linear = node.inputs[i]
    linear.residual = node.inputs[3 - i]
    linear.inputs = { linear.inputs[1], linear.residual }
    return linear
  end
end

function rules.norm(out, node, old, users)
  local add = node.inputs[1]
  if add.op == "add" and alone(users, old.inputs[1]) then
    out:remove(add)
    node.inputs = { add.inputs[1], add.inputs[2] }
    node.residual = add.inputs[2]
  end
end

return function(graph)
  local users, order = graph:users(), place(graph)
  return graph:rewrite(function(out, node, old)
    local rule = rules[node.op]
    return rule and rule(out, node, old, users, order)
  end)
end
