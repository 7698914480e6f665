/* gemm_f32.c: one call of a gemm_f32 kernel against the chain of fma that kernels.h promises. Operands end at a page without
 * access, rows of c have guards. */
#include "floats.h"

PUBLIC int spec_gemm_f32_tile(int isa) { return kernels_for(isa) ? kernels_for(isa)->tile_m_f32 : 0; }

/* 1 if c [m][n] is right to the last bit and nothing else was written. corrupt: one element of the oracle's a is changed. */
PUBLIC int spec_gemm_f32(int isa, int m, int n, int64_t k, int64_t gap, int fill, uint32_t seed, int corrupt, char *why,
                         int64_t bytes) {
  int64_t lda = k + gap, ldb = n + gap, ldc = n + 3;
  block a = block_filled((m - 1) * lda + k, fill, seed), b = block_filled((k - 1) * ldb + n, fill, seed + 1);
  block c = block_new(m * ldc), want = block_new(m * ldc);
  kernels_for(isa)->gemm_f32(c.f, ldc, a.f, lda, b.f, ldb, k, m, n,
                             m % 2 ? NULL : b.f + (k - 1) * ldb + n); /* next may only be prefetched */
  if (corrupt)
    a.bits[(m - 1) * lda + k / 2] ^= 0x1000; /* the last bit might be lost in the sum */
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      float sum = 0;
      for (int64_t p = 0; p < k; p++)
        sum = fmaf(a.f[i * lda + p], b.f[p * ldb + j], sum);
      want.f[i * ldc + j] = sum;
    }
  int ok = same_floats(c, want, m * ldc, "c", why, bytes);
  block_free(a), block_free(b), block_free(c), block_free(want);
  return ok;
}
