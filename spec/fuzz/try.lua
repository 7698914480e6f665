--- Gives one input to a driver:   try.lua NAME FILE
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
require "spec.helper"
local inputs = require "spec.fuzz.inputs"

local why = inputs.judge(require("spec.fuzz.drivers." .. arg[1]), inputs.read(arg[2]))
print(why or "nothing is wrong")
os.exit(not why, true)
