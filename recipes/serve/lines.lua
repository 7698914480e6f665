--- JSON Lines: an answer for each line of the body, in order, as recipes/pipe.lua gives them. The body may be larger than that of
-- other endpoints; answers are sent while it is worked on.
local config = require "serve.config"
local errors = require "serve.errors"
local json = require "perigee.base.json"
local jsonl = require "perigee.pipe.jsonl"
local queue = require "serve.queue"
local tasks = require("perigee").tasks

local WINDOW = 256 -- lines that are answered together

-- What the input of a task is, out of a line: the fields that recipes/pipe.lua reads.
local FIELDS = {
  qa = function(line) return { question = line:text "question", context = line:text "context" } end,
  rerank = function(line)
    local documents = line:texts "documents"
    return { query = line:text "query", documents = type(documents) == "table" and documents or { documents } }
  end,
}

local function input_of(text, task)
  local line = jsonl.read(text)
  if FIELDS[task] then
    return FIELDS[task](line)
  end
  return line:raw "pair" and { line:text "text", line:text "pair" } or line:text "text"
end

-- An iterator over the lines of the request's body, which nginx may have put into a file.
local function lines_of_body()
  ngx.req.read_body()
  local path = ngx.req.get_body_file()
  if path then
    return assert(io.open(path, "rb")):lines()
  end
  return ((ngx.req.get_body_data() or ""):gsub("([^\n])$", "%1\n")):gmatch "([^\n]*)\n"
end

local function record(number, result)
  if result.error then
    return json.line { line = number, error = result.error }
  end
  local text = type(result.value) == "string" and result.value or json.line(result.value)
  local cut = (result.dropped or 0) > 0 and (',"truncated":%d'):format(result.dropped) or ""
  return '{"result":' .. text .. cut .. "}"
end

-- Answers a window of lines and sends the records.
local function flush(model, task, window, first)
  local items, places, results = {}, {}, {}
  for i, text in ipairs(window) do
    local ok, input = pcall(input_of, text, task)
    if ok then
      items[#items + 1], places[#places + 1] = input, i
    else
      results[i] = { error = tostring(input) }
    end
  end
  local answers, why = queue.answer { model = model, task = task, format = "json", items = items }
  for k, place in ipairs(places) do
    results[place] = answers and answers[k] or { error = "the server has no room: " .. tostring(why) }
  end
  for i, result in ipairs(results) do
    ngx.print(record(first + i - 1, result), "\n")
  end
  ngx.flush(true)
end

local function pipe(c)
  local args = ngx.req.get_uri_args()
  for _, name in ipairs { "task", "model" } do
    if args[name] ~= nil and type(args[name]) ~= "string" then
      errors.fail("Tokenizer", "%s is given twice or without a value, expected %s=NAME once", name, name)
    end
  end
  local task = args.task
  if task and not tasks[task] then
    errors.fail("Tokenizer", "task is '%s', which there is not", tostring(task))
  end
  c.named = args.model or c.named
  local model = c:model(task or (c.named and config.by_name[c.named] or config.models[1]).task)
  ngx.header["content-type"] = "application/x-ndjson"
  local window, number = {}, 0
  for text in lines_of_body() do
    window[#window + 1] = text
    if #window == WINDOW then
      flush(model, task or model.task, window, number + 1)
      window, number = {}, number + WINDOW
    end
  end
  flush(model, task or model.task, window, number + 1)
end

return {
  { path = "/pipe", method = "POST", summary = "JSON Lines in, JSON Lines out; ?task= and ?model= choose", handle = pipe },
}
