/* amx_body.h: the AMX kernel, a tile of up to 32 rows by 64 channels. amx.c compiles it for the CPU's tile instructions,
 * amx_model.c for a portable model of them; both define GEMM, CONFIGURE and RELEASE, its names.
 *
 * A tile register holds 16 rows of 64 bytes: 16 rows of 64 inputs, a block's 16 groups of 16 channels as they lie in the panel,
 * or 16 x 16 sums. Up to 16 rows, A goes over all 64 channels at once; above, two A over 32 channels, twice:
 *
 *        B0  B1  B0  B1               B0  B1
 *    A0 | 0 | 1 | 2 | 3 |         A0 | 0 | 1 |
 *                                 A1 | 2 | 3 |       0 to 3: the accumulators' registers
 *
 * The last row of A and C is configured exactly, so nothing past row m is read or written. CONFIGURE prepares the registers for
 * products of m rows and RELEASE clears them; the caller calls both (kernels.h), so one configuration serves many products.
 */
#include "amx_tiles.h"

/* Macros: an intrinsic takes its registers as text. */
#define A0 4
#define A1 5
#define B0 6
#define B1 7

/* Rows of the registers for up to 16 rows (A1 is not used) and for m = 16 + `below` rows. */
#define SHORT(m)                                                                                 \
  {                                                                                              \
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 0, 64, 64}, .rows = { m, m, m, m, m, 0, 16, 16 } \
  }
#define TALL(below)                                                                                              \
  {                                                                                                              \
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = { 16, 16, below, below, 16, below, 16, 16 } \
  }
#define SIXTEEN(shape)                                                                                                       \
  shape(1), shape(2), shape(3), shape(4), shape(5), shape(6), shape(7), shape(8), shape(9), shape(10), shape(11), shape(12), \
      shape(13), shape(14), shape(15), shape(16)
static const _Alignas(64) tile_configuration configurations[MAX_TILE_M] = {SIXTEEN(SHORT), SIXTEEN(TALL)};

void CONFIGURE(int m) { tile_config(&configurations[m - 1]); }
void RELEASE(void) { tile_release(); }

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
  if (m <= TILE_ROWS) {
    one_by_four(c, a, lda, b, kblocks, &next);
  } else {
    two_by_two(c, a, lda, b, kblocks, &next);
    two_by_two(c + 32, a, lda, b + 128, kblocks, &next);
  }
}
