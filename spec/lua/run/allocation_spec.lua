-- When memory runs out, whole models fail with an error and leave nothing behind: every allocation fails once, in turn.
local exact = require "spec.golden.exact"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"

local QUIET = { progress = false }

describe("when the n-th allocation fails", function()
  if not os.getenv "PERIGEE_HARD" then
    pending "allocations fail on request in the hard build only: make hard"
    return
  end
  local native = require("spec.support.native").cdef "void pgee_fail_allocation(int64_t n);"

  -- Calls f with the 1st, 2nd... allocation failing until it succeeds, and `after` after each failure. Returns how many failed.
  local function each_failure(f, after)
    local n = 0
    repeat
      n = n + 1
      native.pgee_fail_allocation(n)
      local ok, message = pcall(f)
      native.pgee_fail_allocation(0)
      if not ok then
        assert.matches("memory", message)
        after(n)
      end
    until ok
    return n - 1
  end

  it("loading, calibrating, quantizing and running leave no byte behind", function()
    local before = live()
    local held = {}
    local function release()
      for i = #held, 1, -1 do
        held[i]:release()
        held[i] = nil
      end
    end
    local function hold(x)
      held[#held + 1] = x
      return x
    end
    local failures = each_failure(function()
      local model = hold(perigee.load(models.path "tiny"))
      local stats = hold(model:calibrate(models.random_inputs(2, 9, model.vocabulary), QUIET))
      local q = hold(model:quantize { stats = stats })
      hold(q:hidden { ids = { 1, 2, 3 } })
    end, function(n)
      release()
      assert.equal(before, live(), "allocation " .. n)
    end)
    assert.is_true(failures > 20)
    release()
    assert.equal(before, live())
  end)

  it("a change of settings that fails changes nothing: neither settings nor answers", function()
    local opened = exact.open "tiny"
    local q = exact.quantize(opened, "static")
    local answer, packed, alpha = exact.hidden(q, opened.inputs), exact.packed(q), q.alpha
    local failures = each_failure(function()
      q.alpha = 0.25
    end, function(n)
      assert.equal(alpha, q.alpha)
      assert.equal(packed, exact.packed(q), "allocation " .. n)
      assert.equal(answer, exact.hidden(q, opened.inputs), "allocation " .. n)
    end)
    assert.is_true(failures > 5)
    assert.equal(0.25, q.alpha)
    assert.is_not.equal(answer, exact.hidden(q, opened.inputs))
    for _, x in ipairs { q, opened.stats, opened.model } do
      x:release()
    end
  end)
end)
