/* layout.h: how s8 weights lie in memory, and the kernels that multiply by them.
 *
 * A weight W [N][K] is padded with zeros to multiples of 64 and cut into panels of 64 output channels, a panel into blocks of
 * 64 input channels, a block into 16 groups of 4 input channels:
 *
 *   [N/64 panels][K/64 blocks][16 groups][64 channels][4 inputs]      W[n][k] is at
 *   [   n / 64  ][  k / 64   ][k / 4 % 16][  n % 64  ][ k % 4  ]
 *
 *                     n = 0            1                     63
 *   group 0     | k: 0 1 2 3    | 0 1 2 3    |   ...   | 0 1 2 3    |    256 bytes: four registers of 64
 *   group 1     | k: 4 5 6 7    | 4 5 6 7    |   ...   | 4 5 6 7    |
 *    ...
 *   group 15    | k: 60 61 62 63|   ...                             |    4 KiB to here: one block
 *
 * One lane of vpdpbusd (4 products summed into an int32) is one channel of one group; columns 16j to 16j + 15 of a block are a
 * tile of AMX: 16 rows of 64 bytes, 256 bytes apart. oneDNN calls it BA16a64b4a. Every ISA reads these bytes as they are.
 *
 * The kernels: c[m][64] = a[m][K] times one panel, u8 times s8, summed in int32, which cannot overflow for K up to 32768
 * (32768 * 255 * 127 < 2^31). See kernels.h. They differ in nothing but speed.
 */
#ifndef PERIGEE_GEMM_U8S8_LAYOUT_H
#define PERIGEE_GEMM_U8S8_LAYOUT_H
#include <stdint.h>

#include "kernels/kernels.h"

enum { BLOCK_K = 64 };      /* input channels of a block */
enum { GROUP_BYTES = 256 }; /* 64 channels x 4 inputs */
enum { BLOCK_BYTES = 16 * 256 };

/* Where W[n][k] is in a weight of `kblocks` blocks, from its first byte. */
static inline int64_t packed_index(int64_t n, int64_t k, int64_t kblocks) {
  return ((n / 64 * kblocks + k / 64) * 16 + k / 4 % 16) * GROUP_BYTES + n % 64 * 4 + k % 4;
}

typedef void gemm_u8s8(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next);

gemm_u8s8 gemm_u8s8_ref, gemm_u8s8_avx2, gemm_u8s8_avxvnni, gemm_u8s8_avx512vnni, gemm_u8s8_amx;
void gemm_u8s8_overlapped_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m,
                                     prefetch next, const pending_tile *p);
void prepare_panel_avx512vnni(panel_constants *panel, const epilogue *e, int64_t n0);
/* amx.c on a portable model of the tile instructions. */
gemm_u8s8 gemm_u8s8_amx_model;
#define AMX_ROW(isa)                                                                                                  \
  void configure_tiles_##isa(int m);                                                                                  \
  void release_tiles_##isa(void);                                                                                     \
  void flush_tiles_##isa(int32_t *c, int m);                                                                          \
  void prepare_panel_##isa(panel_constants *panel, const epilogue *e, int64_t n0);                                    \
  void gemm_u8s8_overlapped_##isa(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, \
                                  prefetch next, const pending_tile *p);
AMX_ROW(amx)
AMX_ROW(amx_model)
#undef AMX_ROW

/* The rows of a tile: kernels.h's tile_m. */
enum {
  GEMM_U8S8_REF_M = 4,
  GEMM_U8S8_AVX2_M = 6,
  GEMM_U8S8_AVXVNNI_M = 6,
  GEMM_U8S8_AVX512VNNI_M = 6,
  GEMM_U8S8_AMX_M = 32,
};
/* kernels.h's group_bytes: a quarter of the second-level cache of the CPUs with AMX, beside as much that is fetched, and rows. */
enum { GROUP_BYTES_AMX = 512 << 10 };

#endif
