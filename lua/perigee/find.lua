--- Find: makes `require` find Perigee's modules in the folder of this file. package.path would not do: it takes `?` and `;` in
-- the name of a folder for a pattern, and a relative path in it leads elsewhere once the process changes its directory.
--
--   local find = dofile "/path/to/lua/perigee/find.lua"     -- or require "perigee.find"
--   find.also "recipes"                                     -- other modules may lie in that folder
--   find.path "perigee.tensor"                              -- "/path/to/lua/perigee/tensor.lua"; nil if there is no such module
--   find.absolute "recipes"                                 -- "/path/to/recipes"
local ffi = require "ffi"

if type(package.loaded["perigee.find"]) == "table" then -- while a module loads, another type of value stands there
  return package.loaded["perigee.find"]
end

ffi.cdef [[
  char *realpath(const char *path, char *resolved);
  void free(void *pointer);
]]

local find = {}

--- The absolute path without symbolic links; the path unchanged if nothing has that path.
function find.absolute(path)
  local found = ffi.C.realpath(path, nil)
  if found == nil then
    return path
  end
  local text = ffi.string(found)
  ffi.C.free(found)
  return text
end

--- The working directory of the process when it loaded this module. Relative paths in environment variables start there,
-- because a host may change its working directory later.
find.started = find.absolute "."

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."

--- The folder of perigee's folder, from the root.
find.folder = find.absolute(here .. "/..")

local folders = {}

--- Whether a file can be opened.
function find.exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

--- The file of a module, or nil.
function find.path(name)
  local below = "/" .. name:gsub("%.", "/")
  local own = name == "perigee" or name:sub(1, 8) == "perigee."
  for _, folder in ipairs(own and { find.folder } or folders) do
    for _, path in ipairs { folder .. below .. ".lua", folder .. below .. "/init.lua" } do
      if find.exists(path) then
        return path
      end
    end
  end
end

--- From now on `require` looks in this folder, too, for modules whose name does not begin with "perigee".
function find.also(folder)
  table.insert(folders, 1, find.absolute(folder))
end

table.insert(package.loaders, 2, function(name) -- after what is loaded already, before package.path
  local path = find.path(name)
  return path and assert(loadfile(path)) or nil
end)
package.loaded["perigee.find"] = find

return find
