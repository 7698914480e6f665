/* probability.h: p = rne(255 * 2^(d c) + u) of sixteen scores, d how far each is from the largest and c the scale with log2 e in it.
 *
 * 2^t = 2^k 2^r, k = rne(t), r = t - k; 255 * 2^r is a polynomial. Far below the maximum, where p is 0, k is cut: r is then very
 * negative, and so is the polynomial, or it is minus infinity. AVX-512 scales by 2^k for any k; what comes out there instead is
 * 0 or no integer, which store_p makes 0.
 *
 * u, from -15/32 to 15/32, belongs to the key's place among sixteen. Where hundreds of keys weigh less than half a level each,
 * plain rounding would drop them all; with u as many become 1 as their sum asks for. The order is that of bits reversed, so that
 * neighbours are far apart. At the maximum p is 255 for every u.
 */
static const float rounding[16] = {-15 / 32.f, 1 / 32.f, -7 / 32.f, 9 / 32.f,  -11 / 32.f, 5 / 32.f, -3 / 32.f, 13 / 32.f,
                                   -13 / 32.f, 3 / 32.f, -5 / 32.f, 11 / 32.f, -9 / 32.f,  7 / 32.f, -1 / 32.f, 15 / 32.f};

INLINE v16i probability(v16 d, v16 c) {
  v16 magic = vsplat(0x1.8p23f + 127), u = vload(rounding, 16);
#ifdef PROBABILITY_AVX512
  v16 k = vsub(vfma(d, c, magic), magic);
  return vround(vadd(_mm512_scalef_ps(POLYNOMIAL(vfms(d, c, k), power_255), k), u)); /* the scaling is exact, as in the fma */
#else
  v16 z = vmax(vfma(d, c, magic), vsplat(0x1.8p23f + 127 - 100));
  v16 x = vfma(POLYNOMIAL(vfms(d, c, vsub(z, magic)), power_255), vexponent(z), u);
  return vround(vmax(x, vsplat(0)));
#endif
}
