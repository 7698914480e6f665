--- Repl: a prompt for Lua that shows the values of expressions. recipes/repl.lua runs it.
--
--   require("perigee.repl").run { setup = { 'perigee = require "perigee"', ... } }
--
-- The prompt first tries to compile the input as an expression, so that `q.alpha` shows its value. An input may have several
-- lines.
local completion = require "perigee.repl.complete"
local docs = require "perigee.repl.docs"
local input = require "perigee.repl.input"
local system = require "perigee.os"
local show = require "perigee.repl.show"
local sessions = require "perigee.repl.session"
local terminal = require "perigee.show.terminal"

local repl = {}

local HELP = [[
Type Lua: an expression shows its value, a statement runs. If it is not complete, it continues on the next line.

  EXPRESSION;      the value is not shown
  _                the value before this one
  ? NAME           its documentation: ? q:set, ? perigee.tensor, ? alpha, ? pgee_smooth
  TAB              completes names, methods, settings, sites and linears inside quotes, files
  :save FILE       writes what was entered as a script that does it again; :save! replaces a file
  :report FILE     writes all figures of q to a file: .html, .json or .csv
  help, :help      this
  exit, quit, :quit, Ctrl-D
                   the end
  Ctrl-C           stops what is running, or forgets the line
]]

---- Saying things -----------------------------------------------------------------------------------------------------

local function complain(text)
  io.stdout:flush()
  io.stderr:write(terminal.paint("error: ", "red", terminal.colours(2)), text, "\n")
end

-- The cursor stands behind ^C and perhaps half a progress bar.
local function say_interrupted(text)
  io.stderr:write("\n", text, "\n")
end

