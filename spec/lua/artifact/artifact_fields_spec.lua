-- Artifacts with right checksums whose metadata has one field changed, each field in turn: opening and running one is an error
-- that names the file and the field, or it works. The message is never one of Lua's own about our code.
local artifacts = require "spec.support.artifacts"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local models = require "spec.support.models"
local options = require "perigee.options"
local perigee = require "perigee"

-- How many of the changes are tried: PERIGEE_FIELDS=1 all of them, else one in so many. A prime number: every kind of change has
-- its turn. Under the sanitizers fewer, since each takes ten times as long.
local ONE_IN = tonumber(os.getenv "PERIGEE_FIELDS" or os.getenv "PERIGEE_HARD" and 211 or 61)

-- Texts in Lua's own errors about our code, and paths of our modules: a message about a field must have none of these.
local INSIDE = {
  "attempt to ", "bad argument", "cannot convert", "has no member", "stack overflow", "assertion failed", "table index is",
  "lua/perigee/", "not enough memory", "table: 0x", "userdata", "invalid option",
}

local function deep(levels)
  local value = {}
  for _ = 1, levels do
    value = { value }
  end
  return value
end

-- The values that replace a field's value. nil removes the field.
local CHANGES = {
  function() return nil end, function() return json.null end, function() return true end, function() return false end,
  function() return 0 end, function() return -1 end, function() return 0.5 end, function() return 2 ^ 31 end,
  function() return 2 ^ 53 end, function() return 1e308 end, function() return "" end, function() return "nan" end,
  function() return "F32" end, function() return {} end, function() return { {} } end, function() return { a = 1 } end,
  function() return deep(100) end, function() return { "a", "b" } end, function() return ("x"):rep(5000) end,
  function(value) return type(value) == "number" and value + 1 or type(value) == "string" and value .. "x" or nil end,
  function(value) return type(value) == "number" and value * 2 or type(value) == "string" and value:sub(1, -2) or nil end,
}

local function copied(value)
  local copy = {}
  for key, inner in pairs(value) do
    copy[key] = type(inner) == "table" and copied(inner) or inner
  end
  return copy
end

