--- The engine of one nginx worker: opens the models and answers batches. It runs in the worker's thread pool, in a Lua state of
-- its own, so that the event loop goes on meanwhile. queue.lua calls it, one call at a time.
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local tasks = require "perigee.tasks"
local tensor = require "perigee.tensor"
local vectors = require "perigee.pipe.vectors"

local engine = {}

local opened = {} -- models by path
local tokenizing = 0 -- seconds, of the batch at work

-- Adds up the time that a tokenizer's method takes.
local function timed(tokenizer, name)
  local run = tokenizer[name]
  tokenizer[name] = function(...)
    local began = pgee.C.pgee_seconds()
    local first, second = run(...)
    tokenizing = tokenizing + pgee.C.pgee_seconds() - began
    return first, second
  end
end

local function model_at(path)
  if not opened[path] then
    local model = perigee.open(path)
    for _, name in ipairs { "encode", "encode_into", "encode_words" } do
      timed(model:tokenizer(), name)
    end
    opened[path] = model
  end
  return opened[path]
end

---- Token vectors -----------------------------------------------------------------------------------------------------

-- /embed_all is no task: the last hidden states of each input, [tokens][H].
local function hidden(model, given, options)
  local all, batch = model:hidden(given, options)
  local answers = {}
  for i, first, last in batch:groups() do
    answers[i] = all:rows(batch.starts[first - 1] + 1, batch.starts[last])
  end
  all:release() -- the views hold its memory
  return answers, batch
end

local function runner_of(task)
  return task == "hidden" and hidden or tasks[task].run
end

---- Answers as they go to the worker ----------------------------------------------------------------------------------

-- A tensor of vectors as JSON: a list of numbers, or a list of such lists.
local function as_json(t)
  if #t.shape == 1 then
    return vectors.list(t)
  end
  local rows = {}
  for i = 1, #t do
    local row = t:rows(i, i)
    local flat = tensor.is(row) and #row.shape == 2 and t[i] or row
    rows[i] = vectors.list(flat)
  end
  return "[" .. table.concat(rows, ",") .. "]"
end

local FORMATS = { json = as_json, base64 = vectors.base64, bytes = vectors.bytes }

-- An answer that can be copied to another Lua state: vectors as text, other answers as they are, without logits.
local function portable(answer, format)
  if tensor.is(answer) then
    local text = FORMATS[format](answer)
    answer:release()
    return text
  end
  return answer
end

---- Running -----------------------------------------------------------------------------------------------------------

-- Notes the tokens of each input, and how many were cut off. A task that makes several sequences of an input (its labels, its
-- documents) has a batch of these: their tokens are noted with the first input.
local function count_tokens(batch, results)
  if batch.count ~= #results then
    results[1].tokens = batch.T
    return
  end
  for i, from, to in batch:groups() do
    results[i].tokens = batch.starts[to] - batch.starts[from - 1]
  end
  for _, cut in ipairs(batch.truncated) do
    results[cut.input].dropped = cut.dropped
  end
end

-- Answers inputs first to last of a group into `results`. If one of them makes that fail, halves are tried, until the input
-- stands alone with its error: the other requests of the batch do not suffer.
local function answer(model, group, results, order, first, last)
  local given = {}
  for i = first, last do
    given[i - first + 1] = group.items[order[i]]
  end
  local ok, answers, batch = pcall(runner_of(group.task), model, given, group.options)
  if ok then
    local own = {}
    for i = 1, #given do
      own[i] = { value = portable(answers[i], group.format) }
    end
    if tensor.is(answers) then
      answers:release()
    end
    count_tokens(batch, own)
    for i = 1, #given do
      results[order[first + i - 1]] = own[i]
    end
  elseif first == last then
    results[order[first]] = { error = (tostring(answers):gsub("^[%w_]+: input 1:? ", "")) }
  else
    local middle = math.floor((first + last) / 2)
    answer(model, group, results, order, first, middle)
    answer(model, group, results, order, middle + 1, last)
  end
end

-- About how many bytes of text an input has.
local function size(input)
  if type(input) == "string" then
    return #input
  elseif type(input) ~= "table" then
    return 4
  end
  local sum = 0
  for _, part in pairs(input) do
    sum = sum + size(part)
  end
  return sum
end

local function by_length(items)
  local order, sizes = {}, {}
  for i, item in ipairs(items) do
    order[i], sizes[i] = i, size(item)
  end
  table.sort(order, function(a, b)
    if sizes[a] ~= sizes[b] then
      return sizes[a] < sizes[b]
    end
    return a < b
  end)
  return order
end

--- Opens models, so that the first request does not wait for that. paths: a list. Returns "" or what failed.
function engine.open(paths)
  for _, path in ipairs(paths) do
    local ok, why = pcall(function() model_at(path):probe() end)
    if not ok then
      return tostring(why)
    end
  end
  return ""
end

--- Answers a batch. groups: a list of { path = of the model, task =, options =, format = "json", "base64" or "bytes", items = a
-- list of inputs }. Returns for each group the list of { value =, tokens =, dropped = } or { error = }; the seconds it took; and
-- those of them that were spent on tokenizing.
function engine.run(groups)
  local began, answers = pgee.C.pgee_seconds(), {}
  tokenizing = 0
  for g, group in ipairs(groups) do
    local results = {}
    local ok, why = pcall(function()
      answer(model_at(group.path), group, results, by_length(group.items), 1, #group.items)
    end)
    for i = 1, ok and 0 or #group.items do
      results[i] = results[i] or { error = tostring(why), broken = true }
    end
    answers[g] = results
  end
  return answers, pgee.C.pgee_seconds() - began, tokenizing
end

return engine
