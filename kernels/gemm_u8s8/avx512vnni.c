/* avx512vnni.c: a tile of up to 6 rows by 64 channels in 24 accumulators; and one of 7.
 *
 *                b0        b1        b2        b3       one group of the panel: 4 inputs of 64 channels
 *   row 0 x   | c00 ... | c01 ... | c02 ... | c03 ... |
 *   ...                                                 vpdpbusd adds the 4 products of each channel
 *   row 5 x   | c50 ... | c51 ... | c52 ... | c53 ... |
 *
 * Of 32 registers, 24 accumulators, 4 of weights and one broadcast of 4 inputs are live. The accumulators have names because gcc
 * keeps an array of them in memory. A group is 24 products, so 12 cycles at two a cycle; its 10 loads, two prefetches and
 * the loop fit beside them.
 */
#include <immintrin.h>
#include <string.h>

#include "layout.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __m512i four(const uint8_t *a) {
  int32_t x;
  memcpy(&x, a, sizeof x);
  return _mm512_set1_epi32(x);
}

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define ZERO(i) __m512i c##i##0 = _mm512_setzero_si512(), c##i##1 = c##i##0, c##i##2 = c##i##0, c##i##3 = c##i##0;
#define STEP(i)                                    \
  if (i < m) {                                     \
    __m512i x = four(a + i * lda);                 \
    c##i##0 = _mm512_dpbusd_epi32(c##i##0, x, b0); \
    c##i##1 = _mm512_dpbusd_epi32(c##i##1, x, b1); \
    c##i##2 = _mm512_dpbusd_epi32(c##i##2, x, b2); \
    c##i##3 = _mm512_dpbusd_epi32(c##i##3, x, b3); \
  }
#define STORE(i)                                  \
  if (i < m) {                                    \
    _mm512_store_si512(c + i * 64, c##i##0);      \
    _mm512_store_si512(c + i * 64 + 16, c##i##1); \
    _mm512_store_si512(c + i * 64 + 32, c##i##2); \
    _mm512_store_si512(c + i * 64 + 48, c##i##3); \
  }

/* m is a constant in each copy. */
ALWAYS_INLINE void tile(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, const int8_t *next,
                        const int m) {
  EACH_ROW(ZERO);
  for (int64_t g = kblocks * 16; g > 0; g--) {
    _mm_prefetch(next, _MM_HINT_T1);
    _mm_prefetch(next + 64, _MM_HINT_T1);
    __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + 64);
    __m512i b2 = _mm512_load_si512(b + 128), b3 = _mm512_load_si512(b + 192);
    EACH_ROW(STEP);
    a += 4;
    b += GROUP_BYTES;
    next += NEXT_BYTES / 16;
  }
  EACH_ROW(STORE);
}

/* Seven rows: 28 accumulators, three of weights, one broadcast; the fourth of weights is read from memory by each product, 17 loads
 * beside 28 products. A row left over is better there than in a tile of its own, which would read the whole panel again. */
#define STEP7(i)                                                       \
  {                                                                    \
    __m512i x = four(a + i * lda);                                     \
    c##i##0 = _mm512_dpbusd_epi32(c##i##0, x, b0);                     \
    c##i##1 = _mm512_dpbusd_epi32(c##i##1, x, b1);                     \
    c##i##2 = _mm512_dpbusd_epi32(c##i##2, x, b2);                     \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c##i##3) : "v"(x), "m"(*b3)); \
  }

static void tile7(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, const int8_t *next) {
  enum { m = 7 };
  EACH_ROW(ZERO);
  ZERO(6)
  for (int64_t g = kblocks * 16; g > 0; g--) {
    _mm_prefetch(next, _MM_HINT_T1);
    _mm_prefetch(next + 64, _MM_HINT_T1);
    __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + 64), b2 = _mm512_load_si512(b + 128);
    const __m512i *b3 = (const __m512i *)(const void *)(b + 192);
    EACH_ROW(STEP7);
    STEP7(6)
    a += 4;
    b += GROUP_BYTES;
    next += NEXT_BYTES / 16;
  }
  EACH_ROW(STORE);
  STORE(6)
}

void gemm_u8s8_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m,
                          const int8_t *next) {
  if (!next)
    next = b; /* what is in the cache already costs nothing */
  switch (m) {
  case 1: tile(c, a, lda, b, kblocks, next, 1); break;
  case 2: tile(c, a, lda, b, kblocks, next, 2); break;
  case 3: tile(c, a, lda, b, kblocks, next, 3); break;
  case 4: tile(c, a, lda, b, kblocks, next, 4); break;
  case 5: tile(c, a, lda, b, kblocks, next, 5); break;
  case 6: tile(c, a, lda, b, kblocks, next, 6); break;
  default: tile7(c, a, lda, b, kblocks, next); break;
  }
}
