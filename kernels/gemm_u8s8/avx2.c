/* avx2.c: a tile of up to 6 rows by 64 channels, 8 channels at a time, exact without VNNI.
 *
 * vpmaddubsw would sum pairs of u8 x s8 products in 16 bits, where 2 * 255 * 127 saturates. So both sides are widened to 16 bits
 * and vpmaddwd sums pairs in 32: 4 instructions for 32 products, the fewest of the exact ways. The inputs are widened once for
 * all 64 channels, into `wide`; the weights, 16 bytes at a time, once for all rows.
 *
 *                        b0                       b1              4 channels each, 4 inputs a channel, in 16 bits
 *   row 0 x   | n0 k01, n0 k23, n1 k01 ... | n4 k01, n4 k23 ...|
 *   ...                                                           each channel has two sums, added at the end
 *
 * 16 registers hold 12 accumulators, 2 vectors of weights, one broadcast of 4 inputs and one product.
 */
#include <immintrin.h>

#include "layout.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { TILE_M = 6 };
enum { DEPTH = 4 }; /* blocks at a time: 16 KiB of weights and 3 KiB of widened inputs stay in the L1 cache for all channels */

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define ZERO(i) __m256i c##i##0 = _mm256_setzero_si256(), c##i##1 = c##i##0;
/* In assembly because gcc would load every row's inputs first and run out of registers. */
#define STEP(i)                                                \
  if (i < m) {                                                 \
    __m256i x, y;                                              \
    __asm__("vpbroadcastq %4, %0\n\t"                          \
            "vpmaddwd %6, %0, %1\n\t"                          \
            "vpmaddwd %5, %0, %0\n\t"                          \
            "vpaddd %0, %2, %2\n\t"                            \
            "vpaddd %1, %3, %3"                                \
            : "=&x"(x), "=&x"(y), "+x"(c##i##0), "+x"(c##i##1) \
            : "m"(wide[i]), "x"(b0), "x"(b1));                 \
  }
#define STORE(i)                                                                        \
  if (i < m) {                                                                          \
    __m256i sum = _mm256_permute4x64_epi64(_mm256_hadd_epi32(c##i##0, c##i##1), 0xD8);  \
    __m256i *to = (__m256i *)(c + i * PANEL);                                           \
    _mm256_store_si256(to, first ? sum : _mm256_add_epi32(sum, _mm256_load_si256(to))); \
  }

ALWAYS_INLINE __m256i widen(const int8_t *b) { return _mm256_cvtepi8_epi16(_mm_load_si128((const __m128i *)b)); }

/* 8 channels. m is a constant in each copy. */
ALWAYS_INLINE void columns(int32_t *c, const int64_t *wide, const int8_t *b, int64_t groups, int first, const int m) {
  EACH_ROW(ZERO);
  for (int64_t g = groups; g > 0; g--) {
    __m256i b0 = widen(b), b1 = widen(b + 16);
    EACH_ROW(STEP);
    wide += TILE_M;
    b += GROUP_BYTES;
  }
  EACH_ROW(STORE);
}

/* Four inputs of row i, in 16 bits each, at wide[group][i]. */
static void widen_rows(int64_t *wide, const uint8_t *a, int64_t lda, int64_t groups, int m) {
  for (int i = 0; i < m; i++)
    for (int64_t g = 0; g < groups; g += 4) {
      __m256i x = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + i * lda + g * 4)));
      int64_t *to = wide + g * TILE_M + i;
      to[0] = _mm256_extract_epi64(x, 0);
      to[TILE_M] = _mm256_extract_epi64(x, 1);
      to[2 * TILE_M] = _mm256_extract_epi64(x, 2);
      to[3 * TILE_M] = _mm256_extract_epi64(x, 3);
    }
}

void gemm_u8s8_avx2(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next) {
  int64_t wide[DEPTH * 16 * TILE_M];
  for (int64_t k = 0; k < kblocks; k += DEPTH) {
    int64_t groups = (kblocks - k < DEPTH ? kblocks - k : DEPTH) * 16;
    widen_rows(wide, a + k * BLOCK_K, lda, groups, m);
    for (int j = 0; j < PANEL; j += 8) {
      const int8_t *from = b + k * BLOCK_BYTES + j * 4;
      for (const int8_t *end = next.from + groups * next.step / (PANEL / 8); next.from < end; next.from += 64)
        _mm_prefetch(next.from, _MM_HINT_T1);
      switch (m) {
      case 1: columns(c + j, wide, from, groups, !k, 1); break;
      case 2: columns(c + j, wide, from, groups, !k, 2); break;
      case 3: columns(c + j, wide, from, groups, !k, 3); break;
      case 4: columns(c + j, wide, from, groups, !k, 4); break;
      case 5: columns(c + j, wide, from, groups, !k, 5); break;
      default: columns(c + j, wide, from, groups, !k, 6); break;
      }
    }
  }
}
