/* gemm_bf16 for AVX2: a tile of 2 rows by 16 channels, 8 sums in registers. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define NAME(f) f##_avx2
#define EACH_ROW(of) of(0) of(1)
enum { LANES = 8, ROWS = 2 };
typedef __m256 v;
typedef __m256i vi;

static inline v vset(float x) { return _mm256_set1_ps(x); }
static inline vi vload_pairs(const uint16_t *b) { return _mm256_loadu_si256((const __m256i *)(const void *)b); }
static inline vi vpair(const uint16_t *a) {
  int32_t pair;
  memcpy(&pair, a, sizeof pair);
  return _mm256_set1_epi32(pair);
}
static inline v vfirst(vi pairs) { return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16)); }
static inline v vsecond(vi pairs) { return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32((int)0xffff0000))); }
static inline v vfma(v a, v b, v c) { return _mm256_fmadd_ps(a, b, c); }
static inline v vadd(v a, v b) { return _mm256_add_ps(a, b); }
static inline v vload(const float *x) { return _mm256_loadu_ps(x); }
static inline void vstore(float *x, v a) { _mm256_storeu_ps(x, a); }

#include "fma_body.h"
