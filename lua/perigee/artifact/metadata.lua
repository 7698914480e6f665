--- metadata: checks the JSON texts in an artifact's __metadata__, except for its plans (plan.lua). Each field is checked where
-- it is read, because another program than artifact/save.lua can write a file with right checksums. Errors name the field and
-- blame nobody.
local check = require "perigee.artifact.check"
local Config = require "perigee.checkpoint.config"
local json = require "perigee.base.json"
local layers = require "perigee.artifact.layers"
local operator = require "perigee.operator"
local options = require "perigee.options"
local tasks = require "perigee.tasks"

local metadata = {}

local MOST = 2 ^ 31 - 1
local POSITIONS = 2 ^ 24 -- of one text, for which arrays are made before a plan is looked at
local PROBLEMS = { regression = true, single_label_classification = true, multi_label_classification = true }

-- The fields of config.json that are checked and read here. Only model definitions read other fields.
local FIELDS = {
  labels = check.list(check.text, 1), problem = check.choice(PROBLEMS), model_type = check.text,
  hidden_size = check.integer(1, MOST), num_hidden_layers = check.integer(1, MOST), vocab_size = check.integer(1, MOST),
  positions = check.integer(1, MOST), type_vocab_size = check.integer(1, MOST),
}

local function plain(value, place)
  if type(value) == "table" then
    return check.list(check.text)(value, place)
  elseif value == json.null then
    check.fail(value, place, "a number, a text, true, false or a list of texts")
  end
  return value
end

-- Fields by name. A field with the name of one of Config's own fields or methods is an error.
local function fields(value, place)
  check.map(check.any)(value, place)
  for key, inner in pairs(value) do
    if key == "json" or key == "path" or Config.__index[key] then
      check.wrong(place, ".%s is no field of a model", key)
    end
    check.inside(FIELDS[key] or plain, inner, place, key)
  end
  check.inside(FIELDS.hidden_size, value.hidden_size, place, "hidden_size")
  return value
end

local function prompts(value, place)
  check.object { list = check.map(check.text), default = check.maybe(check.text), kind = check.maybe(check.text) }(value, place)
  if value.default and not value.list[value.default] then
    check.wrong(place, ".default is %s, expected the name of one of its prompts", json.describe(value.default))
  end
  return value
end

-- Checks the name of a task, or of one of the `others`. Tasks that scripts register are looked up when a file is opened.
local function task_or(others)
  return function(value, place)
    local names = {}
    for _, list in ipairs { tasks.names(), others } do
      for _, name in ipairs(list) do
        names[name] = true
      end
    end
    if type(value) ~= "string" or not names[value] then
      check.fail(value, place, ("one of %s; perigee.register_task makes other tasks known"):format(
        table.concat(options.names(names), ", ")))
    end
    return value
  end
end

local MODEL = check.object {
  task = task_or {}, architecture = check.maybe(check.text), heads = check.list(task_or { "hidden", "layers" }, 1),
  limit = check.integer(1, POSITIONS), positions = check.integer(1, POSITIONS), vocabulary = check.integer(1, MOST),
  types = check.integer(1, MOST), fields = fields, prompts = check.maybe(prompts),
  pooling = check.maybe(check.object {
    modes = check.list(check.choice(operator.POOLS), 1), normalize = check.flag, skip_prompt = check.maybe(check.flag),
    layers = check.maybe(check.list(layers.check, 1)), dimensions = check.maybe(check.integer(1, MOST)),
  }),
}

--- "model" of the metadata.
function metadata.model(value)
  MODEL(value, { "model" })
  if value.limit > value.positions then
    check.fail(value.limit, { "model", "limit" }, ("an integer from 1 to %d, model.positions"):format(value.positions))
  end
  for i, name in ipairs(value.heads) do
    local task = tasks.get(name) -- nil of the heads "hidden" and "layers"
    local needs = task and type(task.head) == "table" and task.head.needs
    if needs == "labels" and not value.fields.labels then
      error(("model.fields.labels is missing, which model.heads[%d], %s, needs"):format(i, name), 0)
    elseif needs == "pooling" and not value.pooling then
      error(("model.pooling is missing, which model.heads[%d], %s, needs"):format(i, name), 0)
    end
  end
  return value
end

local CALIBRATION = check.object {
  texts = check.integer(0, 2 ^ 53), tokens = check.integer(0, 2 ^ 53), truncated = check.integer(0, 2 ^ 53), digest = check.text,
}

--- "calibration" of the metadata.
function metadata.calibration(value)
  return CALIBRATION(value, { "calibration" })
end

return metadata
