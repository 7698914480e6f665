/* amx_body.h: gemm_bf16 by tdpbf16ps. amx.c compiles it for the CPU's tile instructions, amx_model.c for a portable model of them;
 * both define NAME(f).
 *
 * configure_tiles of gemm_u8s8/amx_body.h prepares the same registers, because a block of BF16 has the bytes of a block of s8: up to
 * 16 rows are one tile of rows by four tiles of channels. More rows are two by two, for 32 channels and then for the other 32, in
 * spans of at most 16 blocks of K, whose rows stay in the first-level cache.
 */
#include "kernels/gemm_u8s8/amx_tiles.h"
#include "kernels/list.h"
#include "layout.h"

#define INLINE static inline __attribute__((always_inline))

/* Macros: an intrinsic takes its registers as text. */
#define A0 4
#define A1 5
#define B0 6
#define B1 7

enum { PAIR_BYTES = BF16_PAIR * 2, SUMS_BYTES = PANEL * 4, SPAN_BLOCKS = 16 };

/* The operands of a span of K. */
typedef struct operands {
  const uint16_t *a;
  int64_t lda; /* bytes */
  const uint16_t *b;
  int64_t blocks;
} operands;

/* Up to 16 rows. */
INLINE void one_by_four(float *c, operands o) {
  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (int64_t k = 0; k < o.blocks; k++, o.a += BF16_BLOCK_K, o.b += BF16_BLOCK) {
    tile_load(A0, o.a, o.lda);
    tile_load_once(B0, o.b, PAIR_BYTES);
    tile_load_once(B1, o.b + 32, PAIR_BYTES);
    tile_dpbf16ps(0, A0, B0);
    tile_dpbf16ps(1, A0, B1);
    tile_load_once(B0, o.b + 64, PAIR_BYTES);
    tile_load_once(B1, o.b + 96, PAIR_BYTES);
    tile_dpbf16ps(2, A0, B0);
    tile_dpbf16ps(3, A0, B1);
  }
  tile_store(0, c, SUMS_BYTES);
  tile_store(1, c + 16, SUMS_BYTES);
  tile_store(2, c + 32, SUMS_BYTES);
  tile_store(3, c + 48, SUMS_BYTES);
}

/* Register i goes on from the sums at `from`, or from zero in the first span of K. */
#define BEGIN(i, from)                \
  do {                                \
    if (first)                        \
      tile_zero(i);                   \
    else                              \
      tile_load(i, from, SUMS_BYTES); \
  } while (0)

/* 17 to 32 rows of 32 channels. first: this is the first span of K. */
INLINE void two_by_two(float *c, operands o, int first) {
  float *below = c + TILE_ROWS * PANEL;
  BEGIN(0, c);
  BEGIN(1, c + 16);
  BEGIN(2, below);
  BEGIN(3, below + 16);
  for (int64_t k = 0; k < o.blocks; k++, o.a += BF16_BLOCK_K, o.b += BF16_BLOCK) {
    tile_load_once(B0, o.b, PAIR_BYTES);
    tile_load_once(B1, o.b + 32, PAIR_BYTES);
    tile_load(A0, o.a, o.lda);
    tile_load(A1, (const char *)o.a + TILE_ROWS * o.lda, o.lda);
    tile_dpbf16ps(0, A0, B0);
    tile_dpbf16ps(2, A1, B0);
    tile_dpbf16ps(1, A0, B1);
    tile_dpbf16ps(3, A1, B1);
  }
  tile_store(0, c, SUMS_BYTES);
  tile_store(1, c + 16, SUMS_BYTES);
  tile_store(2, below, SUMS_BYTES);
  tile_store(3, below + 16, SUMS_BYTES);
}

void NAME(gemm_bf16)(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks, int m) {
  tile_barrier();
  if (m <= TILE_ROWS) {
    one_by_four(c, (operands){a, lda * 2, b, kblocks});
    return;
  }
  int64_t spans = (kblocks + SPAN_BLOCKS - 1) / SPAN_BLOCKS;
  for (int64_t i = 0; i < 2 * spans; i++) {
    int64_t half = i % 2, from = kblocks * (i / 2) / spans, to = kblocks * (i / 2 + 1) / spans;
    two_by_two(c + half * 32, (operands){a + from * BF16_BLOCK_K, lda * 2, b + from * BF16_BLOCK + half * 64, to - from}, i < 2);
  }
  tile_barrier();
}
