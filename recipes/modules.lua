--- Makes `require` find Perigee's modules, in the source tree or in the prefix that this file was installed under, and the
-- modules that recipes share. A recipe that you copy does not need this file if LUA_PATH names the folder of the modules.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local load = loadfile(here .. "/../lua/perigee/find.lua") or loadfile(here .. "/../../lua/5.1/perigee/find.lua")
local find = load and load() or require "perigee.find"
find.also(here)
