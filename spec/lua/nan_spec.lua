-- NaNs whose bits come from a file or from C: Lua must see each of them as the number NaN (perigee.ffi says why).
local ffi = require "ffi"
local evaluate = require "perigee.evaluate"
local files = require "spec.support.files"
local nans = require "spec.support.nans"
local observer = require "perigee.observer"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local quant = require "perigee.quant"
local ranges = require "perigee.quantize.ranges"
local safetensors = require "perigee.safetensors"
local sentencepiece = require "perigee.tokenizer.sentencepiece"
local tensor = require "perigee.tensor"
local tokenizer = require "perigee.tokenizer"
local vectors = require "perigee.pipe.vectors"
local attention = require "perigee.graph.passes.attention"
local C = pgee.C

local TYPES = { "F32", "F64", "F16", "BF16" }

local function all_nan(list, count, from)
  for i = from or 1, count + (from or 1) - 1 do
    if not nans.is(list[i]) then
      error(("element %d is a %s"):format(i, type(list[i])), 2)
    end
  end
end

-- Reads the vector by every function that reads floats.
local function read(t)
  local n = #t
  all_nan(t, n)
  all_nan(t:totable(), n)
  all_nan(t:numbers(), n, 0)
  all_nan(t:f32(), n)
  assert.matches("nan", tostring(t))
  assert.equal(1, t:first_nonfinite() or 1) -- nil for F64
  for i = 1, n do
    assert(nans.is(t:rows(i, i)[1]))
  end
end

