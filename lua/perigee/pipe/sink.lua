--- Sink: takes a pipe's answers, one for each line of its input, and writes them to standard output or to a file. The file
-- appears only when it is complete.
--
-- A sink writes FILE.part, which becomes FILE when all answers are there. Every line of the input has one answer, in order.
-- Therefore the number of whole answers in FILE.part says how far an interrupted process came, and nothing else needs to be
-- saved. `resume` cuts off an incomplete answer at the end and goes on. The last whole answer is computed again, because a
-- model gives the same bits each time (in FP32 with the native kernels). If the new answer differs, the input, the model or the
-- options are different, and the file would mix the answers of two runs.
local file = require "perigee.base.file"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local vectors = require "perigee.pipe.vectors"
local raise = pgee.raise

local Sink = {}
Sink.__index = Sink

local BLOCK = 65536
local HEADER = 128

-- Calls f(line) for each whole line of a file, with its end. Returns where the last one ends.
local function each_line(part, f)
  local held, stop = {}, 0 -- parts of a line that is not complete yet
  for at = 0, part.size - 1, BLOCK do
    local text, from = part:read(BLOCK, at), 1
    local last = text:find("\n", from, true)
    while last do
      held[#held + 1] = text:sub(from, last)
      f(table.concat(held))
      held, from, stop = {}, last + 1, at + last
      last = text:find("\n", from, true)
    end
    held[#held + 1] = text:sub(from)
  end
  return stop
end

-- Calls f(row) for each whole row of a .npy file. Returns where the last one ends. If the file has other vectors, that is an
-- error, because the file would have two kinds of vectors.
local function each_row(part, width, f)
  local header = part:read(HEADER, 0)
  if #header < HEADER then
    return 0
  elseif tonumber(header:match "^\147NUMPY.*'shape': %(%d+, (%d+)%)") ~= width then
    error(("cannot go on with '%s': it holds no vectors of %d"):format(part.part, width), 0)
  end
  local stop = HEADER
  while stop + 4 * width <= part.size do
    f(part:read(4 * width, stop))
    stop = stop + 4 * width
  end
  return stop
end

-- Counts the answers that are already in the file. All answers but the last one count as done. failures: how many of the done
-- answers are failures. row: how many failures in a row the done answers end with.
local function count(self, part, failed)
  local answers, failures, row = 0, 0, 0
  local function visit(text)
    if self.last and failed(self.last) then
      failures, row = failures + 1, row + 1
    elseif self.last then
      row = 0
    end
    answers, self.last = answers + 1, text
  end
  local stop = self.width and each_row(part, self.width, visit) or not self.width and each_line(part, visit) or 0
  self.done, self.failures, self.row = math.max(answers - 1, 0), failures, row
  return stop
end

local function open(self, path, resume, failed)
  local part = file.part(path)
  self.file, self.fd = part, part.fd
  if resume and part.size == 0 and json.exists(path) then
    os.remove(part.part)
    self.complete = true
    return
  end
  local stop = resume and count(self, part, failed) or 0
  part:cut(stop)
  if self.width and stop == 0 then
    self:put(vectors.header(0, self.width))
  end
end

local KNOWN = { output = true, resume = true, width = true, failed = true }

local function never()
  return false
end

--- Makes a sink. given:
--   output     a path; nil: standard output
--   resume     whether to go on where an interrupted process stopped
--   width      the length of the vectors in a .npy file; nil: the file has lines
--   failed     function(line or row): whether it stands for an input that has no answer
-- Fields of a sink:
--   done       how many answers are in the file and are not computed again
--   failures   how many of the done answers are failures
--   row        how many failures in a row the done answers end with
--   last       the answer in the file after the done ones; nil once it was computed again and compared
--   complete   whether the file has all answers
local function new(given)
  given = options.check(given, KNOWN, "sink")
  options.text(given.output, "sink: output")
  options.boolean(given.resume, "sink: resume")
  options.integer(given.width, 1, 2 ^ 31, "sink: width")
  if given.failed ~= nil and type(given.failed) ~= "function" then
    pgee.error(("sink: failed is %s, expected a function of a line or row"):format(pgee.describe(given.failed)))
  end
  local self = setmetatable({ fd = 1, width = given.width, done = 0, failures = 0, row = 0, parts = {}, bytes = 0 }, Sink)
  if given.output then
    open(self, given.output, given.resume, given.failed or never)
  end
  self.count = self.done
  return self
end

--- Takes a text. It is written when there are 64 KiB, or at flush.
function Sink:put(text)
  options.text(raise(options.given, text, "sink: the answer", "a text"), "sink: the answer")
  self.parts[#self.parts + 1] = text
  self.bytes = self.bytes + #text
  if self.bytes >= BLOCK then
    self:flush()
  end
end

--- Takes an answer: a line without its end, or a vector's bytes.
function Sink:answer(text)
  options.text(raise(options.given, text, "sink: the answer", "a text"), "sink: the answer")
  text, self.count = self.width and text or text .. "\n", self.count + 1
  if not self.last then
    self:put(text)
  elseif text ~= self.last then
    error(("cannot go on with '%s': its answer %d is not what this input, model and options give"):format(self.file.part,
      self.count), 0)
  end
  self.last = nil
end

--- Writes the texts that were taken. Returns whether all is written: an interrupt stops writing if the reader does not read.
function Sink:flush()
  if self.bytes == 0 then
    return true
  end
  local text = table.concat(self.parts)
  self.parts, self.bytes = {}, 0
  local all, why = system.write(self.fd, text, self.width ~= nil)
  if why then
    error(("cannot write %s: %s"):format(self.file and "'" .. self.file.part .. "'" or "the output", why), 0)
  end
  return all
end

--- Writes all texts and, for a file, gives it its name.
function Sink:finish()
  if self:flush() and self.file then
    if self.width then
      self.file:over(vectors.header(self.count, self.width), 0)
    end
    self.file:finish()
  end
end

return new
