--- Input: reads lines from a terminal, with GNU readline if it is installed, or from a file or a pipe.
--
-- input.open() returns an object with read(prompt), forget() and close(). read returns a line, nil at the end, or false if Ctrl-C
-- was pressed. Ctrl-C sets the engine's interrupt flag: before input.open the caller has called catch_interrupts of perigee.os.
local ffi = require "ffi"
local names = require "perigee.repl.names"
local pgee = require "perigee.ffi"
local readline = require "perigee.repl.readline"
local system = require "perigee.os"
local terminal = require "perigee.show.terminal"
local C = pgee.C

local input = {}

local KEEP = 1000 -- lines of history

---- Waiting -----------------------------------------------------------------------------------------------------------

local STDIN = 0

-- Waits for input from the terminal. Returns false if Ctrl-C came first.
local function wait()
  local came = system.wait_readable(STDIN)
  if not came then
    C.pgee_interrupt(0)
  end
  return came
end

---- Lines as they come ------------------------------------------------------------------------------------------------

local Plain = {}
Plain.__index = Plain

function Plain:read(prompt)
  if self.terminal then
    io.stderr:write(prompt)
    if not wait() then
      io.stderr:write "\n"
      return false
    end
  end
  local line = io.read "*l"
  if self.terminal and not line then
    io.stderr:write "\n"
  end
  return line
end

function Plain.close() end

---- GNU readline ------------------------------------------------------------------------------------------------------

-- readline's functions call Lua back, which LuaJIT forbids if compiled code called them.
jit.off(true, true)

local Edited = {}
Edited.__index = Edited

-- Makes a Lua string of a C string, and frees the C string.
local function taken(pointer)
  local text = ffi.string(pointer)
  ffi.C.free(pointer)
  return text
end

