-- Starts a server of two small models and asks it with clients.py: make serve-clients. Argument: a python that has the clients.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local perigee = require "perigee"
local server = require "spec.support.server"

local missing = server.missing()
if missing then
  io.stderr:write(missing, "\n")
  os.exit(1)
end
local arguments, paths = {}, {}
for i, name in ipairs { "sentence", "cross" } do
  paths[i] = os.tmpname()
  perigee.load("spec/golden/tasks/" .. name):quantize({ activations = "dynamic" }):save(paths[i])
  arguments[i] = name .. "=" .. paths[i]
end
local s = server.start(arguments, "--workers 2")
local status = os.execute(("%s spec/recipes/clients.py http://127.0.0.1:%d sentence cross"):format(arg[1], s.port))
s:stop()
for _, path in ipairs(paths) do
  os.remove(path)
end
os.exit(status == 0 and 0 or 1)
