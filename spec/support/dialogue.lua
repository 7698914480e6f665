--- Dialogue: runs a program at a pseudo-terminal, types to it and reads its output.
--
--   local d = dialogue.start({ "luajit", "recipes/repl.lua" }, { HOME = "/tmp/x" })
--   d:expect "> "           -- waits until the program has written this (plain text), and returns what came before it
--   d:send "1 + 1\r"
--   d:finish()              -- waits until the program ends, and returns its exit status
--
-- If an expected text does not come in time, expect raises an error that shows all output. Codes that move the cursor and set
-- colours are removed from the output, unless keep_codes is set.
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  int spec_pty_start(const char *const *argv, int rows, int columns, int *pid);
  int spec_pty_read(int fd, char *buffer, int bytes, int milliseconds);
  int spec_pty_write(int fd, const char *text, int bytes);
  int spec_pty_end(int fd, int pid, int milliseconds);
]]

local dialogue = {}

local Dialogue = {}
Dialogue.__index = Dialogue

local PATIENCE = 60 -- seconds: the machine may be busy

--- The path of the running interpreter.
function dialogue.interpreter()
  pcall(ffi.cdef, "long readlink(const char *path, char *buffer, size_t bytes);")
  local buffer = ffi.new "char[4096]"
  return ffi.string(buffer, ffi.C.readlink("/proc/self/exe", buffer, 4096))
end

--- command is a list. environment has variables that are set in addition to those of this process; false unsets one. The terminal
-- has 30 lines of 100 columns.
function dialogue.start(command, environment)
  local argv = { "env" }
  for name, value in pairs(environment or {}) do
    if not value then
      table.insert(argv, 2, "-u")
      table.insert(argv, 3, name)
    end
  end
  for name, value in pairs(environment or {}) do
    argv[#argv + 1] = value and name .. "=" .. value or nil
  end
  for _, word in ipairs(command) do
    argv[#argv + 1] = word
  end
  local pid, words = ffi.new "int[1]", ffi.new("const char *[?]", #argv + 1)
  for i, word in ipairs(argv) do
    words[i - 1] = word
  end
  words[#argv] = nil
  local fd = C.spec_pty_start(words, 30, 100, pid)
  assert(fd >= 0, "no pseudo-terminal")
  return setmetatable({ fd = fd, pid = pid[0], raw = "", all = "", seen = 0 }, Dialogue)
end

-- Reads more output. Returns false at its end, or if nothing comes in time.
local function more(self)
  local buffer = ffi.new "char[4096]"
  local n = C.spec_pty_read(self.fd, buffer, 4096, 1000)
  if n > 0 then
    self.raw = self.raw .. ffi.string(buffer, n)
    self.all = self.keep_codes and self.raw or self.raw:gsub("\27%[[%d;?]*%a", ""):gsub("\r", "")
  end
  return n ~= 0
end

--- Waits for a text. Returns the output since the text that was expected before, without the expected text.
function Dialogue:expect(text)
  local deadline = os.time() + PATIENCE
  while true do
    local from, to = self.all:find(text, self.seen + 1, true)
    if from then
      local before = self.all:sub(self.seen + 1, from - 1)
      self.seen = to
      return before
    elseif os.time() > deadline or not more(self) then
      error(("waited for %q; this came since %q:\n%s"):format(text, self.all:sub(1, self.seen):sub(-40),
        self.all:sub(self.seen + 1)), 2)
    end
  end
end

--- Types a text.
function Dialogue:send(text)
  assert(C.spec_pty_write(self.fd, text, #text) == #text)
end

--- Reads to the end. Returns the exit status, and the output since the last expected text.
function Dialogue:finish()
  local deadline = os.time() + PATIENCE
  while os.time() < deadline and more(self) do end
  local status = C.spec_pty_end(self.fd, self.pid, 1000 * PATIENCE)
  self.fd = nil
  return status, self.all:sub(self.seen + 1)
end

--- Kills the program.
function Dialogue:kill()
  if self.fd then
    C.spec_pty_end(self.fd, self.pid, 0)
    self.fd = nil
  end
end

return dialogue
