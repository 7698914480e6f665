--- Show: prints values as text that fits the terminal.
--
-- An object prints by its metatable's __show(x, style) if output is a terminal and there is that function, else by __tostring.
-- Other tables are printed as Lua source, on one line if it fits. Long lists are cut, and the number of entries left out is
-- printed.
local system = require "perigee.os"
local terminal = require "perigee.show.terminal"

local show = {}

local DEPTH = 3    -- tables in tables
local ENTRIES = 24 -- of one table
local ROWS = 8     -- of a list of numbers

--- How to print to standard output now: { columns =, colours =, utf8 =, cut = whether lines are cut at `columns` }.
function show.style()
  return { columns = terminal.columns(), colours = terminal.colours(1), utf8 = terminal.utf8(), cut = system.is_terminal(1) }
end

---- One value ---------------------------------------------------------------------------------------------------------

local ESCAPES = { ["\n"] = "\\n", ["\t"] = "\\t", ["\r"] = "\\r", ["\\"] = "\\\\", ['"'] = '\\"' }

local function quoted(text)
  return '"' .. text:gsub('[%c\\"\127]', function(c)
    return ESCAPES[c] or ("\\%03d"):format(c:byte())
  end) .. '"'
end

local function number(x)
  return (x % 1 == 0 and "%.14g" or "%.7g"):format(x)
end

local function describe_function(f)
  local info = debug.getinfo(f, "S")
  return info.what == "C" and "function (of Lua)" or ("function (%s:%d)"):format(info.short_src, info.linedefined)
end

local COLOURS = { number = "cyan", string = "green", boolean = "yellow", ["nil"] = "yellow", ["function"] = "blue" }

local function scalar(x, style)
  local kind = type(x)
  local text = kind == "string" and quoted(x) or kind == "number" and number(x) or kind == "function" and describe_function(x)
    or tostring(x)
  return COLOURS[kind] and terminal.paint(text, COLOURS[kind], style.colours) or text
end

-- An object's own text, nil if x is no object; and whether the text fits the width.
local function object(x, style)
  local metatable = type(x) == "table" and debug.getmetatable(x)
  local plain, fits = metatable and rawget(metatable, "__tostring"), metatable and rawget(metatable, "__show")
  local f = (style.cut or not plain) and fits or plain
  if not f then
    return nil
  end
  local ok, text = pcall(f, x, style)
  return ok and tostring(text) or "(an object that does not print: " .. tostring(text) .. ")", f == fits
end

---- Tables ------------------------------------------------------------------------------------------------------------

local function key_order(a, b)
  if type(a) == type(b) and (type(a) == "string" or type(a) == "number") then
    return a < b
  elseif type(a) ~= type(b) then
    return type(a) < type(b)
  end
  return tostring(a) < tostring(b)
end

