--- Config: the values of config.json, checked. Each error names the file, the key, the value and what was expected.
--
--   config:integer("hidden_size", 1, 32768)   checks the key and makes it config.hidden_size
local json = require "perigee.base.json"
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"

local methods = {}
local Config = { __index = methods }

--- values: the decoded file; path: the file's name in errors; ignored: the list for keys without effect (base/ignored.lua), or
-- nil.
function Config.new(values, path, ignored)
  return setmetatable({ json = values, path = path, ignored = ignored }, Config)
end

--- Raises the error that the value of `key` is not as expected.
function methods:fail(key, expected)
  local value = self.json[key]
  error(("'%s': %s is %s, expected %s"):format(self.path, key, json.describe(value), expected), 0)
end

-- The value, or the default if the key is missing or null.
local function value_of(self, key, default)
  local value = self.json[key]
  if value == nil or value == json.null then
    return default
  end
  return value
end

--- Whether the key is present and not null.
function methods:has(key)
  return value_of(self, key) ~= nil
end

--- Checks an integer from low to high, and makes it a field of the config. Without a default the key must be present.
function methods:integer(key, low, high, default)
  local value = value_of(self, key, default)
  if type(value) ~= "number" or value % 1 ~= 0 or value < low or value > high then
    self:fail(key, ("an integer from %d to %d"):format(low, high))
  end
  self[key] = value
  return value
end

--- The same for a number above low and below high.
function methods:number(key, low, high, default)
  local value = value_of(self, key, default)
  if type(value) ~= "number" or not (value > low and value < high) then
    self:fail(key, ("a number above %g and below %g"):format(low, high))
  end
  self[key] = value
  return value
end

--- The same for a text that is a key of the table `allowed`.
function methods:choice(key, allowed, default)
  local value = value_of(self, key, default)
  if type(value) ~= "string" or not allowed[value] then
    local names = options.names(allowed)
    self:fail(key, table.concat(names, ", ") .. nearest.hint(value, names))
  end
  self[key] = value
  return value
end

--- The same for true or false.
function methods:flag(key, default)
  local value = value_of(self, key, default)
  if type(value) ~= "boolean" then
    self:fail(key, "true or false")
  end
  self[key] = value
  return value
end

--- An error unless the key is missing, null or false. why: a reason for the message.
function methods:absent(key, why)
  if value_of(self, key, false) ~= false then
    self:fail(key, "false: " .. why)
  end
end

-- id2label as a list: label i is that of id i - 1. Names may be numbers.
local function named_labels(self)
  local id2label = value_of(self, "id2label", {})
  local labels, count = {}, 0
  if type(id2label) ~= "table" then
    self:fail("id2label", "an object of number: name")
  end
  for id, label in pairs(id2label) do
    local i = tonumber(id)
    if not i or i % 1 ~= 0 or type(label) ~= "string" and type(label) ~= "number" then
      self:fail("id2label", "an object of number: name")
    end
    labels[i + 1] = tostring(label)
    count = count + 1
  end
  for i = 1, math.max(count, self:has "id2label" and 1 or 0) do
    if not labels[i] then
      self:fail("id2label", "names for the ids 0, 1, 2 and so on")
    end
  end
  return labels
end

-- The labels. As in transformers, num_labels decides if id2label has another number of names: then labels are LABEL_0, LABEL_1
-- ...
local function read_labels(self)
  local labels = named_labels(self)
  local count = self:integer("num_labels", 1, 2 ^ 20, #labels > 0 and #labels or 2)
  if count == #labels then
    return labels
  end
  labels = {}
  for i = 1, count do
    labels[i] = ("LABEL_%d"):format(i - 1)
  end
  return labels
end

local PROBLEMS = { regression = true, single_label_classification = true, multi_label_classification = true }

--- Sets config.labels and config.problem for a sequence classification head. If problem_type is missing, a head with one label
-- is a regression, and one with several is a single-label classification.
function methods:read_head()
  self.labels = read_labels(self)
  if value_of(self, "problem_type") ~= nil then
    self.problem = self:choice("problem_type", PROBLEMS)
  else
    self.problem = #self.labels == 1 and "regression" or "single_label_classification"
  end
end

return Config
