/* INT8 attention for avxvnni: tiles of 6 by 16. */
#define NAME(f) f##_avxvnni
#include "kernels/rows/v16_avx2.h"

#include <string.h>

#include "kernels/rows/functions.h"
#include "scratch.h"

typedef uint8_t element;
typedef __m256i vec;

INLINE vec vec_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
INLINE void vec_store(int32_t *p, vec x) { _mm256_storeu_si256((__m256i *)(void *)p, x); }
INLINE vec vec_four(const uint8_t *a) {
  int32_t x;
  memcpy(&x, a, sizeof x);
  return _mm256_set1_epi32(x);
}
INLINE vec vec_dot(vec c, vec x, vec b) { return _mm256_dpbusd_avx_epi32(c, x, b); }

#include "tile_vnni.h"

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  for (int j = 0; j < columns * 16; j += 16)
    strip_of(c + j, ldc, start + j, a, lda, b + j * 4, groups, m, 2);
}

#include "probability.h"

INLINE v16i store_p(uint8_t *p, v16i a, v16i b, v16i c, v16i d) {
  vstore_u8(p, a, 16), vstore_u8(p + 16, b, 16), vstore_u8(p + 32, c, 16), vstore_u8(p + 48, d, 16);
  return viadd(viadd(a, b), viadd(c, d));
}

/* The queries as they are: what is read past D is multiplied by 0. */
INLINE const uint8_t *widen(void *to, const uint8_t *from, int64_t ld, int64_t D, int64_t count, int64_t *ldq) {
  (void)to, (void)D, (void)count;
  *ldq = ld;
  return from;
}

#include "pack_sse.h"

#include "head.h"

#include "blocks.h"
