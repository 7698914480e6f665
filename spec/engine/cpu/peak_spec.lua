-- The peak speed of the CPU, which benches compare with.
local ffi = require "ffi"
local live = require "spec.support.live"
local pgee = require "perigee.ffi"
local C, check = pgee.C, pgee.check

local rate = ffi.new "double[1]"

local function peak(what, tries)
  check(C.pgee_cpu_peak(what, tries or 50, rate))
  return rate[0]
end

-- Runs f on each ISA that this CPU has, with that ISA in force.
local function each_isa(f)
  local before = ffi.new "int[1]"
  check(C.pgee_isa(before))
  for isa = 0, C.PGEE_ISAS - 1 do
    if C.pgee_isa_runs(isa) == 1 then
      check(C.pgee_isa_set(isa))
      local ok, failure = pcall(f, isa)
      check(C.pgee_isa_set(before[0]))
      assert(ok, failure)
    end
  end
end

describe("the peak", function()
  it("is none for ISAs that have no instruction of their own, and positive for the others", function()
    each_isa(function(isa)
      local none = isa == C.PGEE_REF or isa == C.PGEE_AMX_MODEL
      assert.are.equal(none, peak(C.PGEE_PEAK_INT8) == 0)
      assert.are.equal(none, peak(C.PGEE_PEAK_F32) == 0)
    end)
  end)

  it("of INT8 is above that of FP32", function()
    each_isa(function(isa)
      if isa ~= C.PGEE_REF and isa ~= C.PGEE_AMX_MODEL then
        local ratio
        for _ = 1, 5 do -- others may take the processor, or lower its clock, during one of the two
          ratio = peak(C.PGEE_PEAK_INT8) / peak(C.PGEE_PEAK_F32)
          if ratio > 1.2 then
            break
          end
        end
        assert.is_true(ratio > 1.2, ("%.2f times on ISA %d"):format(ratio, isa))
      end
    end)
  end)

  it("of reading is between 100 MB and 10 TB a second, and its memory is given back", function()
    local read
    assert.are.equal(0, (live.during(function() read = peak(C.PGEE_PEAK_READ, 32) end)))
    assert.is_true(read > 1e8 and read < 1e13, tostring(read))
  end)

  it("of BF16 is there where the CPU has instructions for it", function()
    each_isa(function(isa)
      local bf16 = peak(C.PGEE_PEAK_BF16)
      if isa == C.PGEE_AMX then
        assert.is_true(bf16 > 2 * peak(C.PGEE_PEAK_F32))
      elseif isa ~= C.PGEE_AVX512VNNI then
        assert.are.equal(0, bf16)
      elseif bf16 > 0 then
        local ratio = bf16 / peak(C.PGEE_PEAK_F32) -- some CPUs divide vdpbf16ps into steps: 0.45 on Emerald Rapids
        assert.is_true(ratio > 0.1 and ratio < 10, ("%.2f times"):format(ratio))
      end
    end)
  end)

  it("of the caches is above a gigabyte a second where their sizes are known, and their memory is given back", function()
    each_isa(function()
      for _, what in ipairs { C.PGEE_PEAK_L2, C.PGEE_PEAK_L3 } do
        local bytes
        assert.are.equal(0, (live.during(function() bytes = peak(what, 5) end)))
        assert.is_true(bytes == 0 or bytes > 1e9 and bytes < 1e14, tostring(bytes))
      end
    end)
  end)

  it("is of all threads together", function()
    local before = ffi.new "int[1]"
    check(C.pgee_threads(before))
    for _, threads in ipairs { 1, 3 } do
      check(C.pgee_threads_set(threads))
      assert.is_true(peak(C.PGEE_PEAK_READ, 2) > 0)
    end
    check(C.pgee_threads_set(before[0]))
  end)

  it("has errors for an unknown peak and for 0 tries", function()
    rate[0] = -7
    assert.has_error(function() peak(6) end, "what is 6, expected one of the PGEE_PEAK constants, 0 to 5")
    assert.has_error(function() peak(-1) end, "what is -1, expected one of the PGEE_PEAK constants, 0 to 5")
    assert.has_error(function() peak(0, 0) end, "tries is 0, expected 1 or more")
    assert.are.equal(-7, rate[0])
  end)
end)
