/* scratch.h: how attention_u8s8 lays out its scratch, in bytes; every part begins at a multiple of 64.
 *
 *   keys    [S/64 panels][D/4 groups][64 keys][4]      k as s8: the layout of gemm_u8s8, but groups of 4 and not blocks of 64
 *   values  [D/64 panels][S/4 groups][64 columns][4]   v as s8, transposed: a group is 4 keys; both are packed 16 by 16
 *   start   [panels * 64]                              of a key: -128 times the sum of k, which makes up for q's zero point
 *   scores  [BLOCK_QUERIES][panels * 64]                     int32
 *   p       [BLOCK_QUERIES][panels * 64]                     8 bits; AVX2 keeps them, and the queries, in 16
 *   queries [BLOCK_QUERIES][D]
 *   context [BLOCK_QUERIES][64]                              int32: 64 columns of p v
 *
 * AMX has another layout after keys and values: tiles_amx.h.
 */
#ifndef PERIGEE_ATTENTION_U8S8_SCRATCH_H
#define PERIGEE_ATTENTION_U8S8_SCRATCH_H
#include <stdint.h>

enum { BLOCK_QUERIES = 24 }; /* queries taken at a time: a whole number of tiles */
enum { GROUP = 256 };        /* bytes of a group: 64 columns of 4 */

static inline int64_t panels_of(int64_t n) { return (n + 63) / 64; }
static inline int64_t groups_of(int64_t n) { return (n + 3) / 4; }
/* Keys of a row where rows follow each other without a gap. */
static inline int64_t row_of(int64_t S) { return (S + 31) / 32 * 32; }
/* Groups of a panel that is packed 16 at a time. */
static inline int64_t packed_groups(int64_t n) { return (n + 15) / 16 * 4; }

static inline int64_t keys_bytes(int64_t S, int64_t D) { return panels_of(S) * packed_groups(D) * GROUP; }
static inline int64_t values_bytes(int64_t S, int64_t D) { return panels_of(D) * packed_groups(S) * GROUP; }
static inline int64_t start_bytes(int64_t S) { return panels_of(S) * 64 * 4; }
static inline int64_t scores_bytes(int64_t S) { return BLOCK_QUERIES * panels_of(S) * 64 * 4; }
static inline int64_t p_bytes(int64_t S) { return BLOCK_QUERIES * panels_of(S) * 64 * 2; }
static inline int64_t queries_bytes(int64_t D) { return BLOCK_QUERIES * panels_of(D) * 64 * 2; }

/* The larger of both layouts: an AMX CPU may use either. */
static inline int64_t scratch_bytes(int64_t S, int64_t D) {
  int64_t blocks = start_bytes(S) + scores_bytes(S) + p_bytes(S) + queries_bytes(D) + BLOCK_QUERIES * 64 * 4;
  int64_t tiles = 16 * 64 * (4 * (panels_of(S) + 1) + panels_of(S) + 1 + panels_of(D) * (1 + 4));
  return keys_bytes(S, D) + values_bytes(S, D) + (blocks > tiles ? blocks : tiles);
}

#endif
