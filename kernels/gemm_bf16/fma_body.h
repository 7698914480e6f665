/* fma_body.h: gemm_bf16 by fma, which computes the bits of tdpbf16ps. avx2.c and avx512vnni.c include it.
 *
 * They define NAME(f); v, a register of LANES floats, and vi, the same of integers; the functions vset, vload_pairs, vfirst, vsecond,
 * vfma, vadd, vload and vstore; and EACH_ROW(of), the rows of a tile. A tile has two registers of channels. Each output has two chains
 * in registers, one for the first inputs of the pairs and one for the second inputs. Tiles never use part of a register, because a
 * panel always has 64 channels.
 *
 * The control register MXCSR makes the CPU flush as tdpbf16ps does. The product is a function of its own that is not inlined, so
 * that the compiler cannot move float operations out of the part where MXCSR is set.
 */
#include "kernels/list.h"
#include "layout.h"
#include "round.h"

#define INLINE static inline __attribute__((always_inline))

#define ZERO(i) v first##i##0 = vset(0), first##i##1 = first##i##0, second##i##0 = first##i##0, second##i##1 = first##i##0;
#define STEP(i)                                                                           \
  if (m > i) {                                                                            \
    vi x = vpair(a + i * lda + 2 * pair);                                                 \
    v x1 = vfirst(x), x2 = vsecond(x);                                                    \
    first##i##0 = vfma(x1, b01, first##i##0), second##i##0 = vfma(x2, b02, second##i##0); \
    first##i##1 = vfma(x1, b11, first##i##1), second##i##1 = vfma(x2, b12, second##i##1); \
  }
#define ADD(i)                                                           \
  if (m > i) {                                                           \
    add(c + i * PANEL, vadd(first##i##0, second##i##0), begins);         \
    add(c + i * PANEL + LANES, vadd(first##i##1, second##i##1), begins); \
  }

INLINE void add(float *c, v sum, int begins) { vstore(c, vadd(begins ? vset(0) : vload(c), sum)); }

/* One block of K. m is a constant. begins: this is the first block. */
INLINE void block(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int begins, int m) {
  EACH_ROW(ZERO)
  for (int pair = 0; pair < 16; pair++, b += BF16_PAIR) {
    vi b0 = vload_pairs(b), b1 = vload_pairs(b + 2 * LANES);
    v b01 = vfirst(b0), b02 = vsecond(b0), b11 = vfirst(b1), b12 = vsecond(b1);
    EACH_ROW(STEP)
  }
  EACH_ROW(ADD)
}

INLINE void tile(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks, int m) {
  for (int n = 0; n < PANEL; n += 2 * LANES)
    for (int64_t k = 0; k < kblocks; k++)
      block(c + n, a + k * BF16_BLOCK_K, lda, b + k * BF16_BLOCK + 2 * n, k == 0, m);
}

#define CASE(i) \
  case i + 1: tile(c, a, lda, b, kblocks, i + 1); break;

static __attribute__((noinline)) void multiply(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks,
                                               int m) {
  for (; m > 0; m -= ROWS, c += ROWS * PANEL, a += ROWS * lda)
    switch (m < ROWS ? m : ROWS) { EACH_ROW(CASE) }
}

enum { FLUSH = 0x8000 | 0x40 }; /* bits of MXCSR: results that are tiny become zero (FTZ), denormal operands too (DAZ) */

void NAME(gemm_bf16)(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks, int m) {
  unsigned before = _mm_getcsr();
  _mm_setcsr(before | FLUSH);
  multiply(c, a, lda, b, kblocks, m);
  _mm_setcsr(before);
}

void NAME(round_bf16)(uint16_t *to, const float *x, int64_t width, int64_t padded) { round_row(to, x, width, padded); }
