--- A graph: what a model computes, as a list of nodes in the order of computation.
--
-- A model definition (models/*.lua) is a function that calls the methods below; passes (passes/*.lua) take a graph and return a
-- new one. A node is a table:
--
--   op       "embed", "linear", "attention", "add", "norm", "activation", "pool", "gather", and "quantize", "observe" from passes
--   inputs   the nodes that it reads
--   rows     what its rows count: "tokens", "sequences", or "marked": the tokens that a batch marks
--   width    features in a row
--   head     true if the node belongs to a task's head, not to the encoder: it was pushed after g.in_head was set
--   ...      the fields that its method sets; passes add their own
--
-- Parameters are descriptors, { name =, shape =, tensor = }: a graph can be built and looked at without touching a weight.
local error = require("perigee.ffi").error

local Graph = {}
Graph.__index = Graph

--- An empty graph.
function Graph.new()
  return setmetatable({ nodes = {}, outputs = {}, uses = {} }, Graph)
end

--- A name that no other use has: the second use of a name is "NAME#2". uses: { name = how often it was used }, counted up.
function Graph.unique(uses, name)
  uses[name] = (uses[name] or 0) + 1
  return uses[name] == 1 and name or ("%s#%d"):format(name, uses[name])
end

--- Appends a node and returns it.
function Graph:push(node)
  if self.in_head then
    node.head = true
  end
  self.nodes[#self.nodes + 1] = node
  return node
end

--- Removes a node, which no other node may read.
function Graph:remove(node)
  for i = #self.nodes, 1, -1 do
    if self.nodes[i] == node then
      table.remove(self.nodes, i)
      return
    end
  end
  error("the graph has no such node", 2)
end

--- Names a node's value as an output: the plan keeps it.
function Graph:output(name, node)
  self.outputs[#self.outputs + 1] = { name = name, node = node }
  return node
end

---- What a model definition calls -------------------------------------------------------------------------------------

--- word[id] + position[place + offset] + type[type id]. Each a table parameter; position and type may be nil. skip_padding:
-- true where tokens of the id offset - 1 have the position offset - 1 and are not counted.
function Graph:embed(tables)
  return self:push {
    op = "embed", inputs = {}, rows = "tokens", width = tables.word.shape[2],
    word = tables.word, position = tables.position, type = tables.type, offset = tables.offset or 0,
    skip_padding = tables.skip_padding or false,
  }
end

--- x W^T + b. part: { name =, weight = parameter [N][K], bias = parameter [N] or nil }. A linear holds a list of parts, so that
-- several linears that read the same input can be stacked. If two linears share a part, the second one is named "NAME#2",
-- because each linear has its own input, and therefore its own statistics and settings.
function Graph:linear(x, part)
  local N, K = part.weight.shape[1], part.weight.shape[2]
  if K ~= x.width then
    error(("linear %s takes %d features, its input has %d"):format(part.name, K, x.width), 2)
  end
  local own = { name = Graph.unique(self.uses, part.name), weight = part.weight, bias = part.bias, in_place = part.in_place }
  return self:push { op = "linear", inputs = { x }, rows = x.rows, width = N, parts = { own } }
end

--- softmax(q k^T / sqrt(D) + bias) v for each sequence and head. bias, nil for none, depends on the distance d from the query to
-- the key: { table = parameter [buckets][heads], bucket = function(d), the row of the table, from 0; reach = tokens of the
-- longest sequence }.
function Graph:attention(q, k, v, heads, bias)
  if q.width % heads ~= 0 or k.width ~= q.width or v.width ~= q.width then
    error(("attention of %d heads over widths %d, %d, %d"):format(heads, q.width, k.width, v.width), 2)
  end
  if bias and bias.table.shape[2] ~= heads then
    error(("attention of %d heads with a bias of %d, of %s"):format(heads, bias.table.shape[2], bias.table.name), 2)
  end
  return self:push { op = "attention", inputs = { q, k, v }, rows = q.rows, width = q.width, heads = heads, bias = bias }
end

--- a + b, of the same rows and width: a residual.
function Graph:add(a, b)
  if a.width ~= b.width or a.rows ~= b.rows then
    error(("add of [%s][%d] and [%s][%d]"):format(a.rows, a.width, b.rows, b.width), 2)
  end
  return self:push { op = "add", inputs = { a, b }, rows = a.rows, width = a.width }
end

--- LayerNorm. part: { name =, gamma = parameter [H], beta = parameter [H], eps = }.
function Graph:norm(x, part)
  if part.gamma.shape[1] ~= x.width then
    error(("norm %s takes %d features, its input has %d"):format(part.name, part.gamma.shape[1], x.width), 2)
  elseif type(part.eps) ~= "number" then
    error(("the eps of the norm %s is not a number"):format(part.name), 2)
  end
  return self:push {
    op = "norm", inputs = { x }, rows = x.rows, width = x.width,
    name = part.name, gamma = part.gamma, beta = part.beta, eps = part.eps,
  }
end

for _, kind in ipairs { "gelu", "gelu_tanh", "relu", "tanh", "quick_gelu", "silu" } do
  Graph[kind] = function(self, x)
    return self:push { op = "activation", inputs = { x }, rows = x.rows, width = x.width, kind = kind }
  end
end

--- One row for each sequence. mode: "first", "mean", "max", "mean_sqrt", "last", "weighted".
function Graph:pool(x, mode)
  return self:push { op = "pool", inputs = { x }, rows = "sequences", width = x.width, mode = mode }
end

--- The rows of some tokens. mode: "first", that of each sequence; "marked", those that the batch marks.
function Graph:gather(x, mode)
  local rows = ({ first = "sequences", marked = "marked" })[mode]
  if not rows or x.rows ~= "tokens" then
    error(("gather %s of [%s][%d], expected first or marked of tokens"):format(tostring(mode), x.rows, x.width), 2)
  end
  return self:push { op = "gather", inputs = { x }, rows = rows, width = x.width, mode = mode }
end

---- What a pass calls -------------------------------------------------------------------------------------------------

--- Nodes that read each node: users[node] = { node... }. An output counts as a user that is no node.
function Graph:users()
  local users = {}
  for _, node in ipairs(self.nodes) do
    users[node] = {}
  end
  for _, node in ipairs(self.nodes) do
    for _, input in ipairs(node.inputs) do
      table.insert(users[input], node)
    end
  end
  for _, output in ipairs(self.outputs) do
    table.insert(users[output.node], output)
  end
  return users
end

--- Returns a new graph, `out`, which f(out, node, old) makes node by node. `node` is a copy of the node `old`, whose inputs are
-- already nodes of `out`. f returns the node of `out` that replaces it, or nil to keep the copy. Outputs are replaced, too.
function Graph:rewrite(f)
  local out, new = Graph.new(), {}
  for _, old in ipairs(self.nodes) do
    local node = {}
    for key, value in pairs(old) do
      node[key] = value
    end
    node.inputs = {}
    for i, input in ipairs(old.inputs) do
      node.inputs[i] = new[input]
    end
    new[old] = f(out, node, old) or out:push(node)
  end
  for i, output in ipairs(self.outputs) do
    out.outputs[i] = { name = output.name, node = new[output.node] }
  end
  return out
end

--- One line a node, for looking at a graph at a prompt.
function Graph:__tostring()
  local number, lines = {}, {}
  for i, node in ipairs(self.nodes) do
    number[node] = i
    local inputs = {}
    for j, input in ipairs(node.inputs) do
      inputs[j] = "%" .. number[input]
    end
    local names = {}
    for j, part in ipairs(node.parts or {}) do
      names[j] = part.name
    end
    local words = { node.op, table.concat(inputs, ", ") }
    words[#words + 1] = node.name or node.kind or node.mode or (#names > 0 and table.concat(names, " + ") or nil)
    if node.activation then
      words[#words + 1] = "-> " .. node.activation
    end
    if node.precision then
      words[#words + 1] = node.precision
    end
    if node.quantize then
      words[#words + 1] = "-> u8"
    end
    lines[i] = ("%%%d [%s][%d] %s"):format(i, node.rows, node.width, table.concat(words, " "))
  end
  for _, output in ipairs(self.outputs) do
    lines[#lines + 1] = ("%s = %%%d"):format(output.name, number[output.node])
  end
  return table.concat(lines, "\n")
end

return Graph
