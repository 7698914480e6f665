/* functions.h: functions of sixteen floats that rows and attention share: exp, tanh, GELU, quantizing; after one of the v16_*.h.
 *
 * The polynomials are ours: coefficients.py finds them. NaN gives NaN everywhere. Measured over all floats against double
 * (spec/kernels/rows_spec.lua holds them to it):
 *   exp    at most 0.9 ulp where the result is a normal float, for x up to 88; 0 below -87.7
 *   tanh   at most 1.4 ulp
 *   gelu   at most 1.3e-7 * max(1, |x|) off x / 2 * (1 + erf(x / sqrt 2)), as much off the tanh form (Hendrycks and Gimpel 2016);
 *          the quick form and silu as much off theirs
 */
#include "engine/perigee.h"
#include "coefficients.h"

/* Runs the statement for k = 0, 16, ... with n lanes each: a constant 16 but for the last ones. */
#define LANES(width, statement)          \
  do {                                   \
    int64_t k = 0;                       \
    for (; k + 16 <= (width); k += 16) { \
      enum { n = 16 };                   \
      statement;                         \
    }                                    \
    if (k < (width)) {                   \
      int n = (int)(-k + (width));       \
      statement;                         \
    }                                    \
  } while (0)

/* Horner's scheme, highest power first, 2 to 9 coefficients. Written out: neither compiler unrolls a loop here reliably. */
INLINE v16 polynomial(v16 t, const float *c, int count) {
  v16 p = vfma(vsplat(c[0]), t, vsplat(c[1]));
  p = count > 2 ? vfma(p, t, vsplat(c[2])) : p;
  p = count > 3 ? vfma(p, t, vsplat(c[3])) : p;
  p = count > 4 ? vfma(p, t, vsplat(c[4])) : p;
  p = count > 5 ? vfma(p, t, vsplat(c[5])) : p;
  p = count > 6 ? vfma(p, t, vsplat(c[6])) : p;
  p = count > 7 ? vfma(p, t, vsplat(c[7])) : p;
  p = count > 8 ? vfma(p, t, vsplat(c[8])) : p;
  return p;
}
#define POLYNOMIAL(t, c) polynomial(t, c, (int)(sizeof(c) / sizeof *(c)))

/* exp(x) = 2^k exp(r), k = rne(x / ln 2), r = x - k ln 2 in two steps (Cody and Waite 1980), for x up to 88. k + 127 comes to lie
 * in the lowest bits of z, so that the power of two is a shift away; x is first cut to where that is 0, for which the power
 * counts as 0. */
INLINE v16 vexp(v16 x) {
  x = vmax(vsplat(-88), x);
  v16 magic = vsplat(0x1.8p23f + 127);
  v16 z = vfma(x, vsplat(0x1.715476p0f), magic);
  v16 k = vsub(z, magic);
  v16 r = vfnma(k, vsplat(0x1.62e4p-1f), x);
  r = vfnma(k, vsplat(0x1.7f7d1cp-20f), r);
  v16 p = vfma(POLYNOMIAL(r, exp_tail), r, vsplat(1));
  p = vfma(p, r, vsplat(1));
  return vmul(p, vexponent(z));
}

/* x + x^3 P(x^2) near 0, elsewhere 1 - 2 / (exp(2 |x|) + 1) with the sign of x. */
INLINE v16 vtanh(v16 x) {
  v16 a = vmin(vsplat(10), vabs(x)), u = vmul(x, x);
  v16 near = vfma(vmul(x, u), POLYNOMIAL(u, tanh_near), x);
  v16 far = vsub(vsplat(1), vdiv(vsplat(2), vadd(vexp(vadd(a, a)), vsplat(1))));
  return vless(a, vsplat(0.625f), near, vsign(far, x));
}

/* max(0, x) - a Q(a), a = |x|: x times the normal distribution's cumulative function is x less its upper tail for x > 0 and the
 * tail of -x otherwise. Q approximates the tail up to 16/3 and is exactly 0 there and beyond; t runs from -1 to 1. Even and odd
 * powers are summed apart: two short chains of fma keep a core busier than one long one. */
#define GELU(x, q)                                                     \
  v16 a = vmin(vsplat(0x1.555556p2f), vabs(x));                        \
  v16 t = vfma(a, vsplat(0.375f), vsplat(-1)), u = vmul(t, t);         \
  v16 tail = vfma(POLYNOMIAL(u, q##_odd), t, POLYNOMIAL(u, q##_even)); \
  return vfnma(a, tail, vmax(vsplat(0), x))
INLINE v16 vgelu(v16 x) { GELU(x, gelu_erf); }
INLINE v16 vgelu_tanh(v16 x) { GELU(x, gelu_tanh); }
#undef GELU

/* x / (1 + exp(-slope x)): x times the logistic function of slope x. */
INLINE v16 vsilu(v16 x, float slope) { return vdiv(x, vadd(vexp(vmin(vsplat(88), vmul(vsplat(-slope), x))), vsplat(1))); }

/* The rounded GELU, exact enough for 8 bits: max(0, x) - P(z). P consists of quadratic pieces; the highest bits of z = 1.25 |x| + 2
 * choose the piece. |x| is computed as max(x, 0 - x), because that needs no constant. */
INLINE v16 gelu_pieces(v16 x, const float (*c)[16]) {
  v16 z = vmin(vsplat(c[3][2]), vfma(vmax(x, vsub(vsplat(0), x)), vsplat(c[3][0]), vsplat(c[3][1])));
  v16 p = vfma(vfma(vpick(c[0], z), z, vpick(c[1], z)), z, vpick(c[2], z));
  return vsub(vmax(vsplat(0), x), p);
}

INLINE v16 activate(v16 x, int activation) {
  switch (activation) {
  case PGEE_GELU: return vgelu(x);
  case PGEE_GELU_TANH: return vgelu_tanh(x);
  case PGEE_GELU_ROUNDED: return gelu_pieces(x, gelu_erf_pieces);
  case PGEE_GELU_TANH_ROUNDED: return gelu_pieces(x, gelu_tanh_pieces);
  case PGEE_RELU: return vmax(vsplat(0), x);
  case PGEE_TANH: return vtanh(x);
  case PGEE_QUICK_GELU: return vsilu(x, 1.702f);
  case PGEE_SILU: return vsilu(x, 1);
  default: return x;
  }
}

/* What a static quantizer rounds of v, lanes k to k + n: v * mul, or fma(v, mul, add) if add is not NULL. */
INLINE v16 scaled(v16 v, const float *mul, const float *add, int64_t k, int n) {
  v16 m = vload(mul + k, n);
  return add ? vfma(v, m, vload(add + k, n)) : vmul(v, m);
}

/* clamp(rne(x), lo, hi) + zero; NaN gives lo. */
INLINE void store_quantized(uint8_t *q, v16 x, v16 lo, v16 hi, v16i zero, int n) {
  vstore_u8(q, viadd(vround(vmin(vmax(x, lo), hi)), zero), n);
}
