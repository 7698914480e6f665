/* avxvnni.c: a tile of up to 6 rows by 64 channels, 16 channels at a time.
 *
 *                b0        b1      16 channels of one group: one cache line of its four
 *   row 0 x   | c00 ... | c01 ... |
 *   ...                              vpdpbusd adds the 4 products of each channel
 *   row 5 x   | c50 ... | c51 ... |
 *
 * 15 of 16 registers hold 12 accumulators, 2 vectors of weights and one broadcast of 4 inputs.
 */
#include <immintrin.h>
#include <string.h>

#include "layout.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __m256i four(const uint8_t *a) {
  int32_t x;
  memcpy(&x, a, sizeof x);
  return _mm256_set1_epi32(x);
}

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define ZERO(i) __m256i c##i##0 = _mm256_setzero_si256(), c##i##1 = c##i##0;
#define STEP(i)                                        \
  if (i < m) {                                         \
    __m256i x = four(a + i * lda);                     \
    c##i##0 = _mm256_dpbusd_avx_epi32(c##i##0, x, b0); \
    c##i##1 = _mm256_dpbusd_avx_epi32(c##i##1, x, b1); \
  }
#define STORE(i)                                                 \
  if (i < m) {                                                   \
    _mm256_store_si256((__m256i *)(c + i * PANEL), c##i##0);     \
    _mm256_store_si256((__m256i *)(c + i * PANEL + 8), c##i##1); \
  }

/* 16 channels. m is a constant in each copy. */
ALWAYS_INLINE void columns(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, prefetch next,
                           const int m) {
  EACH_ROW(ZERO);
  for (int64_t g = kblocks * 16; g > 0; g--) {
    _mm_prefetch(next.from, _MM_HINT_T1);
    __m256i b0 = _mm256_load_si256((const __m256i *)b), b1 = _mm256_load_si256((const __m256i *)(b + 32));
    EACH_ROW(STEP);
    a += 4;
    b += GROUP_BYTES;
    next.from += next.step;
  }
  EACH_ROW(STORE);
}

void gemm_u8s8_avxvnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next) {
  next.step /= PANEL / 16;
  for (int j = 0; j < PANEL; j += 16, b += 64, next.from += kblocks * 16 * next.step) {
    switch (m) {
    case 1: columns(c + j, a, lda, b, kblocks, next, 1); break;
    case 2: columns(c + j, a, lda, b, kblocks, next, 2); break;
    case 3: columns(c + j, a, lda, b, kblocks, next, 3); break;
    case 4: columns(c + j, a, lda, b, kblocks, next, 4); break;
    case 5: columns(c + j, a, lda, b, kblocks, next, 5); break;
    default: columns(c + j, a, lda, b, kblocks, next, 6); break;
    }
  }
}
