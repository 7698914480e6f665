/* lanes_ref.h: what body.h asks for beside tiles, for the reference. */
typedef uint8_t element;

/* The queries as they are: what is read past D is multiplied by 0. */
static const uint8_t *widen(void *to, const uint8_t *from, int64_t ld, int64_t D, int64_t count, int64_t *ldq) {
  (void)to, (void)D, (void)count;
  *ldq = ld;
  return from;
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