-- The first entries of a table as { key = text or nil, value = }, the list's entries first. Second result: how many are left out.
local function entries(t)
  local list, keys = {}, {}
  local n = #t
  for i = 1, math.min(n, ENTRIES) do
    list[i] = { value = rawget(t, i) }
  end
  for k in next, t do
    if not (type(k) == "number" and k >= 1 and k <= n and k % 1 == 0) then
      keys[#keys + 1] = k
    end
  end
  table.sort(keys, key_order)
  for i = 1, math.min(#keys, ENTRIES) do
    local k = keys[i]
    list[#list + 1] = {
      key = (type(k) == "string" and k:match "^[%a_][%w_]*$" or "[" .. (type(k) == "string" and quoted(k) or tostring(k)) .. "]")
        .. " = ", value = rawget(t, k),
    }
  end
  return list, n + #keys - #list
end

local function more(count)
  return ("%s %d more"):format(terminal.ellipsis(), count)
end

-- A value on one line of any length. above: the set of the tables that x lies in.
local function inline(x, style, depth, above)
  local text = object(x, style)
  if text then
    local first, rest = text:match "^([^\n]*)(.*)$"
    return rest == "" and first or first .. " " .. terminal.ellipsis()
  elseif type(x) ~= "table" then
    return (scalar(x, style):gsub("\n.*", " " .. terminal.ellipsis()))
  elseif next(x) == nil then
    return "{}"
  elseif above[x] then
    return "{ the table it is in }"
  elseif depth > DEPTH then
    return "{ " .. terminal.ellipsis() .. " }"
  end
  above[x] = true
  local parts = {}
  local list, left_out = entries(x)
  for i, entry in ipairs(list) do
    parts[i] = (entry.key or "") .. inline(entry.value, style, depth + 1, above)
  end
  parts[#parts + 1] = left_out > 0 and more(left_out) or nil
  above[x] = nil
  return "{ " .. table.concat(parts, ", ") .. " }"
end

-- A list of nothing but numbers as aligned columns, or nil if it is another table.
local function grid(t, style, indent)
  local cells, wide = {}, 0
  for i = 1, #t do
    if type(t[i]) ~= "number" then
      return nil
    end
    cells[i] = number(t[i])
    wide = math.max(wide, #cells[i])
  end
  local count = 0
  for _ in next, t do
    count = count + 1
  end
  if count ~= #t then
    return nil
  end
  local columns = math.max(1, math.floor((style.columns - indent - 2) / (wide + 2)))
  local lines = {}
  for first = 1, math.min(#cells, columns * ROWS), columns do
    local row = {}
    for i = first, math.min(#cells, first + columns - 1) do
      row[#row + 1] = (" "):rep(wide - #cells[i]) .. terminal.paint(cells[i], COLOURS.number, style.colours) .. ","
    end
    lines[#lines + 1] = (" "):rep(indent + 2) .. table.concat(row, " ")
  end
  if #cells > columns * ROWS then
    lines[#lines + 1] = (" "):rep(indent + 2) .. more(#cells - columns * ROWS)
  end
  return "{\n" .. table.concat(lines, "\n") .. "\n" .. (" "):rep(indent) .. "}"
end

-- On as many lines as it takes. The first begins at column `at`, the others at `indent`.
local function block(x, style, indent, at, depth, above)
  local line = inline(x, style, depth, above)
  local whole = type(x) ~= "table" or object(x, style) or above[x] or depth > DEPTH
  local numbers = not whole and grid(x, style, indent)
  if whole or at + terminal.width(line) <= style.columns and not (numbers and #x > ENTRIES) then
    return terminal.cut(line, style.columns - at)
  elseif numbers then
    return numbers
  end
  above[x] = true
  local lines = { "{" }
  local list, left_out = entries(x)
  for _, entry in ipairs(list) do
    local start = (" "):rep(indent + 2) .. (entry.key or "")
    lines[#lines + 1] = start .. block(entry.value, style, indent + 2, terminal.width(start) + 1, depth + 1, above) .. ","
  end
  lines[#lines + 1] = left_out > 0 and (" "):rep(indent + 2) .. more(left_out) or nil
  lines[#lines + 1] = (" "):rep(indent) .. "}"
  above[x] = nil
  return table.concat(lines, "\n")
end

---- Printing ----------------------------------------------------------------------------------------------------------

-- An object's own text: a table is cut at the terminal's edge, a single line is left to wrap.
local function cut_lines(text, style)
  if not style.cut or not text:find "\n" then
    return text
  end
  return (text:gsub("[^\n]+", function(line)
    return terminal.cut(line, style.columns)
  end))
end

--- The value as text. A string is itself: what has lines is to be read, not quoted.
function show.text(x, style)
  if type(x) == "string" then
    return x
  elseif type(x) == "number" then
    return terminal.paint(tostring(x), COLOURS.number, style.colours)
  elseif type(x) == "cdata" then
    return cut_lines(tostring(x), style)
  end
  local text, fits = object(x, style)
  return text and (fits and text or cut_lines(text, style)) or block(x, style, 0, 0, 1, {})
end

--- Prints values to standard output as the prompt does, and returns them.
function show.print(...)
  local style = show.style()
  for i = 1, select("#", ...) do
    io.write(show.text((select(i, ...)), style), "\n")
  end
  return ...
end

return show
