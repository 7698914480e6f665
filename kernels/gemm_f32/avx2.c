/* gemm_f32 for AVX2: a tile of 6 rows by 16 columns in 12 registers, up to four times for 64 columns; a step of k loads two
 * registers of b and broadcasts each row's a. */
#include <immintrin.h>

#include "kernels/list.h"

#define INLINE static inline __attribute__((always_inline))

#define EACH_ROW(of) of(0) of(1) of(2) of(3) of(4) of(5)
#define ZERO(i) __m256 c##i##0 = _mm256_setzero_ps(), c##i##1 = c##i##0;
#define STEP(i)                                      \
  if (m > i) {                                       \
    __m256 x = _mm256_broadcast_ss(a + i * lda + p); \
    c##i##0 = _mm256_fmadd_ps(x, b0, c##i##0);       \
    if (vectors > 1)                                 \
      c##i##1 = _mm256_fmadd_ps(x, b1, c##i##1);     \
  }
#define STORE(i)                                               \
  if (m > i) {                                                 \
    store(c + i * ldc, c##i##0, masked && vectors == 1, last); \
    if (vectors > 1)                                           \
      store(c + i * ldc + 8, c##i##1, masked, last);           \
  }

INLINE __m256 load(const float *b, int masked, __m256i last) { return masked ? _mm256_maskload_ps(b, last) : _mm256_loadu_ps(b); }

INLINE void store(float *c, __m256 x, int masked, __m256i last) {
  if (masked)
    _mm256_maskstore_ps(c, last, x);
  else
    _mm256_storeu_ps(c, x);
}

/* m, vectors and masked are constants; the last vector has the lanes of `last` if masked. */
INLINE void tile(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int vectors,
                 int masked, __m256i last, const char *next) {
  EACH_ROW(ZERO)
  for (int64_t p = 0; p < k; p++, b += ldb, next += 16) {
    _mm_prefetch(next, _MM_HINT_T0);
    __m256 b0 = load(b, masked && vectors == 1, last), b1 = vectors > 1 ? load(b + 8, masked, last) : b0;
    EACH_ROW(STEP)
  }
  EACH_ROW(STORE)
}

/* Each of up to four passes asks for a quarter of what comes next. */
INLINE void columns(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                    const char *next) {
  static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  __m256i last = _mm256_loadu_si256((const __m256i *)(const void *)(lanes + (-n & 7)));
  for (; n >= 16; n -= 16, b += 16, c += 16, next += 16 * k)
    tile(c, ldc, a, lda, b, ldb, k, m, 2, 0, last, next);
  if (n > 8)
    tile(c, ldc, a, lda, b, ldb, k, m, 2, 1, last, next);
  else if (n > 0)
    tile(c, ldc, a, lda, b, ldb, k, m, 1, 1, last, next);
}

void gemm_f32_avx2(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                   const float *next) {
  const char *fetch = (const char *)(next ? next : b); /* what is fetched anyway */
  switch (m) {
  case 1: columns(c, ldc, a, lda, b, ldb, k, 1, n, fetch); break;
  case 2: columns(c, ldc, a, lda, b, ldb, k, 2, n, fetch); break;
  case 3: columns(c, ldc, a, lda, b, ldb, k, 3, n, fetch); break;
  case 4: columns(c, ldc, a, lda, b, ldb, k, 4, n, fetch); break;
  case 5: columns(c, ldc, a, lda, b, ldb, k, 5, n, fetch); break;
  default: columns(c, ldc, a, lda, b, ldb, k, 6, n, fetch); break;
  }
}
