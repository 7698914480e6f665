-- The gemm_bf16 and round_bf16 kernels: the sums of tdpbf16ps to the last bit, and nothing touched past their operands.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local C = require("spec.support.native").cdef [[
  int spec_gemm_bf16(int isa, int m, int64_t K, int64_t gap, int fill, uint32_t seed, int corrupt, char *why, int64_t bytes);
  int spec_gemm_bf16_zeros(void);
  int spec_round_bf16(int isa, int64_t width, int64_t padded, int fill, uint32_t seed, char *why, int64_t bytes);
]]

local ORDINARY, ZERO, EXTREME, SPECIAL, BORDER = 0, 1, 3, 4, 5
local TALLEST = 32
local why = ffi.new "char[256]"

local function run(isa, m, K, options)
  local o = options or {}
  local ok = C.spec_gemm_bf16(isa, m, K, o.gap or 0, o.fill or ORDINARY, 7 * K + m, o.corrupt and 1 or 0, why, 256) == 1
  return ok, ("m %d K %d: %s"):format(m, K, ok and "equal" or ffi.string(why))
end

local function rounds(isa, width, padded, fill)
  local ok = C.spec_round_bf16(isa, width, padded, fill, width, why, 256) == 1
  return ok, ("width %d: %s"):format(width, ok and "equal" or ffi.string(why))
end

describe("gemm_bf16", function()
  kernels.each_isa({ "gemm_bf16" }, function(isa, check)
    check("is right for every number of rows", function()
      for m = 1, TALLEST do
        assert(run(isa, m, 77))
      end
    end)

    check("is right at every depth", function()
      for _, K in ipairs { 1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 384, 1000, 1024 } do
        assert(run(isa, 1, K))
        assert(run(isa, 7, K, { gap = 32 }))
        assert(run(isa, 19, K, { gap = 1 }))
        assert(run(isa, TALLEST, K))
      end
    end)

    check("treats denormals, zeros, huge numbers, infinities and NaN as the instruction does", function()
      for _, fill in ipairs { ZERO, EXTREME, SPECIAL } do
        for K = 1, 40 do
          assert(run(isa, 7, K, { fill = fill }))
        end
        assert(run(isa, TALLEST, 100, { fill = fill }))
      end
    end)

    check("flushes what is tiny after rounding", function()
      assert(run(isa, 3, 3, { fill = BORDER }))
      assert(run(isa, TALLEST, 64, { fill = BORDER }))
      local zeros = C.spec_gemm_bf16_zeros()
      assert(zeros > 10 and zeros < 118, zeros)
    end)

    check("is told apart from a product with one weight changed", function()
      assert.is_false((run(isa, 20, 33, { corrupt = true })))
    end)
  end)
end)

describe("round_bf16", function()
  kernels.each_isa({ "round_bf16" }, function(isa, check)
    check("rounds to the nearest, ties to even, and pads with zeros", function()
      for width = 1, 70 do
        assert(rounds(isa, width, math.ceil(width / 32) * 32, ORDINARY))
      end
    end)

    check("keeps denormals, infinities, NaN and signs", function()
      for _, fill in ipairs { ZERO, EXTREME, SPECIAL } do
        assert(rounds(isa, 1000, 1024, fill))
      end
    end)
  end)
end)
