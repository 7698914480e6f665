--- Session: a session at one prompt: its names, how typed text runs, and the lines kept for a recipe.
--
-- The names live in a table of their own. A name that is not in it is looked up in Lua's globals; if it is not there either,
-- reading it is an error. The session removes `local` at the beginning of typed text, because a local variable would end with
-- its line.
local file = require "perigee.base.file"
local find = require "perigee.find"
local names = require "perigee.repl.names"
local pgee = require "perigee.ffi"
local prototypes = require "jit.util"
local system = require "perigee.os"
local terminal = require "perigee.show.terminal"
local C = pgee.C

local Session = {}
Session.__index = Session

local CHUNK = "stdin"

---- Names -------------------------------------------------------------------------------------------------------------

local function environment(session)
  local env, assigned = {}, { _ = true }
  env._G = env
  return setmetatable(env, {
    __index = function(_, name)
      local value = _G[name]
      if value == nil and not assigned[name] then
        local near = type(name) == "string" and names.nearest(name, session)
        error(("%s is not defined%s"):format(tostring(name), near and (" (did you mean %s?)"):format(near) or ""), 2)
      end
      return value
    end,
    __newindex = function(env_table, name, value)
      assigned[name] = true
      rawset(env_table, name, value)
    end,
  })
end

--- The value of a name, or nil.
function Session:get(name)
  local value = rawget(self.env, name)
  if value == nil then
    value = _G[name]
  end
  return value
end

--- The names of the session's variables.
function Session:own_names()
  return names.sorted(self.env)
end

--- The names of all variables of the session and of Lua.
function Session:names()
  local all = {}
  for _, t in ipairs { _G, self.env } do
    for _, name in ipairs(names.sorted(t)) do
      all[name] = true
    end
  end
  return names.sorted(all)
end

---- Reading -----------------------------------------------------------------------------------------------------------

-- The text without a `local` at its beginning.
local function unlocal(text)
  local f = text:match "^%s*local%s+(function[%s(].*)$"
  if f then
    return f
  end
  local list, rest = text:match "^%s*local%s+([%a_][%w_%s,]*)(.*)$"
  if not list then
    return text
  elseif rest:find "^=" then
    return list .. rest
  end
  return list:find "^[%a_][%w_]*%s*$" and rest:find "^;?%s*$" and list .. " = nil" or text
end

-- Compiles a text, as an expression if it is one. Returns a function that runs it, the code to keep for the recipe, and whether
-- it is a statement. If the text does not compile: nil and the message; nil alone if it is not complete. line: the number of
-- its first line, for messages.
local function compile(text, line, env)
  local function compiled(...)
    local place = ("\n"):rep(line - 1) .. " " -- the space: Lua takes a chunk that begins with an escape character for bytecode
    return load(place .. table.concat { ... }, "=" .. CHUNK, "t", env)
  end
  local expression = text:gsub("^%s*=", ""):gsub("^%s*return%f[^%w_]", "")
  local f, no_expression = compiled("return ", expression)
  if f then
    -- A plain `return f()` would be a tail call, which a traceback does not show. `...` is a function that returns its arguments.
    local bare = expression:gsub("[%s;]+$", "")
    return compiled("return (...)(", bare, ")") or compiled("return (...)(", bare, "\n)") or f, expression
  end
  local statement = unlocal(text)
  local g, message = compiled(statement)
  if g then
    return g, statement, true
  end
  local goes_on = (no_expression .. message):gsub("unfinished string near '<eof>'", ""):find("near '<eof>'", 1, true)
  return nil, not goes_on and message or nil
end

---- Running -----------------------------------------------------------------------------------------------------------

local here = debug.getinfo(1, "S").source:match "^@(.*)repl/session%.lua$"

local stopped -- whether poll has stopped the text that runs

-- A debug hook. After an interrupt it stops typed code and files that typed code runs. It does not stop Perigee's own code,
-- because that would leave a change half done.
local function poll()
  if C.pgee_interrupted() ~= 0 then
    local info = debug.getinfo(2, "S")
    if not info or pgee.is_own(info) or info.what == "C" then
      debug.sethook(poll, "", 1) -- try again after the next instruction
    else
      stopped = true
      error("interrupted", 0)
    end
  end
end

-- Keeps LuaJIT from compiling code that typed code loads, such as a file, because hooks do not run in compiled code.
local function interpret(prototype)
  if not pgee.is_own(prototypes.funcinfo(prototype)) then
    jit.off(prototype)
  end
end

local FRAMES = 20 -- lines of a traceback at most: an endless recursion has thousands

