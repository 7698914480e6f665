/* The portable reference of gemm_f32. */
#include <math.h>

#include "kernels/list.h"

void gemm_f32_ref(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                  const float *next) {
  (void)next;
  for (int i = 0; i < m; i++) {
    float acc[64] = {0};
    for (int64_t p = 0; p < k; p++)
      for (int j = 0; j < n; j++)
        acc[j] = fmaf(a[i * lda + p], b[p * ldb + j], acc[j]);
    for (int j = 0; j < n; j++)
      c[i * ldc + j] = acc[j];
  }
}
