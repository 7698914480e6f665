/* probability.h: p = rne(255 * 2^(float(s - top) c)) of sixteen scores, c the scale with log2 e in it.
 *
 * 2^t = 2^k 2^r, k = rne(t), r = t - k; 255 * 2^r is a polynomial. Far below the maximum, where p is 0, k is cut: r is then very
 * negative, and so is the polynomial, or it is minus infinity; AVX-512 scales by 2^k for any k and need not cut.
 */
INLINE v16i probability(v16i s, v16i top, v16 c) {
  v16 d = vfloat(visub(s, top)), magic = vsplat(0x1.8p23f + 127);
#ifdef PROBABILITY_AVX512
  v16 k = vsub(vfma(d, c, magic), magic);
  return vround(_mm512_scalef_ps(POLYNOMIAL(vfms(d, c, k), power_255), k));
#else
  v16 z = vmax(vfma(d, c, magic), vsplat(0x1.8p23f + 127 - 100));
  v16 x = vmul(POLYNOMIAL(vfms(d, c, vsub(z, magic)), power_255), vexponent(z));
  return vround(vmax(x, vsplat(0)));
#endif
}
