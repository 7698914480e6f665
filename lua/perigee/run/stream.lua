--- Stream: inputs without end through a model, answers in the order in which they came.
--
--   for row, answer, failure, dropped in model:stream(perigee.lines "texts.txt", { task = "classify" }) do
--     print(row, answer and answer.label or failure)
--   end
--
-- Rows are pulled until a window is full, put in the order of their length, and answered in one call, which the runner cuts into
-- runs by their tokens; then the window's answers are given out, and only then is the next row pulled. So what is held is
-- bounded, and whoever is slow behind a stream slows down what is before it. A row that cannot be answered has a failure and no
-- answer; the others of its window are answered as if it was not there.
--
-- Nothing is kept outside the iterator: any number of streams may be at work at once, and both the rows' iterator and the loop's
-- body may yield from a coroutine.
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local tasks = require "perigee.tasks"
local tensor = require "perigee.tensor"
local C = pgee.C

local stream = {}

local KNOWN = { task = true, field = true, window = true, bytes = true, ready = true, options = true }

---- From a row to an input --------------------------------------------------------------------------------------------

local function field_of(row, name)
  if type(row) ~= "table" then
    error(("the row is %s, expected a table with the field %q"):format(pgee.describe(row), name), 0)
  elseif row[name] == nil then
    error(("field %q is missing"):format(name), 0)
  end
  return row[name]
end

-- A function of a row that returns its input.
local function reader(field, task)
  if field == nil then
    return function(row) return row end
  elseif type(field) == "function" then
    return field
  elseif type(field) == "string" then
    return function(row) return field_of(row, field) end
  elseif type(field) == "table" and #field == 2 and type(field[1]) == "string" and type(field[2]) == "string" then
    local first, second = unpack(task.pair or { 1, 2 })
    return function(row) return { [first] = field_of(row, field[1]), [second] = field_of(row, field[2]) } end
  end
  error(("stream: field is %s, expected a name, two names, or a function of a row"):format(pgee.describe(field)), 0)
end

-- About how many bytes of text an input or a row holds, itself and in so many tables in one another: an input has no more than
-- two, and a row may have itself in it.
local function size(value, deep)
  if type(value) == "string" then
    return #value
  elseif type(value) ~= "table" or deep == 0 then
    return 4
  end
  local sum = 0
  for _, part in pairs(value) do
    sum = sum + size(part, deep - 1)
  end
  return sum
end

---- A window ----------------------------------------------------------------------------------------------------------

-- Calls what brings rows. A failure ends them, once what came before it is answered.
local function ask(s, f)
  local ok, came = pcall(f)
  if not ok then
    s.failure, s.ended = came, true
    return nil
  end
  return came
end

local ROWS = 16 -- times as much as of the inputs, what is in rows and is no input does not cost a run anything

