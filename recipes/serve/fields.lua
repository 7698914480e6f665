--- Schemas that several endpoints share.
local fields = {}

local ID = { type = "integer", minimum = 0, maximum = 2 ^ 31 - 1, said = "a token id" }
local IDS = { type = "array", items = ID, minItems = 1, said = "a list of token ids" }

fields.TEXT = { type = "string" }
fields.TEXTS = { type = "array", items = fields.TEXT, said = "a list of strings" }
fields.IDS = IDS
fields.FLAG = { type = "boolean" }
fields.SIDE = { type = "string", enum = { "Left", "Right", "left", "right" }, description = "Where a long text is cut off" }
fields.MODEL = { type = "string", description = "The name of a model; default: the first that has the task" }
fields.COUNT = { type = "integer", minimum = 1 }

--- One text, several, the ids of one, or of several.
fields.INPUTS = {
  said = "a string, a list of strings, a list of token ids, or a list of such lists",
  anyOf = { fields.TEXT, IDS, { type = "array", items = { anyOf = { fields.TEXT, IDS } } } },
}

--- One text or several.
fields.STRINGS = { anyOf = { fields.TEXT, fields.TEXTS }, said = "a string or a list of strings" }

fields.NUMBERS = { type = "array", items = { type = "number" } }
fields.VECTORS = { type = "array", items = fields.NUMBERS }

--- An object's schema: properties, and the names of those that are required.
function fields.object(properties, required)
  return { type = "object", properties = properties, required = required }
end

--- The same with the fields that cut long texts, and the model's name.
function fields.request(properties, required)
  local all = { truncate = fields.FLAG, truncation_direction = fields.SIDE, model = fields.MODEL }
  for name, property in pairs(properties) do
    all[name] = property
  end
  return fields.object(all, required)
end

return fields