-- A text whose lines fit the window: a longer line goes on below, under the text behind its name. Only at a terminal.
local function wrapped(text)
  local style = show.style()
  if not style.cut then
    return text
  end
  return (text:gsub("[^\n]+", function(line)
    local indent = #(line:match "^%s*%S[^\n]-%s%s+" or line:match "^%s*")
    indent = indent < style.columns / 2 and indent or #line:match "^%s*"
    local rows = {}
    while terminal.width(line) > style.columns do
      local room = line:sub(1, style.columns + 1)
      local stop = room:match "^.*()%s+%S*$"
      if not stop or stop <= indent + 1 then
        break
      end
      rows[#rows + 1] = line:sub(1, stop - 1)
      line = (" "):rep(indent) .. line:sub(stop):gsub("^%s+", "")
    end
    rows[#rows + 1] = line
    return table.concat(rows, "\n")
  end))
end

local function say_values(result)
  if not result.hidden then
    show.print(unpack(result, 1, result.n))
  end
end

---- Commands ----------------------------------------------------------------------------------------------------------

local commands = {}

function commands.help(state, argument)
  if argument ~= "" then
    return commands["?"](state, argument)
  end
  io.write(wrapped(HELP))
  return true
end

commands["?"] = function(state, argument)
  if argument == "" then
    return commands.help(state, "")
  end
  local text, near = docs.find(argument, state.session)
  if not text then
    return false, ("nothing is known of %s%s"):format(argument, near and (" (did you mean %s?)"):format(near) or "")
  end
  io.write(wrapped(text), "\n")
  return true
end

local function save(replace)
  return function(state, path)
    if path == "" then
      return false, "save to which file? :save FILE"
    end
    local ok, message = state.session:save(path, replace)
    if not ok then
      return false, message
    end
    io.write(("%d entries in %s\n"):format(#state.session.entries, path))
    return true
  end
end

commands.save, commands["save!"] = save(false), save(true)

function commands.report(state, path)
  local q = rawget(state.session.env, "q")
  if type(q) ~= "table" or type(q.report) ~= "function" then
    return false, "there is no q to report on: q = model:quantize { stats = stats }"
  elseif path == "" then
    return false, "report to which file? :report FILE"
  end
  q:report(path)
  io.write(path, "\n")
  return true
end

function commands.quit(state)
  state.done = true
  return true
end

-- Words that are commands without a colon, unless the session has a variable of that name.
local WORDS = { help = ":help", exit = ":quit", quit = ":quit" }

local function command_of(state, line)
  local word = line:match "^%s*(%l+)%s*%(?%)?%s*;?%s*$"
  if WORDS[word] and rawget(state.session.env, word) == nil then
    return WORDS[word]
  end
  return line:find "^%s*[:?]" and not line:find "^%s*::" and line or nil
end

-- Runs a line that begins with ':' or '?'.
local function command(state, line)
  local name, argument = line:match "^%s*:(%S*)%s*(.-)%s*$"
  if not name then
    name, argument = "?", line:match "^%s*%?%s*(.-)%s*$"
  end
  if not commands[name] then
    return false, (":%s is none of :help, :quit, :report, :save"):format(name)
  end
  local ran, ok, message = pcall(commands[name], state, argument)
  return ran and ok, ran and message or ok
end

---- Lines -------------------------------------------------------------------------------------------------------------

-- Runs a text and prints its values or its error. without_place: print the error without its line. Returns nil if the text is not
-- complete; else whether it ran, and whether it was interrupted.
local function run(state, text, without_place)
  local result = state.session:run(text)
  if result.ok == nil then
    return nil
  elseif result.ok then
    say_values(result)
  elseif result.interrupted then
    say_interrupted(result[1])
  else
    complain(without_place and result[1]:gsub("^stdin:%d+: ", "") or result[1])
  end
  return result.ok, result.interrupted
end

-- Reads and runs one input of one or more lines. Returns whether it ran; nil at the end of the input.
local function entry(state)
  local lines = {}
  while true do
    local line = state.input:read(state.prompts[#lines == 0 and 1 or 2])
    if line == false then
      return true
    elseif line == nil then
      if #lines > 0 then
        complain(("stdin:%d: the input ends where `%s` is not complete"):format(state.session.line, lines[1]))
        return false
      end
      return nil
    end
    local given = #lines == 0 and command_of(state, line)
    if given then
      local ok, message = command(state, given)
      state.session.line = state.session.line + 1
      if not ok then
        complain(message)
      end
      return ok
    end
    lines[#lines + 1] = line
    local ok = run(state, table.concat(lines, "\n"))
    if ok ~= nil then
      return ok
    end
  end
end

local function setup(state, lines)
  for _, line in ipairs(lines) do
    if state.interactive then
      io.write(state.shown_prompt, line, "\n")
      io.flush()
    end
    local ok, interrupted = run(state, line, true)
    if interrupted and state.interactive then
      break -- the prompt starts with the variables that exist so far
    elseif not ok then
      return false
    end
  end
  state.session.line = 1
  return true
end

local function loop(state)
  while not state.done do
    local ok = entry(state)
    if ok == nil then
      return 0
    elseif not ok then
      state.input:forget()
      if not state.interactive then
        return 1
      end
    end
    local flushed, why = io.flush()
    if not flushed then
      error("what is printed cannot be written: " .. why, 0)
    end
  end
  return 0
end

---- Running -----------------------------------------------------------------------------------------------------------

--- Reads and runs the input to its end. Returns the exit status.
--   setup   lines that run first and are part of what :save writes. If one fails, nothing else runs
--   ready   a function that is called with the session's variables once the lines of setup have run
--   banner  a text to print at the beginning of an interactive session
-- If standard input is no terminal, it runs without prompts up to the first error, and the status is then 1.
function repl.run(given)
  local interactive = system.is_terminal(0)
  local colours = terminal.colours(1)
  local state = {
    interactive = interactive, session = sessions.new(interactive), shown_prompt = terminal.paint("> ", "bold", colours),
    prompts = { input.prompt("> ", "bold", colours), input.prompt(">> ", "bold", colours) },
  }
  local missing
  state.input, missing = input.open(function(text, files)
    return completion.find(text, state.session, files)
  end)
  local restore = interactive and system.catch_interrupts() or function() end
  if interactive then
    io.write(given.banner or "", missing and missing .. "\n" or "")
  end
  local ok, status = pcall(function()
    if not setup(state, given.setup or {}) then
      return 1
    elseif given.ready then
      given.ready(state.session.env)
    end
    return loop(state)
  end)
  state.input:close()
  restore()
  if not ok then
    error(status, 0)
  end
  return status
end

return repl
