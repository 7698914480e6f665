--- Rerank as Cohere and Jina have it.
local fields = require "serve.fields"
local metrics = require "serve.metrics"
local models = require "serve.models"

local object = fields.object

-- A document is a text or an object with a text.
local function text_of(document)
  return type(document) == "table" and document.text or document
end

local function rerank(c)
  local r, texts = c.request, {}
  for i, document in ipairs(r.documents) do
    texts[i] = text_of(document)
  end
  metrics.count("te_rerank_count", nil, #texts)
  local results = {}
  for i, entry in ipairs(models.rerank(c, r.query, texts)) do
    if i > (r.top_n or #texts) then
      break
    end
    results[i] = {
      index = entry.index, relevance_score = entry.score,
      document = r.return_documents and { text = texts[entry.index + 1] } or nil,
    }
  end
  return {
    id = ngx.var.request_id, model = c.chosen.name, results = results, usage = { total_tokens = c.tokens },
    meta = { api_version = { version = c.version }, billed_units = { search_units = 1 } },
  }
end

local DOCUMENT = { anyOf = { fields.TEXT, object({ text = fields.TEXT }, { "text" }) }, said = 'a string or {"text": a string}' }

local REQUEST = object({
  query = fields.TEXT, model = fields.MODEL, top_n = fields.COUNT, return_documents = fields.FLAG, truncate = fields.FLAG,
  documents = { type = "array", items = DOCUMENT, minItems = 1, said = 'a list of strings or of {"text": a string}' },
  truncation_direction = fields.SIDE, max_chunks_per_doc = { type = "integer", description = "Has no effect" },
  max_tokens_per_doc = { type = "integer", description = "Has no effect" },
}, { "query", "documents" })

local RESPONSE = object {
  id = fields.TEXT, model = fields.TEXT, usage = object { total_tokens = { type = "integer" } },
  meta = { type = "object", properties = {} },
  results = { type = "array", items = object {
    index = { type = "integer" }, relevance_score = { type = "number" }, document = object { text = fields.TEXT },
  } },
}

local routes = {}
for i, version in ipairs { "1", "2" } do
  routes[i] = {
    path = ("/v%s/rerank"):format(version), method = "POST", form = "cohere", request = REQUEST, response = RESPONSE,
    summary = "Documents by how well they answer a query, as Cohere's and Jina's APIs give them",
    handle = function(c)
      c.version = version
      return rerank(c)
    end,
  }
end
return routes
