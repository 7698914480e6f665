--- Lets `require` find the modules of the source tree, or of the prefix that this was installed under, and what recipes share. A
-- recipe that you copy does without this file if LUA_PATH says where the modules are.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local load = loadfile(here .. "/../lua/perigee/find.lua") or loadfile(here .. "/../../lua/5.1/perigee/find.lua")
local find = load and load() or require "perigee.find"
find.also(here)
