/* INT8 attention for avx512vnni: tiles of 6 by 64; those of 5 and 6 queries in a pipeline, probabilities beside products. */
#define NAME(f) f##_avx512vnni
#include "kernels/rows/v16_avx512.h"

#include <string.h>

#include "kernels/rows/functions.h"
#include "scratch.h"

typedef __m512i vec;

INLINE vec vec_load(const void *p) { return _mm512_loadu_si512(p); }
/* In halves: on Zen 5 a store of 64 bytes takes a cycle of both units that products use, one of 32 half of that, and one that
 * extracts its bytes from further up nothing. */
INLINE void vec_store(void *p, vec x) {
  _mm256_storeu_si256(p, _mm512_castsi512_si256(x));
  _mm256_storeu_si256((__m256i *)p + 1, _mm512_extracti64x4_epi64(x, 1));
}
INLINE vec vec_four(const uint8_t *a) {
  int32_t x;
  memcpy(&x, a, sizeof x);
  return _mm512_set1_epi32(x);
}
INLINE vec vec_dot(vec c, vec x, vec b) { return _mm512_dpbusd_epi32(c, x, b); }

#include "tile_vnni.h"

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  switch (columns) {
  case 1: strip_of(c, ldc, start, a, lda, b, groups, m, 1); break;
  case 2: strip_of(c, ldc, start, a, lda, b, groups, m, 2); break;
  case 3: strip_of(c, ldc, start, a, lda, b, groups, m, 3); break;
  default: strip_of(c, ldc, start, a, lda, b, groups, m, 4); break;
  }
}

#include "lanes_avx512.h"

#define PIPELINE
#include "head.h"

#include "blocks.h"

#include "pipeline_avx512.h"
