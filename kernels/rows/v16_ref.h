/* v16_ref.h: sixteen floats as the portable reference sees them. The other two, v16_avx2.h and v16_avx512.h, have the same
 * functions with the same bits; the comments here are the contract of all three.
 *
 * Loads and stores take n, how many of the 16 lanes there are in memory: 1 to 16. The other lanes load as +0 and are not stored.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline
#define EACH for (int i = 0; i < 16; i++)

typedef struct v16 {
  float x[16];
} v16;
typedef struct v16i {
  int32_t x[16];
} v16i;

INLINE uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
INLINE float of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}

INLINE v16 vsplat(float x) {
  v16 r;
  EACH r.x[i] = x;
  return r;
}
/* p need not be aligned, here and in the next three. */
INLINE v16 vload(const void *p, int n) {
  v16 r = {{0}};
  memcpy(r.x, p, (size_t)n * sizeof *r.x);
  return r;
}
INLINE v16 vload_bf16(const void *p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, (size_t)n * sizeof *h);
  v16 r;
  EACH r.x[i] = of_bits((uint32_t)h[i] << 16);
  return r;
}
/* Exact, denormals included. */
INLINE v16 vload_f16(const void *p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, (size_t)n * sizeof *h);
  v16 r;
  EACH {
    uint32_t sign = (uint32_t)(h[i] & 0x8000) << 16, rest = (uint32_t)(h[i] & 0x7fff) << 13;
    if (rest >= 0x7c00u << 13) /* infinity, NaN */
      r.x[i] = of_bits(sign | 0x7f800000 | rest);
    else /* the exponent's bias differs by 112; a denormal is an integer times 2^-24 */
      r.x[i] = of_bits(sign | bits_of(of_bits(rest) * 0x1p112f));
  }
  return r;
}
/* Signed bytes as floats. */
INLINE v16 vload_s8(const void *p, int n) {
  int8_t q[16] = {0};
  memcpy(q, p, (size_t)n);
  v16 r;
  EACH r.x[i] = (float)q[i];
  return r;
}
INLINE void vstore(float *p, v16 a, int n) { memcpy(p, a.x, (size_t)n * sizeof *p); }

INLINE v16 vadd(v16 a, v16 b) {
  EACH a.x[i] += b.x[i];
  return a;
}
INLINE v16 vsub(v16 a, v16 b) {
  EACH a.x[i] -= b.x[i];
  return a;
}
INLINE v16 vmul(v16 a, v16 b) {
  EACH a.x[i] *= b.x[i];
  return a;
}
INLINE v16 vdiv(v16 a, v16 b) {
  EACH a.x[i] /= b.x[i];
  return a;
}
/* a * b + c and c - a * b, rounded once. */
INLINE v16 vfma(v16 a, v16 b, v16 c) {
  EACH c.x[i] = fmaf(a.x[i], b.x[i], c.x[i]);
  return c;
}
INLINE v16 vfnma(v16 a, v16 b, v16 c) {
  EACH c.x[i] = fmaf(-a.x[i], b.x[i], c.x[i]);
  return c;
}
/* a * b - c, rounded once. */
INLINE v16 vfms(v16 a, v16 b, v16 c) {
  EACH c.x[i] = fmaf(a.x[i], b.x[i], -c.x[i]);
  return c;
}
/* As MINPS and MAXPS: b where a and b are equal or either is NaN. */
INLINE v16 vmin(v16 a, v16 b) {
  EACH a.x[i] = a.x[i] < b.x[i] ? a.x[i] : b.x[i];
  return a;
}
INLINE v16 vmax(v16 a, v16 b) {
  EACH a.x[i] = a.x[i] > b.x[i] ? a.x[i] : b.x[i];
  return a;
}
INLINE v16 vabs(v16 a) {
  EACH a.x[i] = of_bits(bits_of(a.x[i]) & 0x7fffffff);
  return a;
}
/* a's magnitude with b's sign. */
INLINE v16 vsign(v16 a, v16 b) {
  EACH a.x[i] = of_bits((bits_of(a.x[i]) & 0x7fffffff) | (bits_of(b.x[i]) & 0x80000000));
  return a;
}
/* a < b ? x : y in each lane; NaN is not less. */
INLINE v16 vless(v16 a, v16 b, v16 x, v16 y) {
  EACH x.x[i] = a.x[i] < b.x[i] ? x.x[i] : y.x[i];
  return x;
}
/* x where x is NaN, else y. */
INLINE v16 vnan(v16 x, v16 y) {
  EACH x.x[i] = x.x[i] != x.x[i] ? x.x[i] : y.x[i];
  return x;
}
/* The first n lanes of a, the rest of b. */
INLINE v16 vfirst(v16 a, v16 b, int n) {
  for (int i = 0; i < n; i++)
    b.x[i] = a.x[i];
  return b;
}
/* The float whose bits are a's shifted left by 23: 2^(k - 127) where a's lowest bits hold k. */
INLINE v16 vexponent(v16 a) {
  EACH a.x[i] = of_bits(bits_of(a.x[i]) << 23);
  return a;
}

