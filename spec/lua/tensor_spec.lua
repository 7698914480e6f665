-- perigee.tensor: tensors as objects to be used by hand.
local tensor = require "perigee.tensor"
local files = require "spec.support.files"
local safetensors = require "perigee.safetensors"
local ffi = require "ffi"

-- The message of f's error, which must blame this file.
local function blamed(f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  local where, text = message:match "^(.-):%d+: (.*)$"
  assert.truthy(where and where:find "tensor_spec%.lua$", message)
  return text
end

describe("perigee.tensor", function()
  after_each(files.clean)

  describe("from", function()
    it("takes nested lists", function()
      local t = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }
      assert.same({ 2, 3 }, t.shape)
      assert.equal("F32", t.dtype)
      assert.equal(2, #t)
      assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, t:totable())
      assert.same({ 3 }, tensor.from { 1, 2, 3 }.shape)
      assert.same({ 1, 2, 1, 2 }, tensor.from { { { { 1, 2 } }, { { 3, 4 } } } }.shape)
      assert.same({ 0 }, tensor.from({}).shape)
      assert.same({ 2, 0 }, tensor.from({ {}, {} }).shape)
    end)

    it("takes rows that are tensors", function()
      local row = tensor.from { 1, 2 }
      assert.same({ { 1, 2 }, { 3, 4 } }, tensor.from { row:totable(), { 3, 4 } }:totable())
      assert.same({ { 3, 4 }, { 1, 2 } }, tensor.from { { 3, 4 }, row }:totable())
    end)

    it("takes every type", function()
      for dtype, values in pairs {
        F32 = { 0.5, -2, 2 ^ 100 }, F16 = { 0.5, -2, 65504 }, BF16 = { 0.5, -2, 3.3895313892515355e38 },
        F64 = { 0.1, -0.2, 1e300 },
        U8 = { 0, 255, 7 }, I8 = { -128, 127, 0 }, I32 = { -2 ^ 31, 2 ^ 31 - 1, 0 }, I64 = { -2 ^ 53, 2 ^ 53, 5 },
        BOOL = { true, false, true },
      } do
        local t = tensor.from(values, dtype)
        assert.equal(dtype, t.dtype)
        assert.same(values, t:totable())
        assert.same({ values, values }, tensor.from({ values, values }, dtype):totable())
      end
    end)

    it("says what is wrong with a list", function()
      assert.equal("[2] is a list of 1, expected a list of 2", blamed(function() tensor.from { { 1, 2 }, { 3 } } end))
      assert.equal("[2] is 3, expected a list of 2", blamed(function() tensor.from { { 1, 2 }, 3 } end))
      assert.equal("[2] is a table, and F32 takes a number", blamed(function() tensor.from { 1, { 2 } } end))
      assert.equal("[1][2] is the string '3', and F32 takes a number", blamed(function() tensor.from { { 1, "3" } } end))
      assert.equal("[2] is 256, and U8 takes an integer from 0 to 255", blamed(function() tensor.from({ 1, 256 }, "U8") end))
      assert.equal("[1] is 0.5, and I32 takes an integer from -2147483648 to 2147483647",
        blamed(function() tensor.from({ 0.5 }, "I32") end))
      assert.equal("[1] is nan, and I8 takes an integer from -128 to 127", blamed(function() tensor.from({ 0 / 0 }, "I8") end))
      assert.equal("[1] is 1, and BOOL takes a boolean", blamed(function() tensor.from({ 1 }, "BOOL") end))
      assert.equal("[1] is inf, and I64 takes a 64-bit integer", blamed(function() tensor.from({ math.huge }, "I64") end))
      assert.equal("values is 3, expected a list of numbers or of lists", blamed(function() tensor.from(3) end))
      assert.truthy(blamed(function() tensor.from({ 1 }, "float") end)
        :find "^the tensor type is the string 'float', expected 'F32'")
      assert.equal("values is a list of lists more than four levels deep, expected at most four",
        blamed(function() tensor.from { { { { { 1 } } } } } end))
    end)
  end)

  describe("new", function()
    it("is zeros", function()
      assert.same({ { 0, 0 }, { 0, 0 } }, tensor.new("F32", { 2, 2 }):totable())
      assert.same({ 0, 0, 0 }, tensor.new("U8", 3):totable())
    end)

    it("says what is wrong with a shape", function()
      assert.equal("dimension 2 of the shape is -1, expected an integer of at least 0",
        blamed(function() tensor.new("F32", { 2, -1 }) end))
      assert.equal("dimension 1 of the shape is 1.5, expected an integer of at least 0",
        blamed(function() tensor.new("F32", 1.5) end))
      assert.equal("dimension 1 of the shape is nan, expected an integer of at least 0",
        blamed(function() tensor.new("F32", 0 / 0) end))
      assert.equal("dimension 1 of the shape is the string '2', expected an integer of at least 0",
        blamed(function() tensor.new("F32", { "2" }) end))
      assert.equal("shape is nil, expected a number or a list of numbers", blamed(function() tensor.new "F32" end))
      assert.equal("a tensor of 0 dimensions, expected 1 to 4", blamed(function() tensor.new("F32", {}) end))
      assert.truthy(blamed(function() tensor.new("F32", { 2 ^ 40, 2 ^ 40 }) end):find "is too large$")
      assert.truthy(blamed(function() tensor.new("F64", { 2 ^ 30, 2 ^ 29 }) end):find "^out of memory")
    end)
  end)

  describe("elements", function()
    it("are read by their index, rows as views", function()
      local t = tensor.from { { 1, 2 }, { 3, 4 } }
      assert.equal(4, t[2][2])
      local row = t[2]
      t[2][1] = 7
      assert.same({ 7, 4 }, row:totable())
      assert.same({ { 3, 4 } }, tensor.from { { { 1, 2 } }, { { 3, 4 } } }[2]:totable())
    end)

    it("are written, whole rows too, all or nothing", function()
      local t = tensor.from({ { 1, 2 }, { 3, 4 } }, "I8")
      t[1][2] = -5
      t[2] = { 8, 9 }
      assert.same({ { 1, -5 }, { 8, 9 } }, t:totable())
      t[1] = t[2]
      assert.same({ { 8, 9 }, { 8, 9 } }, t:totable())
      assert.equal("[2][2] is 200, and I8 takes an integer from -128 to 127", blamed(function() t[2] = { 1, 200 } end))
      assert.equal("[2] is a list of 3, expected a list of 2", blamed(function() t[2] = { 1, 2, 3 } end))
      assert.equal("[1] is the string 'x', expected a list of 2", blamed(function() t[1] = "x" end))
      assert.same({ { 8, 9 }, { 8, 9 } }, t:totable())
    end)

    it("are set all at once", function()
      local t = tensor.new("F32", { 2, 2 })
      assert.same({ { 5, 5 }, { 5, 5 } }, t:set(5):totable())
      assert.same({ { 1, 2 }, { 3, 4 } }, t:set({ { 1, 2 }, { 3, 4 } }):totable())
      assert.same({ { 1, 1 }, { 0, 0 } }, t:set(tensor.from({ { 1, 1 }, { 0, 0 } }, "U8")):totable())
      assert.same({ { true, true } }, tensor.new("BOOL", { 1, 2 }):set(true):totable())
      assert.same({ { { 2, 2 } } }, tensor.new("F16", { 1, 1, 2 }):set(2):totable())
      assert.equal("the value is a list of 1, expected a list of 2", blamed(function() t:set { { 1, 2 } } end))
      assert.equal("F32 takes a number, not the string 'x'", blamed(function() t[1]:set "x" end))
    end)

    it("outside of the tensor are errors", function()
      local t = tensor.from { { 1, 2 }, { 3, 4 } }
      for _, i in ipairs { 0, 3, -1, 1.5, math.huge } do
        assert.equal(("index %s is outside 1 to 2"):format(i), blamed(function() return t[i] end))
        assert.equal(("index %s is outside 1 to 2"):format(i), blamed(function() t[1][i] = 0 end))
        assert.equal(("index %s is outside 1 to 2"):format(i), blamed(function() t[i] = { 0, 0 } end))
      end
      assert.equal("index 1 is outside 1 to 0", blamed(function() return tensor.new("F32", 0)[1] end))
      assert.truthy(blamed(function() return t[0 / 0] end):find "^index %-?nan is outside 1 to 2$")
    end)

    it("are not fields", function()
      local t = tensor.from { 1 }
      assert.is_nil(t.color)
      assert.equal("a tensor has no field the string 'color' that could be set", blamed(function() t.color = 3 end))
    end)

    it("of 64 bits keep all of them", function()
      local t = tensor.from({ 1, 0x7fffffffffffffffLL }, "I64")
      assert.equal("number", type(t[1]))
      assert.is_true(t[2] == 0x7fffffffffffffffLL)
    end)

    it("of 16 bits are rounded to nearest, ties to even, once", function()
      local half = tensor.new("F16", 1)
      for v, stored in pairs {
        [1 + 2 ^ -11] = 1, [1 + 3 * 2 ^ -11] = 1 + 2 ^ -9, [1 + 2 ^ -11 + 2 ^ -30] = 1 + 2 ^ -10,
        [65519.99] = 65504, [65520] = math.huge, [1e300] = math.huge, [2 ^ -24] = 2 ^ -24, [2 ^ -25] = 0,
        [2 ^ -25 + 2 ^ -50] = 2 ^ -24, [3 * 2 ^ -25] = 2 ^ -23,
        [2 ^ -14 - 2 ^ -26] = 2 ^ -14, [5e-324] = 0, [-2049] = -2048, [-math.huge] = -math.huge,
      } do
        half[1] = v
        assert.equal(stored, half[1])
      end
      half[1] = -0.0
      assert.equal(-math.huge, 1 / half[1])
      half[1] = 0 / 0
      assert.is_true(half[1] ~= half[1])
      local brain = tensor.new("BF16", 1)
      for v, stored in pairs {
        [1 + 2 ^ -8] = 1, [1 + 3 * 2 ^ -8] = 1 + 2 ^ -6, [3.4e38] = math.huge, [2 ^ -133] = 2 ^ -133, [2 ^ -134] = 0,
        [3 * 2 ^ -134] = 2 ^ -132,
      } do
        brain[1] = v
        assert.equal(stored, brain[1])
      end
    end)

    it("of 16 bits are written as they are read", function()
      for _, dtype in ipairs { "F16", "BF16" } do
        local t, u = tensor.new(dtype, 1), tensor.new(dtype, 1)
        local words = t:pointer()
        for bits = 0, 65535 do
          words[0] = bits
          local v = t[1]
          if v == v then
            u[1] = v
            if u:pointer()[0] ~= bits or t:f32()[1] ~= v then
              error(("%s 0x%04x"):format(dtype, bits))
            end
          end
        end
      end
    end)
  end)

  describe("views", function()
    it("are rows first to last", function()
      local t = tensor.from { { 1, 1 }, { 2, 2 }, { 3, 3 } }
      assert.same({ { 2, 2 }, { 3, 3 } }, t:rows(2, 3):totable())
      assert.same({ { 3, 3 } }, t:rows(3):totable())
      assert.same({}, t:rows(4, 3):totable())
      assert.same({ 2, 3 }, tensor.from({ 1, 2, 3 }):rows(2, 3):totable())
      assert.equal("rows: the first is 0 and the last 2, expected integers from 1 to 3", blamed(function() t:rows(0, 2) end))
      assert.equal("rows: the first is 2 and the last 4, expected integers from 1 to 3", blamed(function() t:rows(2, 4) end))
      assert.equal("rows: the first is 3 and the last 1, expected integers from 1 to 3", blamed(function() t:rows(3, 1) end))
      assert.equal("rows: the first is nil and the last 3, expected integers from 1 to 3", blamed(function() t:rows() end))
    end)

    it("of a file can be read but not written", function()
      local f = safetensors.open(files.write(files.pack { { "a", "U8", { 2, 2 }, "\1\2\3\4" } }))
      local t = f:tensor "a"
      assert.same({ { 1, 2 }, { 3, 4 } }, t:totable())
      local text = "this tensor is part of a file and cannot be written; t:copy() can"
      assert.equal(text, blamed(function() t[1] = { 0, 0 } end))
      assert.equal(text, blamed(function() t[1][1] = 0 end))
      assert.equal(text, blamed(function() t:set(0) end))
      assert.equal(text, blamed(function() t:rows(1, 1):set(0) end))
      local copy = t:copy()
      assert.is_true(copy:equals(t))
      copy[1] = { 9, 9 }
      assert.same({ { 9, 9 }, { 3, 4 } }, copy:totable())
      assert.same({ { 1, 2 }, { 3, 4 } }, t:totable())
    end)
  end)

  it("copies, as it is and as floats", function()
    for _, dtype in ipairs { "F32", "F16", "U8", "I64" } do
      local t = tensor.from({ { 1, 2, 3 }, { 4, 5, 6 } }, dtype)
      local copy = t:copy()
      assert.is_true(copy:equals(t))
      copy[1][1] = 0
      assert.equal(1, t[1][1])
      assert.equal("F32", t:f32().dtype)
      assert.same(t:totable(), t:f32():totable())
    end
    assert.is_true(tensor.new("F32", { 0, 2 }):copy():equals(tensor.new("F32", { 0, 2 })))
  end)

  it("gives pointers, with the stride", function()
    local p, stride = tensor.from({ { 1, 2 }, { 3, 4 } }, "U8"):pointer()
    assert.equal(64, stride)
    assert.equal(3, p[64])
    for dtype, bits in pairs { F32 = "uint32_t *", F64 = "uint64_t *", F16 = "uint16_t *", BF16 = "uint16_t *" } do
      assert.equal(ffi.typeof(bits), ffi.typeof((tensor.from({ 1 }, dtype):pointer())))
    end
  end)

  it("finds NaN and infinity", function()
    local t = tensor.new("F16", { 3, 4 })
    assert.is_nil(t:first_nonfinite())
    t[2][3] = -math.huge
    t[3][1] = 0 / 0
    assert.same({ 2, 3 }, { t:first_nonfinite() })
    assert.same({ 1 }, { t:rows(3, 3)[1]:first_nonfinite() })
    assert.same({ 1, 1 }, { t:rows(3, 3):first_nonfinite() })
  end)

  it("cannot be used after its release", function()
    local t = tensor.from { { 1, 2 } }
    t:release()
    t:release()
    assert.equal("tensor (released)", tostring(t))
    local text = "tensor: this tensor was released"
    assert.equal(text, blamed(function() return t[1] end))
    assert.equal(text, blamed(function() return #t end))
    assert.equal(text, blamed(function() return t.shape end))
    assert.equal(text, blamed(function() t[1] = { 1, 2 } end))
    for _, name in ipairs { "totable", "f32", "copy", "rows", "pointer", "set", "equals", "sqnr", "first_nonfinite" } do
      assert.equal(text, blamed(function() t[name](t, 1) end))
    end
    assert.equal("other: this tensor was released", blamed(function() tensor.from({ 1 }):equals(t) end))
  end)

  it("is told from everything else", function()
    assert.is_true(tensor.is(tensor.from { 1 }))
    assert.is_false(tensor.is { 1 })
    assert.equal("other is a table, expected a tensor", blamed(function() tensor.from({ 1 }):equals {} end))
    assert.equal("tensor is nil, expected a tensor", blamed(function() tensor.from({ 1 }).f32() end))
    assert.equal("release: tensor is 3, expected a tensor", blamed(function() tensor.from({ 1 }).release(3) end))
  end)

  describe("prints", function()
    it("class, type, shape and numbers, aligned", function()
      assert.equal("tensor F32 [2][3]\n      1    2.5      3\n  -0.25  1e+10      0",
        tostring(tensor.from { { 1, 2.5, 3 }, { -0.25, 1e10, 0 } }))
      assert.equal("tensor I64 [2]\n                    1  9223372036854775807",
        tostring(tensor.from({ 1, 0x7fffffffffffffffLL }, "I64")))
      assert.equal("tensor BOOL [2]\n   true  false", tostring(tensor.from({ true, false }, "BOOL")))
    end)

    it("the beginning of what is large", function()
      local lines = {}
      for line in tostring(tensor.new("F32", { 100, 20 })):gmatch "[^\n]+" do
        lines[#lines + 1] = line
      end
      assert.equal(8, #lines)
      assert.equal("tensor F32 [100][20]", lines[1])
      assert.equal("  0  0  0  0  0  0  0  0  …", lines[2])
      assert.equal("  …", lines[8])
      assert.equal("tensor U8 [9]\n  7  7  7  7  7  7  7  7  …", tostring(tensor.new("U8", 9):set(7)))
    end)

    it("what has no numbers to show", function()
      assert.equal("tensor F32 [0]", tostring(tensor.new("F32", 0)))
      assert.equal("tensor F32 [3][0]", tostring(tensor.new("F32", { 3, 0 })))
      assert.equal("tensor F32 [2][3][4]", tostring(tensor.new("F32", { 2, 3, 4 })))
    end)
  end)
end)
