/* lanes_ref.h: the definitions that head.h and blocks.h need, but for tiles, for the reference. */
typedef uint8_t element;

/* The queries as they are: what is read past D is multiplied by 0. */
INLINE const uint8_t *widen(void *to, const uint8_t *from, int64_t ld, int64_t D, int64_t count, int64_t *ldq) {
  (void)to, (void)D, (void)count;
  *ldq = ld;
  return from;
}

/* u8 minus 128 as s8, n bytes. */
INLINE void to_signed(int8_t *to, const uint8_t *from, int64_t n) {
  for (int64_t k = 0; k < n; k++)
    to[k] = (int8_t)(from[k] - 128);
}

static void pack_keys16(int8_t *to, const uint8_t *from, int64_t ld) {
  for (int s = 0; s < 16; s++)
    for (int d = 0; d < 16; d++)
      to[d / 4 * GROUP + s * 4 + d % 4] = (int8_t)(from[s * ld + d] - 128);
}

static void pack_values16(int8_t *to, const uint8_t *from, int64_t ld) {
  for (int s = 0; s < 16; s++)
    for (int d = 0; d < 16; d++)
      to[s / 4 * GROUP + d * 4 + s % 4] = (int8_t)(from[s * ld + d] - 128);
}

#include "probability.h"

static v16i store_p(uint8_t *p, v16i a, v16i b, v16i c, v16i d) {
  vstore_u8(p, a, 16), vstore_u8(p + 16, b, 16), vstore_u8(p + 32, c, 16), vstore_u8(p + 48, d, 16);
  return viadd(viadd(a, b), viadd(c, d));
}

/* 16 lanes. */
INLINE void vistore(int32_t *to, v16i x) { memcpy(to, x.x, sizeof x.x); }

/* to[i] = the largest lane or the sum of x[i][16], 16 rows. */
enum { REDUCE_MAX, REDUCE_SUM };
INLINE void reduce16(int32_t *to, const int32_t *x, int how) {
  for (int i = 0; i < 16; i++)
    to[i] = how == REDUCE_MAX ? vigreatest(viload(x + i * 16, 16)) : visum(viload(x + i * 16, 16));
}

/* p of four times 16 differences from the largest score. */
INLINE v16i four_probabilities(uint8_t *p, const v16 *d, v16 c) {
  return store_p(p, probability(d[0], c), probability(d[1], c), probability(d[2], c), probability(d[3], c));
}
