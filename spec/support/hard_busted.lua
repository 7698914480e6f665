--- Runs busted. hard_host runs this file, because it needs a Lua script and the command `busted` may be a shell script.
require "busted.runner" { standalone = false }
