/* gemm_bf16 for AVX-512: a tile of 6 rows by 32 channels, 24 sums in registers.
 *
 * vdpbf16ps of AVX512-BF16 adds both products of a pair to one sum. tdpbf16ps keeps two sums, so vdpbf16ps gives other bits. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define NAME(f) f##_avx512vnni
#define EACH_ROW(of) of(0) of(1) of(2) of(3) of(4) of(5)
enum { LANES = 16, ROWS = 6 };
typedef __m512 v;
typedef __m512i vi;

static inline v vset(float x) { return _mm512_set1_ps(x); }
static inline vi vload_pairs(const uint16_t *b) { return _mm512_loadu_si512(b); }
static inline vi vpair(const uint16_t *a) {
  int32_t pair;
  memcpy(&pair, a, sizeof pair);
  return _mm512_set1_epi32(pair);
}
static inline v vfirst(vi pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)); }
static inline v vsecond(vi pairs) { return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32((int)0xffff0000))); }
static inline v vfma(v a, v b, v c) { return _mm512_fmadd_ps(a, b, c); }
static inline v vadd(v a, v b) { return _mm512_add_ps(a, b); }
static inline v vload(const float *x) { return _mm512_loadu_ps(x); }
static inline void vstore(float *x, v a) { _mm512_storeu_ps(x, a); }

#include "fma_body.h"