-- Pulls rows until the window is full, the rows end, or there is none at the moment.
local function fill(s)
  local list, bytes, held = {}, 0, 0
  repeat
    local row = ask(s, s.pull)
    if row == nil then
      s.ended = true
      break
    end
    local entry = { row = row, size = 0, at = #list + 1 }
    held = held + size(row, 3)
    local read, input = pcall(s.input, row)
    if read then
      entry.input, entry.size = input, size(input, 3)
    else
      entry.failure = tostring(input)
    end
    list[entry.at] = entry
    bytes = bytes + entry.size
  until #list >= s.window or bytes >= s.bytes or held >= ROWS * s.bytes or s.ready and not ask(s, s.ready)
  return list
end

local function spread(list, first, last, answers, batch)
  for i = first, last do
    list[i].answer = answers[i - first + 1]
  end
  if tensor.is(answers) then
    answers:release() -- each row holds on to it
  end
  for _, cut in ipairs(batch and batch.truncated or {}) do
    local entry = list[first + cut.input - 1]
    entry.dropped = (entry.dropped or 0) + cut.dropped
  end
end

-- Answers entries first to last. If one of them makes that fail, halves are tried, until it stands alone with its failure.
local function answer(s, list, first, last)
  local given = {}
  for i = first, last do
    given[i - first + 1] = list[i].input
  end
  local ok, answers, batch = pcall(s.run, s.encoder, given, s.options)
  if ok then
    return spread(list, first, last, answers, batch)
  elseif C.pgee_interrupted() ~= 0 then
    error(answers, 0)
  elseif first == last then
    list[first].failure = tostring(answers):gsub("^[%w_]+: input 1:? ", "")
    s.doubted = true
    return
  end
  local middle = math.floor((first + last) / 2)
  answer(s, list, first, middle)
  answer(s, list, middle + 1, last)
end

local function by_length(a, b)
  if a.size ~= b.size then
    return a.size < b.size
  end
  return a.at < b.at
end

local function run(s, list)
  local able = {}
  for _, entry in ipairs(list) do
    if not entry.failure then
      able[#able + 1] = entry
    end
  end
  table.sort(able, by_length)
  s.doubted = false
  if #able > 0 then
    answer(s, able, 1, #able)
  end
  if s.doubted then
    s.encoder:probe() -- a failure of the process is no failure of a row
  end
end

---- The iterator ------------------------------------------------------------------------------------------------------

local function callable(f)
  local meta = type(f) == "table" and getmetatable(f)
  return type(f) == "function" or meta and meta.__call ~= nil
end

-- A function that returns the next row: of an iterator, or of a list.
local function puller(rows)
  if callable(rows) then
    return rows
  elseif type(rows) ~= "table" then
    error(("stream: the rows are %s, expected an iterator or a list"):format(pgee.describe(rows)), 0)
  end
  local i = 0
  return function()
    i = i + 1
    return rows[i]
  end
end

-- `value` if it can be called, or nil.
local function function_of(value, name)
  if value ~= nil and not callable(value) then
    error(("stream: %s is %s, expected a function"):format(name, pgee.describe(value)), 0)
  end
  return value
end

local function positive(given, name, default)
  local v = given[name]
  if v == nil then
    return default
  elseif type(v) ~= "number" or v ~= v or v < 1 then
    error(("stream: %s is %s, expected a number of at least 1"):format(name, pgee.describe(v)), 0)
  end
  return v
end

--- encoder:stream(rows, { task =, field =, window =, bytes =, ready =, options = }): an iterator over row, answer, failure,
-- dropped. Arguments:
--   rows      an iterator or a list
--   task      the name of the task; default: the checkpoint's own
--   options   the task's options
--   field     the name of the field of a row that holds its input; two names for two texts; a function of a row; nil: a row is
--             its input
--   window    max rows that are computed together, default 256
--   bytes     a window takes no more rows once its inputs hold this many bytes (default 65536), or its rows 16 times as many
--   ready     a function that returns whether the next row is there; if it returns false, the rows read so far are answered at
--             once
-- Results:
--   answer    as in the task's list of answers; vectors of one window share memory, which is freed once all of these vectors
--             are released or collected
--   failure   the error of the row, if it has no answer
--   dropped   how many tokens of the row's input were cut off, if any
-- If the iterator `rows` raises an error, that error comes after the answers to the rows before it. An error of the process
-- (memory, the ISA ...) is raised, here or in the loop; it is not reported as a row's failure.
function stream.new(encoder, rows, given)
  options.method(encoder, "stream")
  given = options.check(given, KNOWN, "stream")
  local task = tasks.get(options.choice(given.task or encoder.task, tasks.all(), "stream: task"))
  local s = {
    encoder = encoder, pull = puller(rows), input = reader(given.field, task), options = given.options,
    ready = function_of(given.ready, "ready"),
    run = task.run, window = positive(given, "window", 256), bytes = positive(given, "bytes", 65536),
  }
  spread({}, 1, 0, (s.run(encoder, {}, s.options))) -- what is wrong with task, options or checkpoint is no row's failure,
  encoder:probe() -- nor is what is wrong with the process
  local list, at = {}, 0
  return function()
    while at == #list do
      if s.failure then
        error(s.failure, 0)
      elseif s.ended then
        return nil
      end
      list, at = fill(s), 0
      local ok, failure = pcall(run, s, list)
      if not ok then
        list, s.failure, s.ended = {}, failure, true
      end
    end
    at = at + 1
    local entry = list[at]
    list[at] = false
    return entry.row, entry.answer, entry.failure, entry.dropped
  end
end

return stream