-- The functions that were running when an error was raised, innermost first, up to the chunk. Perigee's functions are listed
-- only if the error names a line of Perigee. If it names the caller's line, Perigee's functions would not help.
local function traceback(message, chunk)
  local own = tostring(message):match "^(.-):%d+: "
  own = own and here and (own:find(here, 1, true) or own:find "^%.%.%..*/perigee/")
  local frames, level = {}, 4 -- above this, pcall, and the handler
  while true do
    local info = debug.getinfo(level, "Slnf")
    if not info or info.func == chunk or info.source == "@" .. (here or "") .. "repl/session.lua" then
      break
    elseif #frames == FRAMES then
      frames[FRAMES + 1] = "  " .. terminal.ellipsis()
      break
    elseif info.what ~= "C" and (own or not pgee.is_own(info)) then
      frames[#frames + 1] = ("  %s:%d: in %s"):format(info.source == "=" .. CHUNK and CHUNK or names.path(info.source),
        info.currentline, info.name and info.name ~= "?" and info.name or "the function of line " .. info.linedefined)
    end
    level = level + 1
  end
  local info = debug.getinfo(level, "lf")
  if #frames > 0 and info and info.func == chunk then
    frames[#frames + 1] = ("  %s:%d"):format(CHUNK, info.currentline)
  end
  return #frames > 0 and "\n" .. table.concat(frames, "\n") or ""
end

local function values(...)
  return ...
end

local function pack(ok, ...)
  return { ok = ok, n = select("#", ...), ... }
end

-- Calls f. If the session is interruptible, f is not compiled, so that an interrupt can stop it.
local function call(self, f)
  local function failed(message)
    if C.pgee_interrupted() ~= 0 then
      return tostring(message):match "interrupted.*" or tostring(message)
    end
    local ok, trace = pcall(traceback, message, f)
    return tostring(message) .. (ok and trace or "")
  end
  if not self.interruptible then
    return pack(xpcall(f, failed, values))
  end
  jit.off(f, true)
  stopped = false
  jit.attach(interpret, "bc")
  debug.sethook(poll, "", 1000)
  local result = pack(xpcall(f, failed, values))
  debug.sethook()
  jit.attach(interpret)
  if result.ok and stopped then -- a pcall of typed code caught poll's error
    result = { ok = false, n = 1, "interrupted" }
  end
  return result
end

-- The records of the last changes of the session's objects: { [object] = record }.
local function last_changes(env)
  local found = {}
  for _, x in next, env do
    local f = type(x) == "table" and names.metatable(x) and rawget(names.metatable(x), "__changed")
    found[x] = f and f(x) or nil
  end
  return found
end

-- The message. If the text calls a method or a field that does not exist, with the nearest name that does.
local function hinted(message, text, session)
  local name = message:match "^[^\n]*attempt to call %a+ '([%a_][%w_]*)' %(a nil value%)"
  local called = name and text:match("[%a_][%w_.]*%s*[.:]%s*" .. name .. "%f[^%w_]")
  local near = called and names.nearest(called, session)
  return near and (message:gsub("%(a nil value%)", "(a nil value; did you mean " .. near .. "?)", 1)) or message
end

--- Runs a text. Returns { ok =, n = number of values, values ..., hidden =, interrupted = }.
--   ok       true; nil if the text is not complete; false if it failed, and then [1] is the message
--   hidden   whether the values must not be shown
-- If a statement changes an object that keeps a record of its last change, such as q.alpha = 0.8, the record is a value.
function Session:run(text)
  local line = self.line
  local f, code, is_statement = compile(text, line, self.env)
  if not f and not code then
    return { n = 0 }
  end
  self.line = line + select(2, text:gsub("\n", "")) + 1
  if not f then
    return { ok = false, n = 1, code }
  end
  local before = last_changes(self.env)
  local result = call(self, f)
  result.interrupted = not result.ok and C.pgee_interrupted() ~= 0
  C.pgee_interrupt(0)
  if not result.ok then
    result[1] = hinted(result[1], text, self)
    return result
  end
  result.hidden = text:find ";%s*$" ~= nil
  if result.n > 0 then
    self.env._ = result[1]
  end
  local kind = (is_statement or result.n == 0) and "statement" or result.hidden and "hidden" or "shown"
  self.entries[#self.entries + 1] = { code = code:match "^%s*(.-)%s*$", kind = kind }
  for x, record in pairs(kind == "statement" and last_changes(self.env) or {}) do
    if record ~= before[x] then
      result.n = result.n + 1
      result[result.n] = record
    end
  end
  return result
end

---- Recipes -----------------------------------------------------------------------------------------------------------

-- Whether an entry uses `_`, the value before it.
local function reads_last(entries)
  for _, entry in ipairs(entries) do
    if entry.code:find "%f[%w_]_%f[^%w_]" then
      return true
    end
  end
  return false
end

--- The session as a script. It does again what was entered and did not fail, and prints what the prompt printed.
function Session:recipe()
  local lines = {
    "#!/usr/bin/env luajit",
    "--- A session at Perigee's prompt. Running this file does again what was done in it.",
    ("dofile %q"):format(find.path "perigee.find"),
    'local perigee_show = require("perigee.repl.show").print',
    "",
  }
  local last = reads_last(self.entries) and "_ = " or ""
  for _, entry in ipairs(self.entries) do
    local code = entry.code
    if entry.kind == "shown" then
      local stop = code:find("--", 1, true) and "\n)" or ")" -- a comment would swallow the bracket
      local call_of_it = "perigee_show(" .. code:gsub("[%s;]+$", "") .. stop
      if not load(call_of_it) then -- a comment after a semicolon
        call_of_it = "perigee_show((function() return " .. code .. "\nend)())"
      end
      code = last .. call_of_it
    elseif entry.kind == "hidden" then
      code = "_ = " .. code
    elseif code:find "^%(" then -- Lua would read the bracket as a call of the line before
      code = "do\n" .. code .. "\nend"
    end
    lines[#lines + 1] = code
  end
  return table.concat(lines, "\n") .. "\n"
end

--- Writes the recipe to a file. An existing file is replaced only if `replace` is true. Returns true; nil and a message if the
-- file was not written: then an existing file is as it was.
function Session:save(path, replace)
  local there = system.stat(path)
  if there and there.kind == "a directory" then
    return nil, path .. " is a folder"
  elseif there and not replace then
    return nil, path .. " is there already; `:save! " .. path .. "` replaces it"
  end
  return file.replace(path, self:recipe())
end

local session = {}

--- A new session. interruptible: whether Ctrl-C stops what the session runs. The caller has called catch_interrupts then.
function session.new(interruptible)
  local self = setmetatable({ entries = {}, line = 1, interruptible = interruptible }, Session)
  self.env = environment(self)
  return self
end

return session
