/* ref.c: the portable kernel, one product after another. The reference, whose sums all other kernels must equal. */
#include "layout.h"

void gemm_u8s8_ref(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next) {
  (void)next;
  for (int i = 0; i < m; i++) {
    int32_t *row = c + i * PANEL;
    for (int n = 0; n < PANEL; n++)
      row[n] = 0;
    for (int64_t k = 0; k < kblocks * BLOCK_K; k++)
      for (int n = 0; n < PANEL; n++)
        row[n] += a[i * lda + k] * b[packed_index(n, k, kblocks)];
  }
}
