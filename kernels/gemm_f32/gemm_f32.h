/* gemm_f32.h: c[m][n] = a[m][k] times b[k][n] in FP32, one fma chain per output, k ascending. kernels.h has the contract. */
#ifndef PERIGEE_GEMM_F32_H
#define PERIGEE_GEMM_F32_H
#include <stdint.h>

enum { TILE_M_F32 = 6 }; /* rows of every ISA's tile */

#define GEMM_F32(isa)                                                                                                           \
  void gemm_f32_##isa(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n, \
                      const float *next);

GEMM_F32(ref)
GEMM_F32(avx2)
GEMM_F32(avx512vnni)

#endif
