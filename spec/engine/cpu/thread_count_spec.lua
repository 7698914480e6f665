-- The adaptive number of threads, on simulated machines.
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  void spec_thread_count(int max, int cores, double work, double barrier, int runs, int *threads);
]]

local RUNS = 3000

-- The threads of the last run, the share of runs that use another number, and the smallest and largest number ever used.
local function settle(max, cores, work, barrier)
  local threads, counts, least, top = ffi.new("int[?]", RUNS), {}, math.huge, 0
  C.spec_thread_count(max, cores, work, barrier, RUNS, threads)
  for i = 0, RUNS - 1 do
    local n = threads[i]
    counts[n] = (counts[n] or 0) + 1
    least, top = math.min(least, n), math.max(top, n)
  end
  local last = threads[RUNS - 1]
  return last, 1 - counts[last] / RUNS, least, top
end

describe("the adaptive number of threads", function()
  it("keeps all threads where they are cores", function()
    local threads, others, least, top = settle(2, 2, 1e-3, 1e-5)
    assert.same({ 2, 1, 2 }, { threads, least, top })
    assert.is_true(others < 0.01)
    assert.equal(32, (settle(32, 32, 3e-3, 1e-7)))
  end)

  it("leaves the second thread out where two CPUs are one core, or barriers cost more than they bring", function()
    for _, case in ipairs { { 2, 1, 1e-3, 1e-5 }, { 2, 1, 1e-3, 0 }, { 2, 2, 1e-4, 5e-4 }, { 32, 32, 1e-5, 1e-4 } } do
      local threads, others = settle(unpack(case))
      assert.equal(1, threads)
      assert.is_true(others < 0.04, ("%g of the runs use others"):format(others))
    end
  end)

  it("finds what lies between", function()
    local threads = settle(32, 32, 1e-3, 1e-5) -- best at 10
    assert.is_true(threads == 8 or threads == 16, tostring(threads))
    assert.equal(4, (settle(32, 4, 1e-3, 1e-6)))
  end)

  it("tries nothing where steps are long, and with one thread", function()
    assert.same({ 2, 2, 2 }, { select(1, settle(2, 1, 1, 0)), select(3, settle(2, 1, 1, 0)) })
    assert.same({ 1, 0, 1, 1 }, { settle(1, 1, 1e-3, 0) })
  end)
end)
