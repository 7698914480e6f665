--- Complete: lists what can be typed next: Lua's names, fields and methods, settings, sites and linears, files, commands.
local names = require "perigee.repl.names"
local settings = require "perigee.quantize.settings"
local sites = require "perigee.graph.passes.sites"

local complete = {}

local KEYWORDS = {
  "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in", "local", "nil", "not", "or",
  "repeat", "return", "then", "true", "until", "while",
}

complete.COMMANDS = { "help", "quit", "report", "save" }

-- Methods of models and statistics that passes and tasks call, not users.
local INTERNAL = {}
for name in ([[gather probe run runner release_runners extend graph head lower pooling prompts site attention_of can_judge new
  check_needed refuse_alpha]]):gmatch "%S+" do
  INTERNAL[name] = true
end

-- Whether a value is an object whose class has tasks or calibration's methods.
local function has_internal(value)
  local metatable = type(value) == "table" and names.metatable(value)
  return metatable and (rawget(metatable, "release_runners") or rawget(metatable, "can_judge")
    or type(value.release_runners) == "function" or type(value.can_judge) == "function")
end

---- Where the cursor is ----------------------------------------------------------------------------------------------

-- Walks the text as Lua's lexer does. Returns what the end of the text lies in: "code", "comment" or "string"; of a string also
-- where its content begins, and its quote.
local function state_of(text)
  local at = 1
  while true do
    local from, _, found = text:find("([\"'%-%[])", at)
    if not from then
      return "code"
    end
    local level = text:match("^%[(=*)%[", from) or text:match("^%-%-%[(=*)%[", from)
    if level then
      local open = text:find("[", text:find("[", from, true) + 1, true)
      local _, stop = text:find("]" .. level .. "]", open, true)
      if not stop then
        return found == "-" and "comment" or "string", open + 1, nil
      end
      at = stop + 1
    elseif found == "-" then
      local stop = text:sub(from, from + 1) == "--" and (text:find("\n", from, true) or #text + 1)
      if stop and stop > #text then
        return "comment"
      end
      at = (stop or from) + 1
    elseif found == "[" then
      at = from + 1
    else
      local stop = from + 1
      while stop <= #text and text:sub(stop, stop) ~= found do
        stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
      end
      if stop > #text then
        return "string", from + 1, found
      end
      at = stop + 1
    end
  end
end

---- Candidates --------------------------------------------------------------------------------------------------------

local function filter(list, prefix)
  local found = {}
  for _, name in ipairs(list) do
    if name:sub(1, #prefix) == prefix then
      found[#found + 1] = name
    end
  end
  return found
end

--- The names of all sites and linears of the models in the session's variables.
function complete.sites(session)
  local found = {}
  for _, name in ipairs(names.sorted(session.env)) do
    local value = rawget(session.env, name)
    if type(value) == "table" then
      local ok, list = pcall(function() return sites.list(value.model:graph "hidden") end)
      for _, site in ipairs(ok and list or {}) do
        found[site.name] = true
        for _, linear in ipairs(site.linears) do
          found[linear] = true
        end
      end
    end
  end
  return names.sorted(found)
end

-- Completes names with dots part by part. list: the names that begin with prefix. Returns the name if there is only one; else the
-- beginning that all share, if it is longer than prefix; else each name up to its next dot. Second result: whether the names are
-- complete.
local function by_part(list, prefix)
  if #list <= 1 then
    return list, true
  end
  local common = names.common(list)
  if #common > #prefix then
    return { common }, false
  end
  local parts, seen = {}, {}
  for _, name in ipairs(list) do
    local part = prefix .. name:match("^[^.]*%.?", #prefix + 1)
    parts[#parts + 1] = not seen[part] and part or nil
    seen[part] = true
  end
  return parts, false
end

-- Patterns for the code before a string that names a site or a linear.
local FOR_SITES = { "[:.]set%s*%(?%s*$", "[:.]plot%s*%(?%s*$", "%[%s*$", "skip%s*=%s*{?[^{}]*$", "skip%s*=%s*$" }

local function wants_sites(before)
  for _, pattern in ipairs(FOR_SITES) do
    if before:find(pattern) then
      return true
    end
  end
  return false
end

local function in_string(before, prefix, session, files, quote)
  local list = filter(complete.sites(session), prefix)
  if wants_sites(before) or (prefix ~= "" and #list > 0) then
    local parts, whole = by_part(list, prefix)
    return parts, whole and quote or ""
  end
  list = files(prefix)
  return list, #list == 1 and list[1]:sub(-1) ~= "/" and quote or ""
end

-- The expression at the end of the text, which stood before a dot or a colon; nil if its value cannot be found without calling
-- functions.
local function owner_of(text)
  local rest, owner = text, ""
  while true do
    local index = rest:match "%b[]$"
    local name = not index and rest:match "[%a_][%w_]*$"
    local piece = index or name
    if not piece then
      return nil
    end
    owner, rest = piece .. owner, rest:sub(1, -#piece - 1)
    if name then
      local dot = rest:match "[.:]$"
      if not dot or rest:find "%.%.$" then
        return not rest:find "[%w_%)%]\"']$" and owner or nil
      end
      owner, rest = dot .. owner, rest:sub(1, -2)
    end
  end
end

-- Whether the next word is the name of a setting: a key of the table that is given to set or quantize.
local function names_setting(before)
  return before:find "[{,]%s*$" and (before:find "[:.]set%s*%(?[^()]*{[^{}]*$" or before:find "[:.]quantize%s*%(?%s*{[^{}]*$")
end

local function in_code(text, session)
  local word = text:match "[%a_][%w_]*$" or ""
  local before = text:sub(1, -#word - 1)
  local mark = before:match "[.:]$"
  if mark and not before:find "%.%.$" and not before:find "%f[%w_]%d+%.$" then
    local found, value = names.resolve(session, owner_of(before:sub(1, -2)) or "")
    local list, internal = {}, found and select(2, pcall(has_internal, value)) and INTERNAL or {}
    for _, name in ipairs(found and filter(names.of(value), word) or {}) do
      local ok, member = pcall(function() return value[name] end)
      local callable = ok and type(member) == "function"
      if (mark == "." or callable) and not (callable and internal[name]) then
        list[#list + 1] = name
      end
    end
    return list, word
  end
  if names_setting(before) then
    return filter(names.sorted(settings.new().values), word), word
  end
  local list = session:names()
  for _, keyword in ipairs(KEYWORDS) do
    list[#list + 1] = keyword
  end
  table.sort(list)
  return filter(list, word), word
end

--- Completes the last word of a text. files(prefix): a function that lists files. Returns a list of words that the last word can
-- become, the number of bytes of the last word, and the text to add after a complete word.
function complete.find(text, session, files)
  local command = text:match "^%s*:(%a*)$"
  if command then
    return filter(complete.COMMANDS, command), #command, " "
  end
  local path = text:match "^%s*:save!?%s+(.*)$"
  if path then
    return files(path), #path, ""
  end
  text = text:gsub("^%s*:help%s", ""):gsub("^%s*%?", "")
  local state, from, quote = state_of(text)
  if state == "string" then
    local prefix = text:sub(from)
    local list, after = in_string(text:sub(1, from - 2), prefix, session, files, quote or "")
    return list, #prefix, after
  elseif state == "code" then
    local list, word = in_code(text, session)
    return list, #word, ""
  end
  return {}, 0, ""
end

return complete
