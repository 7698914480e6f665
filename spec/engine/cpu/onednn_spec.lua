-- oneDNN on our packed bytes: exact where it may be chosen in place of our kernels, refused where it would not be.
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  int spec_onednn(int isa, int f32, int64_t rows, int64_t K, int64_t N, char *why, int64_t bytes);
  int spec_onednn_threads(int isa, int threads);
  int spec_onednn_fork(int isa, int times);
  const char *spec_onednn_missing(int isa);
  const char *spec_onednn_inexact(int isa);
  const char *spec_onednn_name(int isa, int f32, int64_t rows, int64_t K, int64_t N);
]]

local why = ffi.new "char[256]"
local out = ffi.new "int[1]"

local function isa_in_force()
  assert.equal(C.PGEE_OK, C.pgee_isa(out))
  return out[0]
end

local function text(s)
  return s ~= nil and ffi.string(s) or nil
end

-- The output of a new process whose environment has `settings`, written in shell syntax.
local function elsewhere(settings, expression)
  local program = ([[
    package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
    local ffi = require "ffi"
    local C = require("spec.support.native").cdef "const char *spec_onednn_missing(int); const char *spec_onednn_inexact(int);"
    local isa = ffi.new "int[1]"
    assert(C.pgee_isa(isa) == 0)
    isa = isa[0]
    local function text(s) return s ~= nil and ffi.string(s) or "nothing" end
    io.write(%s)
  ]]):format(expression)
  local command = "%s PERIGEE_LIB='%s' luajit - 2>&1 <<'END'\n%s\nEND"
  local pipe = assert(io.popen(command:format(settings, os.getenv "PERIGEE_LIB", program)))
  local said = pipe:read "*a"
  pipe:close()
  return said
end

-- NULL, or why oneDNN's FP32 is not there: below AVX-512 it has no fast kernel for panels of 64.
local function no_f32(isa)
  local why_not = C.spec_onednn_missing(isa)
  if why_not == nil and C.spec_onednn_name(isa, 1, 64, 64, 64) == nil then
    return "oneDNN has no FP32 kernel here"
  end
  return why_not
end

-- NULL, or that this library was built without its headers, and looks for it nowhere.
local function not_built(isa)
  local why_not = text(C.spec_onednn_missing(isa))
  return why_not and why_not:match "^this build has no oneDNN.*"
end

describe("oneDNN", function()
  local function check(title, f, no)
    it(title, function()
      local isa = isa_in_force()
      local reason = (no or C.spec_onednn_inexact)(isa)
      if reason ~= nil then
        return pending(type(reason) == "string" and reason or ffi.string(reason))
      end
      f(isa)
    end)
  end

  local SHAPES = { { 1, 1, 1 }, { 1, 64, 64 }, { 2, 65, 63 }, { 5, 120, 136 }, { 7, 384, 65 }, { 63, 64, 129 }, { 64, 100, 64 },
    { 65, 64, 64 }, { 127, 131, 70 }, { 3, 1536, 384 }, { 130, 17, 200 } }

  local function equal(isa, f32)
    for _, s in ipairs(SHAPES) do
      local ok = C.spec_onednn(isa, f32, s[1], s[2], s[3], why, 256) == 1
      assert(ok, ("%dx%dx%d: %s"):format(s[1], s[2], s[3], ffi.string(why)))
    end
  end

  check("multiplies u8 by packed s8 exactly", function(isa)
    equal(isa, 0)
  end)

  check("multiplies FP32 by packed FP32", function(isa)
    equal(isa, 1)
  end, no_f32)

  check("serves several threads at once", function(isa)
    assert.equal(1, C.spec_onednn_threads(isa, 8))
  end)

  check("serves a process that was forked, whatever its parent was doing", function(isa)
    if os.getenv "PERIGEE_HARD" then
      return pending "AddressSanitizer's allocator may stay locked in a child whose parent allocates on another thread"
    end
    assert.equal(1, C.spec_onednn_fork(isa, 8))
  end)

  check("keeps working past the number of primitives that it keeps", function(isa)
    for i = 1, 300 do
      local ok = C.spec_onednn(isa, 0, 1 + i % 64, 64, 64 + math.floor(i / 64), why, 256) == 1
      assert(ok, ffi.string(why))
    end
    equal(isa, 0)
  end)

  check("says what multiplies", function(isa)
    local name = text(C.spec_onednn_name(isa, 0, 128, 384, 384))
    assert.is_string(name)
    assert.is_nil(name:find "ref")
    assert.equal(no_f32(isa) == nil, text(C.spec_onednn_name(isa, 1, 1000, 384, 384)) ~= nil)
  end)

  check("is not used if PERIGEE_ONEDNN says so", function()
    assert.equal('PERIGEE_ONEDNN is "none"', elsewhere("PERIGEE_ONEDNN=none", "text(C.spec_onednn_missing(isa))"))
  end, not_built)

  check("is not looked for elsewhere if the path in PERIGEE_ONEDNN is wrong", function()
    assert.matches("/no/such/file", elsewhere("PERIGEE_ONEDNN=/no/such/file", "text(C.spec_onednn_missing(isa))"))
  end, not_built)

  check("is not what it is taken for if it has none of its functions", function()
    assert.matches("dnnl_version", elsewhere("PERIGEE_ONEDNN=libm.so.6", "text(C.spec_onednn_missing(isa))"))
  end, not_built)

  check("does not multiply INT8 where PERIGEE_ISA leaves it without VNNI", function()
    local said = elsewhere("PERIGEE_ISA=avx2", "text(C.spec_onednn_missing(isa)), '; ', text(C.spec_onednn_inexact(isa))")
    assert.matches("^nothing; .*VNNI", said)
  end, C.spec_onednn_missing)
end)