/* table[i] for each lane. i has four bits: the lowest bit of a's exponent and the three highest bits of its fraction. */
INLINE v16 vpick(const float *table, v16 a) {
  EACH a.x[i] = table[bits_of(a.x[i]) >> 20 & 15];
  return a;
}

/* Lane i with i + 8, then i + 4, i + 2, i + 1. */
INLINE float vsum(v16 a) {
  for (int h = 8; h; h /= 2)
    for (int i = 0; i < h; i++)
      a.x[i] = a.x[i] + a.x[i + h];
  return a.x[0];
}
INLINE float vleast(v16 a) {
  for (int h = 8; h; h /= 2)
    for (int i = 0; i < h; i++)
      a.x[i] = a.x[i] < a.x[i + h] ? a.x[i] : a.x[i + h];
  return a.x[0];
}
INLINE float vgreatest(v16 a) {
  for (int h = 8; h; h /= 2)
    for (int i = 0; i < h; i++)
      a.x[i] = a.x[i] > a.x[i + h] ? a.x[i] : a.x[i + h];
  return a.x[0];
}

INLINE v16i visplat(int32_t x) {
  v16i r;
  EACH r.x[i] = x;
  return r;
}
INLINE v16i viload(const int32_t *p, int n) {
  v16i r = {{0}};
  memcpy(r.x, p, (size_t)n * sizeof *p);
  return r;
}
/* Modulo 2^32. */
INLINE v16i viadd(v16i a, v16i b) {
  EACH a.x[i] = (int32_t)((uint32_t)a.x[i] + (uint32_t)b.x[i]);
  return a;
}
INLINE v16i visub(v16i a, v16i b) {
  EACH a.x[i] = (int32_t)((uint32_t)a.x[i] - (uint32_t)b.x[i]);
  return a;
}
INLINE v16i vimul(v16i a, v16i b) {
  EACH a.x[i] = (int32_t)((uint32_t)a.x[i] * (uint32_t)b.x[i]);
  return a;
}
INLINE v16i vimax(v16i a, v16i b) {
  EACH a.x[i] = a.x[i] > b.x[i] ? a.x[i] : b.x[i];
  return a;
}
/* The first n lanes of a, the rest of b. */
INLINE v16i vifirst(v16i a, v16i b, int n) {
  for (int i = 0; i < n; i++)
    b.x[i] = a.x[i];
  return b;
}
/* Over all lanes; the order of integers is free. */
INLINE int32_t visum(v16i a) {
  uint32_t sum = 0;
  EACH sum += (uint32_t)a.x[i];
  return (int32_t)sum;
}
INLINE int32_t vigreatest(v16i a) {
  EACH a.x[0] = a.x[i] > a.x[0] ? a.x[i] : a.x[0];
  return a.x[0];
}
INLINE v16 vfloat(v16i a) {
  v16 r;
  EACH r.x[i] = (float)a.x[i];
  return r;
}
/* To the nearest integer, ties to even; |a| < 2^22. Adding 1.5 * 2^23 rounds at the last integer bit. */
INLINE v16i vround(v16 a) {
  v16i r;
  EACH r.x[i] = (int32_t)bits_of(a.x[i] + 0x1.8p23f) - 0x4b400000;
  return r;
}
/* Lanes in 0 to 255. */
INLINE void vstore_u8(uint8_t *p, v16i a, int n) {
  for (int i = 0; i < n; i++)
    p[i] = (uint8_t)a.x[i];
}
/* max(0, x) - p. Not in v16_avx2.h. */
INLINE v16 vpositive_less(v16 x, v16 p) { return vsub(vmax(vsplat(0), x), p); }

/* 64 values, rounded and cut to lo to hi, plus zero; NaN gives lo. lo is at most 0 and hi at most lo + 255. Not in v16_avx2.h. */
INLINE void vstore_rounded(uint8_t *p, v16 a, v16 b, v16 c, v16 d, int32_t lo, int32_t hi, int32_t zero) {
  const v16 all[] = {a, b, c, d};
  for (int i = 0; i < 4; i++)
    vstore_u8(p + 16 * i, viadd(vround(vmin(vmax(all[i], vsplat((float)lo)), vsplat((float)hi))), visplat(zero)), 16);
}

/* to[j][i] = from[i][j] for a block of 16 by 16. */
INLINE void vtranspose(float *to, int64_t ldto, const float *from, int64_t ldfrom) {
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++)
      to[j * ldto + i] = from[i * ldfrom + j];
}
