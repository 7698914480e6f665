-- The comparer and the digest must see one wrong element.
local compare = require "spec.support.compare"
local digest = require "spec.support.digest"
local tensor = require "perigee.tensor"

local function example()
  local rows = {}
  for i = 1, 5 do
    rows[i] = {}
    for j = 1, 7 do
      rows[i][j] = math.sin(i * 7 + j) * 3
    end
  end
  return tensor.from(rows)
end

describe("the comparer", function()
  local want = example()

  it("takes a tensor for close to itself, and within the tolerance", function()
    local got = example()
    assert.is_true(compare.close(got, want))
    got[2][3] = got[2][3] + 4e-5 -- the largest is near 3: the bound is near 6e-5
    assert.is_true(compare.close(got, want))
  end)

  it("finds one element that is off, wherever it is, and says where", function()
    for i = 1, 5 do
      for j = 1, 7 do
        local got = example()
        got[i][j] = got[i][j] + 1e-4
        local ok, message = compare.close(got, want)
        assert.is_false(ok)
        assert.matches(("at [%d][%d]"):format(i, j), message, 1, true)
      end
    end
  end)

  it("takes NaN and infinity for close to nothing", function()
    for _, bad in ipairs { 0 / 0, 1 / 0, -1 / 0 } do
      local got = example()
      got[5][7] = bad
      assert.is_false(compare.close(got, want))
      assert.is_false(compare.close(want, got))
    end
  end)

  it("asks for the same shape and type", function()
    local ok, message = compare.close(tensor.new("F32", { 5, 6 }), want)
    assert.is_false(ok)
    assert.matches("F32 [5][6], expected F32 [5][7]", message, 1, true)
    assert.is_false(compare.close(tensor.new("F64", { 5, 7 }), want))
    assert.is_false(compare.close(tensor.new("F32", { 7 }), want))
  end)

  it("names the first stage that diverges and leaves out what follows", function()
    local bad = example()
    bad[4][2] = 9
    local report = compare.report "model"
    report:stage("embedding", example(), want)
    report:stage("layer 0", bad, want)
    report:stage("layer 1", bad, want)
    local ok, text = report:finish()
    assert.is_false(ok)
    assert.matches("  embedding", text, 1, true)
    assert.matches("* layer 0", text, 1, true)
    assert.is_nil(text:find("layer 1", 1, true))
  end)

  it("compares integers", function()
    local report = compare.report "ids"
    report:integers("ids", { 1, 2, 3 }, tensor.from({ 1, 2, 3 }, "I32"))
    assert.is_true(report:finish())
    report:integers("types", { 1, 2, 3 }, { 1, 2 })
    assert.is_false(report:finish())
  end)
end)

describe("the digest", function()
  it("changes with any bit, the shape and the type", function()
    local function of(t)
      return digest.new():tensor(t):text()
    end
    local seen = { [of(example())] = true }
    assert.is_true(seen[of(example())])
    local function new(t)
      assert.is_nil(seen[of(t)])
      seen[of(t)] = true
    end
    for i = 1, 5 do
      local t = example()
      t[i][i] = t[i][i] * (1 + 2 ^ -23)
      new(t)
    end
    new(tensor.from { { 0 } })
    new(tensor.from { { 1 / -math.huge } }) -- minus zero: LuaJIT on AArch64 reads the literal -0.0 as the integer 0
    new(tensor.from { 0 })
    new(tensor.from({ 0 }, "I32"))
    new(tensor.from({ 1, 2, 3 }, "U8"))
    new(tensor.from({ 1, 2, 4 }, "U8"))
  end)

  it("is FNV-1a", function()
    -- For one byte, the digest is the published FNV-1a value. Of longer input, the digest takes words instead of bytes.
    assert.equal("af63dc4c8601ec8c", digest.new():bytes("a", 1):text())
    assert.equal("cbf29ce484222325", digest.new():text())
  end)
end)
