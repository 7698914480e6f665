-- recipes/embed: programs in C and in Python that answer from an artifact, beside what Lua answers.
local ffi = require "ffi"
local files = require "spec.support.files"
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

-- A python3 that has NumPy, or nil.
local function python()
  for _, path in ipairs { "python3", "/usr/bin/python3" } do
    if os.execute(path .. " -c 'import numpy' 2> /dev/null") == 0 then
      return path
    end
  end
end

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
    local interpreter = python()
    if os.getenv "PERIGEE_HARD" or not interpreter or not models.exists(LIB) then
      return pending "there is no python3 with NumPy, or no build/libperigee.so"
    end
    local want = q:embed(TEXTS)
    local vectors = files.write(ffi.string(want:pointer(), 4 * #want * want.shape[2]))
    local text, status = run(("timeout 200 %s spec/support/embed.py %s %s %s"):format(interpreter, artifact, models.path "pairs",
      vectors))
    assert.are.same({ "ok\n", 0 }, { text, status })
  end)
end)
