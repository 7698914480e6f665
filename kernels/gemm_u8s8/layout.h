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

#include "kernels/list.h"

enum { BLOCK_K = 64 };      /* input channels of a block */
enum { GROUP_BYTES = 256 }; /* 64 channels x 4 inputs */
enum { BLOCK_BYTES = 16 * 256 };

/* Where W[n][k] is in a weight of `kblocks` blocks, from its first byte. */
static inline int64_t packed_index(int64_t n, int64_t k, int64_t kblocks) {
  return ((n / 64 * kblocks + k / 64) * 16 + k / 4 % 16) * GROUP_BYTES + n % 64 * 4 + k % 4;
}

#endif
