/* round.h: a row of floats to BF16, 16 at a time, in vectors that the compiler turns into the ISA's. */
#ifndef PERIGEE_GEMM_BF16_ROUND_H
#define PERIGEE_GEMM_BF16_ROUND_H
#include <stdint.h>
#include <string.h>

#include "layout.h"

typedef uint32_t bits16 __attribute__((vector_size(64)));
typedef uint16_t halves16 __attribute__((vector_size(32)));

static inline void round_row(uint16_t *to, const float *x, int64_t width, int64_t padded) {
  int64_t k = 0;
  for (; k + 16 <= width; k += 16) {
    bits16 bits;
    memcpy(&bits, x + k, sizeof bits);
    bits16 nan = (bits16)((bits & 0x7fffffff) > 0x7f800000), nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    halves16 rounded = __builtin_convertvector((nan & (bits >> 16 | 0x40)) | (~nan & nearest), halves16);
    memcpy(to + k, &rounded, sizeof rounded);
  }
  for (; k < width; k++) {
    uint32_t bits;
    memcpy(&bits, x + k, sizeof bits);
    to[k] = bf16_of_bits(bits);
  }
  memset(to + width, 0, (size_t)(padded - width) * sizeof *to);
}

#endif
