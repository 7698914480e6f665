--- One request: finds its endpoint, reads and checks its body, calls the handler, writes the answer or the error.
local bit = require "bit"
local config = require "serve.config"
local errors = require "serve.errors"
local json = require "perigee.base.json"
local utf8 = require "perigee.base.utf8"
local metrics = require "serve.metrics"
local queue = require "serve.queue"
local routes = require "serve.routes"
local schema = require "serve.schema"

local fail = errors.fail

local http = {}

---- Errors ------------------------------------------------------------------------------------------------------------

-- The body of an error in the form that the clients of each API read.
local FORMS = {
  tei = function(e) return { error = e.message, error_type = e.kind } end,
  openai = function(e)
    local type_of = errors.STATUS[e.kind] < 500 and "invalid_request_error" or "server_error"
    return { error = { message = e.message, type = type_of, code = e.kind:lower() } }
  end,
  cohere = function(e) return { message = e.message, detail = e.message } end,
}

local function send(status, text, kind)
  ngx.status = status
  ngx.header["content-type"] = kind or "application/json"
  ngx.header["content-length"] = #text
  ngx.print(text)
end

local function send_error(e, form)
  metrics.count("te_request_failure", ('err="%s"'):format(e.kind))
  if e.kind == "Overloaded" then
    ngx.header["retry-after"] = 1
  elseif e.kind == "Unauthorized" then
    ngx.header["www-authenticate"] = "Bearer"
  end
  e.message = utf8.repair(e.message) -- a path of the request may be in it
  send(errors.STATUS[e.kind], json.line(FORMS[form or "tei"](e)))
end

---- Requests ----------------------------------------------------------------------------------------------------------

