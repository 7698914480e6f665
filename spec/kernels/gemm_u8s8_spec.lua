-- The gemm_u8s8 kernels: exact on every ISA, nothing touched past their rows; and the model that AMX's runs on.
local ffi = require "ffi"
local kernels = require "spec.support.kernels"
local C = require("spec.support.native").cdef [[
  int spec_gemm_u8s8(int isa, int m, int64_t K, int64_t gap, int fill, uint32_t seed, int corrupt, char *why, int64_t bytes);
  int spec_gemm_u8s8_tile(int isa);
  void spec_tile_config(const uint8_t *configuration);
  void spec_tile_zero(int t);
  void spec_tile_load(int t, const void *base, int64_t stride);
  void spec_tile_dpbusd(int c, int a, int b);
  void spec_tile_store(int t, void *base, int64_t stride);
  void spec_tile_release(void);
  const char *spec_tile_fault(void);
]]

local RANDOM, HIGH, LOW, MIXED = 0, 1, 2, 3
local why = ffi.new "char[256]"

local function run(isa, m, K, options)
  local o = options or {}
  local ok = C.spec_gemm_u8s8(isa, m, K, o.gap or 0, o.fill or RANDOM, 7 * K + m, o.corrupt and 1 or 0, why, 256) == 1
  return ok, ("m %d K %d: %s"):format(m, K, ok and "equal" or ffi.string(why))
end

describe("gemm_u8s8", function()
  kernels.each_isa({ "gemm_u8s8" }, function(isa, check)
    local tile = C.spec_gemm_u8s8_tile(isa)

    check("is exact for every number of rows", function()
      for m = 1, tile do
        for _, K in ipairs { 64, 320, 449 } do
          assert(run(isa, m, K))
        end
      end
    end)

    check("is exact for every depth", function()
      for _, K in ipairs { 1, 2, 3, 4, 5, 31, 63, 65, 127, 128, 129, 191, 255, 256, 257, 384, 521, 1024, 1031 } do
        assert(run(isa, tile, K))
        assert(run(isa, math.max(1, tile - 1), K, { gap = 64 }))
        assert(run(isa, 1, K, { gap = 24 }))
      end
    end)

    check("does not saturate", function()
      for _, fill in ipairs { HIGH, LOW, MIXED } do
        assert(run(isa, tile, 4096, { fill = fill }))
      end
      assert(run(isa, 1, 32768, { fill = HIGH }))
      assert(run(isa, 1, 32768, { fill = LOW }))
    end)

    check("is told apart from a sum with one weight changed", function()
      assert.is_false(run(isa, tile, 320, { corrupt = true, fill = HIGH }))
    end)
  end)
end)

describe("the model of AMX's tiles", function()
  -- tiles: { [register] = { rows, bytes } }, and other bytes to set.
  local function config(tiles, other)
    local x = ffi.new "uint8_t[64]"
    x[0] = 1
    for t, shape in pairs(tiles) do
      x[48 + t], x[16 + 2 * t] = shape[1], shape[2]
    end
    for i, byte in pairs(other or {}) do
      x[i] = byte
    end
    C.spec_tile_config(x)
  end
  local function fault()
    local text = C.spec_tile_fault()
    return text ~= nil and ffi.string(text) or nil
  end

  before_each(function()
    C.spec_tile_release()
    fault()
  end)

  it("multiplies rectangles, unsigned by signed, as the manual defines it", function()
    config { [0] = { 3, 20 }, [1] = { 3, 8 }, [2] = { 2, 20 } }
    local a, b, c = ffi.new "uint8_t[3][8]", ffi.new "int8_t[2][20]", ffi.new "int32_t[4][8]"
    for i = 0, 2 do
      for k = 0, 7 do
        a[i][k] = 255 - 31 * i - 3 * k
      end
    end
    for k = 0, 1 do
      for n = 0, 19 do
        b[k][n] = 127 - 13 * n
      end
    end
    ffi.fill(c, ffi.sizeof(c), 0x55)
    C.spec_tile_zero(0)
    C.spec_tile_load(1, a, 8)
    C.spec_tile_load(2, b, 20)
    C.spec_tile_dpbusd(0, 1, 2)
    C.spec_tile_dpbusd(0, 1, 2)
    C.spec_tile_store(0, c, 32)
    assert.is_nil(fault())
    for i = 0, 3 do
      for n = 0, 7 do
        local sum = 0
        for k = 0, 7 do
          sum = sum + (i < 3 and n < 5 and a[i][k] * b[math.floor(k / 4)][4 * n + k % 4] or 0)
        end
        assert.equal(i < 3 and n < 5 and 2 * sum or 0x55555555, c[i][n])
      end
    end
  end)

  it("faults where the CPU would", function()
    local one = { [0] = { 16, 64 } }
    for _, bad in ipairs {
      { one, { [0] = 2 } }, { one, { [1] = 1 } }, { one, { [2] = 1 } }, { one, { [47] = 1 } }, { one, { [63] = 1 } },
      { { [0] = { 17, 64 } } }, { { [7] = { 16, 65 } } }, { { [3] = { 0, 64 } } }, { { [3] = { 16, 0 } } },
    } do
      config(bad[1], bad[2])
      assert.matches("#GP", fault())
    end
    C.spec_tile_zero(0)
    assert.matches("not configured", fault())
    config(one)
    C.spec_tile_zero(1)
    assert.matches("leaves out", fault())
    config { [0] = { 16, 64 }, [1] = { 16, 64 }, [2] = { 16, 64 }, [3] = { 15, 64 }, [4] = { 16, 60 }, [5] = { 16, 62 } }
    for _, bad in ipairs {
      { 0, 1, 1 }, { 0, 0, 1 }, { 0, 1, 0 }, { 3, 1, 2 }, { 4, 1, 2 }, { 0, 1, 3 }, { 0, 4, 2 }, { 5, 1, 5 },
    } do
      C.spec_tile_dpbusd(bad[1], bad[2], bad[3])
      assert.matches("do not fit", fault())
    end
    C.spec_tile_dpbusd(0, 1, 2)
    assert.is_nil(fault())
    C.spec_tile_release()
    C.spec_tile_dpbusd(0, 1, 2)
    assert.matches("not configured", fault())
  end)
end)
