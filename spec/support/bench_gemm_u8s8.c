/* bench_gemm_u8s8.c: how close the gemm_u8s8 kernels come to what the multiplying instruction alone can do.
 *
 * The peak is a loop on registers. A kernel is run as the engine runs it: panel after panel, for each panel tile after tile of
 * rows.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/perigee.h"
#include "../../kernels/kernels.h"

#define PUBLIC __attribute__((visibility("default")))

/* 12 registers, so that latency does not count: `each` is one register's instructions, \\r its number. */
#define LOOP(setup, each, end)                                                                                             \
  __asm__ volatile("mov $20000, %%ecx\n" setup ".p2align 6\n1:\n.irp r,0,1,2,3,4,5,6,7,8,9,10,11\n" each "\n.endr\n"       \
                   "dec %%ecx\njnz 1b\n" end                                                                               \
                   :                                                                                                       \
                   :                                                                                                       \
                   : "ecx", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                     "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

/* Multiply-adds done. */
static int64_t registers_only(int isa) {
  switch (isa) {
  case PGEE_AVX2: /* the two instructions that 16 exact products take */
    LOOP("", "vpmaddwd %%ymm14, %%ymm15, %%ymm13\nvpaddd %%ymm13, %%ymm\\r, %%ymm\\r", "vzeroupper\n");
    return 20000 * 12 * 16;
  case PGEE_AVXVNNI: LOOP("", "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm\\r", "vzeroupper\n"); return 20000 * 12 * 32;
  case PGEE_AVX512VNNI: LOOP("", "vpdpbusd %%zmm14, %%zmm15, %%zmm\\r", "vzeroupper\n"); return 20000 * 12 * 64;
  default: return 0;
  }
}

/* Giga-operations a second of the best of `tries`; a multiply-add is two. 0 if there is no such loop. */
PUBLIC double spec_peak_u8s8(int isa, int tries) {
  double best = 1e9;
  int64_t work = 0;
  for (int i = 0; i < tries; i++) {
    double t = pgee_seconds();
    work = registers_only(isa);
    t = pgee_seconds() - t;
    best = t < best ? t : best;
  }
  return 2e-9 * (double)work / best;
}

static void panel(const kernels *k, int32_t *c, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, const int8_t *next) {
  int64_t tiles = (rows + k->tile_m - 1) / k->tile_m;
  for (int64_t i = 0; i < tiles; i++) {
    int64_t first = rows * i / tiles, last = rows * (i + 1) / tiles;
    const int8_t *fetch = next && i < 2 ? next + i * K * 32 : NULL;
    k->gemm_u8s8(c, a + first * K, K, b, K / 64, (int)(last - first), fetch);
  }
}

/* The same of a kernel on `rows` rows of K inputs (a multiple of 64) and `panels` panels. Each try takes other weights, from
 * `megabytes` of them; 0: the same ones. */
PUBLIC double spec_bench_u8s8(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries) {
  const kernels *k = kernels_for(isa);
  int64_t bytes = panels * K * 64, room = megabytes ? megabytes << 20 : bytes, at = 0;
  if (room < 2 * bytes)
    room = bytes;
  uint8_t *a = aligned_alloc(64, (size_t)(rows * K));
  int8_t *b = aligned_alloc(64, (size_t)room);
  int32_t *c = aligned_alloc(64, MAX_TILE_M * PANEL * 4);
  memset(a, 3, (size_t)(rows * K));
  memset(b, 5, (size_t)room);
  double best = 1e9;
  for (int i = 0; i < tries; i++, at = at + 2 * bytes <= room ? at + bytes : 0) {
    double t = pgee_seconds();
    for (int64_t p = 0; p < panels; p++)
      panel(k, c, a, b + at + p * K * 64, rows, K, p + 1 < panels ? b + at + (p + 1) * K * 64 : NULL);
    t = pgee_seconds() - t;
    best = t < best ? t : best;
  }
  free(a);
  free(b);
  free(c);
  return 2e-9 * (double)(rows * K * panels * 64) / best;
}
