--- What nginx's processes do when they start.
local config = require "serve.config"

local worker = {}

--- In the master process, before it starts workers, and again when it is told to reload: reads what the server was started with,
-- and opens the models. If that fails nginx does not start; if it was a reload the old workers go on.
function worker.init(path)
  config.read(path)
  local models = require "serve.models"
  for i, model in ipairs(config.models) do -- after a reload another model may have the file's name
    config.models[i] = models.describe(model.name, model.path)
    config.by_name[model.name] = config.models[i]
    models.open(config.models[i])
  end
  require "serve.http"
end

--- In each worker.
function worker.start()
  require("serve.queue").start()
end

return worker
