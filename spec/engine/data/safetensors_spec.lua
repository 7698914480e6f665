-- engine/safetensors.c, json.c and map.c: what a right file gives, and one message for each way to be malformed.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local files = require "spec.support.files"
local live = require "spec.support.live"
local C = pgee.C

local out = ffi.new "pgee_safetensors *[1]"
local out_tensor = ffi.new "pgee_tensor *[1]"

local function open_path(path)
  local status = C.pgee_safetensors_open(out, path)
  if status ~= C.PGEE_OK then
    return nil, ffi.string(C.pgee_message()), status
  end
  return ffi.gc(out[0], C.pgee_safetensors_free)
end

local function open(bytes)
  return open_path(files.write(bytes))
end

-- The header of one F32 tensor "a" of two elements, with parts of it replaced.
local function one(change)
  local parts = { name = "a", dtype = '"dtype":"F32"', shape = '"shape":[2]', offsets = '"data_offsets":[0,8]' }
  for key, value in pairs(change or {}) do
    parts[key] = value
  end
  return ('{"%s":{%s,%s,%s}}'):format(parts.name, parts.dtype, parts.shape, parts.offsets)
end

local DATA8 = ("\1"):rep(8)

-- Two tensors of 4 bytes with these offsets over `bytes` of data.
local function two(a, b, bytes)
  local member = '"%s":{"dtype":"U8","shape":[4],"data_offsets":%s}'
  return files.safetensors("{" .. member:format("a", a) .. "," .. member:format("b", b) .. "}", ("x"):rep(bytes))
end

local function floats(f, name)
  assert.equal(C.PGEE_OK, C.pgee_safetensors_tensor(out_tensor, f, name))
  local t = ffi.gc(out_tensor[0], C.pgee_tensor_free)
  return t, ffi.cast("float *", C.pgee_tensor_data(t))
end

local F32 = { one = ffi.string(ffi.new("float[1]", 1), 4), two = ffi.string(ffi.new("float[1]", 2), 4) }

