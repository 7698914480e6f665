/* blocks.h: INT8 attention in blocks of BLOCK_QUERIES queries, for all ISAs but AMX; after head.h and these definitions:
 *
 *   TILE_M                 rows of a tile
 *   tile(c, ldc, start, a, lda, b, groups, m, columns)   c[m][16 * columns] = start[...] + a[m][4 * groups] times a panel of
 *                          groups of 4 by 64 columns; m up to TILE_M, columns 1 to 4
 *   widen(to, from, ld, D, rows, &ld)   the queries as elements: `to`, or `from` itself
 *   attend_tiles(a, s, q0, q1)          only where PIPELINE is defined; stands after blocks.h. Computes queries from q0 on, as
 *                          many as it can, if there is no bias; returns the first query that it left
 */
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
