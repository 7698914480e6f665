-- perigee.ffi: the library that it loads, how it raises failures, how it makes objects of handles.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local files = require "spec.support.files"
local live = require "spec.support.live"
local skip = require "spec.support.skip"
local C = pgee.C

-- Runs a script in a fresh interpreter, with these environment variables, in this folder. Returns what it prints.
local function run(script, variables, folder)
  local path = files.write(script)
  local command = ("cd %s && env -u PERIGEE_LIB %s luajit %s 2>&1"):format(folder or ".", variables or "", path)
  local pipe = assert(io.popen(command))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local function here()
  local pipe = io.popen "pwd"
  local path = pipe:read "*l"
  pipe:close()
  return path
end

local LIBRARY = os.getenv "PERIGEE_LIB"
-- Sanitized libraries load only into spec/support's host.
local plain = not os.getenv "PERIGEE_HARD" and it or skip "another program than the host of sanitizers"

-- The modules that loading the library needs, by their paths in an installation prefix.
local MODULES = {}
for _, name in ipairs { "ffi", "find" } do
  MODULES[("share/lua/5.1/perigee/%s.lua"):format(name)] = io.open(("lua/perigee/%s.lua"):format(name)):read "*a"
end

describe("perigee.ffi", function()
  after_each(files.clean)

  local source = here() .. "/lua/?.lua"
  local prints_path = ('package.path = %q; print((require "perigee.ffi").path)'):format(source)

  plain("loads the library that PERIGEE_LIB names", function()
    assert.equal(LIBRARY .. "\n", run(prints_path, ("PERIGEE_LIB='%s'"):format(LIBRARY), "/"))
  end)

  plain("loads nothing else if PERIGEE_LIB cannot be loaded", function()
    local missing = run(prints_path, "PERIGEE_LIB=/nowhere/libperigee.so")
    local expected = "PERIGEE_LIB is '/nowhere/libperigee.so', which cannot be loaded: /nowhere/libperigee.so: "
    assert.truthy(missing:find(expected, 1, true), missing)
    local text = files.write "not a library"
    local broken = run(prints_path, "PERIGEE_LIB=" .. text)
    assert.truthy(broken:find(("PERIGEE_LIB is '%s', which cannot be loaded: "):format(text), 1, true), broken)
  end)

  plain("says which places it looked at when there is no library", function()
    local dir = files.folder(MODULES)
    local script = ('package.path = %q; require "perigee.ffi"'):format(dir .. "/share/lua/5.1/?.lua")
    local text = run(script)
    if text == "" then
      pending "a Perigee is installed on this system"
      return
    end
    local module = dir .. "/share/lua/5.1/perigee"
    for _, place in ipairs { "/libperigee.so", "/../../build/libperigee.so", "/../../../../lib/libperigee.so.0" } do
      assert.truthy(text:find(module .. place .. ",", 1, true), text)
    end
  end)

  plain("prefers the library beside the module, then that of the prefix", function()
    local dir = files.folder {
      ["lib/libperigee.so.0"] = "", ["share/lua/5.1/perigee/ffi.lua"] = MODULES["share/lua/5.1/perigee/ffi.lua"],
      ["share/lua/5.1/perigee/find.lua"] = MODULES["share/lua/5.1/perigee/find.lua"],
    }
    local module = dir .. "/share/lua/5.1/perigee"
    local script = ('package.path = %q; print((require "perigee.ffi").path)'):format(dir .. "/share/lua/5.1/?.lua")
    os.execute(("cp '%s' %s/lib/libperigee.so.0"):format(LIBRARY, dir))
    assert.equal(module .. "/../../../../lib/libperigee.so.0\n", run(script))
    os.execute(("cp '%s' %s/libperigee.so"):format(LIBRARY, module))
    assert.equal(module .. "/libperigee.so\n", run(script))
  end)

  plain("tells a library that is another's", function()
    local text = run(prints_path, "PERIGEE_LIB=libm.so.6")
    assert.truthy(text:find("libm.so.6 is not Perigee's library: /", 1, true), text)
    assert.falsy(text:find "library: [^\n]*ffi%.lua:%d", text)
  end)

  it("can be loaded again", function()
    local before = package.loaded["perigee.ffi"]
    finally(function() package.loaded["perigee.ffi"] = before end)
    package.loaded["perigee.ffi"] = nil
    local again = require "perigee.ffi"
    assert.are_not.equal(before, again)
    assert.equal(ffi.string(C.pgee_version()), ffi.string(again.C.pgee_version()))
  end)

  it("raises the library's message, blaming the line outside of these modules", function()
    local perigee = require "perigee"
    local function message_of(f)
      local _, message = pcall(f)
      return message
    end
    local function line_of(f)
      return ("%s:%d: "):format(debug.getinfo(f, "S").short_src, debug.getinfo(f, "S").linedefined + 1)
    end
    for expected, f in pairs {
      ["cannot open '/nowhere': No such file"] = function()
        local opened = require("perigee.safetensors").open "/nowhere"
        return opened
      end,
      ["[2] is a list of 2, expected a list of 1"] = function() -- two modules deep
        local w = perigee.packed.new { { 1 }, { 1, 2 } }
        return w
      end,
      ["'/nowhere'"] = function() -- in protected mode inside
        local model = perigee.load "/nowhere"
        return model
      end,
    } do
      local message = message_of(f)
      assert.equal(line_of(f), message:sub(1, #line_of(f)), message)
      assert.matches(expected, message, 1, true)
      assert.is_nil(message:find("lua/perigee/", 1, true), message)
    end
    assert.matches("^cannot open '/nowhere'", message_of(function() return require("perigee.safetensors").open "/nowhere" end))
    pgee.check(C.PGEE_OK)
  end)

  it("makes one place for each type", function()
    for _, ctype in ipairs { "pgee_tensor *", "pgee_safetensors *", "double", "int64_t" } do
      assert.equal(tostring(ffi.typeof(ctype .. "[1]")), tostring(ffi.typeof(pgee.out(ctype))))
    end
  end)

  it("describes values", function()
    assert.equal("nil", pgee.describe(nil))
    assert.equal("1.5", pgee.describe(1.5))
    assert.equal("true", pgee.describe(true))
    assert.equal("the string 'a'", pgee.describe "a")
    assert.equal("the string '" .. ("a"):rep(40) .. "…'", pgee.describe(("a"):rep(41)))
    assert.equal("a table", pgee.describe {})
    assert.equal("a function", pgee.describe(print))
    assert.equal("a tensor F32 [1]", pgee.describe(require("perigee.tensor").from { 1 }))
  end)

  describe("objects", function()
    -- busted remembers types by their text: the space keeps this one apart from perigee.tensor's.
    local class = pgee.class("thing", "pgee_tensor ", "pgee_tensor_free", {})
    local out = pgee.out "pgee_tensor *"

    local function thing()
      pgee.check(C.pgee_tensor_new(out, C.PGEE_F32, 1, ffi.new("int64_t[1]", 1000)))
      return class.wrap(out[0])
    end

    it("own their handle until they are collected", function()
      local before = live()
      local x = thing()
      assert.is_true(class.is(x))
      assert.is_true(live() > before)
      x = nil -- luacheck: ignore
      assert.equal(before, live())
    end)

    it("are freed at once by release, and only once", function()
      local x
      assert.equal(0, (live.during(function()
        x = thing()
        class.release(x)
        class.release(x)
      end)))
      assert.error_matches(function() class.handle(x, "x") end, "x: this thing was released")
    end)

    it("are told from everything else", function()
      assert.is_false(class.is(nil))
      assert.is_false(class.is {})
      assert.is_false(class.is(require("perigee.tensor").from { 1 }))
      assert.error_matches(function() class.handle("a", "x") end, "x is the string 'a', expected a thing")
      assert.error_matches(function() class.handle(nil) end, "thing is nil, expected a thing")
    end)

    it("are equal if they are the same", function()
      local x, y = thing(), thing()
      assert.is_true(x == x) -- luacheck: ignore
      assert.is_false(x == y)
      assert.is_false(x == nil)
      assert.is_false(x == 3)
    end)

    it("are collected when what they hold has grown far", function()
      local before = live()
      local function big()
        pgee.check(C.pgee_tensor_new(out, C.PGEE_U8, 1, ffi.new("int64_t[1]", 64 * 2 ^ 20)))
        return class.wrap(out[0])
      end
      C.pgee_peak_reset()
      for _ = 1, 8 do
        big()
      end
      assert.is_true(tonumber(C.pgee_peak_bytes()) < 2 * before + 384 * 2 ^ 20)
    end)
  end)
end)
