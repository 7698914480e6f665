--- Dialogue: a program at a pseudo-terminal, typed to and read from.
--
--   local d = dialogue.start({ "luajit", "recipes/repl.lua" }, { HOME = "/tmp/x" })
--   d:expect "> "           -- waits until the program has written this (plain text), and returns what came before it
--   d:send "1 + 1\r"
--   d:finish()              -- waits for its end: the exit status
--
-- What did not come in time is an error that shows all that did. Codes that move the cursor and set colours are left out of what
-- is read, unless keep_codes is set.
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

--- The interpreter that runs this.
function dialogue.interpreter()
  pcall(ffi.cdef, "long readlink(const char *path, char *buffer, size_t bytes);")
  local buffer = ffi.new "char[4096]"
  return ffi.string(buffer, ffi.C.readlink("/proc/self/exe", buffer, 4096))
end

--- command: a list; environment: what is set on top of this process's, false to unset it. The terminal: 30 by 100.
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

-- Reads on. False at the end or when nothing comes.
local function more(self)
  local buffer = ffi.new "char[4096]"
  local n = C.spec_pty_read(self.fd, buffer, 4096, 1000)
  if n > 0 then
    self.raw = self.raw .. ffi.string(buffer, n)
    self.all = self.keep_codes and self.raw or self.raw:gsub("\27%[[%d;?]*%a", ""):gsub("\r", "")
  end
  return n ~= 0
end

--- Waits for a text, and returns what came since the last one that was waited for, without it.
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

--- Types.
function Dialogue:send(text)
  assert(C.spec_pty_write(self.fd, text, #text) == #text)
end

--- Reads to the end; returns the exit status and what came since the last text waited for.
function Dialogue:finish()
  local deadline = os.time() + PATIENCE
  while os.time() < deadline and more(self) do end
  local status = C.spec_pty_end(self.fd, self.pid, 1000 * PATIENCE)
  self.fd = nil
  return status, self.all:sub(self.seen + 1)
end

--- Ends the program, whatever it does.
function Dialogue:kill()
  if self.fd then
    C.spec_pty_end(self.fd, self.pid, 0)
    self.fd = nil
  end
end

return dialogue
