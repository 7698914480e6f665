/* head.h: the parts of INT8 attention that every ISA shares: packing of keys and values, probabilities of a row, results. An ISA's
 * .c file includes it after its v16 and these definitions:
 *
 *   element                type of a stored probability
 *   pack_keys16(to, from, ld)           16 channels of 16 keys of ld bytes: 4 groups of 16 keys by 4, each minus 128
 *   pack_values16(to, from, ld)         16 channels of 16 keys: 4 groups of 16 columns by 4, each minus 128
 *   probability(d, c)                   p of 16 scores; values outside 0 to 255 are allowed, because store_p clamps
 *   store_p(to, a, b, c, d)             stores 64 probabilities; returns their sums over some lanes
 *
 * After head.h comes blocks.h, or on AMX tiles_amx.h. kernels/ARITHMETIC.md defines the arithmetic, scratch.h the scratch. Sums are
 * integers, so their order is free. A query's bits depend on its own row, the keys and the values alone, and therefore neither on
 * the blocks nor on q0 and q1.
 */
#include <math.h>
#include <string.h>

#include "kernels/list.h"
#include "scratch.h"

/* A block of up to 16 rows by 16 bytes, filled up with the byte that stands for 0. */
INLINE const uint8_t *padded(uint8_t *to, const uint8_t *from, int64_t ld, int64_t rows, int64_t width) {
  memset(to, 128, 16 * 16);
  for (int64_t i = 0; i < rows; i++)
    memcpy(to + 16 * i, from + i * ld, (size_t)width);
  return to;
}

INLINE int64_t at_most(int64_t n, int64_t most) { return n < most ? n : most; }

static void pack_keys(int8_t *keys, const attention_u8s8 *a) {
  int64_t panel = packed_groups(a->D) * GROUP;
  uint8_t block[16 * 16];
  for (int64_t s = 0; s < a->S; s += 16)
    for (int64_t d = 0; d < a->D; d += 16) {
      int64_t rows = at_most(a->S - s, 16), width = at_most(a->D - d, 16);
      int8_t *to = keys + s / 64 * panel + d / 4 * GROUP + s % 64 * 4;
      const uint8_t *from = a->k + s * a->ld + d;
      if (rows == 16 && width == 16)
        pack_keys16(to, from, a->ld);
      else
        pack_keys16(to, padded(block, from, a->ld, rows, width), 16);
    }
}

static void pack_values(int8_t *values, const attention_u8s8 *a) {
  int64_t panel = packed_groups(a->S) * GROUP;
  uint8_t block[16 * 16];
  for (int64_t s = 0; s < a->S; s += 16)
    for (int64_t d = 0; d < a->D; d += 16) {
      int64_t rows = at_most(a->S - s, 16), width = at_most(a->D - d, 16);
      int8_t *to = values + d / 64 * panel + s / 4 * GROUP + d % 64 * 4;
      const uint8_t *from = a->v + s * a->ld + d;
      if (rows == 16 && width == 16)
        pack_values16(to, from, a->ld);
      else
        pack_values16(to, padded(block, from, a->ld, rows, width), 16);
    }
}

/* The largest of a row of scores: of integers, or, once a bias was added, of floats. */
typedef struct row_most {
  int32_t top;
  float biased_top;
} row_most;

/* How far 16 scores are from the largest. */
INLINE v16 difference16(const int32_t *s, row_most most, const int biased) {
  return biased ? vsub(vload((const float *)(const void *)s, 16), vsplat(most.biased_top))
                : vfloat(visub(viload(s, 16), visplat(most.top)));
}

/* 16 probabilities. */
INLINE v16i p16(const int32_t *s, row_most most, v16 c, const int biased) {
  return probability(difference16(s, most, biased), c);
}

/* The same, of which there are `left`. */
INLINE v16i some(const int32_t *s, row_most most, v16 c, const int biased, int64_t left) {
  return left <= 0 ? visplat(0) : vifirst(p16(s, most, c, biased), visplat(0), (int)at_most(left, 16));
}

/* y = float(c) * factor, stored or quantized: columns d0 to d0 + width of query t. */
INLINE void store_context(const attention_u8s8 *a, const int32_t *c, float factor, int64_t t, int64_t d0, int64_t width) {
  const quantizer *z = &a->quantize;
  int64_t row = t - a->y_begin;
  v16 f = vsplat(factor);
  const float *mul = z->mul ? z->mul + d0 : NULL, *add = z->add ? z->add + d0 : NULL;
  if (a->y)
    LANES(width, vstore(a->y + row * a->ldy + d0 + k, vmul(vfloat(viload(c + k, n)), f), n));
  if (z->mode == QUANTIZE_STATIC)
    LANES(width, store_quantized(z->q + row * z->ldq + d0 + k, scaled(vmul(vfloat(viload(c + k, n)), f), mul, add, k, n),
                                 vsplat((float)z->lo), vsplat((float)z->hi), visplat(z->zero), n));
}
