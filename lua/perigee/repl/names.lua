--- Names: the names that can follow a value and a dot or a colon, and the value that a name stands for.
local nearest = require "perigee.base.nearest"
local pgee = require "perigee.ffi"
local find = require "perigee.find"

local names = {}

--- The beginning that all words of a list share.
function names.common(list)
  local common = list[1] or ""
  for _, word in ipairs(list) do
    while word:sub(1, #common) ~= common do
      common = common:sub(1, -2)
    end
  end
  return common
end

--- A source file's path for messages: relative if the file lies below the current folder.
function names.path(source)
  local path, folder = find.absolute((source:gsub("^[@=]", ""))), find.absolute "." .. "/"
  return path:sub(1, #folder) == folder and path:sub(#folder + 1) or path
end

--- The string keys of a table in order.
function names.sorted(t)
  local list = {}
  for name in pairs(t) do
    if type(name) == "string" then
      list[#list + 1] = name
    end
  end
  table.sort(list)
  return list
end

-- Adds the keys of a table and the names that its metatable adds. If __index is a function, the metatable counts as the class,
-- as is usual; its function __names(x), if there is one, returns tables with further names.
local function add(found, x, seen)
  if type(x) ~= "table" or seen[x] then
    return
  end
  seen[x] = true
  for key in next, x do
    if type(key) == "string" and key:find "^[%a_][%w_]*$" and not key:find "^__" then
      found[key] = true
    end
  end
  local metatable = debug.getmetatable(x)
  if type(metatable) == "table" then
    local index = rawget(metatable, "__index")
    add(found, type(index) == "table" and index or metatable, seen)
  end
end

--- The metatable of a table or of one of Perigee's cdata objects; nil if there is none.
function names.metatable(x)
  if type(x) == "table" then
    local metatable = debug.getmetatable(x)
    return type(metatable) == "table" and metatable or nil
  elseif type(x) == "cdata" then
    for _, class in ipairs(pgee.classes) do
      if class.is(x) then
        return class.metatable
      end
    end
  end
end

--- The names that can follow a value and a dot or a colon, sorted.
function names.of(x)
  local found, metatable = {}, names.metatable(x)
  add(found, type(x) == "string" and string or x, {})
  if metatable then
    add(found, rawget(metatable, "__index"), {})
    for _, t in ipairs(rawget(metatable, "__names") and metatable.__names(x) or {}) do
      add(found, t, {})
    end
  end
  return names.sorted(found)
end

-- x[key], whatever x is.
local function index(x, key)
  local ok, value = pcall(function() return x[key] end)
  if ok then
    return value
  end
end

--- Finds the value of names that are joined by dots and colons. Only __index functions run. Returns whether there is such a
-- value, and the value.
function names.resolve(environment, text)
  local head, rest = text:match "^%s*([%a_][%w_]*)(.*)$"
  if not head then
    return false
  end
  local value = environment:get(head)
  while value ~= nil and rest ~= "" do
    local key, after = rest:match "^%s*[.:]%s*([%a_][%w_]*)(.*)$"
    local number, behind = rest:match "^%s*%[%s*(%d+)%s*%](.*)$"
    local text_key, beyond = rest:match "^%s*%[%s*[\"']([^\"']*)[\"']%s*%](.*)$"
    if key then
      value, rest = index(value, key), after
    elseif number then
      value, rest = index(value, tonumber(number)), behind
    elseif text_key then
      value, rest = index(value, text_key), beyond
    else
      return false
    end
  end
  return value ~= nil, value
end

-- The nearest word. For a word of up to four letters it must begin with the same letter, because many short words are near.
local function alike(word, list)
  local near = nearest.word(word, list)
  return near and (#word > 4 or near:sub(1, 1) == word:sub(1, 1)) and near or nil
end

--- The existing name that is nearest to a wrong one, or nil if none is near. Variables of the session come before Lua's.
function names.nearest(text, environment)
  local before, word = text:match "^(.-[.:]?)([%a_][%w_]*)$"
  if not word then
    return nil
  elseif before == "" then
    return alike(word, environment:own_names()) or alike(word, environment:names())
  end
  local found, value = names.resolve(environment, before:sub(1, -2))
  local near = found and alike(word, names.of(value))
  return near and before .. near
end

return names
