--- Endpoints as OpenAI has them.
local config = require "serve.config"
local json = require "perigee.base.json"
local fields = require "serve.fields"
local inputs = require "serve.inputs"
local metrics = require "serve.metrics"

local object = fields.object

local function embeddings(c)
  local r = c.request
  local model = c:model "embed"
  local items, ids, characters = inputs.read(r.input, model)
  c.characters = characters
  metrics.count("te_embed_count", nil, #items)
  local base64 = r.encoding_format == "base64"
  local answers = c:answer {
    model = model, task = "embed", format = base64 and "base64" or "json", items = items,
    options = { dimensions = r.dimensions, normalize = true, prompt = ids == 0 and nil },
  }
  local data = {}
  for i, answer in ipairs(answers) do
    local vector = base64 and '"' .. answer.value .. '"' or answer.value
    data[i] = ('{"object":"embedding","index":%d,"embedding":%s}'):format(i - 1, vector)
  end
  local usage = ('{"prompt_tokens":%d,"total_tokens":%d}'):format(c.tokens, c.tokens)
  return ('{"object":"list","model":%s,"data":[%s],"usage":%s}'):format(json.quote(model.name), table.concat(data, ","), usage)
end

local function models_list()
  local data = {}
  for i, model in ipairs(config.models) do
    data[i] = { id = model.name, object = "model", created = config.started, owned_by = "perigee" }
  end
  return { object = "list", data = data }
end

local EMBEDDING = object {
  object = fields.TEXT, index = { type = "integer" }, embedding = { anyOf = { fields.NUMBERS, fields.TEXT } },
}

return {
  { path = "/v1/embeddings", method = "POST", form = "openai", handle = embeddings,
    summary = "Vectors, as OpenAI's API gives them",
    response = object {
      object = fields.TEXT, model = fields.TEXT, data = { type = "array", items = EMBEDDING },
      usage = object { prompt_tokens = { type = "integer" }, total_tokens = { type = "integer" } },
    },
    request = object({
      input = fields.INPUTS, model = fields.MODEL, dimensions = fields.COUNT,
      encoding_format = { type = "string", enum = { "float", "base64" } },
      user = { type = "string", description = "Has no effect" },
    }, { "input" }) },
  { path = "/v1/models", method = "GET", form = "openai", summary = "The models", handle = models_list,
    response = object {
      object = fields.TEXT, data = { type = "array", items = object {
        id = fields.TEXT, object = fields.TEXT, created = { type = "integer" }, owned_by = fields.TEXT,
      } },
    } },
}
