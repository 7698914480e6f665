-- FP32 attention: every ISA gives the reference's bits whichever queries it is asked for at once; the reference is close to
-- plain loops in double.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local C = require("spec.support.native").cdef [[
  typedef struct attention_case {
    int S, D;
    int y, quantized;
    int fill;
    uint32_t seed;
    int step;
    int biased;
    int shifted;
  } attention_case;
  int spec_attention_equal(int isa, const attention_case *c, int corrupt, char *why, int64_t bytes);
  void spec_attention_error(const attention_case *c, double *y, double *q);
  uint64_t spec_attention_digest(int isa, const attention_case *c, uint64_t h);
]]

local ORDINARY, ZERO, CONSTANT, EXTREME, SPECIAL = 0, 1, 2, 3, 4
local why = ffi.new "char[256]"

local function case(S, D, options)
  local o = options or {}
  return ffi.new("attention_case", {
    S, D, o.y or 1, o.quantized or 0, o.fill or ORDINARY, 31 * S + D, o.step or 0, o.biased or 0, o.shifted or 0,
  })
end

local function equal(isa, S, D, options)
  local ok = C.spec_attention_equal(isa, case(S, D, options), options and options.corrupt and 1 or 0, why, 256) == 1
  return ok, ("S %d D %d: %s"):format(S, D, ok and "equal" or ffi.string(why))
end

describe("attention_f32", function()
  kernels.each_isa({ "attention_f32" }, function(isa, check)
    check("equals the reference at every length and head size", function()
      for S = 1, 70 do
        assert(equal(isa, S, S % 3 == 0 and 32 or 5))
      end
      for D = 1, 70 do
        assert(equal(isa, D % 2 == 0 and 33 or 7, D))
      end
      for _, S in ipairs { 127, 128, 129, 200 } do
        assert(equal(isa, S, 24))
      end
      assert(equal(isa, 20, 130))
    end)

    check("equals the reference when it quantizes", function()
      for _, S in ipairs { 1, 6, 30, 65 } do
        for _, D in ipairs { 7, 24, 32, 64 } do
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
    end)

    check("equals the reference on zeros, constants, extremes, infinities and NaN", function()
      for _, fill in ipairs { ZERO, CONSTANT, EXTREME, SPECIAL } do
        assert(equal(isa, 1, 3, { fill = fill, quantized = 1 }))
        assert(equal(isa, 35, 17, { fill = fill, quantized = 1 }))
      end
    end)
  end)

  it("is told apart from a result with one bit changed", function()
    assert.is_false((equal(C.PGEE_REF, 9, 8, { corrupt = true })))
    assert.is_false((equal(C.PGEE_REF, 9, 8, { corrupt = true, y = 0, quantized = 1 })))
  end)

  it("is close to plain loops in double", function()
    local y, q = ffi.new "double[1]", ffi.new "double[1]"
    for _, shape in ipairs { { 1, 4 }, { 13, 24 }, { 40, 32 }, { 130, 64 }, { 300, 16 } } do
      for biased = 0, 1 do
        C.spec_attention_error(case(shape[1], shape[2], { quantized = 1, biased = biased }), y, q)
        assert(y[0] < 5e-6 and q[0] < 0.501, ("S %d D %d: y off by %g, q by %g"):format(shape[1], shape[2], y[0], q[0]))
        assert(shape[1] == 1 or y[0] > 0)
      end
    end
  end)

  -- Computed once by the reference; every compiler, optimization level and ISA must come to it.
  it("gives the bits it always gave", function()
    for isa = 0, C.PGEE_ISAS - 1 do
      if C.pgee_isa_runs(isa) == 1 then
        local h = 0xcbf29ce484222325ULL
        for _, S in ipairs { 1, 17, 80 } do
          for _, D in ipairs { 24, 32, 65 } do
            h = C.spec_attention_digest(isa, case(S, D, { quantized = 1 }), h)
          end
        end
        assert.equal("31eac42f02c20790", bit.tohex(h), ffi.string(C.pgee_isa_name(isa)))
        for _, S in ipairs { 1, 80 } do
          h = C.spec_attention_digest(isa, case(S, 32, { quantized = 1, biased = 1 }), h)
        end
        assert.equal("200a3306d5f18f52", bit.tohex(h), ffi.string(C.pgee_isa_name(isa)) .. ", biased")
      end
    end
  end)
end)