describe("safetensors.c", function()
  after_each(files.clean)

  describe("takes", function()
    it("tensors, in any order of their data", function()
      local f = assert(open(files.safetensors('{"z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},'
        .. '"__metadata__":{"format":"pt","a":""},"b":{"data_offsets":[0,4],"shape":[1,1],"dtype":"F32"}}', F32.one .. F32.two)))
      assert.equal(2, tonumber(C.pgee_safetensors_count(f)))
      assert.equal("z", ffi.string(C.pgee_safetensors_name(f, 0)))
      assert.equal("b", ffi.string(C.pgee_safetensors_name(f, 1)))
      assert.is_true(C.pgee_safetensors_name(f, 2) == nil and C.pgee_safetensors_name(f, -1) == nil)
      local z, z_data = floats(f, "z")
      local b, b_data = floats(f, "b")
      assert.same({ 2, 1 }, { z_data[0], b_data[0] })
      assert.same({ 1, 2 }, { C.pgee_tensor_ndim(z), C.pgee_tensor_ndim(b) })
      assert.equal("pt", ffi.string(C.pgee_safetensors_metadata(f, "format")))
      assert.equal("", ffi.string(C.pgee_safetensors_metadata(f, "a")))
      assert.is_true(C.pgee_safetensors_metadata(f, "b") == nil)
    end)

    it("every type of the format, of which ours can be had", function()
      local types = { F64 = 8, F32 = 4, F16 = 2, BF16 = 2, I64 = 8, I32 = 4, I16 = 2, I8 = 1, U64 = 8, U32 = 4, U16 = 2, U8 = 1,
        BOOL = 1, C64 = 8, F8_E4M3 = 1, F8_E5M2 = 1, F8_E8M0 = 1 }
      local ours = { F64 = true, F32 = true, F16 = true, BF16 = true, I64 = true, I32 = true, I8 = true, U8 = true, BOOL = true }
      for dtype, bytes in pairs(types) do
        local f = assert(open(files.pack { { "t", dtype, { 3 }, ("\0"):rep(3 * bytes) } }))
        local status = C.pgee_safetensors_tensor(out_tensor, f, "t")
        if ours[dtype] then
          assert.equal(C.PGEE_OK, status)
          assert.equal(dtype, ffi.string(C.pgee_dtype_name(C.pgee_tensor_dtype(out_tensor[0]))))
          C.pgee_tensor_free(out_tensor[0])
        else
          assert.equal(C.PGEE_UNSUPPORTED, status)
          local expected = ("tensor 't' is of type %s, which is not supported"):format(dtype)
          assert.truthy(ffi.string(C.pgee_message()):find(expected, 1, true))
        end
      end
      assert(open(files.pack { { "t", "F4", { 4 }, "\0\0" } }))
      assert(open(files.pack { { "t", "F6_E2M3", { 4 }, "\0\0\0" }, { "u", "F6_E3M2", { 4 }, "\0\0\0" } }))
    end)

    it("a single number as a vector, no elements, more than four dimensions", function()
      local f = assert(open(files.pack { { "number", "F32", {}, F32.two }, { "none", "F32", { 0, 3 }, "" },
        { "deep", "U8", { 1, 1, 1, 1, 2 }, "ab" } }))
      local t, data = floats(f, "number")
      assert.same({ 1, 1, 2 }, { C.pgee_tensor_ndim(t), tonumber(C.pgee_tensor_dim(t, 0)), data[0] })
      local none = floats(f, "none")
      assert.equal(2, C.pgee_tensor_ndim(none))
      assert.same({ 0, 3 }, { tonumber(C.pgee_tensor_dim(none, 0)), tonumber(C.pgee_tensor_dim(none, 1)) })
      assert.equal(C.PGEE_UNSUPPORTED, C.pgee_safetensors_tensor(out_tensor, f, "deep"))
      assert.truthy(ffi.string(C.pgee_message()):find("tensor 'deep' has 5 dimensions, at most 4 are supported", 1, true))
    end)

    it("no tensors at all", function()
      local f = assert(open(files.safetensors "{}"))
      assert.equal(0, tonumber(C.pgee_safetensors_count(f)))
      assert.is_true(C.pgee_safetensors_metadata(f, "a") == nil)
    end)

    it("padding after the header, and data at any address, where it is copied if it must", function()
      local views, before = 0, live()
      for pad = 0, 15 do
        local tensors = { { "a", "F64", { 1 }, ("x"):rep(8) }, { "b", "F32", { 2 }, F32.one .. F32.two } }
        local f = assert(open(files.pack(tensors, pad)))
        local t, data = floats(f, "b")
        assert.same({ 1, 2 }, { data[0], data[1] })
        assert.equal(0, tonumber(ffi.cast("uintptr_t", data) % 4))
        assert.equal(0, tonumber(ffi.cast("uintptr_t", C.pgee_tensor_data((floats(f, "a")))) % 8))
        views = views + 1 - C.pgee_tensor_writable(t)
      end
      assert.equal(4, views)
      assert.equal(before, live())
    end)

    it("white space between any two tokens", function()
      assert(open(files.safetensors('{\n"a" :\t{ "dtype"\r:"F32" , "shape" : [ 2 ] , "data_offsets" : [ 0 , 8 ] } \n}', DATA8)))
    end)

    it("escapes and every plane of Unicode in names", function()
      local f = assert(open(files.safetensors(one { name = [[\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC\ud83d\ude00é€😀]] }, DATA8)))
      assert.equal('"\\/\b\f\n\r\tAé€😀é€😀', ffi.string(C.pgee_safetensors_name(f, 0)))
    end)

    it("ten thousand tensors, found by name", function()
      local list = {}
      for i = 1, 10000 do
        list[i] = { ("layer.%d.weight"):format(i * 7919 % 10007), "U8", { 1 }, string.char(i % 256) }
      end
      local f = assert(open(files.pack(list)))
      for i = 1, 10000, 37 do
        local t = floats(f, list[i][1])
        assert.equal(i % 256, ffi.cast("uint8_t *", C.pgee_tensor_data(t))[0])
      end
      assert.equal(C.PGEE_ARGUMENT, C.pgee_safetensors_tensor(out_tensor, f, "layer.0.weigh"))
    end)

    it("a view that outlives the file's handle", function()
      local path = files.write(files.pack { { "a", "F32", { 1 }, F32.two } })
      pgee.check(C.pgee_safetensors_open(out, path))
      local f = out[0]
      local _, data = floats(f, "a")
      C.pgee_safetensors_free(f)
      assert.equal(2, data[0])
      C.pgee_safetensors_free(nil)
    end)

    it("nothing but names it has", function()
      local path = files.write(files.pack { { "a", "F32", { 1 }, F32.two } })
      local f = assert(open_path(path))
      assert.equal(C.PGEE_ARGUMENT, C.pgee_safetensors_tensor(out_tensor, f, "b"))
      assert.equal(("'%s' has no tensor 'b'"):format(path), ffi.string(C.pgee_message()))
      assert.equal(C.PGEE_ARGUMENT, C.pgee_safetensors_tensor(out_tensor, f, nil))
      assert.equal(C.PGEE_ARGUMENT, C.pgee_safetensors_tensor(out_tensor, nil, "a"))
    end)
  end)

  describe("refuses", function()
    -- What is malformed, the bytes, the message after the path. Of PGEE_FORMAT, all of them.
    local cases = {
      { "a file without room for the header's length", "1234567", " has 7 bytes, fewer than the 8 of the header's length" },
      { "a header of no bytes", files.safetensors "", ": the header's length is 0" },
      { "a header longer than the format allows", files.little_endian(100000001, 8) .. "{}",
        ": a header of 100000001 bytes, expected at most 100000000: this is not a safetensors file" },
      { "a header length of 2^64 - 1", ("\255"):rep(8) .. "{}",
        ": a header of 18446744073709551615 bytes, expected at most 100000000: this is not a safetensors file" },
      { "a header past the end of the file", files.little_endian(3, 8) .. "{}",
        ": a header of 3 bytes in a file of 10: the file is cut off or damaged" },
      { "a header that begins with something else", files.safetensors " {}", ": byte 8: the header does not begin with '{'" },
      { "text after the header", files.safetensors "{} x",
        ": byte 11: after its closing '}' the header may only be padded with spaces" },
      { "padding that is not spaces", files.safetensors "{}\n",
        ": byte 10: after its closing '}' the header may only be padded with spaces" },

      { "an overlong UTF-8 sequence", files.safetensors(one { name = "\192\175" }),
        ": byte 10: 0xc0 does not belong to any UTF-8 character" },
      { "an overlong sequence of three bytes", files.safetensors(one { name = "\224\159\191" }),
        ": byte 10: 0xe0 does not belong to any UTF-8 character" },
      { "an encoded surrogate", files.safetensors(one { name = "\237\160\128" }),
        ": byte 10: 0xed does not belong to any UTF-8 character" },
      { "a character past U+10FFFF", files.safetensors(one { name = "\244\144\128\128" }),
        ": byte 10: 0xf4 does not belong to any UTF-8 character" },
      { "a continuation byte alone", files.safetensors(one { name = "a\128" }),
        ": byte 11: 0x80 does not belong to any UTF-8 character" },
      { "a character that the header's end cuts off", files.safetensors '{"\226\130',
        ": byte 10: 0xe2 does not belong to any UTF-8 character" },

      { "a header that ends early", files.safetensors '{"a":{', ": byte 14: expected a string, not the end" },
      { "a header that ends after a member", files.safetensors(one():sub(1, -2), DATA8),
        ": byte 61: expected ',' or '}', not the end" },
      { "a string that does not end", files.safetensors '{"abc', ": byte 13: a string that does not end" },
      { "a missing colon", files.safetensors '{"a" {}}', ": byte 13: expected ':', not '{'" },
      { "a missing comma", files.safetensors '{"__metadata__":{"a":"b" "c":"d"}}', ": byte 33: expected ',' or '}', not '\"'" },
      { "a comma at the end of an object", files.safetensors(one { offsets = '"data_offsets":[0,8],' }, DATA8),
        ": byte 61: '}' after a comma" },
      { "a comma at the end of a list", files.safetensors(one { shape = '"shape":[2,]' }, DATA8),
        ": byte 39: ']' after a comma" },
      { "a name without quotes", files.safetensors "{a:{}}", ": byte 9: expected a string, not 'a'" },
      { "a control character in a string", files.safetensors(one { name = "a\n" }, DATA8),
        ": byte 11: control character 0x0a in a string" },
      { "a zero byte in a string", files.safetensors(one { name = "a\0" }, DATA8),
        ": byte 11: control character 0x00 in a string" },
      { "an escaped zero byte", files.safetensors(one { name = "a\\u0000" }, DATA8),
        ": byte 17: \\u0000: strings with a zero byte are not taken" },
      { "an escape that there is not", files.safetensors(one { name = "\\x41" }, DATA8),
        ": byte 11: no escape sequence begins with a backslash and 'x'" },
      { "an escape at the header's end", files.safetensors '{"\\',
        ": byte 11: no escape sequence begins with a backslash and the end" },
      { "an escape of too few digits", files.safetensors(one { name = "\\u12g4" }, DATA8),
        ": byte 14: \\u needs four hexadecimal digits" },
      { "the first half of a surrogate pair alone", files.safetensors(one { name = "\\ud83d" }, DATA8),
        ": byte 16: \\ud83d is the first half of a surrogate pair without the second" },
      { "the first half before another escape", files.safetensors(one { name = "\\ud83d\\n" }, DATA8),
        ": byte 16: \\ud83d is the first half of a surrogate pair without the second" },
      { "two first halves", files.safetensors(one { name = "\\ud83d\\ud83d" }, DATA8),
        ": byte 22: \\ud83d\\ud83d is not a surrogate pair" },
      { "the second half alone", files.safetensors(one { name = "\\ude00" }, DATA8),
        ": byte 16: \\ude00 is the second half of a surrogate pair without the first" },

      { "a tensor twice", files.safetensors('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        .. '"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', DATA8),
        ": tensor 'a' occurs twice" },
      { "a tensor twice, once with an escape", files.safetensors('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        .. '"\\u0061":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}', DATA8),
        ": tensor 'a' occurs twice" },
      { "a tensor that is not an object", files.safetensors '{"a":[]}',
        ": byte 13: tensor 'a' is not an object of dtype, shape and data_offsets" },
      { "a tensor that is null", files.safetensors '{"a":null}',
        ": byte 13: tensor 'a' is not an object of dtype, shape and data_offsets" },
      { "an unknown field", files.safetensors(one { dtype = '"strides":[1],"dtype":"F32"' }, DATA8),
        ": byte 23: tensor 'a' has the unknown field 'strides'" },
      { "a field twice", files.safetensors(one { shape = '"shape":[2],"shape":[2]' }, DATA8),
        ": byte 47: tensor 'a' has the field 'shape' twice" },
      { "no dtype", files.safetensors('{"a":{"shape":[2],"data_offsets":[0,8]}}', DATA8),
        ": byte 47: tensor 'a' has no field 'dtype'" },
      { "no shape", files.safetensors('{"a":{"dtype":"F32","data_offsets":[0,8]}}', DATA8),
        ": byte 49: tensor 'a' has no field 'shape'" },
      { "no offsets", files.safetensors('{"a":{"dtype":"F32","shape":[2]}}', DATA8),
        ": byte 40: tensor 'a' has no field 'data_offsets'" },
      { "no field", files.safetensors('{"a":{}}', DATA8), ": byte 15: tensor 'a' has no field 'dtype'" },

      { "an unknown dtype", files.safetensors(one { dtype = '"dtype":"F31"' }, DATA8),
        ": byte 27: tensor 'a' has the unknown dtype 'F31'" },
      { "a dtype in lower case", files.safetensors(one { dtype = '"dtype":"f32"' }, DATA8),
        ": byte 27: tensor 'a' has the unknown dtype 'f32'" },
      { "a dtype that is no string", files.safetensors(one { dtype = '"dtype":32' }, DATA8),
        ": byte 22: expected a string, not '3'" },

      { "a shape that is no list", files.safetensors(one { shape = '"shape":2' }, DATA8), ": byte 36: expected '[', not '2'" },
      { "a negative dimension", files.safetensors(one { shape = '"shape":[-2]' }, DATA8),
        ": byte 37: a negative number, expected an integer of at least 0" },
      { "a dimension with a fraction", files.safetensors(one { shape = '"shape":[2.0]' }, DATA8),
        ": byte 38: a number with '.', expected an integer without fraction or exponent" },
      { "a dimension with an exponent", files.safetensors(one { shape = '"shape":[2e0]' }, DATA8),
        ": byte 38: a number with 'e', expected an integer without fraction or exponent" },
      { "a dimension with a leading zero", files.safetensors(one { shape = '"shape":[02]' }, DATA8),
        ": byte 39: an integer with a leading zero" },
      { "a dimension with a plus", files.safetensors(one { shape = '"shape":[+2]' }, DATA8),
        ": byte 37: expected an integer of at least 0, not '+'" },
      { "a dimension that is a string", files.safetensors(one { shape = '"shape":["2"]' }, DATA8),
        ": byte 37: expected an integer of at least 0, not '\"'" },
      { "a dimension of 2^63", files.safetensors(one { shape = '"shape":[9223372036854775808]' }, DATA8),
        ": byte 55: an integer that is larger than 2^63 - 1" },
      { "more elements than can be counted", files.safetensors(one { shape = '"shape":[4294967296,4294967296]' }, DATA8),
        ": byte 59: the shape of tensor 'a' has more than 2^63 - 1 elements" },
      { "more elements than can be counted, times 0",
        files.safetensors(one { shape = '"shape":[4294967296,0,4294967296]' }, DATA8),
        ": byte 61: the shape of tensor 'a' has more than 2^63 - 1 elements" },
      { "more bytes than can be counted", files.safetensors(one { shape = '"shape":[4611686018427387904]' }, DATA8),
        ": tensor 'a': 4611686018427387904 elements of F32 are more than can be counted" },

      { "offsets that are no list", files.safetensors(one { offsets = '"data_offsets":0' }, DATA8),
        ": byte 55: expected '[', not '0'" },
      { "one offset", files.safetensors(one { offsets = '"data_offsets":[0]' }, DATA8), ": byte 57: expected ',', not ']'" },
      { "three offsets", files.safetensors(one { offsets = '"data_offsets":[0,8,8]' }, DATA8),
        ": byte 59: expected ']', not ','" },
      { "a negative offset", files.safetensors(one { offsets = '"data_offsets":[-8,0]' }, DATA8),
        ": byte 56: a negative number, expected an integer of at least 0" },
      { "an offset of 2^63", files.safetensors(one { offsets = '"data_offsets":[0,9223372036854775808]' }, DATA8),
        ": byte 76: an integer that is larger than 2^63 - 1" },
      { "an end before the beginning", files.safetensors(one { offsets = '"data_offsets":[8,0]' }, DATA8),
        ": tensor 'a' ends at 0, before it begins at 8" },
      { "an end past the data", files.safetensors(one { offsets = '"data_offsets":[0,16]', shape = '"shape":[4]' }, DATA8),
        ": tensor 'a' ends at 16, past the 8 bytes of data: the file is cut off or damaged" },
      { "offsets of other bytes than shape and dtype need", files.safetensors(one { shape = '"shape":[1]' }, DATA8),
        ": tensor 'a' has 8 bytes (0 to 8), but its shape and dtype F32 need 4" },
      { "elements that do not fill whole bytes", files.safetensors(one { dtype = '"dtype":"F4"', shape = '"shape":[3]' }, DATA8),
        ": tensor 'a': 3 elements of F4 do not fill whole bytes" },
      { "tensors that overlap", two("[0,4]", "[3,7]", 8), ": tensor 'b' begins at 3, inside tensor 'a', which ends at 4" },
      { "tensors that are one another", two("[0,4]", "[0,4]", 4),
        ": tensor 'b' begins at 0, inside tensor 'a', which ends at 4" },
      { "a hole between tensors", two("[6,10]", "[0,4]", 10), ": bytes 4 to 6, before tensor 'a', belong to no tensor" },
      { "a hole at the beginning", two("[2,6]", "[6,10]", 10), ": bytes 0 to 2, before tensor 'a', belong to no tensor" },
      { "bytes at the end", two("[0,4]", "[4,8]", 9), ": the last 1 of 9 bytes of data belong to no tensor" },
      { "data without tensors", files.safetensors("{}", "x"), ": the last 1 of 1 bytes of data belong to no tensor" },
      { "an empty tensor inside another", files.safetensors('{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        .. '"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}}', "1234"),
        ": tensor 'b' begins at 2, inside tensor 'a', which ends at 4" },

      { "metadata that is no object", files.safetensors '{"__metadata__":[]}',
        ": byte 24: __metadata__ is not an object of strings" },
      { "metadata twice", files.safetensors '{"__metadata__":{},"__metadata__":{}}', ": byte 42: __metadata__ occurs twice" },
      { "metadata that is not strings", files.safetensors '{"__metadata__":{"a":1}}',
        ": byte 29: the value of 'a' in __metadata__ is not a string" },
      { "a key of metadata twice", files.safetensors '{"__metadata__":{"a":"1","b":"2","a":"1"}}',
        ": the key 'a' occurs twice in __metadata__" },
    }

    for _, case in ipairs(cases) do
      it(case[1], function()
        local path = files.write(case[2])
        local f, message, status = open_path(path)
        assert.is_nil(f)
        assert.equal("'" .. path .. "'" .. case[3], message)
        assert.equal(C.PGEE_FORMAT, status)
      end)
    end

    it("each with a message of its own", function()
      local seen, same = {}, 0
      for _, case in ipairs(cases) do
        same = same + (seen[case[3]] and 1 or 0)
        seen[case[3]] = true
      end
      assert.is_true(same < 8) -- the same fault in another disguise
    end)

    it("paths that cannot be mapped", function()
      local fifo = files.folder {} .. "/pipe"
      assert(os.execute("mkfifo " .. fifo) == 0)
      for path, why in pairs {
        ["/nowhere/x"] = "cannot open '/nowhere/x': No such file or directory",
        ["/tmp"] = "cannot open '/tmp': it is a directory, expected a file",
        ["/dev/null"] = "cannot open '/dev/null': it is not a regular file",
        [fifo] = ("cannot open '%s': it is not a regular file"):format(fifo),
      } do
        local f, message, status = open_path(path)
        assert.is_nil(f)
        assert.equal(why, message)
        assert.equal(C.PGEE_SYSTEM, status)
      end
      local empty = files.write ""
      assert.equal(("'%s' is empty"):format(empty), select(2, open_path(empty)))
      assert.equal(C.PGEE_ARGUMENT, C.pgee_safetensors_open(out, nil))
    end)

    it("a file that may not be read", function()
      local path = files.write "x"
      os.execute("chmod 0 " .. path)
      if io.open(path) then
        pending "this user may read everything"
        return
      end
      assert.equal(("cannot open '%s': Permission denied"):format(path), select(2, open_path(path)))
    end)
  end)

  describe("of a damaged file", function()
    local whole = files.safetensors('{"__metadata__":{"format":"pt","é\\n":"\\ud83d\\ude00"},'
      .. '"a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},'
      .. '"c":{"dtype":"U8","shape":[0,5],"data_offsets":[10,10]}} ', ("\7"):rep(10))

    -- Opens it, and if that succeeds touches everything that it offers.
    local function visit(bytes)
      local f, message = open(bytes)
      if not f then
        assert.is_true(#message > 0)
        return false
      end
      for i = 0, tonumber(C.pgee_safetensors_count(f)) - 1 do
        if C.pgee_safetensors_tensor(out_tensor, f, C.pgee_safetensors_name(f, i)) == C.PGEE_OK then
          local t = ffi.gc(out_tensor[0], C.pgee_tensor_free)
          assert.equal(C.PGEE_OK, C.pgee_tensor_f32(out_tensor, t))
          C.pgee_tensor_free(out_tensor[0])
        end
      end
      return true
    end

    it("tells every cut", function()
      assert.is_true(visit(whole))
      for n = 0, #whole - 1 do
        assert.is_false(visit(whole:sub(1, n)))
        files.clean()
      end
    end)

    it("survives any change", function()
      local random = files.random(20240229)
      local interesting = '"{}[]:,\\u0d19-.e \128\255\0'
      local taken = 0
      for _ = 1, 800 do
        local bytes = whole
        for _ = 0, random(3) do
          local at, c = random(#bytes) + 1, random(#interesting) + 1
          local change = random(4)
          local rest = change == 0 and at or at + (change == 1 and 1 + random(8) or 1)
          bytes = bytes:sub(1, at - 1) .. (change == 1 and "" or interesting:sub(c, c)) .. bytes:sub(rest)
        end
        if random(4) > 0 then -- mostly with a length that is right, to get past the first check
          bytes = files.little_endian(math.max(#bytes - 18, 0), 8) .. bytes:sub(9)
        end
        taken = taken + (visit(bytes) and 1 or 0)
        files.clean()
      end
      assert.is_true(taken > 0 and taken < 400)
    end)
  end)
end)