describe("a NaN of any bits", function()
  after_each(files.clean)

  it("was what LuaJIT takes for other things, so that these specs could fail", function()
    local one, seen = ffi.new "double[1]", {}
    local bits = ffi.cast("uint64_t *", one)
    for _, b in ipairs(nans.F64) do
      bits[0] = b
      seen[type(one[0])] = true
    end
    assert.same({ true, true, true, true, true }, { seen.number, seen.table, seen.string, seen["function"], seen["nil"] })
  end)

  for _, dtype in ipairs(TYPES) do
    it("is the number NaN in a tensor of " .. dtype, function()
      local t = nans.tensor(dtype, nans[dtype])
      nans.in_both_modes(function() read(t) end)
    end)

    it("is it in a file of " .. dtype .. ", of vectors, matrices and single numbers", function()
      local path, list = files.folder {} .. "/a.safetensors", nans[dtype]
      local matrix, from = tensor.new(dtype, { 2, #list }), nans.tensor(dtype, list)
      local bytes = #list * C.pgee_dtype_bytes(tensor.code(dtype))
      ffi.copy(matrix:pointer(), from:pointer(), bytes)
      ffi.copy(matrix:pointer() + #list, from:pointer(), bytes)
      safetensors.write(path, { v = from, m = matrix, one = from:rows(#list, #list) })
      for _, copy in ipairs { false, true } do
        local f = safetensors.open(path, { copy = copy })
        nans.in_both_modes(function()
          read(f:tensor "v")
          read(f:tensor "m"[2])
          read(f:tensor "one")
          all_nan(f:tensor "m":numbers(), 2 * #list, 0)
        end)
      end
    end)

    it("is copied, set and written as it is, " .. dtype, function()
      local t = nans.tensor(dtype, nans[dtype])
      assert.is_true(t:copy():equals(t))
      read(tensor.new(dtype, #t):set(t))
      if dtype == "F32" then
        read(tensor.new(dtype, #t):put(t:numbers()))
      end
    end)
  end

  it("is NaN in numbers of C's, not only in tensors", function()
    for _, dtype in ipairs(TYPES) do
      local t = nans.tensor(dtype, nans[dtype])
      nans.in_both_modes(function()
        for i = 0, #t - 1 do
          assert(nans.is(pgee.number(t:pointer() + i, tensor.code(dtype))))
        end
      end)
    end
    for _, ctype in ipairs { "float", "double" } do
      local place, get = pgee.out_number(ctype)
      local dtype = ctype == "float" and "F32" or "F64"
      local bits = ffi.cast(ctype == "float" and "uint32_t *" or "uint64_t *", place)
      nans.in_both_modes(function()
        for _, b in ipairs(nans[dtype]) do
          bits[0] = b
          assert(nans.is(get()))
        end
      end)
    end
  end)

  it("is NaN in what the engine computes of it", function()
    local t = nans.tensor("F32", nans.F32)
    local zeros = tensor.new("F32", #t)
    nans.in_both_modes(function()
      for i = 1, #t do
        local ratio = t:rows(i, i):sqnr(zeros:rows(i, i))
        assert(type(ratio) == "number" and ratio ~= ratio)
      end
    end)
  end)

  it("is NaN in vectors, cosines and JSON, and itself in .npy and base 64", function()
    local t = nans.tensor("F32", nans.F32)
    local m = tensor.new("F32", { 1, #t })
    ffi.copy(m:pointer(), t:pointer(), 4 * #t)
    nans.in_both_modes(function()
      assert.equal("[" .. ("null,"):rep(#t - 1) .. "null]", vectors.list(t))
      assert(evaluate.cosine(m, 1, m, 1) ~= evaluate.cosine(m, 1, m, 1))
      assert.equal(ffi.string(t:pointer(), 4 * #t), vectors.bytes(t))
      assert.equal(math.ceil(#t * 4 / 3) * 4 - #vectors.base64(t) <= 4, true)
    end)
  end)

  it("is NaN in scales of packed weights", function()
    local w = packed.new { { 1, 2 }, { 3, 4 } }
    local parts = w:parts()
    nans.in_both_modes(function()
      for i = 1, #nans.F32 - 1, 2 do
        local scales = nans.tensor("F32", { nans.F32[i], nans.F32[i + 1] })
        local ok, over = pcall(packed.over, { N = 2, K = 2, bytes = parts.bytes, scales = scales, sums = parts.sums })
        if ok then
          all_nan(over.scales, 2)
          all_nan(over:parts().scales, 2)
          over:release()
        end
      end
    end)
  end)

  it("is NaN, or refused, in statistics", function()
    local K = 6
    local o = observer.new(K)
    nans.in_both_modes(function()
      for i = 1, #nans.F32 do
        local bits = {}
        for k = 1, 3 * K do
          bits[k] = nans.F32[i]
        end
        local t = nans.tensor("F32", bits)
        local rows = tensor.new("F32", { 1, K })
        ffi.copy(rows:pointer(), t:pointer(), 4 * K)
        assert.is_false((pcall(o.update, o, rows)))
        local seen = { min = t:rows(1, K), max = t:rows(1, K), sample = rows, count = 3 }
        local node = { site = { width = K }, factors = t:rows(1, K), wmax = t:rows(1, K) }
        for _, method in ipairs(ranges.NAMES) do
          for _, symmetric in ipairs { true, false } do
            local ok, low = pcall(ranges.choose, method, seen, node, symmetric)
            assert(not ok or type(low) == "number")
          end
        end
        pcall(attention.scales, { min = t, max = t }, 2)
        assert.is_false((pcall(quant.range, t[1], t[2])))
      end
    end)
  end)

  it("is refused as the score of a SentencePiece model's piece", function()
    local function piece(text, bits)
      local score = ffi.string(ffi.new("uint32_t[1]", bits), 4)
      local inner = "\10" .. string.char(#text) .. text .. "\21" .. score
      return "\10" .. string.char(#inner) .. inner
    end
    nans.in_both_modes(function()
      for _, bits in ipairs(nans.F32) do
        local m = sentencepiece.read("a.model", piece("<unk>", bits) .. piece("a", bits))
        all_nan(m.scores, 2, 0)
      end
    end)
    for i = 1, #nans.F32, 20 do
      local folder = files.folder { ["spiece.model"] = piece("<unk>", 0) .. piece("a", nans.F32[i]) }
      local ok, why = pcall(tokenizer.load, folder)
      assert.is_false(ok)
      assert.matches("score", why)
    end
  end)

  it("is refused in JSON, or the number NaN", function()
    local json, jsonl = require "perigee.base.json", require "perigee.pipe.jsonl"
    for _, text in ipairs { "NaN", "-NaN", "nan", "nan(0xfff)", "-nan(0x414141414141)", "Infinity" } do
      assert.is_false((pcall(json.object, "a.json", ('{ "a": %s }'):format(text))))
      local ok, value = pcall(jsonl.read, ('{"a": %s}'):format(text))
      assert(not ok or value == nil or type(value.a) ~= "table", text)
      local number = tonumber(text)
      assert(number == nil or type(number) == "number")
    end
  end)
end)
