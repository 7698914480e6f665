/* body.h: INT8 attention; included by the .c file of each ISA after its v16 and these, which differ:
 *
 *   element                what a probability and a widened query are stored as
 *   TILE_M                 rows of a tile
 *   tile(c, ldc, start, a, lda, b, groups, m, columns)   c[m][16 * columns] = start[...] + a[m][4 * groups] times a panel of
 *                          groups of 4 by 64 columns; m up to TILE_M, columns 1 to 4
 *   widen(to, from, ld, D, rows, &ld)   the queries as elements: `to`, or `from` itself
 *   pack_keys16(to, from, ld)           16 channels of 16 keys of ld bytes: 4 groups of 16 keys by 4, each minus 128
 *   pack_values16(to, from, ld)         16 channels of 16 keys: 4 groups of 16 columns by 4, each minus 128
 *   probability(d, c)                   p of 16 scores; may be anything that store_p cuts to 0 to 255
 *   store_p(to, a, b, c, d)             64 of them; returns their sums over some lanes
 *   attend_tiles(a, s, q0, q1)          where PIPELINE is defined, after this: queries from q0 on, as many as it likes, without
 *                          a bias; returns the first that it left
 *
 * kernels/README.md writes down the arithmetic, scratch.h the scratch. Sums are integers, so their order is free; a query's bits
 * depend on nothing but its own row, the keys and the values, so neither the blocks nor q0 and q1 matter.
 */
#include <math.h>
#include <string.h>

#include "attention_u8s8.h"
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

/* c[rows][n] = start[n] + a[rows][4 * groups] b, tile by tile. */
INLINE void multiply(int32_t *c, int64_t ldc, const int32_t *start, const element *a, int64_t lda, const int8_t *b,
                     int64_t groups, int64_t rows, int64_t n) {
  for (int64_t t = 0; t < rows; t += TILE_M)
    tile(c + t * ldc, ldc, start, a + t * lda, lda, b, groups, (int)at_most(rows - t, TILE_M), (int)((n + 15) / 16));
}

/* A row of 128 times the keys is what q's zero point adds to a score. */
static void start_scores(int32_t *start, const int8_t *keys, int64_t S, int64_t D) {
  static const int32_t zeros[64];
  element zero_points[4 * 16];
  for (int i = 0; i < 64; i++)
    zero_points[i] = 128;
  int64_t groups = groups_of(D), panel = packed_groups(D) * GROUP;
  for (int64_t s = 0; s < S; s += 64) {
    int32_t sum[64];
    memset(start + s, 0, 64 * sizeof *start);
    for (int64_t g = 0; g < groups; g += 16) {
      multiply(sum, 64, zeros, zero_points, 64, keys + s / 64 * panel + g * GROUP, at_most(groups - g, 16), 1,
               S - s < 64 ? S - s : 64);
      for (int64_t i = 0; i < 64 && i < S - s; i++)
        start[s + i] -= sum[i];
    }
  }
}

INLINE int32_t row_top(const int32_t *s, int64_t S) {
  v16i least = visplat(INT32_MIN), most = least;
  LANES(S, most = vimax(most, n == 16 ? viload(s + k, 16) : vifirst(viload(s + k, n), least, n)));
  return vigreatest(most);
}

/* float(s - top) c + bias log2 e, floats in place of a row of scores; returns the largest, which is finite: its key's score is at
 * least that of the top one plus the difference of two biases. bias: of the first key. */
INLINE float row_biased(int32_t *s, int32_t top, const float *bias, float scale, int64_t S) {
  v16 least = vsplat(-INFINITY), most = least, c = vsplat(scale), log2e = vsplat(0x1.715476p0f);
  float *x = (float *)(void *)s;
  LANES(S, v16 v = vfma(vfloat(visub(viload(s + k, n), visplat(top))), c, vmul(vload(bias + k, n), log2e)); vstore(x + k, v, n);
        most = vmax(vfirst(v, least, n), most));
  return vgreatest(most);
}

/* The largest of a row of scores: of integers, or, once a bias was added, of floats. */
typedef struct row_most {
  int32_t top;
  float biased_top;
} row_most;

/* 16 probabilities. */
INLINE v16i p16(const int32_t *s, row_most most, v16 c, const int biased) {
  return probability(biased ? vsub(vload((const float *)(const void *)s, 16), vsplat(most.biased_top))
                            : vfloat(visub(viload(s, 16), visplat(most.top))),
                     c);
}

/* The same, of which there are `left`. */
INLINE v16i some(const int32_t *s, row_most most, v16 c, const int biased, int64_t left) {
  return left <= 0 ? visplat(0) : vifirst(p16(s, most, c, biased), visplat(0), (int)at_most(left, 16));
}

