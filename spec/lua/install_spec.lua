-- An installed copy works without the source tree: `make install` into a folder whose name has a space and quotes in it, then a C
-- program and LuaJIT that know only that folder. (The hard build is not one to install.)
local ffi = require "ffi"
local hard = os.getenv "PERIGEE_HARD"
local it = hard and pending or it

local version = ffi.string(require("perigee.ffi").C.pgee_version())

local function run(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; echo $?"))
  local output, status = pipe:read("*a"):match "^(.*)(%d+)\n$"
  pipe:close()
  return output, tonumber(status)
end

local function succeeds(command)
  local output, status = run(command)
  assert(status == 0, output)
  return output
end

describe("make install", function()
  local folder, prefix, quoted

  lazy_setup(function()
    folder = succeeds("mktemp -d"):match "%S+"
    prefix = folder .. [[/it's "here"]]
    quoted = folder .. [[/it\'s\ \"here\"]] -- for the shell
    succeeds(("make --no-print-directory install PREFIX=%s DESTDIR=%s"):format(quoted:sub(#folder + 1), folder))
  end)

  lazy_teardown(function()
    succeeds("rm -r " .. folder)
  end)

  -- What a program prints that knows only where the modules are.
  local function luajit(arguments)
    return succeeds(("cd %s/share/lua/5.1 && export LUA_PATH=\"$PWD/?.lua;$PWD/?/init.lua;;\" && cd / && "
      .. "env -u PERIGEE_LIB luajit %s"):format(quoted, arguments))
  end

  it("puts the library beside the links that name its versions", function()
    local lib = quoted .. "/lib/libperigee.so"
    assert.equal(("libperigee.so.0\nlibperigee.so.%s\n"):format(version), succeeds(("readlink %s %s.0"):format(lib, lib)))
  end)

  it("installs a header that C can use", function()
    local program = folder .. "/program"
    local file = assert(io.open(program .. ".c", "w"))
    file:write [[
#include <perigee.h>
#include <stdio.h>
int main(void) { return puts(pgee_version()) < 0; }
]]
    file:close()
    succeeds(("gcc -Wall -Werror -I%s/include %s.c -o %s -L%s/lib -lperigee"):format(quoted, program, program, quoted))
    assert.equal(version .. "\n", succeeds(("LD_LIBRARY_PATH=%s/lib %s"):format(quoted, program)))
  end)

  it("installs modules that find the library", function()
    local path = luajit [[-e 'print(require("perigee.ffi").path)']]
    assert.truthy(path:find(prefix, 1, true), path)
  end)

  it("installs recipes that find the modules themselves, and quantize a checkpoint", function()
    local here = succeeds("pwd"):match "[^\n]+"
    local recipe = "cd / && env -u PERIGEE_LIB -u LUA_PATH luajit " .. quoted .. "/share/perigee/recipes/%s.lua %s"
    local output = succeeds(recipe:format("bert_static", "--samples 4 --seconds 0 --model '" .. here
      .. "/spec/golden/checkpoints/embedder'"))
    assert.matches("statistics  4 texts", output)
    assert.matches("alpha 0.50: SQNR", succeeds(recipe:format("linear_by_hand", "")), 1, true)
    for _, name in ipairs { "alpha", "as_distilbert", "bench", "bert_dynamic", "register_model", "repl" } do
      assert.matches("Usage: " .. name, succeeds(recipe:format(name, "--help")), 1, true)
    end
    assert.are.same({ "usage: parallel.sh N INPUT OUTPUT [OPTION OF pipe.lua...]\n", 2 },
      { run(quoted .. "/share/perigee/recipes/cluster/parallel.sh") })
  end)
end)
