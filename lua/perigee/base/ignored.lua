--- Ignored keys: keys of the files beside a checkpoint's weights that have no effect here.
--
-- Each key of such a file is obeyed, or it is an error, or its reader puts it on this list with the reason:
--   ignored:add(path, "padding_side", "a batch has no padding")
--   ignored[1]              --> { file = path, key = "padding_side", reason = "a batch has no padding" }
--   tostring(ignored)       -- one line for each key
--   ignored:summary()       -- one line for all keys
local Ignored = {}
Ignored.__index = Ignored

function Ignored.new()
  return setmetatable({}, Ignored)
end

--- Adds a key of the file `path`, unless it is on the list. reason: why it has no effect, in a few words.
function Ignored:add(path, key, reason)
  for _, entry in ipairs(self) do
    if entry.file == path and entry.key == key then
      return
    end
  end
  self[#self + 1] = { file = path, key = key, reason = reason }
end

local function line_of(entry)
  return ("%s of %s: %s"):format(entry.key, entry.file:match "[^/]*$", entry.reason)
end

function Ignored:__tostring()
  local lines = {}
  for i, entry in ipairs(self) do
    lines[i] = line_of(entry)
  end
  return table.concat(lines, "\n")
end

--- One line that names all keys.
function Ignored:summary()
  local names = {}
  for i, entry in ipairs(self) do
    names[i] = ("%s (%s)"):format(entry.key, entry.file:match "[^/]*$")
  end
  return ("%d %s no effect: %s"):format(#self, #self == 1 and "key of the checkpoint's files has"
    or "keys of the checkpoint's files have", table.concat(names, ", "))
end

return Ignored
