--- Definitions: which Lua describes the models of which config.json, by its model_type.
--
--   local definitions = require "perigee.definitions"
--   definitions.register("my-encoder", { check = ..., encoder = ... })     -- what perigee.register_model is
--
-- A definition is a table (models/bert.lua is one):
--   check(config)                        checks config.json and sets what the encoder and inputs read: vocab_size, positions (the
--                                        longest input), type_vocab_size, num_hidden_layers, hidden_size
--   encoder(g, config, weights)          builds the graph; returns the hidden states, and a list of every layer's output
--   classifier, spans, tags, fill        heads, each (g, config, weights, x): logits [B][labels], [T][2], [T][labels], [R][V]
--   prefix                               what the encoder is called inside a model with a head; default: the model_type
local json = require "perigee.json"
local settings = require "perigee.settings"

local definitions = {}

-- A definition, or the module that is one.
local known = {
  bert = "perigee.models.bert", distilbert = "perigee.models.distilbert", electra = "perigee.models.electra",
  mpnet = "perigee.models.mpnet", roberta = "perigee.models.roberta",
  camembert = "perigee.models.roberta", ["xlm-roberta"] = "perigee.models.roberta",
}

local FIELDS = {
  check = "function", encoder = "function", classifier = "function", spans = "function", tags = "function", fill = "function",
  prefix = "string",
}
local NEEDED = { check = true, encoder = true }

--- The model types that have one, a sorted list.
function definitions.names()
  local names = {}
  for name in pairs(known) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- Makes checkpoints of that model_type known to perigee.load; one that was known is replaced, with nil it is forgotten. Other
-- fields of the definition are its own.
function definitions.register(model_type, definition)
  if type(model_type) ~= "string" or model_type == "" then
    error("register_model: model_type is " .. json.describe(model_type) .. ", expected what config.json says, a string", 2)
  elseif definition == nil then
    known[model_type] = nil
    return
  elseif type(definition) ~= "table" then
    error("register_model: the definition is " .. json.describe(definition) .. ", expected a table of functions", 2)
  end
  for field, expected in pairs(FIELDS) do
    local value = definition[field]
    if type(value) ~= expected and (value ~= nil or NEEDED[field]) then
      error(("register_model: %s of %q is %s, expected a %s"):format(field, model_type, json.describe(value), expected), 2)
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
    config:fail("model_type", table.concat(names, ", ") .. settings.hint(value, names)
      .. "; perigee.register_model makes others known")
  end
  config.model_type = value
  return of(value)
end

--- What the encoder is called inside a model with a head.
function definitions.prefix(model_type)
  local definition = of(model_type)
  return definition and definition.prefix or tostring(model_type)
end

--- One of a definition's heads; that it has none is an error that says which it has.
function definitions.head(definition, name, model_type)
  if not definition[name] then
    local heads = {}
    for _, head in ipairs { "classifier", "spans", "tags", "fill" } do
      heads[#heads + 1] = definition[head] and head or nil
    end
    error(("%s has no head %q; it has %s"):format(model_type, name, #heads > 0 and table.concat(heads, ", ") or "none"), 0)
  end
  return definition[name]
end

return definitions