/* The probabilities of a row; returns their sum. biased: a constant in each copy. */
INLINE int32_t row_p(element *p, const int32_t *s, row_most most, float scale, int64_t S, const int biased) {
  v16i sum = visplat(0);
  v16 c = vsplat(scale);
  int64_t k = 0;
  for (; k + 64 <= S; k += 64)
    sum = viadd(sum, store_p(p + k, p16(s + k, most, c, biased), p16(s + k + 16, most, c, biased),
                             p16(s + k + 32, most, c, biased), p16(s + k + 48, most, c, biased)));
  if (k < S)
    sum = viadd(sum, store_p(p + k, some(s + k, most, c, biased, S - k), some(s + k + 16, most, c, biased, S - k - 16),
                             some(s + k + 32, most, c, biased, S - k - 32), some(s + k + 48, most, c, biased, S - k - 48)));
  return visum(sum);
}

/* y = float(c) * factor, stored or quantized: columns d0 to d0 + width of query t. */
INLINE void store_context(const attention_u8s8 *a, const int32_t *c, float factor, int64_t t, int64_t d0, int64_t width) {
  const quantizer *z = &a->quantize;
  int64_t row = t - a->y_begin;
  v16 f = vsplat(factor);
  if (a->y)
    LANES(width, vstore(a->y + row * a->ldy + d0 + k, vmul(vfloat(viload(c + k, n)), f), n));
  if (z->mode == QUANTIZE_STATIC)
    LANES(width, store_quantized(z->q + row * z->ldq + d0 + k, vmul(vmul(vfloat(viload(c + k, n)), f), vload(z->mul + d0 + k, n)),
                                 vsplat((float)z->lo), vsplat((float)z->hi), visplat(z->zero), n));
}

/* Where the parts of the scratch begin. */
typedef struct parts {
  int8_t *keys, *values;
  int32_t *start, *scores;
  element *p;
  uint16_t *wide;
  int32_t *context;
} parts;

static parts parts_of(const attention_u8s8 *a, void *scratch) {
  int64_t S = a->S, D = a->D, ld = panels_of(S) * 64;
  parts s = {.keys = scratch};
  s.values = s.keys + keys_bytes(S, D);
  s.start = (int32_t *)(void *)(s.values + values_bytes(S, D));
  s.scores = s.start + ld;
  s.p = (element *)(void *)(s.scores + BLOCK_QUERIES * ld);
  s.wide = (uint16_t *)(void *)s.p + BLOCK_QUERIES * ld;
  s.context = (int32_t *)(void *)(s.wide + queries_bytes(D) / 2);
  return s;
}

/* BLOCK_QUERIES at a time: their scores, probabilities and results, one after another. */
static void attend_blocks(const attention_u8s8 *a, const parts *s, int64_t q0, int64_t q1) {
  static const int32_t zeros[64];
  int64_t S = a->S, D = a->D, ld = panels_of(S) * 64, ldq;
  float c = a->scale * 0x1.715476p0f; /* log2 e */
  for (int64_t t = q0; t < q1; t += BLOCK_QUERIES) {
    int64_t rows = at_most(q1 - t, BLOCK_QUERIES);
    row_most most[BLOCK_QUERIES];
    float factor[BLOCK_QUERIES];
    const element *q = widen(s->wide, a->q + t * a->ld, a->ld, D, rows, &ldq);
    for (int64_t k = 0; k < S; k += 64)
      multiply(s->scores + k, ld, s->start + k, q, ldq, s->keys + k / 64 * packed_groups(D) * GROUP, groups_of(D), rows,
               at_most(S - k, 64));
    for (int64_t i = 0; i < rows; i++) /* a loop of its own: the probabilities need not wait for their row's maximum */
      most[i].top = row_top(s->scores + i * ld, S);
    for (int64_t i = 0; a->bias && i < rows; i++)
      most[i].biased_top = row_biased(s->scores + i * ld, most[i].top, a->bias - (t + i), c, S);
    for (int64_t i = 0; i < rows; i++)
      factor[i] = a->v_scale / (float)(a->bias ? row_p(s->p + i * ld, s->scores + i * ld, most[i], 1, S, 1)
                                               : row_p(s->p + i * ld, s->scores + i * ld, most[i], c, S, 0));
    for (int64_t d = 0; d < D; d += 64) {
      int64_t n = at_most(D - d, 64);
      multiply(s->context, 64, zeros, s->p, ld, s->values + d / 64 * packed_groups(S) * GROUP, groups_of(S), rows, n);
      for (int64_t i = 0; i < rows; i++)
        store_context(a, s->context + i * 64, factor[i], t + i, d, n);
    }
  }
}

#ifdef PIPELINE
static int64_t attend_tiles(const attention_u8s8 *a, const parts *s, int64_t q0, int64_t q1);
#else
INLINE int64_t attend_tiles(const attention_u8s8 *a, const parts *s, int64_t q0, int64_t q1) {
  (void)a, (void)s, (void)q1;
  return q0;
}
#endif

void NAME(attention_u8s8)(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch) {
  parts s = parts_of(a, scratch);
  pack_keys(s.keys, a);
  pack_values(s.values, a);
  start_scores(s.start, s.keys, a->S, a->D);
  attend_blocks(a, &s, attend_tiles(a, &s, q0, q1), q1);
}
