--- Terminal: the width, the characters and the colours that output may have, and the width of text.
local system = require "perigee.os"
local utf8 = require "perigee.base.utf8"

local terminal = {}

local DEFAULT = 80 -- columns

--- How many columns to print in: COLUMNS of the environment, else the width of the terminal behind standard output or error, else
-- 80.
function terminal.columns()
  local given = tonumber(os.getenv "COLUMNS")
  if given and given >= 1 and given % 1 == 0 then
    return given
  end
  return system.columns(1) or system.columns(2) or DEFAULT
end

--- Whether the locale's characters are UTF-8.
function terminal.utf8()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = os.getenv(name)
    if value and value ~= "" then
      return value:lower():find "utf%-?8" ~= nil
    end
  end
  return false
end

--- Whether to print colours to a file descriptor: if it is a terminal, TERM is not "dumb", and NO_COLOR is not set.
function terminal.colours(fd)
  local no = os.getenv "NO_COLOR"
  return system.is_terminal(fd) and (no == nil or no == "") and os.getenv "TERM" ~= "dumb"
end

local CODES = { red = 31, green = 32, yellow = 33, blue = 34, magenta = 35, cyan = 36, bold = 1, faint = 2 }

--- The text in a colour if `on` is true, else the text.
function terminal.paint(text, colour, on)
  return on and ("\27[%dm%s\27[0m"):format(CODES[colour], text) or text
end

---- Width of text -----------------------------------------------------------------------------------------------------

-- Code points, first and last, that take two columns (East Asian wide and emoji), and that take none.
local WIDE = {
  { 0x1100, 0x115F }, { 0x2E80, 0xA4CF }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF }, { 0xFE30, 0xFE6F }, { 0xFF01, 0xFF60 },
  { 0xFFE0, 0xFFE6 }, { 0x1F300, 0x1FAFF }, { 0x20000, 0x3FFFD },
}
local NONE = { { 0x0300, 0x036F }, { 0x200B, 0x200F }, { 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F } }

local function within(ranges, code)
  for _, range in ipairs(ranges) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
end

local function columns_of(character)
  local code = #character > 1 and utf8.code_point(character) or 0
  return #character == 1 and 1 or within(NONE, code) and 0 or within(WIDE, code) and 2 or 1
end

-- The characters of a text, one by one; a colour's code comes as one.
local function characters(text)
  local at = 1
  return function()
    if at <= #text then
      local found = text:match("^\27%[[%d;]*m", at) or utf8.at(text, at)
      at = at + #found
      return found
    end
  end
end

--- The number of columns that a line of text takes.
function terminal.width(text)
  local width = 0
  for c in characters(text) do
    width = width + (c:byte() == 27 and #c > 1 and 0 or columns_of(c))
  end
  return width
end

--- The mark for text that is left out.
function terminal.ellipsis()
  return terminal.utf8() and "…" or "..."
end

--- The line, cut to at most so many columns. A cut line ends in an ellipsis, and its colour ends there.
function terminal.cut(text, columns)
  if terminal.width(text) <= columns then
    return text
  end
  local mark = terminal.ellipsis()
  local room, kept, width, coloured = columns - terminal.width(mark), {}, 0, false
  for c in characters(text) do
    local code = c:byte() == 27 and #c > 1
    width = width + (code and 0 or columns_of(c))
    if width > room then
      break
    end
    coloured = coloured or code
    kept[#kept + 1] = c
  end
  return table.concat(kept) .. mark .. (coloured and "\27[0m" or "")
end

--- The line, cut at its beginning to at most so many columns, for names whose end says more.
function terminal.tail(text, columns)
  if terminal.width(text) <= columns then
    return text
  end
  local mark, kept = terminal.ellipsis(), {}
  for c in characters(text) do
    kept[#kept + 1] = c
  end
  local width, from = terminal.width(mark), #kept + 1
  while from > 1 and width + columns_of(kept[from - 1]) <= columns do
    from = from - 1
    width = width + columns_of(kept[from])
  end
  return mark .. table.concat(kept, "", from)
end

return terminal
