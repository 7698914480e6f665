--- The description of the endpoints, the page to try them by hand, and the path /, which does what the model's task is.
local config = require "serve.config"
local json = require "perigee.base.json"
local errors = require "serve.errors"
local schema = require "serve.schema"
local tasks = require "serve.tasks"

local function operation(route)
  local success = { description = "The answer" }
  if route.response then
    success.content = { ["application/json"] = { schema = schema.described(route.response) } }
  end
  return {
    summary = route.summary, responses = { ["200"] = success, default = { description = "An error, with a message" } },
    requestBody = route.request and {
      required = true, content = { ["application/json"] = { schema = schema.described(route.request) } },
    } or nil,
  }
end

local function openapi()
  local paths = {}
  for _, route in ipairs(require("serve.routes").list) do
    paths[route.path] = paths[route.path] or {}
    paths[route.path][route.method:lower()] = operation(route)
  end
  return { openapi = "3.1.0", info = { title = "Perigee", version = require("perigee").version }, paths = paths }
end

local POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"

local page

local function ui()
  if not page then
    local file = assert(io.open(config.folder .. "/ui.html", "rb"))
    page = file:read "*a"
    file:close()
  end
  ngx.header["content-security-policy"] = POLICY
  return page, "text/html; charset=utf-8"
end

local function list_models()
  local list = {}
  for i, model in ipairs(config.models) do
    list[i] = { name = model.name, tasks = model.tasks }
  end
  return list
end

-- POST /: the endpoint of the model's task, with its checks.
local function root(c)
  local asked = c.request
  if type(asked) ~= "table" or asked == json.null then
    errors.fail("Tokenizer", "the request is no object, expected one with inputs")
  end
  for key, value in pairs(asked) do
    asked[key] = value ~= json.null and value or nil
  end
  local model = c:model()
  local path = tasks.path_of(model, asked)
  local route = require("serve.routes").at(path).POST
  local why = schema.check(route.request, asked)
  if why then
    errors.fail("Tokenizer", "%s", why)
  end
  return route.handle(c)
end

return {
  { path = "/openapi.json", method = "GET", summary = "This description", response = { type = "object", properties = {} },
    handle = function() return json.line(openapi()) end },
  { path = "/ui", method = "GET", summary = "A page to try the models by hand", open = true, handle = ui },
  { path = "/ui/models", method = "GET", summary = "The models and their tasks, for that page", handle = list_models,
    response = { type = "array", items = { type = "object", properties = {} } } },
  { path = "/", method = "POST", summary = "What the model's task is: /embed, /predict, /ner, /qa, /fill_mask, /zeroshot",
    request = { description = "As the endpoint that it leads to has it" }, handle = root },
}
