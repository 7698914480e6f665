-- INT8 attention: every ISA gives the reference's bits whichever queries it is asked for at once; the reference is what the
-- formula says, in double.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local C = require("spec.support.native").cdef [[
  typedef struct attention_u8s8_case {
    int S, D;
    int y, quantized;
    int fill;
    float scale;
    uint32_t seed;
    int step;
    int biased;
    int shifted;
  } attention_u8s8_case;
  int spec_attention_u8s8_equal(int isa, const attention_u8s8_case *c, int corrupt, char *why, int64_t bytes);
  void spec_attention_u8s8_error(const attention_u8s8_case *c, double *unrounded, double *rounded, double *q);
  uint64_t spec_attention_u8s8_digest(int isa, const attention_u8s8_case *c, uint64_t h);
]]

local ANY, ENDS, ZEROS, SAME = 0, 1, 2, 3
local why = ffi.new "char[256]"

-- Ordinary scores: of any bytes a standard deviation of 5400 sqrt(D), here 2.
local function case(S, D, options)
  local o = options or {}
  return ffi.new("attention_u8s8_case", {
    S, D, o.y or 1, o.quantized or 0, o.fill or ANY, o.scale or 2 / (5400 * math.sqrt(D)), 31 * S + D, o.step or 0,
    o.biased or 0, o.shifted or 0,
  })
end

local function equal(isa, S, D, options)
  local ok = C.spec_attention_u8s8_equal(isa, case(S, D, options), options and options.corrupt and 1 or 0, why, 256) == 1
  return ok, ("S %d D %d: %s"):format(S, D, ok and "equal" or ffi.string(why))
end

describe("attention_u8s8", function()
  kernels.each_isa({ "attention_u8s8" }, function(isa, check)
    check("equals the reference at every length and head size", function()
      for S = 1, 70 do
        assert(equal(isa, S, S % 3 == 0 and 32 or S % 3 == 1 and 8 or 24))
      end
      for D = 1, 70 do
        assert(equal(isa, D % 2 == 0 and 33 or 7, D))
      end
      for _, S in ipairs { 127, 128, 129, 200 } do
        assert(equal(isa, S, 64))
      end
      assert(equal(isa, 20, 80))
      assert(equal(isa, 20, 130))
      for _, S in ipairs { 384, 512, 513 } do
        assert(equal(isa, S, 8))
      end
    end)

    check("equals the reference when it quantizes", function()
      for _, S in ipairs { 1, 6, 30, 65 } do
        for _, D in ipairs { 7, 24, 32, 64, 80 } do
          assert(equal(isa, S, D, { y = 0, quantized = 1 }))
          assert(equal(isa, S, D, { y = 1, quantized = 1 }))
          assert(equal(isa, S, D, { y = 0, quantized = 1, shifted = 1 }))
          assert(equal(isa, S, D, { y = 1, quantized = 1, shifted = 1 }))
        end
      end
    end)

    check("equals the reference when a bias is added", function()
      for S = 1, 70 do
        assert(equal(isa, S, S % 3 == 0 and 32 or 8, { biased = 1 }))
      end
      for _, S in ipairs { 127, 128, 129, 200, 513 } do
        assert(equal(isa, S, 24, { biased = 1, y = 0, quantized = 1 }))
      end
      for _, step in ipairs { 1, 6, 25 } do
        assert(equal(isa, 53, 20, { step = step, biased = 1 }))
      end
    end)

    check("does not depend on which queries are asked for at once", function()
      for _, step in ipairs { 1, 5, 6, 7, 24, 25 } do
        assert(equal(isa, 53, 20, { step = step }))
      end
      for _, step in ipairs { 5, 6, 11, 16, 19, 27 } do -- a pipeline's tiles are of 5 and 6, some calls leave rows over
        assert(equal(isa, 97, 32, { step = step, y = 0, quantized = 1 }))
        assert(equal(isa, 65, 64, { step = step }))
      end
    end)

    check("equals the reference on extremes and on every size of the scale", function()
      for _, fill in ipairs { ANY, ENDS, ZEROS, SAME } do
        for _, scale in ipairs { 1e-38, 1e-6, 1e-3, 1, 1e6, 1e30, 2e38 } do
          assert(equal(isa, 1, 3, { fill = fill, scale = scale, quantized = 1 }))
          assert(equal(isa, 70, 17, { fill = fill, scale = scale, quantized = 1 }))
          assert(equal(isa, 70, 17, { fill = fill, scale = scale, quantized = 1, biased = 1 }))
        end
      end
    end)
  end)

  it("is told apart from a result with one bit changed", function()
    assert.is_false((equal(C.PGEE_REF, 9, 8, { corrupt = true })))
    assert.is_false((equal(C.PGEE_REF, 9, 8, { corrupt = true, y = 0, quantized = 1 })))
  end)

  -- A probability may round the other way where it lies within 0.03 of its threshold: each is off by at most 1 of the sum, which
  -- is hundreds at least.
  it("is what the formula says, in double", function()
    local unrounded, rounded, q = ffi.new "double[1]", ffi.new "double[1]", ffi.new "double[1]"
    for _, shape in ipairs { { 1, 4 }, { 13, 24 }, { 40, 32 }, { 130, 64 }, { 300, 16 }, { 512, 64 } } do
      for _, scale in ipairs { 0.1, 0.5, 2, 8 } do
        local S, D = unpack(shape)
        for biased = 0, 1 do
          C.spec_attention_u8s8_error(case(S, D, {
            quantized = 1, scale = scale / (5400 * math.sqrt(D)), biased = biased, shifted = biased,
          }), unrounded, rounded, q)
          local text = ("S %d D %d scale %g biased %d: off by %g, with rounded p by %g, q by %g"):format(S, D, scale, biased,
            unrounded[0], rounded[0], q[0])
          assert(unrounded[0] < 0.03 and rounded[0] < 0.008 and q[0] < 0.501, text)
          assert(S == 1 or rounded[0] > 0, text)
        end
      end
    end
  end)

  it("is the mean of the values where all scores are equal, and one value where the scale is large", function()
    local unrounded, rounded, q = ffi.new "double[1]", ffi.new "double[1]", ffi.new "double[1]"
    for _, scale in ipairs { 1e-12, 10 } do
      C.spec_attention_u8s8_error(case(90, 33, { scale = scale }), unrounded, rounded, q)
      assert(unrounded[0] < 1e-6 and rounded[0] < 1e-6, ("scale %g: %g"):format(scale, unrounded[0]))
    end
  end)

  -- Computed once by the reference; every compiler, optimization level and ISA must come to it.
  it("gives the bits it always gave", function()
    for isa = 0, C.PGEE_ISAS - 1 do
      if C.pgee_isa_runs(isa) == 1 then
        local h = 0xcbf29ce484222325ULL
        for _, S in ipairs { 1, 17, 80, 130 } do
          for _, D in ipairs { 24, 32, 65 } do
            h = C.spec_attention_u8s8_digest(isa, case(S, D, { quantized = 1 }), h)
          end
        end
        assert.equal("554cf484cde64054", bit.tohex(h), ffi.string(C.pgee_isa_name(isa)))
        for _, S in ipairs { 1, 80 } do
          h = C.spec_attention_u8s8_digest(isa, case(S, 32, { quantized = 1, biased = 1 }), h)
        end
        assert.equal("71f73b6666c09a35", bit.tohex(h), ffi.string(C.pgee_isa_name(isa)) .. ", biased")
      end
    end
  end)
end)
