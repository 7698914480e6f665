-- recipes/embed: programs in C and in Python that answer from an artifact, beside what Lua answers.
local ffi = require "ffi"
local files = require "spec.support.files"
local locale = require "spec.support.locale"
local models = require "spec.support.models"
local perigee = require "perigee"

local TEXTS = { "a text", "another, longer text", "é 😀", "" }
local LIB = "build/libperigee.so"

local function run(command)
  local line = "PERIGEE_LIB=$PWD/%s LUA_PATH='lua/?.lua;lua/?/init.lua;;' %s 2>&1; echo \"status $?\""
  local process = assert(io.popen(line:format(LIB, command)))
  local text = process:read "*a"
  process:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

-- A python3 that has these modules, or nil.
local function python(modules)
  for _, path in ipairs { "python3", "/usr/bin/python3" } do
    if os.execute(("%s -c 'import %s' 2> /dev/null"):format(path, modules)) == 0 then
      return path
    end
  end
end

-- Prints where the module is, and whether it answers.
local PRINTS = [[
import os, sys
import perigee
with perigee.open(sys.argv[1]) as model:
    vector = model.embed("a text")
    print(os.path.dirname(perigee.__file__).split("/lib/")[0], abs(vector @ vector - 1) < 1e-6)
]]

describe("embedded", function()
  local q = perigee.load(models.path "embedder"):quantize { activations = "dynamic" }
  local artifact

  before_each(function()
    artifact = files.write ""
    q:save(artifact)
  end)
  after_each(files.clean)

  it("in C: two Lua states in two threads give the bits that Lua gives", function()
    if os.getenv "PERIGEE_HARD" or not models.exists "build/embed/host" or not models.exists(LIB) then
      return pending "there is no build/embed/host; `make embed` makes it"
    end
    local want = q:embed { "a text", "another" }
    local text, status = run(("build/embed/host %s 'a text' another"):format(artifact))
    assert.are.equal(0, status, text)
    local i = 0
    for a, b, c, said in text:gmatch "(%S+) (%S+) (%S+) %.%.%. %(32%), cosine [%d.]+: ([^\n]*)\n" do
      i = i + 1
      for k, v in ipairs { a, b, c } do
        assert.are.equal(want[i][k], tonumber(ffi.new("float[1]", tonumber(v))[0]))
      end
      assert.are.equal(({ "a text", "another" })[i], said)
    end
    assert.are.equal(2, i, text)

    text, status = run "build/embed/host /nowhere text"
    assert.are.equal(1, status)
    assert.matches("host: session 1: [^\n]*'/nowhere'[^\n]*\nhost: session 2: ", text)
  end)

  it("in Python: arrays without copies, errors, threads, fork", function()
    local interpreter = python "numpy"
    if os.getenv "PERIGEE_HARD" or not interpreter or not models.exists(LIB) then
      return pending "there is no python3 with NumPy, or no build/libperigee.so"
    end
    local want = q:embed(TEXTS)
    local vectors = files.write(ffi.string(want:pointer(), 4 * #want * want.shape[2]))
    local text, status = run(("LOCPATH='%s' timeout 200 %s spec/recipes/embed.py %s %s %s %s"):format(locale.folder() or "",
      interpreter, artifact,
      models.path "pairs", vectors, files.write ""))
    assert.are.same({ "ok\n", 0 }, { text, status })
  end)

  it("in Python, installed by pip: from the tree, and from where make install put it", function()
    local interpreter = python "numpy, ensurepip, setuptools, wheel"
    if os.getenv "PERIGEE_HARD" or not interpreter or not models.exists(LIB) then
      return pending "there is no python3 with NumPy, venv, setuptools and wheel, or no build/libperigee.so"
    end
    local folder, top = files.folder { ["print.py"] = PRINTS }, files.top()
    local function shell(command)
      local process = assert(io.popen(("{ %s\n} 2>&1; echo \"status $?\""):format(command)))
      local output, status = process:read("*a"):match "^(.*)status (%d+)\n$"
      process:close()
      return output, tonumber(status)
    end
    -- Installs from `path` without a network. Returns the output and the status of a program that finds only that installation.
    local function installed_from(path)
      local pip = "%s/v/bin/pip install --quiet --force-reinstall --no-index --no-deps --no-build-isolation '%s'"
      assert.are.same({ "", 0 }, { shell(pip:format(folder, path)) })
      return shell(("cd / && env -u PERIGEE_LIB -u LUA_PATH %s/v/bin/python %s/print.py %s"):format(folder, folder, artifact))
    end
    local want = ("%s/v True\n"):format(folder)
    assert.are.same({ "", 0 }, { shell(("%s -m venv --system-site-packages %s/v"):format(interpreter, folder)) })
    local before = shell "git status --short 2> /dev/null; ls recipes/embed"
    assert.are.same({ want, 0 }, { installed_from(top .. "/recipes/embed") })
    assert.are.equal(before, (shell "git status --short 2> /dev/null; ls recipes/embed")) -- nothing is left behind

    local prefix = folder .. "/prefix"
    assert.are.equal(0, select(2, shell("make install DESTDIR= PREFIX=" .. prefix)))
    assert.are.same({ want, 0 }, { installed_from(prefix .. "/share/perigee/recipes/embed") })
    shell("rm -r " .. prefix)
    local text, status = shell(("LUA_PATH=/nowhere/?.lua %s/v/bin/python %s/print.py %s"):format(folder, folder, artifact))
    assert.are.equal(1, status)
    assert.matches("Perigee's Lua modules are not where this file was installed from, " .. prefix, text, 1, true)
  end)
end)
