local bit = require "bit"
local tensor = require "perigee.tensor"
local observer = require "perigee.observer"
local engine = require "spec.support.engine"
local live = require "spec.support.live"

describe("an observer", function()
  it("keeps the least and largest value of each channel, and 0", function()
    local o = observer.new(3)
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 }, 0 }, { o.min:totable(), o.max:totable(), o.count })
    o:update { { 1, -2, 3 }, { 2, -3, -1 } }
    o:update(tensor.from { { -1, -1, 0 } })
    assert.same({ -1, -3, -1 }, o.min:totable())
    assert.same({ 2, 0, 3 }, o.max:totable())
    assert.equal(3, o.count)
    assert.equal(3, o.K)
  end)

  it("keeps the smallest and the largest value of each channel without 0, too", function()
    local o = observer.new(3)
    assert.same({ { 0, 0, 0 }, { 0, 0, 0 } }, { o.low:totable(), o.high:totable() })
    o:update { { 1, -2, 3 }, { 2, -3, -1 } }
    assert.same({ 1, -3, -1 }, o.low:totable())
    assert.same({ 2, -2, 3 }, o.high:totable())
    assert.same({ 0, -3, -1 }, o.min:totable())
    assert.same({ 2, 0, 3 }, o.max:totable())
  end)

  it("sees all rows, however they come, with any number of threads and on every ISA", function()
    local x = engine.matrix(61, 37, 5, 2)
    local want_min, want_max = {}, {}
    for k = 1, 37 do
      want_min[k], want_max[k] = 0, 0
      for i = 1, 61 do
        want_min[k], want_max[k] = math.min(want_min[k], x[i][k]), math.max(want_max[k], x[i][k])
      end
    end
    local result = engine.same_everywhere(function()
      local o = observer.new(37, { sample = 10 })
      o:update(x:rows(1, 1)):update(x:rows(2, 40)):update(x:rows(41, 40)):update(x:rows(41, 61))
      return { o.min, o.max, o:sample() }
    end)
    assert.same(want_min, result[1]:totable())
    assert.same(want_max, result[2]:totable())
    local whole = observer.new(37, { sample = 10 }):update(x)
    assert.is_true(result[3]:equals(whole:sample()))
  end)

  -- splitmix64 of a row's number, from 0.
  local function hash(number)
    local z = number * 0x9e3779b97f4a7c15ULL + 0x9e3779b97f4a7c15ULL
    z = bit.bxor(z, bit.rshift(z, 30)) * 0xbf58476d1ce4e5b9ULL
    z = bit.bxor(z, bit.rshift(z, 27)) * 0x94d049bb133111ebULL
    return bit.bxor(z, bit.rshift(z, 31))
  end

  it("keeps all rows in order while there is room, then those whose numbers have the smallest hashes", function()
    local function stream(rows, sample)
      local o = observer.new(1, { sample = sample })
      for i = 1, rows do
        o:update { { i } }
      end
      local list = {}
      for i, row in ipairs(o:sample():totable()) do
        list[i] = row[1]
      end
      return list
    end
    assert.same({ 1, 2, 3 }, stream(3, 5))
    assert.same({ 1, 2, 3, 4, 5 }, stream(5, 5))
    local many = stream(1000, 64)
    assert.equal(64, #many)
    local late = 0
    for i = 2, 64 do
      assert.is_true(many[i] > many[i - 1])
      late = late + (many[i] > 500 and 1 or 0)
    end
    assert.is_true(late > 16 and late < 48) -- about half
    local numbers = {}
    for i = 1, 1000 do
      numbers[i] = i
    end
    table.sort(numbers, function(a, b) return hash(a - 1) < hash(b - 1) end)
    local want = { unpack(numbers, 1, 64) }
    table.sort(want)
    assert.same(want, many)
    assert.same({}, stream(10, 0))
  end)

  it("takes in nothing of what is not finite, and says where that is", function()
    for _, threads in ipairs { 1, 2, 7 } do
      engine.with_threads(threads, function()
        local o = observer.new(40, { name = "layer 3" })
        local x = engine.matrix(5, 40)
        o:update(x)
        local min, max, sample = o.min, o.max, o:sample()
        local y = engine.matrix(5, 40, 2, 9)
        y[4][39], y[5][1] = 1 / 0, 0 / 0
        for _ = 1, 2 do
          assert.error_matches(function() o:update(y) end, "layer 3: row 4 of 5, channel 39 of 40 is infinite")
        end
        assert.is_true(o.min:equals(min) and o.max:equals(max) and o:sample():equals(sample))
        assert.equal(5, o.count)
        y[4][39], y[5][1] = 1, 1
        o:update(y)
        assert.equal(10, o.count)
      end)
    end
  end)

  it("refuses other shapes and options", function()
    local o = observer.new(3)
    local function refuses(message, f, ...)
      local arguments = { ... }
      assert.error_matches(function() f(unpack(arguments)) end, message, 1, true)
    end
    refuses("x is F32 [1][2], expected F32 [rows][3]", o.update, o, { { 1, 2 } })
    refuses("x is U8 [1][3], expected F32 [rows][3]", o.update, o, tensor.new("U8", { 1, 3 }))
    refuses("an observer of 0 channels, expected 1 to", observer.new, 0)
    refuses("observer: K is 1.5, expected an integer", observer.new, 1.5)
    refuses("a sample of -1 rows", observer.new, 3, { sample = -1 })
    refuses("observer has no option samples, only name, sample", observer.new, 3, { samples = 1 })
    refuses("observer: name is 3, expected a string", observer.new, 3, { name = 3 })
  end)

  it("prints, and is freed by name", function()
    local o
    assert.equal(0, (live.during(function()
      o = observer.new(3, { name = "x" })
      assert.equal("observer of 3 channels, 0 rows seen", tostring(o))
      o:release()
    end)))
    assert.equal("observer (released)", tostring(o))
    assert.error_matches(function() return o.min end, "this observer was released")
  end)
end)
