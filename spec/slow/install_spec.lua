-- An installed copy works without the source tree: `make install` into a folder whose name has spaces and quotes in it, then
-- programs that know only that folder. (The hard build is not one to install.)
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local skip = require "spec.support.skip"
local hard = os.getenv "PERIGEE_HARD"
local it = hard and skip "a build with sanitizers is not installed" or it

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

local function quote(text)
  return "'" .. text:gsub("'", [['\'']]) .. "'"
end

local function make(target, prefix, destination)
  local command = "make --no-print-directory %s PREFIX=%s DESTDIR=%s"
  return run(command:format(target, quote(prefix), quote(destination or "")))
end

-- Everything below a folder, sorted; folders end with a slash.
local function listed(folder)
  local command = "cd %s && find . -mindepth 1 -type d -printf '%%P/\\n' -o -printf '%%P\\n' | LC_ALL=C sort"
  return succeeds(command:format(quote(folder)))
end

local here = succeeds("pwd"):match "[^\n]+"
local embedder = quote(here .. "/" .. models.path "embedder")

local PROGRAM = [[
#include <perigee.h>
#include <stdio.h>
int main(void) { return puts(pgee_version()) < 0; }
]]

describe("make install", function()
  local folder, prefix, quoted

  lazy_setup(function()
    folder = succeeds("mktemp -d"):match "%S+"
    prefix = folder .. [[/it's "here"]]
    quoted = quote(prefix)
    assert.are.equal(0, select(2, make("install", prefix:sub(#folder + 1), folder)))
  end)

  lazy_teardown(function()
    succeeds("rm -r " .. folder)
  end)

  -- Runs luajit with no more than the path of the installed modules. Returns what it prints.
  local function luajit(arguments)
    return succeeds(("cd %s/share/lua/5.1 && export LUA_PATH=\"$PWD/?.lua;$PWD/?/init.lua;;\" && cd / && "
      .. "env -u PERIGEE_LIB luajit %s"):format(quoted, arguments))
  end

  it("puts the library beside the links that name its versions", function()
    local lib = quoted .. "/lib/libperigee.so"
    local soname = "libperigee.so." .. version:match "^%d+"
    local links = succeeds(("readlink %s %s/lib/%s"):format(lib, quoted, soname))
    assert.equal(("%s\nlibperigee.so.%s\n"):format(soname, version), links)
    assert.matches("SONAME%).*%[" .. soname:gsub("%.", "%%.") .. "%]", succeeds("LC_ALL=C readelf -d " .. lib))
  end)

  it("installs a header that C can use", function()
    local program = folder .. "/program"
    files.put(program .. ".c", PROGRAM)
    succeeds(("gcc -Wall -Werror -I%s/include %s.c -o %s -L%s/lib -lperigee"):format(quoted, program, program, quoted))
    assert.equal(version .. "\n", succeeds(("LD_LIBRARY_PATH=%s/lib %s"):format(quoted, program)))
  end)

  it("installs modules that find the library", function()
    local path = luajit [[-e 'print(require("perigee.ffi").path)']]
    assert.truthy(path:find(prefix, 1, true), path)
  end)

  it("installs recipes that find the modules themselves, and quantize a checkpoint", function()
    local recipe = "cd / && env -u PERIGEE_LIB -u LUA_PATH luajit " .. quoted .. "/share/perigee/recipes/%s.lua %s"
    local output = succeeds(recipe:format("bert_static", "--samples 4 --seconds 0 --model " .. embedder))
    assert.matches("statistics  4 texts", output)
    assert.matches("alpha 0.50: SQNR", succeeds(recipe:format("linear_by_hand", "")), 1, true)
    for _, name in ipairs { "alpha", "as_distilbert", "bench", "bert_dynamic", "quantize", "register_model", "repl" } do
      assert.matches("Usage: " .. name, succeeds(recipe:format(name, "--help")), 1, true)
    end
    assert.are.same({ "usage: parallel.sh N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]\n", 2 },
      { run(quoted .. "/share/perigee/recipes/cluster/parallel.sh") })
  end)

  it("lists all that it puts there, documents too", function()
    local list = models.read(prefix .. "/share/perigee/installed")
    assert.are.equal(listed(prefix), list)
    for _, name in ipairs { "LICENSE", "CHANGELOG.md", "README.md", "lua/README.md", "recipes/data/README.md" } do
      assert.are.equal(models.read(name), models.read(prefix .. "/share/doc/perigee/" .. name))
    end
    assert.falsy(list:find "pycache")
  end)
end)

-- In a path, LuaJIT takes `?` and `;` for a pattern, pkg-config quotes, and a shell all of these.
describe("an installed Perigee", function()
  local folder, prefix, program

  lazy_setup(function()
    folder = succeeds("mktemp -d"):match "%S+"
    prefix = folder .. [[/it's "a"; b?]]
    program = quote(prefix .. "/bin/perigee")
    assert.are.equal(0, select(2, make("install", prefix)))
  end)

  lazy_teardown(function()
    succeeds("rm -r " .. folder)
  end)

  local function perigee(arguments, name)
    return run(("cd / && env -u PERIGEE_LIB LUA_PATH='/nowhere/?.lua;;' %s %s"):format(name or program, arguments))
  end

  it("has a perigee.pc for PREFIX, whatever DESTDIR is", function()
    files.put(folder .. "/program.c", PROGRAM)
    local with = "export PKG_CONFIG_PATH=" .. quote(prefix .. "/lib/pkgconfig") .. " && "
    assert.are.equal(version .. "\n", succeeds(with .. "pkg-config --modversion perigee"))
    local compile = 'eval "gcc -Werror %s/program.c -o %s/program $(pkg-config --cflags --libs perigee)"'
    succeeds(with .. compile:format(folder, folder))
    assert.are.equal(version .. "\n", succeeds(("cd %s && LD_LIBRARY_PATH=. %s/program"):format(quote(prefix .. "/lib"), folder)))

    assert.are.equal(0, select(2, make("install", "/opt/x", folder .. "/image")))
    assert.matches("^prefix=/opt/x\n", models.read(folder .. "/image/opt/x/lib/pkgconfig/perigee.pc"))
  end)

  it("runs recipes by one command, from any folder and by links, without LUA_PATH", function()
    local link = quote(folder .. "/a link")
    succeeds(("ln -sf %s %s"):format(program, link))
    assert.are.same({ "perigee " .. version .. "\n", 0 }, { perigee("--version", link) })
    local help, status = perigee "--help"
    assert.are.equal(0, status)
    for command in help:gmatch "\n  (%S+)" do
      local text, code = perigee(command .. " --help", link)
      assert.are.equal(0, code, text)
      assert.matches("^Usage: perigee " .. command .. " ", text)
    end
    for given, mode in pairs {
      [""] = "static", ["--activations static"] = "static", ["--activations=dynamic"] = "dynamic",
    } do
      local text, code = perigee(("quantize --samples 4 %s --seconds 0 --model %s"):format(given, embedder), link)
      assert.are.equal(0, code, text)
      assert.matches('activations = "' .. mode .. '"', text)
      assert.matches("\n  " .. quote(folder .. "/a link") .. " pipe model.safetensors --lines < texts.txt\n", text, 1, true)
    end
    files.put(folder .. "/text", "a text\n")
    local text, code = perigee("pipe --quiet --lines --model " .. embedder .. " < " .. quote(folder .. "/text"), link)
    assert.are.equal(0, code, text)
    assert.matches('^{"result":%[', text)
  end)

  it("says what is wrong with a command", function()
    for arguments, why in pairs {
      train = "perigee: there is no command 'train'; `perigee --help` lists the commands\n",
    } do
      assert.are.same({ why, 2 }, { perigee(arguments) })
    end
    assert.are.same({ (perigee "--help"), 2 }, { perigee "" })
    local text, status = run("PERIGEE_LIB=/nowhere " .. program .. " --version")
    assert.are.equal(2, status)
    assert.matches("^perigee: PERIGEE_LIB is '/nowhere', which cannot be loaded", text)
  end)

  it("is the same command in the source tree", function()
    assert.are.same({ "perigee " .. version .. "\n", 0 }, { perigee("--version", quote(here .. "/recipes/perigee")) })
  end)

  it("loses what a newer version has not, and by make uninstall all that is its own", function()
    local list = prefix .. "/share/perigee/installed"
    files.put(list, models.read(list) .. "share/perigee/gone.lua\n")
    files.put(prefix .. "/share/perigee/gone.lua", "")
    files.put(prefix .. "/lib/somebody's", "")
    assert.are.equal(0, select(2, make("install", prefix)))
    assert.falsy(models.exists(prefix .. "/share/perigee/gone.lua"))
    assert.falsy(models.read(list):find("gone", 1, true))
    local text, status = make("uninstall", prefix)
    assert.are.equal(0, status, text)
    assert.are.equal("lib/\nlib/somebody's\n", listed(prefix))
    text, status = make("uninstall", prefix)
    assert.are_not.equal(0, status)
    assert.matches("make uninstall: there is no " .. list, text, 1, true)
  end)

  it("can be removed where installing it failed halfway", function()
    local half = folder .. "/half"
    succeeds("mkdir " .. half .. " && touch " .. half .. "/bin") -- no folder can have that name
    assert.are_not.equal(0, select(2, make("install", half)))
    assert.matches("\nlib/libperigee.so\n", models.read(half .. "/share/perigee/installed"), 1, true)
    assert.are.equal(0, select(2, make("uninstall", half)))
    assert.are.equal("bin\n", listed(half))
  end)
end)
