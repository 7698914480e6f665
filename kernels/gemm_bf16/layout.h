/* layout.h: how BF16 weights lie in memory, and BF16 numbers.
 *
 * A weight W [N][K] is padded with zeros to a multiple of 64 output channels and of 32 input channels. It is cut into panels of 64
 * output channels, a panel into blocks of 32 input channels, and a block into 16 pairs of input channels:
 *
 *   [N/64 panels][K/32 blocks][16 pairs][64 channels][2 inputs]      W[n][k] is at
 *   [   n / 64  ][  k / 32   ][k / 2 % 16][ n % 64  ][ k % 2  ]
 *
 * A pair takes 4 bytes, like a group of four s8 weights. Therefore a block is as large as a block of gemm_u8s8/layout.h. Columns 16j to
 * 16j + 15 are a tile of AMX: 16 rows of 64 bytes that are 256 bytes apart.
 *
 * A BF16 number is the upper half of a float: 1 bit for the sign, 8 for the exponent, 7 for the fraction.
 */
#ifndef PERIGEE_GEMM_BF16_LAYOUT_H
#define PERIGEE_GEMM_BF16_LAYOUT_H
#include <stdint.h>

enum { BF16_BLOCK_K = 32 };        /* input channels of a block */
enum { BF16_PAIR = 64 * 2 };       /* weights of a pair */
enum { BF16_BLOCK = 16 * 64 * 2 }; /* weights of a block */

/* Where W[n][k] is in a weight of `kblocks` blocks, counted in weights. */
static inline int64_t bf16_index(int64_t n, int64_t k, int64_t kblocks) {
  return ((n / 64 * kblocks + k / BF16_BLOCK_K) * 16 + k / 2 % 16) * BF16_PAIR + n % 64 * 2 + k % 2;
}

/* The BF16 number nearest to the float with these bits, ties to even. A NaN stays a NaN, denormal numbers are kept. */
static inline uint16_t bf16_of_bits(uint32_t bits) {
  uint32_t nearest = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : nearest);
}

#endif
