/* scratch.h: how attention_f32 lays out its scratch, in floats; every part begins at a multiple of 64 bytes.
 *
 *   keys    [panels][D][64]        k transposed: panel p holds keys 64 p to 64 p + 63 (the last panel may have fewer)
 *   scores  [QUERIES][panels * 64] of the queries in hand: q k^T, then exp(x - maximum)
 *   context [QUERIES][64]          64 columns of scores v
 */
#ifndef PERIGEE_ATTENTION_SCRATCH_H
#define PERIGEE_ATTENTION_SCRATCH_H
#include <stdint.h>

enum { QUERIES = 24 }; /* queries taken at a time: a whole number of tiles */

static inline int64_t key_panels(int64_t S) { return (S + 63) / 64; }
static inline int64_t keys_floats(int64_t S, int64_t D) { return key_panels(S) * 64 * D; }
static inline int64_t scores_floats(int64_t S) { return key_panels(S) * 64 * QUERIES; }
static inline int64_t scratch_floats(int64_t S, int64_t D) { return keys_floats(S, D) + scores_floats(S) + 64 * QUERIES; }

#endif
