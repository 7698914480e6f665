/* gemm_f32 for AVX-512: a tile of 6 rows by 64 columns in 24 registers; a step of k loads four registers of b, broadcasts each
 * row's a, and asks for 64 bytes of what comes next.
 *
 * The accumulators have names, not indices: gcc 12 keeps them in registers only so. */
#include <immintrin.h>

#include "kernels/list.h"

#define INLINE static inline __attribute__((always_inline))

#define EACH_ROW(of) of(0) of(1) of(2) of(3) of(4) of(5)
#define ZERO(i) __m512 c##i##0 = _mm512_setzero_ps(), c##i##1 = c##i##0, c##i##2 = c##i##0, c##i##3 = c##i##0;
#define STEP(i)                                  \
  if (m > i) {                                   \
    __m512 x = _mm512_set1_ps(a[i * lda + p]);   \
    c##i##0 = _mm512_fmadd_ps(x, b0, c##i##0);   \
    if (vectors > 1)                             \
      c##i##1 = _mm512_fmadd_ps(x, b1, c##i##1); \
    if (vectors > 2)                             \
      c##i##2 = _mm512_fmadd_ps(x, b2, c##i##2); \
    if (vectors > 3)                             \
      c##i##3 = _mm512_fmadd_ps(x, b3, c##i##3); \
  }
#define LOAD(j) \
  vectors <= j ? _mm512_setzero_ps() : vectors == j + 1 ? _mm512_maskz_loadu_ps(last, b + 16 * j) : _mm512_loadu_ps(b + 16 * j)
#define STORE(i)                                   \
  if (m > i) {                                     \
    store(c + i * ldc, c##i##0, 0, vectors, last); \
    store(c + i * ldc, c##i##1, 1, vectors, last); \
    store(c + i * ldc, c##i##2, 2, vectors, last); \
    store(c + i * ldc, c##i##3, 3, vectors, last); \
  }

INLINE void store(float *c, __m512 x, int j, int vectors, __mmask16 last) {
  if (vectors == j + 1)
    _mm512_mask_storeu_ps(c + 16 * j, last, x);
  else if (vectors > j)
    _mm512_storeu_ps(c + 16 * j, x);
}

/* m and vectors are constants, `last` masks the last vector's lanes. */
INLINE void tile(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int vectors,
                 __mmask16 last, const char *next) {
  EACH_ROW(ZERO)
  for (int64_t p = 0; p < k; p++, b += ldb, next += 64) {
    _mm_prefetch(next, _MM_HINT_T0);
    __m512 b0 = LOAD(0), b1 = LOAD(1), b2 = LOAD(2), b3 = LOAD(3);
    EACH_ROW(STEP)
  }
  EACH_ROW(STORE)
}

INLINE void rows(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                 const char *next) {
  __mmask16 last = (__mmask16)(0xffffu >> (-n & 15));
  switch ((n + 15) / 16) {
  case 1: tile(c, ldc, a, lda, b, ldb, k, m, 1, last, next); break;
  case 2: tile(c, ldc, a, lda, b, ldb, k, m, 2, last, next); break;
  case 3: tile(c, ldc, a, lda, b, ldb, k, m, 3, last, next); break;
  default: tile(c, ldc, a, lda, b, ldb, k, m, 4, last, next); break;
  }
}

void gemm_f32_avx512vnni(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                         const float *next) {
  const char *fetch = (const char *)(next ? next : b); /* what is fetched anyway */
  switch (m) {
  case 1: rows(c, ldc, a, lda, b, ldb, k, 1, n, fetch); break;
  case 2: rows(c, ldc, a, lda, b, ldb, k, 2, n, fetch); break;
  case 3: rows(c, ldc, a, lda, b, ldb, k, 3, n, fetch); break;
  case 4: rows(c, ldc, a, lda, b, ldb, k, 4, n, fetch); break;
  case 5: rows(c, ldc, a, lda, b, ldb, k, 5, n, fetch); break;
  default: rows(c, ldc, a, lda, b, ldb, k, 6, n, fetch); break;
  }
}
