/* amx_body.h: the AMX kernel, a tile of up to 32 rows by 64 channels. amx.c compiles it for the CPU's tile instructions,
 * amx_model.c for a portable model of them; both define GEMM, its name.
 *
 * A tile register holds 16 rows of 64 bytes: 16 rows of 64 inputs, a block's 16 groups of 16 channels as they lie in the panel,
 * or 16 x 16 sums. Up to 16 rows, A goes over all 64 channels at once; above, two A over 32 channels, twice:
 *
 *        B0  B1  B0  B1               B0  B1
 *    A0 | 0 | 1 | 2 | 3 |         A0 | 0 | 1 |
 *                                 A1 | 2 | 3 |       0 to 3: the accumulators' registers
 *
 * The last row of A and C is configured exactly, so nothing past row m is read or written. Registers are configured and
 * released by each call: no state is left behind for the thread's other code, a fork or an idle CPU to meet.
 */
#include "amx_tiles.h"

/* Macros: an intrinsic takes its registers as text. */
#define A0 4
#define A1 5
#define B0 6
#define B1 7
static tile_configuration configuration(int m) {
  int tall = m > TILE_ROWS, above = tall ? TILE_ROWS : m, below = tall ? m - TILE_ROWS : m;
  tile_configuration t = {.palette = 1};
  const int rows[8] = {above, above, below, below, [A0] = above, [A1] = tall ? below : 0, [B0] = TILE_ROWS, [B1] = TILE_ROWS};
  for (int i = 0; i < 8; i++) {
    t.rows[i] = (uint8_t)rows[i];
    t.bytes[i] = rows[i] ? TILE_BYTES : 0; /* a register with rows and no bytes, or the reverse, is an error */
  }
  return t;
}

/* Of so many groups. */
static void fetch(ahead *next, int groups) {
  const int8_t *end = next->from + groups * next->step;
  for (; next->from < end; next->from += 64)
    __builtin_prefetch(next->from, 0, 2);
}

/* Up to 16 rows. */
static void one_by_four(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, ahead *next) {
  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (int64_t k = 0; k < kblocks; k++, a += BLOCK_K, b += BLOCK_BYTES) {
    fetch(next, 16);
    tile_load(A0, a, lda);
    tile_load(B0, b, GROUP_BYTES);
    tile_load(B1, b + 64, GROUP_BYTES);
    tile_dpbusd(0, A0, B0);
    tile_dpbusd(1, A0, B1);
    tile_load(B0, b + 128, GROUP_BYTES);
    tile_load(B1, b + 192, GROUP_BYTES);
    tile_dpbusd(2, A0, B0);
    tile_dpbusd(3, A0, B1);
  }
  tile_store(0, c, PANEL * 4);
  tile_store(1, c + 16, PANEL * 4);
  tile_store(2, c + 32, PANEL * 4);
  tile_store(3, c + 48, PANEL * 4);
}

/* 17 to 32 rows of 32 channels. */
static void two_by_two(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, ahead *next) {
  tile_zero(0);
  tile_zero(1);
  tile_zero(2);
  tile_zero(3);
  for (int64_t k = 0; k < kblocks; k++, a += BLOCK_K, b += BLOCK_BYTES) {
    fetch(next, 8);
    tile_load(A0, a, lda);
    tile_load(B0, b, GROUP_BYTES);
    tile_load(A1, a + TILE_ROWS * lda, lda);
    tile_load(B1, b + 64, GROUP_BYTES);
    tile_dpbusd(0, A0, B0);
    tile_dpbusd(1, A0, B1);
    tile_dpbusd(2, A1, B0);
    tile_dpbusd(3, A1, B1);
  }
  tile_store(0, c, PANEL * 4);
  tile_store(1, c + 16, PANEL * 4);
  tile_store(2, c + TILE_ROWS * PANEL, PANEL * 4);
  tile_store(3, c + TILE_ROWS * PANEL + 16, PANEL * 4);
}

void GEMM(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, ahead next) {
  tile_configuration t = configuration(m);
  tile_config(&t);
  if (m <= TILE_ROWS) {
    one_by_four(c, a, lda, b, kblocks, &next);
  } else {
    two_by_two(c, a, lda, b, kblocks, &next);
    two_by_two(c + 32, a, lda, b + 128, kblocks, &next);
  }
  tile_release();
}
