--- Stream: answers any number of inputs, in the order in which they came, in bounded memory.
--
--   for row, answer, failure, dropped in model:stream(perigee.lines "texts.txt", { task = "classify" }) do
--     print(row, answer and answer.label or failure)
--   end
--
-- The stream pulls rows until a window is full, sorts them by length, and answers them in one call, which the runner cuts into
-- chunks by tokens. It pulls the next row once the loop has taken all answers of the window. Therefore memory is bounded, and a
-- slow consumer slows down the source of the rows (back-pressure). A row that cannot be answered has a failure and no answer; the
-- other rows of its window are answered as if that row were not there.
--
-- All state is in the iterator. Any number of streams may be in use at once, and both the rows' iterator and the loop's body may
-- yield from a coroutine.
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

-- A function of a row that returns its input. task: the declaration of the task.
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

-- About how many bytes of text an input or a row has, in at most `deep` nested tables. The depth is limited because a row may
-- contain itself.
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

-- Calls the function that brings rows, or `ready`. If it fails, the stream ends with this failure once the rows before it are
-- answered.
local function ask(s, f)
  local ok, came = pcall(f)
  if not ok then
    s.failure, s.ended = came, true
    return nil
  end
  return came
end

local ROWS = 16 -- a window's rows may have this many times `bytes`, because their other fields cost no computing

-- Pulls rows until the window is full, the rows end, or `ready` says that no row is there at the moment. Returns the entries.
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

-- Gives the answers to entries first to last, and the numbers of tokens that were cut off.
local function spread(list, first, last, answers, batch)
  for i = first, last do
    list[i].answer = answers[i - first + 1]
  end
  if tensor.is(answers) then
    answers:release() -- each row is a view that keeps the memory
  end
  for _, cut in ipairs(batch and batch.truncated or {}) do
    local entry = list[first + cut.input - 1]
    entry.dropped = (entry.dropped or 0) + cut.dropped
  end
end

-- Answers entries first to last in one call. If the call fails, each half is answered by itself, until the entry that fails is
-- alone.
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
    s.encoder:probe() -- raises if the failure is one of the process, not of a row
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
  -- These two calls raise errors of the task, the options, the checkpoint and the process before any row is read.
  spread({}, 1, 0, (s.run(encoder, {}, s.options)))
  encoder:probe()
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