-- Whether two texts are equal, in a time that does not depend on where they differ.
local function same(a, b)
  local different = #a == #b and 0 or 1
  for i = 1, #b do
    different = bit.bor(different, bit.bxor(a:byte((i - 1) % math.max(#a, 1) + 1) or 0, b:byte(i)))
  end
  return different == 0
end

local function check_key(route)
  if config.key and not route.open then
    local given = (ngx.var.http_authorization or ""):match "^[Bb]earer +(.-) *$" or ngx.var.http_x_api_key or ""
    if not same(given, config.key) then
      fail("Unauthorized", "the API key is %s; send the header Authorization: Bearer KEY", given == "" and "missing" or "wrong")
    end
  end
end

--- The text of the request's body.
function http.body()
  ngx.req.read_body()
  local text = ngx.req.get_body_data()
  local path = not text and ngx.req.get_body_file()
  if path then
    local file = assert(io.open(path, "rb"))
    text = file:read "*a"
    file:close()
  end
  return text or ""
end

local function read_request(route)
  local text = http.body()
  if text == "" then
    fail("Empty", "the body is empty, expected a JSON object")
  end
  local bad = utf8.malformed(text)
  if bad then
    fail("Syntax", "the body is no valid UTF-8 at byte %d", bad)
  end
  local ok, request = pcall(json.decode, text)
  if not ok then
    fail("Syntax", "the body is no valid JSON: %s", request)
  end
  local why = schema.check(route.request, request)
  if why then
    fail("Tokenizer", "%s", why)
  end
  return request
end

---- What handlers use -------------------------------------------------------------------------------------------------

local Context = {}
Context.__index = Context

local function names_of(models)
  local names = {}
  for i, model in ipairs(models) do
    names[i] = model.name
  end
  return table.concat(names, ", ")
end

-- Whether a model answers a task.
local function can(model, task)
  for _, other in ipairs(model.tasks) do
    if other == task then
      return true
    end
  end
  return false
end

--- The model that a request is for: the one that it names, else the first that has one of the tasks; without tasks the first.
function Context:model(...)
  local named = self.named or self.request and self.request.model or nil
  if named and type(named) ~= "string" then
    fail("Tokenizer", "model is %s, expected the name of a model", tostring(named))
  end
  local candidates = named and { config.by_name[named] } or config.models
  if named and not candidates[1] then
    fail("NotFound", "there is no model '%s'; the models are %s", named, names_of(config.models))
  end
  if select("#", ...) == 0 then
    self.chosen = candidates[1]
    return self.chosen
  end
  for _, task in ipairs { ... } do
    for _, model in ipairs(candidates) do
      if can(model, task) then
        self.chosen = model
        return model, task
      end
    end
  end
  fail("Backend", "%s %s not answer %s", names_of(candidates), #candidates == 1 and "does" or "do", table.concat({ ... }, " or "))
end

local WHY = {
  full = { "Overloaded", "more requests wait than the server takes; try again later" },
  late = { "Timeout", "there was no answer in time" },
}

-- Ends the request with the error of one of its inputs. The error is the engine's if the result is `broken`, else the client's.
local function raise(result, index, count)
  local message = count > 1 and ("input %d: %s"):format(index - 1, result.error) or result.error
  fail(result.broken and "Backend" or "Validation", "%s", message)
end

--- Answers inputs: the list of { value =, tokens = }. An input without an answer is an error of the request. job: see queue.lua.
function Context:answer(job)
  if #job.items > config.limits.texts then
    fail("Validation", "the request has %d inputs, at most %d are taken", #job.items, config.limits.texts)
  end
  local answers, why = queue.answer(job)
  if not answers then
    fail(WHY[why][1], "%s", WHY[why][2])
  end
  for i, result in ipairs(answers) do
    if result.error then
      raise(result, i, #answers)
    end
    self.tokens = self.tokens + (result.tokens or 0)
  end
  self.waited = self.waited + ((job.began or job.came or 0) - (job.came or 0))
  self.ran, self.cut = self.ran + (job.seconds or 0), self.cut + (job.tokenizing or 0)
  return answers
end

--- The options that cut long texts, as the engine has them, in a new table.
function Context:options()
  local request = self.request
  return {
    long = request.truncate == false and "error" or nil,
    truncation_side = request.truncation_direction and request.truncation_direction:lower() or nil,
  }
end

local function set_timing(context)
  local total = ngx.now() - context.began
  local headers = {
    ["x-compute-type"] = "cpu", ["x-compute-tokens"] = context.tokens, ["x-total-time"] = total * 1000,
    ["x-queue-time"] = context.waited * 1000, ["x-inference-time"] = (context.ran - context.cut) * 1000,
    ["x-compute-time"] = total * 1000,
    ["x-tokenization-time"] = context.cut * 1000, ["x-compute-characters"] = context.characters,
  }
  for name, value in pairs(headers) do
    ngx.header[name] = type(value) == "number" and ("%.0f"):format(value) or value
  end
  metrics.observe("te_request_duration", total)
  metrics.observe("te_request_queue_duration", context.waited)
  metrics.observe("te_request_inference_duration", context.ran - context.cut)
  metrics.observe("te_request_tokenization_duration", context.cut)
  metrics.observe("te_request_input_length", context.tokens)
end

local function run(route, context)
  check_key(route)
  if route.request then
    context.request = read_request(route)
  end
  local answer, kind = route.handle(context)
  ngx.update_time()
  if context.tokens > 0 then
    set_timing(context)
  end
  if answer ~= nil then
    send(context.status or 200, type(answer) == "string" and answer or json.line(answer), kind)
  end
end

-- The endpoint of a request: of a path, or of what follows /models/NAME in it.
local function find()
  local path, named = ngx.var.uri, nil
  local name, rest = path:match "^/models/([^/]+)(/.*)$"
  if name then
    path, named = rest, ngx.unescape_uri(name)
  end
  local methods = routes.at(path)
  if not methods then
    return nil, { kind = "NotFound", message = ("there is no %s; GET /openapi.json lists what there is"):format(path) }
  end
  local route = methods[ngx.req.get_method()]
  return route, not route and { kind = "Method", message = ("%s takes %s"):format(path, routes.methods(methods)) }, named
end

--- Answers the request that nginx has.
function http.handle()
  local route, wrong, named = find()
  if not route then
    return send_error(wrong)
  end
  local label = ('path="%s"'):format(route.path)
  metrics.count("te_request_count", label)
  local context = setmetatable({ began = ngx.now(), named = named, tokens = 0, waited = 0, ran = 0, cut = 0 }, Context)
  local ok, why = xpcall(run, function(e)
    local trace = type(e) ~= "table" and debug.traceback(tostring(e), 2) or nil
    return trace and { kind = "Backend", message = "the server failed", trace = trace } or e
  end, route, context)
  if ok then
    return metrics.count("te_request_success", label)
  elseif why.trace then
    ngx.log(ngx.ERR, why.trace)
  end
  send_error(why, route.form)
end

--- For nginx's own errors, such as a body that is too large: the same form.
function http.refuse(kind, message)
  send_error({ kind = kind, message = message }, ngx.var.request_uri:find "^/v%d/" and "openai" or "tei")
end

return http
