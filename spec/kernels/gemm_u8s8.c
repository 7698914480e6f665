/* gemm_u8s8.c: one call of a gemm_u8s8 kernel against an oracle that knows no layout.
 *
 * Every buffer ends where a page begins that nobody may touch, and c is followed by guard rows, so a kernel that reads or writes
 * past its rows crashes or is told on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/perigee.h"
#include "kernels/gemm_u8s8/amx_model.h"
#include "kernels/gemm_u8s8/layout.h"

#define PUBLIC __attribute__((visibility("default")))

enum { FILL_RANDOM = 0, FILL_HIGH = 1, FILL_LOW = 2, FILL_MIXED = 3 };
enum { PAGE = 4096, GUARD_ROWS = 2 };
static const uint32_t UNTOUCHED = 0x7fc0dead; /* a NaN, should anybody take it for a float */

typedef struct block {
  char *base, *data;
  size_t bytes;
} block;

/* `bytes` that end at a page without access. */
static block block_new(size_t bytes) {
  size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  char *base = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || mprotect(base + room, PAGE, PROT_NONE))
    abort();
  return (block){base, base + room - bytes, room + PAGE};
}

static void block_free(block b) { munmap(b.base, b.bytes); }

static uint32_t draw(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 24;
}

static uint8_t activation(int fill, uint32_t *seed) { return fill == FILL_RANDOM ? (uint8_t)draw(seed) : 255; }

static int8_t weight(int fill, int64_t n, int64_t k, uint32_t *seed) {
  int sign = fill == FILL_HIGH || (fill == FILL_MIXED && (n + k / 2) % 2) ? 1 : -1;
  return fill == FILL_RANDOM ? (int8_t)(draw(seed) - 128) : (int8_t)(127 * sign);
}

/* 1 if c [m][64] is x [m][lda] times w [64][K] and the guard rows are as they were, else 0 and where it differs. */
static int equal(const uint32_t *c, const uint8_t *x, int64_t lda, const int8_t *w, int m, int64_t K, char *why, int64_t bytes) {
  for (int i = 0; i < m + GUARD_ROWS; i++)
    for (int n = 0; n < PANEL; n++) {
      int64_t sum = 0;
      for (int64_t k = 0; i < m && k < K; k++)
        sum += x[i * lda + k] * w[n * K + k];
      uint32_t want = i < m ? (uint32_t)sum : UNTOUCHED;
      if (c[i * PANEL + n] != want)
        return snprintf(why, (size_t)bytes, "row %d, channel %d: 0x%x, expected 0x%x", i, n, c[i * PANEL + n], want), 0;
    }
  return 1;
}

/* The kernel of an ISA on m rows, lda = K rounded up to 64, plus `gap`. corrupt: one weight of the oracle is changed. */
PUBLIC int spec_gemm_u8s8(int isa, int m, int64_t K, int64_t gap, int fill, uint32_t seed, int corrupt, char *why,
                          int64_t bytes) {
  int64_t kblocks = (K + 63) / 64, lda = kblocks * 64 + gap;
  block a = block_new((size_t)(m * lda - gap)), b = block_new((size_t)(kblocks * BLOCK_BYTES));
  block c = block_new((size_t)(m + GUARD_ROWS) * PANEL * 4);
  int8_t *w = malloc((size_t)(PANEL * K));
  uint32_t *sums = (uint32_t *)c.data;
  for (int64_t i = 0; i < m * lda - gap; i++)
    a.data[i] = (char)(i % lda < K ? activation(fill, &seed) : 255); /* what is past K must not matter */
  for (int64_t n = 0; n < PANEL; n++)
    for (int64_t k = 0; k < K; k++)
      w[n * K + k] = b.data[packed_index(n, k, kblocks)] = weight(fill, n, k, &seed);
  for (int i = 0; i < (m + GUARD_ROWS) * PANEL; i++)
    sums[i] = UNTOUCHED;

  /* The kernel may only prefetch the weights of `next`. Here they are memory that cannot be read. */
  prefetch next = {(const int8_t *)b.data + (m % 2 ? 0 : kblocks * BLOCK_BYTES), m % 2 ? 0 : MAX_PREFETCH};
  const kernels *k = kernels_for(isa);
  if (k->configure_tiles)
    k->configure_tiles(m);
  k->gemm_u8s8((int32_t *)c.data, (const uint8_t *)a.data, lda, (const int8_t *)b.data, kblocks, m, next);
  if (k->release_tiles)
    k->release_tiles();
  if (corrupt)
    w[(PANEL - 1) * K + K - 1] ^= 1;
  int ok = equal(sums, (const uint8_t *)a.data, lda, w, m, K, why, bytes);
  const char *fault = model_fault();
  if (fault) {
    snprintf(why, (size_t)bytes, "%s", fault);
    ok = 0;
  }
  free(w);
  block_free(a);
  block_free(b);
  block_free(c);
  return ok;
}

PUBLIC int spec_gemm_u8s8_tile(int isa) { return kernels_for(isa) ? kernels_for(isa)->tile_max : 0; }

/* ---- The model of the tile instructions ---- */

PUBLIC void spec_tile_config(const uint8_t *configuration) { model_config(configuration); }
PUBLIC void spec_tile_zero(int t) { model_zero(t); }
PUBLIC void spec_tile_load(int t, const void *base, int64_t stride) { model_load(t, base, stride); }
PUBLIC void spec_tile_dpbusd(int c, int a, int b) { model_dpbusd(c, a, b); }
PUBLIC void spec_tile_store(int t, void *base, int64_t stride) { model_store(t, base, stride); }
PUBLIC void spec_tile_release(void) { model_release(); }
PUBLIC const char *spec_tile_fault(void) { return model_fault(); }
PUBLIC int spec_tile_configured(void) { return model_configured(); }
PUBLIC void spec_tile_count_from_zero(void) { model_count_from_zero(); }
PUBLIC model_counts spec_tile_counted(void) { return model_counted(); }
