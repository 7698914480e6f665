--- Sink: where a pipe's answers go, one for each line of its input: standard output, or a file that is there once it is whole.
--
-- A file comes into being as FILE.part. Since every line of the input has one answer, in order, what is whole in FILE.part says
-- how far an interrupted process came, and nothing else needs to be kept: `resume` cuts off what is not whole and goes on. The
-- last whole answer is asked for again: a model gives the same bits each time (in FP32 by our own kernels), so one that differs
-- is of another input, of another model or of other options, and answers of two kinds would stand in one file.
local ffi = require "ffi"
local system = require "perigee.system"
local vectors = require "perigee.vectors"

local Sink = {}
Sink.__index = Sink

local BLOCK = 65536
local HEADER = 128

local function exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

-- How many lines are whole, and where the last of them begins and ends.
local function whole_lines(file)
  local lines, start, stop = 0, 0, 0
  for at = 0, file.size - 1, BLOCK do
    local text = file:read(BLOCK, at)
    local bytes = ffi.cast("const uint8_t *", text)
    for i = 0, #text - 1 do
      if bytes[i] == 10 then
        lines, start, stop = lines + 1, stop, at + i + 1
      end
    end
  end
  return lines, start, stop
end

-- The same of vectors. Of other vectors it is an error: they would be mixed.
local function whole_vectors(file, width)
  local header = file:read(HEADER, 0)
  if #header < HEADER then
    return 0, 0, 0
  elseif tonumber(header:match "^\147NUMPY.*'shape': %(%d+, (%d+)%)") ~= width then
    error(("cannot go on with '%s': it holds no vectors of %d"):format(file.part, width), 0)
  end
  local rows = math.floor((file.size - HEADER) / (4 * width))
  local stop = HEADER + rows * 4 * width
  return rows, stop - 4 * width, stop
end

local function open(self, path, resume)
  local file = system.file(path)
  self.file, self.fd = file, file.fd
  if resume and file.size == 0 and exists(path) then
    os.remove(file.part)
    self.complete = true
    return
  end
  local stop = 0
  if resume then
    local count, start
    if self.width then
      count, start, stop = whole_vectors(file, self.width)
    else
      count, start, stop = whole_lines(file)
    end
    if count > 0 then
      self.done, self.last = count - 1, file:read(stop - start, start)
    end
  end
  file:cut(stop)
  if self.width and stop == 0 then
    self:put(vectors.header(0, self.width))
  end
end

--- given: { output = path, nil for standard output; resume =, whether to go on where an interrupted process stopped; width = of
-- vectors in a .npy, nil for lines }. Fields: done, answers that are there already and are not asked for; last, one behind them
-- that is there, too, until it is given; complete, whether all are.
local function new(given)
  local self = setmetatable({ fd = 1, width = given.width, done = 0, parts = {}, bytes = 0 }, Sink)
  if given.output then
    open(self, given.output, given.resume)
  end
  self.count = self.done
  return self
end

--- Takes text, to be written with what else comes.
function Sink:put(text)
  self.parts[#self.parts + 1] = text
  self.bytes = self.bytes + #text
  if self.bytes >= BLOCK then
    self:flush()
  end
end

--- Takes an answer: a line without its end, or a vector's bytes.
function Sink:answer(text)
  text, self.count = self.width and text or text .. "\n", self.count + 1
  if not self.last then
    self:put(text)
  elseif text ~= self.last then
    error(("cannot go on with '%s': its answer %d is not what this input, model and options give"):format(self.file.part,
      self.count), 0)
  end
  self.last = nil
end

--- Writes what was taken. Returns whether all of it is written: not if an interrupt came while nobody read.
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

--- Writes all, and gives the file its name.
function Sink:finish()
  if self:flush() and self.file then
    if self.width then
      self.file:over(vectors.header(self.count, self.width), 0)
    end
    self.file:finish()
  end
end

return new
