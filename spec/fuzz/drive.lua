--- Drives one of spec/fuzz/drivers with mutated inputs:   drive.lua NAME SECONDS [SEED]
--
-- The current input is in build/fuzz/found/NAME/current, for the case that the process dies or is killed because it hangs. Inputs
-- that fail are kept in the same folder, and then the status at the end is 1. Inputs are made from the driver's seeds and from
-- spec/fuzz/corpus/NAME.
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
require "spec.helper"
local ffi = require "ffi"
local inputs = require "spec.fuzz.inputs"
local mutate = require "spec.fuzz.mutate"

pcall(ffi.cdef, "unsigned alarm(unsigned seconds);")
local HANGS = 60 -- seconds

local name, seconds, seed = arg[1], tonumber(arg[2]), tonumber(arg[3] or os.time())
local driver = require("spec.fuzz.drivers." .. name)
local found = "build/fuzz/found/" .. name
assert(os.execute("mkdir -p " .. found) == 0)

local list = driver.seeds and driver.seeds() or {}
for _, input in ipairs(inputs.corpus(name)) do
  list[#list + 1] = input.bytes
end

local function next_input(random)
  return driver.generate and driver.generate(random) or mutate.any(list[random(#list)], list, random, driver.titled)
end

local tries, wrong, seen, deadline = 0, 0, {}, os.time() + seconds
while os.time() < deadline do
  local input = next_input(mutate.generator(seed + tries))
  inputs.write(found .. "/current", input)
  ffi.C.alarm(HANGS)
  local why = inputs.judge(driver, input)
  ffi.C.alarm(0)
  tries = tries + 1
  local kind = why and why:gsub("%d+", "0"):gsub("'[^']*'", "''")
  if why and not seen[kind] then
    wrong, seen[kind] = wrong + 1, true
    local path = ("%s/%d-%d"):format(found, seed, tries)
    inputs.write(path, input)
    io.stderr:write(("%s: %s\n"):format(path, why))
  end
end
os.remove(found .. "/current")
print(("%s: %d inputs from seed %d, %d kinds of failure"):format(name, tries, seed, wrong))
os.exit(wrong == 0 and 0 or 1, true)
