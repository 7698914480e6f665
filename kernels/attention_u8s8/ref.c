/* INT8 attention for the portable reference. */
#define NAME(f) f##_ref
#include "../rows/v16_ref.h"

#include "../rows/functions.h"
#include "scratch.h"

typedef uint8_t element;
enum { TILE_M = BLOCK_QUERIES };

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  for (int i = 0; i < m; i++)
    for (int n = 0; n < 16 * columns; n++) {
      int32_t sum = start[n];
      for (int64_t k = 0; k < 4 * groups; k++)
        sum += a[i * lda + k] * b[k / 4 * GROUP + n * 4 + k % 4];
      c[i * ldc + n] = sum;
    }
}

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
  for (int s = 0; s < 4; s++)
    for (int d = 0; d < 16; d++)
      to[d * 4 + s] = (int8_t)(from[s * ld + d] - 128);
}

#include "probability.h"

static v16i store_p(uint8_t *p, v16i a, v16i b, v16i c, v16i d) {
  vstore_u8(p, a, 16), vstore_u8(p + 16, b, 16), vstore_u8(p + 32, c, 16), vstore_u8(p + 48, d, 16);
  return viadd(viadd(a, b), viadd(c, d));
}

#include "body.h"
