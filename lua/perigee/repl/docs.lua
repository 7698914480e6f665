--- Docs: the text that `? NAME` prints. It comes from the comments in the sources of the modules and in the C header.
--
-- A function's documentation is the comment that begins with three dashes and ends on the line above the function. A module's
-- documentation is the comment at the top of its file. If a comment names another module ("see quantize/calibrate.lua"), the
-- documentation there is added.
local ffi = require "ffi"
local find = require "perigee.find"
local names = require "perigee.repl.names"
local pgee = require "perigee.ffi"
local tasks = require "perigee.tasks"

local docs = {}

---- Sources -----------------------------------------------------------------------------------------------------------

local files = {}

-- The lines of a source file, read once; nil if it cannot be read.
local function lines_of(path)
  if files[path] == nil then
    local file = io.open(path)
    files[path] = file and {} or false
    for line in file and file:lines() or function() end do
      table.insert(files[path], line)
    end
    if file then
      file:close()
    end
  end
  return files[path] or nil
end

local function module_path(name)
  return find.path("perigee." .. name:gsub("/", "."))
end

local function plain(line)
  return (line:gsub("^%s*%-%-%-? ?", ""))
end

-- The comment that ends on the line before `line`, as text: from its last line of three dashes on. nil if there is none.
local function comment_above(lines, line)
  local first = line
  while first > 1 and lines[first - 1]:find "^%s*%-%-" and not lines[first - 1]:find "^%s*%-%-%-%-" do
    first = first - 1
    if lines[first]:find "^%s*%-%-%-" then
      break
    end
  end
  if first == line then
    return nil
  end
  local text = {}
  for i = first, line - 1 do
    text[#text + 1] = plain(lines[i])
  end
  return table.concat(text, "\n")
end

-- The comment at the top of a file.
local function header_of(path)
  local text = {}
  for i, line in ipairs(lines_of(path) or {}) do
    if line:find "^%-%-" then
      text[#text + 1] = plain(line)
    elseif not (i == 1 and line:find "^#!") then
      break
    end
  end
  return #text > 0 and table.concat(text, "\n") or nil
end

--- The comment that a module begins with, by the module's name below perigee; nil if there is none.
function docs.header(name)
  return header_of(module_path(name) or "")
end

-- The comment in a file whose first word is `word`, such as model:calibrate.
local function comment_that_begins(path, word)
  local lines = lines_of(path) or {}
  for i, line in ipairs(lines) do
    if line:find "^%s*%-%-%- " and plain(line):match "^[%w_.:]+" == word then
      local stop = i + 1
      while lines[stop] and lines[stop]:find "^%s*%-%-" do
        stop = stop + 1
      end
      return comment_above(lines, stop)
    end
  end
end

-- Adds the documentation of the modules that the text names: there, of the same function if it has one, else of the module.
local function follow(text)
  local added = {}
  for name in text:gmatch "([%w_/]+)%.lua" do
    local path = module_path(name)
    local found = path and (comment_that_begins(path, text:match "^[%w_.:]+") or header_of(path))
    if found and not added[found] and found ~= text then
      added[found] = true
      text = text .. "\n\n" .. found
    end
  end
  return text
end

---- Functions ---------------------------------------------------------------------------------------------------------

-- The file and the line of a function. Of a task's method: those of the function in the task's file.
local function where(f)
  local info = debug.getinfo(tasks.documented(f), "S")
  local path = info.source:match "^@(.*)"
  return path, info.linedefined
end

-- The parameters as the source has them, "(changes)". If a function that is defined with a dot is called with a colon, without
-- the first parameter.
local function parameters(lines, line, colon)
  local text = lines[line]
  for i = line + 1, line + 3 do
    if text:find "function.-%b()" then
      break
    end
    text = text .. " " .. (lines[i] or "")
  end
  local name, list = text:match "function(.-)(%b())"
  if not list then
    return "(...)"
  elseif colon and not name:find ":" then
    list = list:gsub("^%(%s*[%w_]+%s*,?%s*", "(")
  end
  return (list:gsub("%s+", " "))
end

--- Returns a function's documentation, nil if it has none; and its parameters, "(x, y)". colon: whether the function is called
-- as a method.
function docs.of_function(f, colon)
  local path, line = where(f)
  local lines = path and lines_of(path)
  if not lines or not lines[line] then
    return nil, "(...)"
  end
  return comment_above(lines, line), parameters(lines, line, colon)
end

-- A line "name(...)" and the first sentence for each function of a table. Functions that are only for modules are left out.
local function overview(functions, prefix)
  local lines = {}
  for _, name in ipairs(names.sorted(functions)) do
    local text, call = docs.of_function(functions[name], prefix:sub(-1) == ":")
    if text and not text:find "^For modules" then
      local first = (text:gsub("\n", " ") .. " "):match "^(.-[^.]%.)%s" or text:gsub("\n", " ")
      lines[#lines + 1] = "  " .. prefix .. name .. call .. "\n      " .. first
    end
  end
  return table.concat(lines, "\n")
end

---- Values ------------------------------------------------------------------------------------------------------------

local function describe_function(name, f)
  local text, call = docs.of_function(f, name:find ":[%w_]+$")
  local path, line = where(f)
  if not path then
    return debug.getinfo(f, "S").what == "C" and name .. " is a function of Lua: its reference manual describes it"
      or ("%s was typed in line %d"):format(name, line)
  end
  return ("%s%s\n%s\n\n%s:%d"):format(name, call, text and follow(text) or "has no documentation",
    names.path(path), line)
end

-- The functions of an object or a module, by name, without those whose name begins with `_`.
local function functions_of(x)
  local found = {}
  for _, name in ipairs(names.of(x)) do
    local ok, value = pcall(function() return x[name] end)
    if ok and type(value) == "function" and not name:find "^_" then
      found[name] = value
    end
  end
  return found
end

-- The file of an object's class: where the functions of its metatable are.
local function class_path(x)
  local metatable = names.metatable(x) or {}
  for _, name in ipairs { "__tostring", unpack(names.sorted(metatable)) } do
    local f = rawget(metatable, name)
    if type(f) == "function" and where(f) then
      return (where(f))
    end
  end
end

local function describe_table(name, x, as_module)
  local functions = functions_of(x)
  local path = as_module and module_path(as_module) or class_path(x)
  local parts = { path and header_of(path) or ("%s is %s"):format(name, pgee.describe(x)) }
  if next(functions) then
    parts[2] = overview(functions, name .. (as_module and "." or ":"))
  end
  return table.concat(parts, "\n\n")
end

-- The lines about a word in a list of definitions of a module's header: "  alpha   SmoothQuant's ..." and what is indented more.
local function definition(module, word)
  local header = header_of(module_path(module) or "") or ""
  local found, indent = {}, nil
  for line in (header .. "\n"):gmatch "(.-)\n" do
    local spaces = #line:match "^ *"
    if indent and spaces > indent then
      found[#found + 1] = line
    elseif line:match "^ +([%w_]+)  +%S" == word then
      indent, found = spaces, { line }
    else
      indent = nil
    end
  end
  return #found > 0 and table.concat(found, "\n") or nil
end

---- C -----------------------------------------------------------------------------------------------------------------

-- A declaration of perigee.h with the comment that it stands under.
local function of_c(name)
  local lines = {}
  for line in ffi.string(pgee.C.pgee_header()):gmatch "(.-)\n" do
    lines[#lines + 1] = line
  end
  local pattern = "%f[%w_]" .. name .. "%f[^%w_]"
  local at
  for i, line in ipairs(lines) do
    local declared = line:gsub("/%*.-%*/", "")
    if not line:find "^%s*/?%*" and (declared:find(pattern .. "%s*[%({]")
      or declared:find(pattern) and (declared:find "^%s*[%w_]+ =" or declared:find "^enum" or declared:find "^typedef")) then
      at = i
      break
    end
  end
  if not at then
    return nil
  end
  local first = at
  while lines[first - 1] and lines[first - 1]:find "%S" and not lines[first - 1]:find "^/%* %-%-%-%-" do
    first = first - 1
    if lines[first]:find "^/%*" then
      break
    end
  end
  local last, open = at, 0
  for i = first, #lines do
    local _, opened = lines[i]:gsub("{", "")
    local _, closed = lines[i]:gsub("}", "")
    open = open + opened - closed
    last = i
    if i >= at and open <= 0 and lines[i]:find ";" then
      break
    end
  end
  return table.concat(lines, "\n", first, last) .. "\n\nperigee.h"
end

---- Looking up --------------------------------------------------------------------------------------------------------

-- Methods of this name in modules that are loaded: { "lua/perigee/x.lua" = text }.
local function anywhere(name)
  local found, task = {}, tasks.get(name)
  if task then
    local path, line = where(task.own_method)
    found[1] = ("%s\n\n%s:%d"):format(docs.of_function(task.own_method) or task.doc, names.path(path), line)
  end
  for module in pairs(package.loaded) do
    local path = module:find "^perigee%." and not module:find "^perigee%.repl" and find.path(module)
    local lines = path and lines_of(path) or {}
    for i, line in ipairs(lines) do
      if line:match "function ([%w_.:]+)%(" and line:match "function [%w_.:]*%f[%w_]([%w_]+)%(" == name
        and not line:find "^%s*local" then
        local text = comment_above(lines, i)
        if text and lines[i]:find "^function" then
          found[#found + 1] = follow(text) .. "\n\n" .. names.path(path) .. ":" .. i
        end
      end
    end
  end
  table.sort(found)
  return #found > 0 and table.concat(found, "\n\n") or nil
end

-- The name of a module whose value this is.
local function module_of(x)
  for name, value in pairs(package.loaded) do
    if value == x and name:find "^perigee" then
      return name:match "^perigee%.(.*)" or "init"
    end
  end
end

local function module_named(name)
  local short = name:match "^perigee%.([%w_.]+)$" or name
  if short == "perigee" or name == "perigee" then
    return "init", require "perigee"
  elseif short:find "^[%w_/]+$" and module_path(short) then
    local ok, module = pcall(require, "perigee." .. short:gsub("/", "."))
    return short, ok and module or {}
  end
  local public = require("perigee")[short]
  if type(public) == "table" then
    return module_of(public), public
  end
end

--- The documentation of a name: a variable, q:set, perigee.tensor, a module, a setting, a C function. If there is none, nil and
-- the nearest name that exists, or nil.
function docs.find(name, environment)
  name = name:match "^%s*(.-)[%s%(%){}]*$"
  local c_name = name:match "^%f[%w_]C%.([%w_]+)$" or name:match "^[Pp][Gg][Ee][Ee]_[%w_]+$"
  local c_text = c_name and of_c(c_name)
  if c_text then
    return c_text
  end
  local found, value = names.resolve(environment, name)
  if not found and name:find "[.:]" then -- tensor.from for perigee.tensor.from
    found, value = names.resolve({ get = function(_, head) return require("perigee")[head] end }, name)
  end
  local word = name:match "([%w_]+)$"
  if found and type(value) == "function" then
    return describe_function(name, value)
  elseif found and (type(value) == "table" or type(value) == "cdata") then
    return describe_table(name, value, module_of(value))
  end
  local setting = word and definition("quantize.settings", word)
  if setting then
    return "a setting\n" .. setting
  elseif found then
    return ("%s is %s"):format(name, pgee.describe(value))
  end
  local short, module = module_named(name)
  if short then
    return describe_table(name, module, short)
  end
  local elsewhere = word and (word == name or not environment:get(name:match "^[%a_][%w_]*" or "")) and anywhere(word)
  if elsewhere then
    return elsewhere
  end
  return nil, names.nearest(name, environment)
end

return docs
