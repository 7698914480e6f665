/* avx2.c: INT8 attention for avx2: tiles of 6 by 8, exact without VNNI.
 *
 * As in gemm_u8s8/avx2.c both sides are widened to 16 bits and vpmaddwd sums pairs in 32; but queries and probabilities are kept
 * in 16 bits to begin with, so that a row's group is one broadcast of 8 bytes.
 */
#define NAME(f) f##_avx2
#include "kernels/rows/v16_avx2.h"

#include "kernels/rows/functions.h"
#include "scratch.h"

typedef uint16_t element;
enum { TILE_M = 6 };

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define ZERO(i) __m256i c##i##0 = _mm256_setzero_si256(), c##i##1 = c##i##0;
/* In assembly because gcc would load every row's inputs first and run out of registers. */
#define STEP(i)                                                     \
  if (i < m) {                                                      \
    __m256i x, y;                                                   \
    __asm__("vpbroadcastq %4, %0\n\t"                               \
            "vpmaddwd %6, %0, %1\n\t"                               \
            "vpmaddwd %5, %0, %0\n\t"                               \
            "vpaddd %0, %2, %2\n\t"                                 \
            "vpaddd %1, %3, %3"                                     \
            : "=&x"(x), "=&x"(y), "+x"(c##i##0), "+x"(c##i##1)      \
            : "m"(*(const quad *)(a + i * lda)), "x"(b0), "x"(b1)); \
  }
/* A column's two sums, added. */
#define STORE(i)                                                                       \
  if (i < m) {                                                                         \
    __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(c##i##0, c##i##1), 0xD8); \
    _mm256_storeu_si256((__m256i *)(void *)(c + i * ldc), _mm256_add_epi32(sum, s));   \
  }

typedef struct quad {
  element x[4];
} quad;

INLINE __m256i widened(const int8_t *b) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)b)); }

/* 8 columns. m is a constant in each copy. */
INLINE void strip(int32_t *c, int64_t ldc, const int32_t *start, const element *a, int64_t lda, const int8_t *b, int64_t groups,
                  const int m) {
  __m256i s = _mm256_loadu_si256((const __m256i *)(const void *)start);
  EACH_ROW(ZERO);
  for (; groups > 0; groups--, a += 4, b += GROUP) {
    __m256i b0 = widened(b), b1 = widened(b + 16);
    EACH_ROW(STEP);
  }
  EACH_ROW(STORE);
}

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const element *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  for (int j = 0; j < 16 * columns; j += 8, c += 8, start += 8, b += 32)
    switch (m) {
    case 1: strip(c, ldc, start, a, lda, b, groups, 1); break;
    case 2: strip(c, ldc, start, a, lda, b, groups, 2); break;
    case 3: strip(c, ldc, start, a, lda, b, groups, 3); break;
    case 4: strip(c, ldc, start, a, lda, b, groups, 4); break;
    case 5: strip(c, ldc, start, a, lda, b, groups, 5); break;
    default: strip(c, ldc, start, a, lda, b, groups, 6); break;
    }
}

static const element *widen(element *to, const uint8_t *from, int64_t ld, int64_t D, int64_t count, int64_t *ldq) {
  *ldq = panels_of(D) * 64;
  for (int64_t i = 0; i < count; i++)
    for (int64_t d = 0; d < groups_of(D) * 4; d++)
      to[i * *ldq + d] = d < D ? from[i * ld + d] : 0;
  return to;
}

#include "probability.h"

INLINE void store_16(element *p, v16i x) {
  _mm256_storeu_si256((__m256i *)(void *)p, _mm256_permute4x64_epi64(_mm256_packus_epi32(x.a, x.b), 0xD8));
}
INLINE v16i store_p(element *p, v16i a, v16i b, v16i c, v16i d) {
  store_16(p, a), store_16(p + 16, b), store_16(p + 32, c), store_16(p + 48, d);
  return viadd(viadd(a, b), viadd(c, d));
}

#include "pack_sse.h"

#include "head.h"

#include "blocks.h"
