local Memo = require "perigee.quantize.memo"
local pgee = require "perigee.ffi"

local released

local function value(name)
  return { name = name, release = function() released[#released + 1] = name end }
end

describe("memo", function()
  before_each(function() released = {} end)

  local function get(memo, name)
    return memo:get(name, function() return value(name) end).name
  end

  it("makes a value once", function()
    local memo = Memo.new()
    assert.are.equal(memo:get("a", function() return value "a" end), memo:get("a", function() error "made again" end))
    assert.are.equal(1, memo.made)
  end)

  it("releases what a renewal did not ask for", function()
    local memo = Memo.new()
    get(memo, "a")
    get(memo, "b")
    assert.are.equal(7, memo:renew(function()
      get(memo, "b")
      get(memo, "c")
      return 7
    end))
    assert.are.same({ "a" }, released)
    assert.are.equal(3, memo.made)
  end)

  it("is as before when a renewal fails", function()
    local memo = Memo.new()
    get(memo, "a")
    assert.has_error(function()
      memo:renew(function()
        get(memo, "b")
        error("no", 0)
      end)
    end, "no")
    assert.are.same({ "b" }, released)
    get(memo, "a")
    assert.are.equal(2, memo.made)
  end)

  it("makes nothing once an interrupt is asked for", function()
    local memo = Memo.new()
    get(memo, "a")
    finally(function() pgee.C.pgee_interrupt(0) end)
    assert.has_error(function()
      memo:renew(function()
        get(memo, "b")
        pgee.C.pgee_interrupt(1)
        get(memo, "a") -- it is there
        get(memo, "c")
      end)
    end, "interrupted")
    assert.are.same({ "b" }, released)
    assert.are.equal(2, memo.made)
  end)

  it("releases everything by name", function()
    local memo = Memo.new()
    get(memo, "a")
    memo:release()
    assert.are.same({ "a" }, released)
  end)
end)
