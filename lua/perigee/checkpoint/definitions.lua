--- Definitions: the registry of model definitions, by config.json's model_type.
--
--   local definitions = require "perigee.checkpoint.definitions"
--   definitions.register("my-encoder", { check = ..., encoder = ... })     -- what perigee.register_model is
--
-- A definition is a table (graph/models/bert.lua is one):
--   check(config)                        checks config.json and sets what the encoder and inputs read, integers: vocab_size,
--                                        positions (the longest input), type_vocab_size, num_hidden_layers, hidden_size
--   encoder(g, config, weights)          builds the graph; returns the hidden states, and a list of the embeddings and every
--                                        layer's output
--   classify, qa, ner, fill_mask         heads, each (g, config, weights, x): logits [B][labels], [T][2], [T][labels], [R][V].
--                                        Any task that declares a head without `draw` (tasks/init.lua) has one of its name
--   prefix                               what the names of the encoder's tensors begin with in a model with a head, without the
--                                        dot; default: the model_type
local json = require "perigee.base.json"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"
local tasks = require "perigee.tasks"
local error = require("perigee.ffi").error

local definitions = {}

-- Definitions by model_type; a text is the name of the module that returns one.
local known = {
  bert = "perigee.graph.models.bert", distilbert = "perigee.graph.models.distilbert", electra = "perigee.graph.models.electra",
  mpnet = "perigee.graph.models.mpnet", roberta = "perigee.graph.models.roberta",
  camembert = "perigee.graph.models.roberta", ["xlm-roberta"] = "perigee.graph.models.roberta",
}

local NEEDED = { check = true, encoder = true }

-- The names of the heads that a definition may have, in the order of the tasks.
local function head_names()
  local names = {}
  for _, task in ipairs(tasks.with_heads()) do
    names[#names + 1] = not task.head.draw and task.name or nil
  end
  return names
end

-- The fields of a definition and their types.
local function fields()
  local types = { check = "function", encoder = "function", prefix = "string" }
  for _, name in ipairs(head_names()) do
    types[name] = "function"
  end
  return types
end

--- The model types that have a definition, a sorted list.
function definitions.names()
  return options.names(known)
end

--- Makes a model_type known to perigee.load. A definition that was known is replaced; nil removes it. A definition may have other
-- fields for itself. If the name of such a field is almost that of a field above, it is an error, because it is probably
-- misspelt.
function definitions.register(model_type, definition)
  if type(model_type) ~= "string" or model_type == "" then
    error("register_model: model_type is " .. json.describe(model_type) .. ", expected what config.json says, a string", 2)
  elseif definition == nil then
    known[model_type] = nil
    return
  elseif type(definition) ~= "table" then
    error("register_model: the definition is " .. json.describe(definition) .. ", expected a table of functions", 2)
  end
  local known_fields = fields()
  for field, expected in pairs(known_fields) do
    local value = definition[field]
    if type(value) ~= expected and (value ~= nil or NEEDED[field]) then
      error(("register_model: %s of %q is %s, expected a %s"):format(field, model_type, json.describe(value), expected), 2)
    end
  end
  for field in pairs(definition) do
    local near = type(field) == "string" and not known_fields[field]
      and nearest.word(field, options.names(known_fields))
    if near then
      error(("register_model: %q has a field %s, which is none of a definition's (did you mean %q?); fields of its own need "
        .. "other names"):format(model_type, field, near), 2)
    end
  end
  known[model_type] = definition
end

local function of(model_type)
  local definition = known[model_type]
  return type(definition) == "string" and require(definition) or definition
end

--- The definition that config.json (perigee.config) asks for. An unknown model_type is an error that lists the known ones.
function definitions.of(config)
  local value = config.json.model_type
  if type(value) ~= "string" or not known[value] then
    local names = definitions.names()
    config:fail("model_type", table.concat(names, ", ") .. nearest.hint(value, names)
      .. "; perigee.register_model makes others known, as recipes/register_model.lua shows")
  end
  config.model_type = value
  return of(value)
end

--- The beginning of the names of the encoder's tensors in a model with a head, without the dot.
function definitions.prefix(model_type)
  local definition = of(model_type)
  return definition and definition.prefix or tostring(model_type)
end

---- Checked calls of a definition's functions -------------------------------------------------------------------------

local SETS = { "vocab_size", "positions", "type_vocab_size", "num_hidden_layers", "hidden_size" }

--- Calls the definition's check, and checks what it has set.
function definitions.check(definition, config)
  definition.check(config)
  for _, field in ipairs(SETS) do
    local value = config[field]
    if type(value) ~= "number" or value % 1 ~= 0 or value < 1 then
      error(("config.%s is %s after check of %q, expected an integer of at least 1"):format(field, json.describe(value),
        config.model_type), 0)
    end
  end
end

-- Raises an error unless x, which the function `what` of the definition returned, is a node of the graph with these rows and this
-- width (nil: any).
local function expect(x, g, what, config, rows, width)
  local node = false
  for _, other in ipairs(type(x) == "table" and g.nodes or {}) do
    node = node or other == x
  end
  if not node or x.rows ~= rows or width and x.width ~= width then
    error(("%s of %q is %s, expected a node of the graph, [%s][%s]"):format(what, config.model_type,
      node and ("[%s][%d]"):format(x.rows, x.width) or type(x) == "table" and "a table" or json.describe(x), rows,
      width or "any width"), 0)
  end
end

--- Draws the encoder. Returns the node of the hidden states, and the list of the embeddings and every layer's output.
function definitions.encoder(definition, g, config, weights)
  local x, layers = definition.encoder(g, config, weights)
  expect(x, g, "encoder", config, "tokens", config.hidden_size)
  local count = config.num_hidden_layers + 1
  if type(layers) ~= "table" or #layers ~= count then
    error(("the second result of the encoder of %q is %s, expected a list of %d nodes: the embeddings, and each layer's output")
      :format(config.model_type, type(layers) == "table" and "a list of " .. #layers or json.describe(layers), count), 0)
  end
  for i, layer in ipairs(layers) do
    expect(layer, g, ("layer %d of the encoder"):format(i - 1), config, "tokens")
  end
  return x, layers
end

--- The function of a definition that draws the head of a task (tasks/init.lua): (g, config, weights, x) -> logits, whose rows
-- and width are checked. If the definition has no such function, the error says which heads it has.
function definitions.head(definition, task, model)
  local name = task.name
  if not definition[name] then
    local heads = {}
    for _, head in ipairs(head_names()) do
      heads[#heads + 1] = definition[head] and head or nil
    end
    error(("%s has no head %q; it has %s"):format(model.config.model_type, name, #heads > 0 and table.concat(heads, ", ")
      or "none"), 0)
  end
  return function(g, config, weights, x)
    local node = definition[name](g, config, weights, x)
    expect(node, g, name, config, unpack(task.head.outputs(model).logits))
    return node
  end
end

return definitions