-- Every place in a table of JSON: a list of lists of keys. The table itself is {}. In a list, only the first two entries and
-- the last one are visited.
local function places(value, path, list)
  list, path = list or { {} }, path or {}
  local keys = {}
  for key in pairs(value) do
    if type(key) == "string" or key <= 2 or key == #value then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local at = { unpack(path) }
    at[#at + 1] = key
    list[#list + 1] = at
    if type(value[key]) == "table" then
      places(value[key], at, list)
    end
  end
  return list
end

-- The table with another value at a place.
local function changed(value, path, change)
  if #path == 0 then
    return change(value)
  end
  local copy = copied(value)
  local inner = copy
  for i = 1, #path - 1 do
    inner = inner[path[i]]
  end
  inner[path[#path]] = change(inner[path[#path]])
  return copy
end

-- As errors spell a place: { "steps", 3, 2, "x" } is "steps[3][2].x".
local function spelled(path)
  local text = ""
  for _, key in ipairs(path) do
    text = text .. (type(key) == "number" and ("[%d]"):format(key) or text == "" and key or "." .. key)
  end
  return text
end

-- Does everything with an artifact that reads its metadata.
local function use(path, ask)
  local a = perigee.open(path, { kernel = "native" })
  tostring(a)
  tostring(a.settings)
  ask(a)
  a:hidden { ids = { 1, 2, 3 } }
  a:layers { ids = { 1, 2, 3 } }
  tostring(a:explain())
  a:memory()
  a:tokens "how many people"
  a:release()
end

local TASKS = "spec/golden/tasks/"

-- The folder of a checkpoint with layers after its pooling: a dense one and a norm.
local function layered()
  local function module(index, path, class)
    return { idx = index, name = tostring(index), path = path, type = "sentence_transformers.models." .. class }
  end
  local companions = "spec/golden/companions/"
  return models.variant(TASKS .. "sentence", {
    ["modules.json"] = json.canonical {
      module(0, "", "Transformer"), module(1, "1_Pooling", "Pooling"), module(2, "2_Dense", "Dense"),
      module(3, "3_LayerNorm", "LayerNorm"),
    },
    ["1_Pooling/config.json"] = json.canonical {
      word_embedding_dimension = 32, pooling_mode_mean_tokens = true, pooling_mode_cls_token = true,
    },
    ["2_Dense/config.json"] = json.canonical {
      in_features = 64, out_features = 20, bias = true, activation_function = "torch.nn.modules.activation.Tanh",
    },
    ["2_Dense/model.safetensors"] = models.read(companions .. "dense-64-20.safetensors"),
    ["3_LayerNorm/config.json"] = json.canonical { dimension = 20 },
    ["3_LayerNorm/model.safetensors"] = models.read(companions .. "layer-norm.safetensors"),
  })
end

-- Checkpoints, and what each is asked.
local MODELS = {
  layered = function(a) return a:embed { "the people", "how many" } end,
  [TASKS .. "sentence"] = function(a) return a:embed({ "the people", "how many" }, { dimensions = 4 }) end,
  [TASKS .. "nli"] = function(a)
    return a:classify({ "the people" }, { top_k = 2 }), a:zeroshot("the people", { labels = { "water" } })
  end,
  [TASKS .. "cross"] = function(a) return a:rerank("the people", { "how many", "all" }) end,
  [TASKS .. "qa"] = function(a) return a:qa({ question = "how?", context = "all the people" }, { no_answer = true }) end,
  [TASKS .. "ner"] = function(a) return a:ner { "all the people", { words = { "all", "people" } } } end,
  [TASKS .. "mlm"] = function(a) return a:fill_mask("all [MASK] people", { targets = { "the" } }) end,
}

-- A message about a field of one of these parts may name one of the listed parts instead, because the parts refer to each
-- other.
local ALSO = {
  buffers = { "steps", "outputs" }, outputs = { "steps", "buffers" }, steps = { "outputs", "linears", "attentions" },
}

-- The fault of a message about a changed field; nil if it has none.
local function fault_of(message, key, path, file)
  for _, inside in ipairs(INSIDE) do
    if message:find(inside, 1, true) then
      return "a message from inside"
    end
  end
  if not message:find("'" .. file .. "'", 1, true) then
    return "the file is not named"
  end
  local named = message:find(key, 1, true) and (not path[1] or message:find(path[1], 1, true))
  for _, field in ipairs(ALSO[path[1]] or {}) do
    named = named or message:find(field, 1, true)
  end
  return not named and "the field is not named" or nil
end

describe("an artifact with a field changed", function()
  local tried, refused, faults

  before_each(function()
    tried, refused, faults = 0, 0, {}
  end)

  after_each(files.clean)

  -- One change of the text under one key of the metadata.
  local function try(parts, key, path, change, file, ask)
    local value = changed(json.decode(parts.metadata[key]), path, change)
    local metadata = {}
    for k, text in pairs(parts.metadata) do
      metadata[k] = text
    end
    metadata[key] = value ~= nil and json.canonical(value) or nil
    artifacts.write({ tensors = parts.tensors, metadata = metadata, plans = {} }, file)
    local ok, message = pcall(use, file, ask)
    tried, refused = tried + 1, refused + (ok and 0 or 1)
    if ok then
      return
    end
    local fault = fault_of(tostring(message), key, path, file)
    if fault then
      local inner = type(value) == "table" and value
      for _, name in ipairs(path) do
        inner = type(inner) == "table" and inner[name] or inner
      end
      local said = type(inner) == "table" and json.canonical(inner) or tostring(inner)
      faults[#faults + 1] = ("%s.%s, %s: %s: %s"):format(key, spelled(path), said:sub(1, 60), fault,
        tostring(message):sub(1, 300))
    end
  end

  for checkpoint, ask in pairs(MODELS) do
    it("is refused by name, or works: " .. checkpoint, function()
      local model = perigee.load(checkpoint == "layered" and layered() or checkpoint, { kernel = "native" })
      local stats = model:calibrate({ "how many people", "all of the water" }, { progress = false })
      local q = model:quantize { stats = stats, sites = { ["encoder.layer.0.*"] = { alpha = 0.5 } } }
      artifacts.in_memory(function(file)
        q:save(file)
        local parts = artifacts.parts(file)
        for head, plan in pairs(parts.plans) do
          parts.metadata["plan." .. head] = json.canonical(plan)
        end
        use(file, ask)
        local n = 0
        for _, key in ipairs(options.names(parts.metadata)) do
          if key:sub(1, 8) ~= "perigee." then
            for _, path in ipairs(places(json.decode(parts.metadata[key]))) do
              for _, change in ipairs(CHANGES) do
                n = n + 1
                if n % ONE_IN == 0 then
                  try(parts, key, path, change, file, ask)
                end
              end
            end
          end
        end
      end)
      q:release()
      stats:release()
      model:release()
      assert.are.equal("", table.concat(faults, "\n", 1, math.min(#faults, 20)))
      assert.is_true(refused > 0 and refused < tried)
    end)
  end
end)
