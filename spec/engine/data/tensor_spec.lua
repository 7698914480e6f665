-- engine/tensor.c through its C functions; what Lua makes of it is in spec/lua/tensor_spec.lua.
local bit = require "bit"
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local safetensors = require "perigee.safetensors"
local files = require "spec.support.files"
local live = require "spec.support.live"
local native = require("spec.support.native").cdef [[
  int spec_tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
  int spec_tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
  void spec_tensor_row_f32(float *out, const pgee_tensor *t, int64_t i);
]]
local C = pgee.C

local function message()
  return ffi.string(C.pgee_message())
end

-- The bits of a tensor's first n floats, as unsigned numbers.
local function float_bits(t, n)
  local words, bits = ffi.cast("uint32_t *", (t:pointer())), {}
  for i = 0, n - 1 do
    bits[i] = tonumber(words[i])
  end
  return bits
end

-- All 65536 patterns as a tensor of a 16-bit type, at an even or odd address of a mapped file.
local function all_patterns(dtype, pad)
  local words = ffi.new("uint16_t[65536]")
  for i = 0, 65535 do
    words[i] = i
  end
  local path = files.write(files.pack({ { "t", dtype, { 65536 }, ffi.string(words, 131072) } }, pad))
  local f = safetensors.open(path)
  local t = f:tensor "t"
  f:close()
  return t
end

-- IEEE 754-2008 3.4 in exact double arithmetic: a second way to say what 16 bits mean, as the bits of a float.
local one = ffi.new("union { float f; uint32_t u; }")
local function meaning(bits, fraction_bits, exponent_bits)
  local sign, f = bit.band(bits, 0x8000) ~= 0, bits % 2 ^ fraction_bits
  local exponent = math.floor(bits % 0x8000 / 2 ^ fraction_bits)
  local bias = 2 ^ (exponent_bits - 1) - 1
  if exponent == 2 ^ exponent_bits - 1 then -- infinity, or a NaN made quiet that keeps its payload
    return (sign and 0x80000000 or 0) + 0x7f800000 + (f == 0 and 0 or bit.bor(0x400000, f * 2 ^ (23 - fraction_bits)))
  end
  local v = exponent == 0 and f * 2 ^ (1 - bias - fraction_bits) or (1 + f / 2 ^ fraction_bits) * 2 ^ (exponent - bias)
  one.f = v
  assert(one.f == v) -- exact
  return one.u + (sign and 0x80000000 or 0)
end

local function first_difference(t, fraction_bits, exponent_bits)
  local got = float_bits(t, 65536)
  for i = 0, 65535 do
    if got[i] ~= meaning(i, fraction_bits, exponent_bits) then
      return i
    end
  end
end

