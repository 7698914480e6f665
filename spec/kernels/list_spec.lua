-- Every kernel of kernels/list.h is tested: the other specs of this folder are loaded without running their tests, and
-- spec.support.kernels counts the tests that they define for each operator and ISA.
local ffi = require "ffi"
local C = require("perigee.ffi").C
local kernels = require "spec.support.kernels"

local SPECS = { "attention", "attention_u8s8", "gemm_bf16", "gemm_f32", "gemm_u8s8", "rows" }

local function run_now(_, f) f() end
local function ignore() end
local stubs = { describe = run_now, it = ignore, pending = ignore, before_each = ignore, after_each = ignore }

local function tests_of_all_specs()
  kernels.tested = {}
  for _, name in ipairs(SPECS) do
    local chunk = assert(loadfile(("spec/kernels/%s_spec.lua"):format(name)))
    setfenv(chunk, setmetatable(stubs, { __index = getfenv() }))()
  end
  return kernels.tested
end

describe("the list of kernels", function()
  it("has a test for every operator of every ISA", function()
    local tested, untested = tests_of_all_specs(), {}
    for isa = 0, C.PGEE_ISAS - 1 do
      for _, operator in ipairs(kernels.operators(isa)) do
        if not (tested[operator] and tested[operator][isa]) then
          untested[#untested + 1] = operator .. " of " .. ffi.string(C.pgee_isa_name(isa))
        end
      end
    end
    assert.same({}, untested)
  end)

  it("has kernels for every ISA that runs here", function()
    for isa = 0, C.PGEE_ISAS - 1 do
      if C.pgee_isa_runs(isa) == 1 then
        assert(#kernels.operators(isa) > 0, ffi.string(C.pgee_isa_name(isa)))
      end
    end
  end)
end)
