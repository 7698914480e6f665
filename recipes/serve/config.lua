--- What the server was started with: recipes/serve.lua writes it, and every worker reads it once.
--
--   models   a list of { name =, path =, task =, limit = tokens, width = of a vector, labels =, ... }; the first is the default
--   limits   { body = bytes, texts = of a request, batch_tokens =, queue = requests of a worker, seconds = }
--   key      the API key, or nil
local json = require "perigee.base.json"

local config = { ready = false }

--- Reads the file. The master process calls it before it starts workers.
function config.read(path)
  for key, value in pairs(json.object(path)) do
    config[key] = value
  end
  config.by_name = {}
  for _, model in ipairs(config.models) do
    config.by_name[model.name] = model
  end
end

--- A table of options as text, the same for equal tables.
function config.text_of(options)
  return options and json.line(options) or ""
end

return config
