-- The gemm_f32 kernels: one chain of fma for each output, to the last bit, and nothing touched past their operands.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local C = require("spec.support.native").cdef [[
  int spec_gemm_f32_tile(int isa);
  int spec_gemm_f32(int isa, int m, int n, int64_t k, int64_t gap, int fill, uint32_t seed, int corrupt, char *why,
                    int64_t bytes);
]]

local ORDINARY, EXTREME, SPECIAL = 0, 3, 4
local why = ffi.new "char[256]"

local function run(isa, m, n, k, options)
  local o = options or {}
  local ok = C.spec_gemm_f32(isa, m, n, k, o.gap or 0, o.fill or ORDINARY, 7 * k + m + n, o.corrupt and 1 or 0, why, 256) == 1
  return ok, ("m %d n %d k %d: %s"):format(m, n, k, ok and "equal" or ffi.string(why))
end

describe("gemm_f32", function()
  kernels.each_isa({ "gemm_f32" }, function(isa, check)
    local tile = C.spec_gemm_f32_tile(isa)

    check("is one chain of fma for every tile", function()
      for m = 1, tile do
        for n = 1, 64 do
          assert(run(isa, m, n, 37))
        end
      end
    end)

    check("is one chain of fma at every depth", function()
      for _, k in ipairs { 1, 2, 3, 15, 16, 17, 64, 127, 384, 1024 } do
        assert(run(isa, tile, 64, k, { gap = 64 }))
        assert(run(isa, tile, 41, k, { gap = 1 }))
        assert(run(isa, 1, 64, k))
      end
    end)

    check("keeps denormals, infinities and NaN", function()
      for _, fill in ipairs { EXTREME, SPECIAL } do
        for _, n in ipairs { 1, 8, 23, 64 } do
          assert(run(isa, tile, n, 5, { fill = fill }))
        end
      end
    end)

    check("is told apart from a product with one element changed", function()
      assert.is_false((run(isa, tile, 64, 33, { corrupt = true })))
    end)
  end)
end)
