/* INT8 attention for avx512vnni: tiles of 6 by 64. */
#define NAME(f) f##_avx512vnni
#include "../rows/v16_avx512.h"

#include <string.h>

#include "../rows/functions.h"
#include "scratch.h"

typedef uint8_t element;
typedef __m512i vec;

INLINE vec vec_load(const void *p) { return _mm512_loadu_si512(p); }
INLINE void vec_store(int32_t *p, vec x) { _mm512_storeu_si512(p, x); }
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

#define PROBABILITY_AVX512
#include "probability.h"

/* Cuts to 0 to 255 as it narrows. */
INLINE v16i store_p(uint8_t *p, v16i a, v16i b, v16i c, v16i d) {
  __m512i ab = _mm512_packus_epi32(a, b), cd = _mm512_packus_epi32(c, d), x = _mm512_packus_epi16(ab, cd);
  x = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), x);
  _mm512_storeu_si512(p, x);
  return _mm512_sad_epu8(x, _mm512_setzero_si512());
}

#include "pack_sse.h"

#include "body.h"
