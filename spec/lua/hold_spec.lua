-- A struct keeps the memory behind its pointers alive for as long as the struct lives, even if the collector runs.
local operator = require "perigee.operator"
local packed = require "perigee.packed"
local pgee = require "perigee.ffi"
local plan = require "perigee.plan"
local selection = require "perigee.graph.passes.select"
local tensor = require "perigee.tensor"

-- Notes values weakly: gone(n) is whether the collector took one of the n.
local function watch(...)
  local seen = setmetatable({ ... }, { __mode = "v" })
  return function(n)
    collectgarbage()
    collectgarbage()
    for i = 1, n do
      if seen[i] == nil then
        return true
      end
    end
    return false
  end
end

describe("what C reads", function()
  it("is kept by the args of an operator, and by nothing else", function()
    local args, gone
    do
      local x, m, q = tensor.new("F32", { 2, 8 }), tensor.from { 1, 1, 1, 1, 1, 1, 1, 1 }, tensor.new("U8", { 2, 8 })
      gone = watch(x, m, q)
      args = select(2, operator.args("quantize", { x = x, quantize = { mode = "static", zero = 3, m = m, q = q } }))
    end
    assert.is_false(gone(3))
    assert.is_truthy(args)
    args = nil -- luacheck: ignore
    assert.is_true(gone(3))
  end)

  it("is kept by the struct of a batch", function()
    local c, gone
    do
      local batch = plan.batch({ { 1, 2 }, { 3 } }, { { 0, 0 }, { 0 } }, { { 1 }, {} })
      gone = watch(batch.ids, batch.types, batch.starts, batch.rows)
      c = batch.c
    end
    assert.is_false(gone(4))
    assert.equal(3, c.ids[2])
  end)

  it("is kept by an array of handles", function()
    local array, gone
    do
      local a, b = tensor.new("F32", { 2, 3 }), tensor.new("F32", { 1, 3 })
      gone = watch(a, b)
      array = packed.handles({ a, b }, "weight")
    end
    assert.is_false(gone(2))
    assert.is_true(pgee.C.pgee_tensor_dim(array[1], 0) == 1)
  end)

  it("is there while kernels are timed, with a collection at every step", function()
    local w = packed.new(tensor.new("F32", { 64, 64 }))
    if pgee.C.pgee_onednn_check(w.handle) ~= pgee.C.PGEE_OK then
      return pending "oneDNN cannot be used"
    end
    local pause, mul = collectgarbage("setpause", 0), collectgarbage("setstepmul", 10000)
    finally(function()
      collectgarbage("setpause", pause)
      collectgarbage("setstepmul", mul)
    end)
    for _ = 1, 5 do
      assert.is_true(selection.time({ w, w, w }, 16) > 0)
    end
  end)
end)