-- The files whose paths begin with the prefix. Folders end in a slash.
local function list_files(library, prefix)
  local list = {}
  while true do
    local found = library.rl_filename_completion_function(prefix, #list)
    if found == nil then
      table.sort(list)
      return list
    end
    local path = taken(found)
    local folder = io.open(path .. "/.")
    if folder then
      folder:close()
    end
    list[#list + 1] = path .. (folder and "/" or "")
  end
end

-- Makes readline's array of completions: the beginning that all candidates share, the candidates, NULL. readline's word begins at
-- byte `first` of the text. The word that complete.lua completed may begin before or after that byte.
local function to_readline(text, first, list, length)
  local start = #text - length
  local words = {}
  for i, word in ipairs(list) do
    words[i] = start < first and word:sub(first - start + 1) or text:sub(first + 1, start) .. word
  end
  table.insert(words, 1, names.common(words))
  if #words == 2 then
    words[2] = nil
  end
  local array = ffi.cast("char **", ffi.C.malloc((#words + 1) * ffi.sizeof "char *"))
  for i, word in ipairs(words) do
    array[i - 1] = ffi.C.strdup(word)
  end
  array[#words] = nil
  return array
end

-- LuaJIT has few callbacks and never frees them. Therefore there is one of each, and it serves the input that is open.
local open, callbacks

local function make_callbacks(library)
  local function complete(first)
    library.rl_attempted_completion_over = 1
    library.rl_completion_append_character = 0
    local text = ffi.string(library.rl_line_buffer, library.rl_point)
    local ok, list, length, after = pcall(open.complete, text, function(prefix) return list_files(library, prefix) end)
    if not ok or #list == 0 then
      return nil
    end
    if #list == 1 and after ~= "" then
      library.rl_completion_append_character = after:byte()
    end
    return to_readline(text, first, list, length)
  end
  return {
    line = ffi.cast("void (*)(char *)", function(line)
      library.rl_callback_handler_remove()
      open.ended = line == nil
      open.line = line ~= nil and taken(line) or nil
    end),
    complete = ffi.cast("char **(*)(const char *, int, int)", function(_, first)
      return complete(first)
    end),
  }
end

function Edited:remember(line)
  if line:find "%S" and line ~= self.last then
    self.last = line
    self.library.add_history(line)
    if self.history then
      self.library.append_history(1, self.history)
    end
  end
end

-- Reads one line from the terminal, or several lines at once if they were pasted.
local function edit(self, prompt)
  local library = self.library
  library.rl_reset_screen_size()
  library.rl_callback_handler_install(prompt, callbacks.line)
  self.line, self.ended = nil, false
  while not self.line and not self.ended do
    if not wait() then
      library.rl_callback_sigcleanup()
      library.rl_point = library.rl_end -- ^C stands behind the whole line, which may have several rows
      library.rl_redisplay()
      library.rl_free_line_state()
      library.rl_callback_handler_remove()
      io.write "^C\n"
      io.flush()
      library.rl_on_new_line() -- or the next prompt is drawn over the forgotten line
      return false
    end
    library.rl_callback_read_char()
  end
  return self.line
end

function Edited:read(prompt)
  if #self.pasted == 0 then
    local text = edit(self, prompt)
    if not text then
      if self.ended and ffi.string(self.library.rl_variable_value "enable-bracketed-paste") ~= "on" then
        io.write "\n" -- else it has ended the line itself
      end
      return text
    end
    for line in (text .. "\n"):gmatch "(.-)\n" do
      table.insert(self.pasted, line)
    end
  end
  local line = table.remove(self.pasted, 1)
  self:remember(line)
  return line
end

--- Forgets pasted lines that were not read yet.
function Edited:forget()
  self.pasted = {}
end

Plain.forget = Plain.close

function Edited:close()
  if self.history then
    self.library.history_truncate_file(self.history, KEEP)
  end
end

local function history_path()
  local state = os.getenv "XDG_STATE_HOME"
  if not state or state:sub(1, 1) ~= "/" then -- the XDG base directory specification allows absolute paths only
    local home = os.getenv "HOME"
    state = home and home ~= "" and home .. "/.local/state"
  end
  if state then
    system.make_folder(state .. "/perigee")
    return state .. "/perigee/history"
  end
end

local function open_edited(library, complete)
  local self = setmetatable({ library = library, complete = complete, pasted = {}, history = history_path() }, Edited)
  callbacks = callbacks or make_callbacks(library)
  open = self
  library.rl_readline_name = "perigee"
  library.rl_completer_word_break_characters = " \t\n\"'`(){}[]=<>,;+-*/%^#~.:?!&|\\@$"
  library.rl_basic_quote_characters = "" -- or it closes a string after a part of a name
  library.rl_attempted_completion_function = callbacks.complete
  library.rl_change_environment = 0 -- or COLUMNS is set, and outlives a change of the terminal's size
  library.rl_initialize() -- without it the size of the screen is not known, and asking for it never ends
  library.using_history()
  library.stifle_history(KEEP)
  if self.history then
    local file = io.open(self.history, "a")
    if file then
      file:close()
      library.read_history(self.history)
    else
      self.history = nil -- it cannot be written
    end
  end
  return self
end

--- Opens standard input. complete(text, files): a function that returns what complete.lua returns; files(prefix) lists files.
-- Second result: if editing at this terminal is not possible, the reason as a text, else nil.
function input.open(complete)
  if not system.is_terminal(0) then
    return setmetatable({}, Plain)
  end
  local library = system.is_terminal(1) and os.getenv "TERM" ~= "dumb" and readline()
  if library then
    return open_edited(library, complete)
  end
  return setmetatable({ terminal = true }, Plain), library == nil
    and "GNU readline was not found: no completion, no history (Debian: libreadline8)" or nil
end

--- A prompt in a colour. Marks tell readline that the colour's codes take no columns.
function input.prompt(text, colour, on)
  return on and "\1" .. terminal.paint("\2" .. text .. "\1", colour, true) .. "\2" or text
end

return input