describe("tensor.c", function()
  after_each(files.clean)

  for _, pad in ipairs { 0, 1 } do
    it("widens every F16 exactly, mapped with " .. pad .. " bytes of padding", function()
      local wide = all_patterns("F16", pad):f32()
      assert.is_nil(first_difference(wide, 10, 5))
    end)

    it("widens every BF16 exactly, mapped with " .. pad .. " bytes of padding", function()
      local wide = all_patterns("BF16", pad):f32()
      assert.is_nil(first_difference(wide, 7, 8))
    end)
  end

  it("would not pass with one bit wrong", function()
    local wide = all_patterns("F16", 0):f32()
    local words = ffi.cast("uint32_t *", (wide:pointer()))
    words[1023] = bit.bxor(words[1023], 1)
    assert.equal(1023, first_difference(wide, 10, 5))
  end)

  it("converts integers and doubles to floats", function()
    for _, dtype in ipairs { "U8", "I8", "I32", "I64", "F64" } do
      local t = tensor.from({ { 1, 2, 100 }, { 0, 7, 5 } }, dtype)
      assert.same({ { 1, 2, 100 }, { 0, 7, 5 } }, t:f32():totable())
    end
    assert.same({ -128, -1, 127 }, tensor.from({ -128, -1, 127 }, "I8"):f32():totable())
    assert.same({ 1, 0 }, tensor.from({ true, false }, "BOOL"):f32():totable())
    assert.equal(16777216, tensor.from({ 16777217 }, "I32"):f32()[1]) -- one rounding
  end)

  it("reads one row as floats, from any address", function()
    local words = ffi.new("uint16_t[6]", 0x3c00, 0x4000, 0x0001, 0xbc00, 0x7bff, 0x8000)
    for pad = 0, 3 do
      local f = safetensors.open(files.write(files.pack({ { "t", "F16", { 2, 3 }, ffi.string(words, 12) } }, pad)))
      local row = ffi.new("float[4]", { 0, 0, 0, 77 })
      native.spec_tensor_row_f32(row, tensor.handle(f:tensor "t"), 1)
      assert.same({ -1, 65504, 0, 77 }, { row[0], row[1], row[2], row[3] })
      assert.equal(-math.huge, 1 / row[2])
      native.spec_tensor_row_f32(row, tensor.handle(f:tensor "t"), 0)
      assert.same({ 1, 2, 2 ^ -24, 77 }, { row[0], row[1], row[2], row[3] })
    end
  end)

  it("pads the rows of U8 matrices to 64, in views too, and nothing else", function()
    for width, stride in pairs { [0] = 0, [1] = 64, [63] = 64, [64] = 64, [65] = 128 } do
      local t = tensor.new("U8", { 3, width })
      assert.equal(stride, tonumber(C.pgee_tensor_stride(t.handle)))
      assert.equal(stride, tonumber(C.pgee_tensor_stride(t:rows(2, 3).handle)))
    end
    assert.equal(5, tonumber(C.pgee_tensor_stride(tensor.new("I8", { 3, 5 }).handle)))
    assert.equal(1, tonumber(C.pgee_tensor_stride(tensor.new("U8", 5).handle)))
    assert.equal(20, tonumber(C.pgee_tensor_stride(tensor.new("U8", { 2, 4, 5 }).handle)))
  end)

  it("aligns data to 64 bytes and starts with zeros", function()
    for _, n in ipairs { 0, 1, 17, 1000 } do
      local t = tensor.new("F32", n)
      assert.equal(0, tonumber(ffi.cast("uintptr_t", C.pgee_tensor_data(t.handle)) % 64))
      for i = 1, n do
        assert.equal(0, t[i])
      end
    end
  end)

  it("keeps the base of a view alive, and frees all in the end", function()
    local before = live()
    local t = tensor.from { { 1, 2 }, { 3, 4 }, { 5, 6 } }
    local rows = t:rows(2, 3)
    local row = rows[2]
    t:release()
    assert.same({ { 3, 4 }, { 5, 6 } }, rows:totable())
    rows:release()
    assert.same({ 5, 6 }, row:totable())
    assert.is_true(live() > before)
    row:release()
    assert.equal(before, live())
  end)

  it("gives large memory back to the system once it is freed", function()
    if os.getenv "PERIGEE_HARD" then
      return pending "sanitizers keep what is freed"
    end
    local function resident() -- without pages of files, which the system takes and gives
      local file = io.open "/proc/self/status"
      local text = file:read "*a"
      file:close()
      return 1024 * text:match "RssAnon:%s*(%d+)"
    end
    live.during(function() -- garbage of earlier specs is no longer there, and what is made here stays until the end
      local before = resident()
      for _, bytes in ipairs { 2 ^ 21, 2 ^ 24, 2 ^ 22, 2 ^ 24 } do
        local t = tensor.new("U8", bytes)
        ffi.fill(t:pointer(), bytes, 1)
        assert.is_true(resident() >= before + bytes - 2 ^ 20)
        t:release()
        assert.is_true(resident() <= before + 2 ^ 20)
      end
    end)
  end)

  it("shares memory with views", function()
    local t = tensor.from({ { 1, 2, 3 }, { 4, 5, 6 } }, "U8")
    t:rows(2, 2)[1] = { 7, 8, 9 }
    t[1]:set { 10, 11, 12 }
    assert.same({ { 10, 11, 12 }, { 7, 8, 9 } }, t:totable())
  end)

  it("refuses shapes that are none", function()
    local out = ffi.new "pgee_tensor *[1]"
    local function refused(status, text, dtype, ...)
      local shape = { ... }
      assert.equal(status, C.pgee_tensor_new(out, dtype, #shape, ffi.new("int64_t[6]", shape)))
      assert.equal(text, message())
      assert.is_true(out[0] == nil)
    end
    refused(C.PGEE_ARGUMENT, "dimension 2 of shape [3][-1] is negative", C.PGEE_F32, 3, -1)
    refused(C.PGEE_ARGUMENT, "a tensor of 0 dimensions, expected 1 to 4", C.PGEE_F32)
    refused(C.PGEE_ARGUMENT, "a tensor of 5 dimensions, expected 1 to 4", C.PGEE_F32, 1, 1, 1, 1, 1)
    refused(C.PGEE_ARGUMENT, "99 is no tensor type", 99, 1)
    refused(C.PGEE_ARGUMENT, "-1 is no tensor type", -1, 1)
    local n = 2 ^ 32
    refused(C.PGEE_ARGUMENT, "a tensor F32 [4294967296][4294967296] is too large", C.PGEE_F32, n, n)
    refused(C.PGEE_ARGUMENT, "a tensor F32 [0][4294967296][4294967296] is too large", C.PGEE_F32, 0, n, n)
    refused(C.PGEE_ARGUMENT, "a tensor F32 [4294967296][0][4294967296] is too large", C.PGEE_F32, n, 0, n)
    refused(C.PGEE_ARGUMENT, "a tensor U8 [1][9223372036854775807] is too large", C.PGEE_U8, 1, 0x7fffffffffffffffLL)
    refused(C.PGEE_ARGUMENT, "a tensor F64 [2305843009213693952] is too large", C.PGEE_F64, 2 ^ 61)
    refused(C.PGEE_MEMORY, "out of memory: 4611686018427387904 bytes asked for", C.PGEE_U8, 2 ^ 62)
  end)

  it("refuses rows that are not there", function()
    local t = tensor.new("F32", { 3, 2 })
    local out = ffi.new "pgee_tensor *[1]"
    for _, range in ipairs { { -1, 2 }, { 2, 1 }, { 0, 4 }, { 4, 4 } } do
      assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_rows(out, t.handle, range[1], range[2]))
      assert.equal(("rows %d to %d of a tensor of 3 rows"):format(range[1], range[2]), message())
    end
    assert.equal(C.PGEE_OK, C.pgee_tensor_rows(out, t.handle, 3, 3))
    C.pgee_tensor_free(out[0])
    for _, i in ipairs { -1, 3 } do
      assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_row(out, t.handle, i))
      assert.equal(("row %d of a tensor of 3 rows"):format(i), message())
    end
    assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_row(out, tensor.new("F32", 3).handle, 0))
    assert.equal("the tensor is a vector, expected 2 to 4 dimensions to take a row of", message())
    assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_rows(out, nil, 0, 0))
    assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_row(out, nil, 0))
    assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_f32(out, nil))
    C.pgee_tensor_free(nil)
  end)

  it("names types as safetensors does", function()
    local names = {}
    for i = 0, C.PGEE_DTYPES - 1 do
      names[i + 1] = ffi.string(C.pgee_dtype_name(i)) .. C.pgee_dtype_bytes(i)
    end
    assert.equal("F324 F162 BF162 U81 I81 I324 I648 F648 BOOL1", table.concat(names, " "))
    assert.is_true(C.pgee_dtype_name(-1) == nil and C.pgee_dtype_name(C.PGEE_DTYPES) == nil)
    assert.equal(0, C.pgee_dtype_bytes(-1))
  end)

  describe("nonfinite", function()
    -- Lengths around the block of 256 that is looked at in one piece.
    local lengths = { 1, 255, 256, 257, 511, 512, 513, 1031 }
    for _, dtype in ipairs { "F32", "F16", "BF16" } do
      it("finds the first NaN or infinity of " .. dtype, function()
        for _, n in ipairs(lengths) do
          local t = tensor.new(dtype, n)
          t:set(dtype == "F16" and -65504 or 3e38)
          assert.equal(-1, tonumber(C.pgee_tensor_nonfinite(t.handle)))
          for _, bad in ipairs { 0 / 0, math.huge, -math.huge } do
            for _, at in ipairs { 1, math.ceil(n / 2), n } do
              t[n] = bad
              t[at] = bad
              assert.equal(at - 1, tonumber(C.pgee_tensor_nonfinite(t.handle)))
              t[at], t[n] = 1, 1
            end
          end
        end
      end)
    end

    it("counts in row-major order, of views too, and looks at no other type", function()
      local t = tensor.new("F32", { 4, 300 })
      t[3][7] = 0 / 0
      assert.equal(606, tonumber(C.pgee_tensor_nonfinite(t.handle)))
      assert.equal(306, tonumber(C.pgee_tensor_nonfinite(t:rows(2, 4).handle)))
      assert.equal(-1, tonumber(C.pgee_tensor_nonfinite(t:rows(4, 4).handle)))
      assert.equal(-1, tonumber(C.pgee_tensor_nonfinite(tensor.new("F32", { 0, 3 }).handle)))
      assert.equal(-1, tonumber(C.pgee_tensor_nonfinite(tensor.from({ -1 }, "I32").handle)))
    end)
  end)

  it("compares bit for bit", function()
    local a, b = tensor.from { { 1, 2 }, { 3, 0 } }, tensor.from { { 1, 2 }, { 3, 0 } }
    assert.is_true(a:equals(b))
    b[2][2] = -0.0
    assert.is_false(a:equals(b))
    a:set(0 / 0)
    assert.is_true(a:equals(a:copy()))
    assert.is_false(a:equals(tensor.new("F32", { 4 })))
    assert.is_false(tensor.new("F32", 2):equals(tensor.new("I32", 2)))
    assert.is_false(tensor.new("F32", { 0, 2 }):equals(tensor.new("F32", { 0, 3 })))
    -- the padding of U8 rows is not part of the value
    local u, v = tensor.from({ { 1 }, { 2 } }, "U8"), tensor.from({ { 1 }, { 2 } }, "U8")
    u:pointer()[1] = 9
    assert.is_true(u:equals(v))
  end)

  describe("sqnr", function()
    it("is ten times the logarithm of signal over noise", function()
      local reference = tensor.from { { 3, 0 }, { 0, 4 } }
      local noisy = tensor.from { { 3, 0.5 }, { 0, 4 } }
      assert.is_true(math.abs(reference:sqnr(noisy) - 20) < 1e-12) -- 25 / 0.25
      assert.equal(math.huge, reference:sqnr(reference))
    end)

    it("sums in double", function()
      local reference, test = tensor.new("F32", 100001), tensor.new("F32", 100001)
      reference:set(1e-3)
      reference[1] = 1e4
      test:set(1e-3)
      test[1] = 1e4
      test[2] = 2e-3
      local small = tensor.from { 1e-3 }[1]
      local noise = (tensor.from { 2e-3 }[1] - small) ^ 2
      assert.is_true(math.abs(reference:sqnr(test) - 10 * math.log10((1e8 + 1e5 * small ^ 2) / noise)) < 1e-9)
    end)

    it("has no number for noise on silence", function()
      local zero = tensor.new("F32", 2)
      assert.equal(math.huge, zero:sqnr(zero))
      local db = zero:sqnr(tensor.from { 0, 1 })
      assert.is_true(db ~= db)
    end)

    it("takes F32 tensors of one shape", function()
      local a = tensor.new("F32", { 2, 3 })
      assert.error_matches(function() a:sqnr(tensor.new("F32", { 3, 2 })) end,
        "test is %[3%]%[2%], expected reference's shape %[2%]%[3%]")
      assert.error_matches(function() a:sqnr(tensor.new("F16", { 2, 3 })) end, "test is F16 %[2%]%[3%], expected F32")
      assert.error_matches(function() tensor.new("I8", 3):sqnr(a) end, "reference is I8 %[3%], expected F32")
    end)
  end)

  describe("tensor_expect", function()
    local function expect(t, ...)
      local status = native.spec_tensor_expect(t and t.handle, "x", ...)
      return status == C.PGEE_OK or message()
    end

    it("says what came and what was expected", function()
      local t = tensor.new("F32", { 3, 5 })
      assert.is_true(expect(t, C.PGEE_F32, 2, 3, 5))
      assert.is_true(expect(t, -1, -1, -1, -1))
      assert.equal("x is F32 [3][5], expected U8 [rows][64]", expect(t, C.PGEE_U8, 2, -1, 64))
      assert.equal("x is F32 [3][5], expected F32 [4][any]", expect(t, C.PGEE_F32, 2, 4, -1))
      assert.equal("x is F32 [3][5], expected F32 [3]", expect(t, C.PGEE_F32, 1, 3, -1))
      assert.equal("x is F32 [3][5], expected a tensor [rows][6]", expect(t, -1, -1, -1, 6))
      assert.equal("x is F32 [3][5], expected I8", expect(t, C.PGEE_S8, -1, -1, -1))
      assert.equal("x is F32 [3][5], expected F32 of 3 dimensions", expect(t, C.PGEE_F32, 3, -1, -1))
      assert.equal("x is missing, expected F32 [rows]", expect(nil, C.PGEE_F32, 1, -1, -1))
    end)

    it("takes a plan's buffer whatever its rows, and prints them as letters", function()
      local plan, buffer = ffi.new "pgee_plan *[1]", ffi.new "pgee_tensor *[1]"
      pgee.check(C.pgee_plan_new(plan))
      finally(function() C.pgee_plan_free(plan[0]) end)
      pgee.check(C.pgee_plan_buffer(plan[0], buffer, C.PGEE_F32, C.PGEE_TOKENS, 5))
      assert.equal(C.PGEE_OK, native.spec_tensor_expect(buffer[0], "x", C.PGEE_F32, 2, 3, 5))
      assert.equal(C.PGEE_ARGUMENT, native.spec_tensor_expect(buffer[0], "x", C.PGEE_U8, 2, -1, 64))
      assert.equal("x is F32 [T][5], expected U8 [rows][64]", message())
      local view = ffi.new "pgee_tensor *[1]"
      assert.equal(C.PGEE_ARGUMENT, C.pgee_tensor_f32(view, buffer[0]))
      assert.equal("base is a plan's buffer, which has no memory of its own", message())
      assert.equal(-1, tonumber(C.pgee_tensor_nonfinite(buffer[0])))
    end)

    it("refuses to have a file written", function()
      local f = safetensors.open(files.write(files.pack { { "t", "I8", { 2, 1 }, "\0\0" } }))
      local t = f:tensor "t"
      for _, view in ipairs { t, t:rows(1, 1), t[1] } do
        assert.equal(C.PGEE_ARGUMENT, native.spec_tensor_expect_output(view.handle, "y", C.PGEE_S8, -1, -1, -1))
        assert.equal("y is part of a file, which cannot be written", message())
      end
      assert.equal(C.PGEE_OK, native.spec_tensor_expect_output(t:copy().handle, "y", C.PGEE_S8, -1, -1, -1))
    end)
  end)
end)
