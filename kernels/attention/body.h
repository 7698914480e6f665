/* body.h: FP32 attention over sixteen lanes; included by ref.c, avx2.c and avx512vnni.c after their v16. kernels/ARITHMETIC.md writes
 * down the arithmetic, scratch.h the scratch.
 *
 * Memory is O(S): the keys, and the scores of QUERIES queries. Each query's bits depend on nothing but its own row, the keys and
 * the values, so neither the blocks nor q0 and q1 matter.
 */
#include <math.h>
#include <stddef.h>

#include "kernels/list.h"
#include "kernels/rows/functions.h"
#include "scratch.h"

static void pack_keys(float *keys, const attention *a) {
  int64_t S = a->S, D = a->D, whole_s = S & ~15, whole_d = D & ~15;
  for (int64_t s = 0; s < S; s++) {
    float *to = keys + s / 64 * 64 * D + s % 64;
    if (s % 16 == 0 && s < whole_s)
      for (int64_t d = 0; d < whole_d; d += 16)
        vtranspose(to + d * 64, 64, a->k + s * a->ld + d, a->ld);
    for (int64_t d = s < whole_s ? whole_d : 0; d < D; d++)
      to[d * 64] = a->k[s * a->ld + d];
  }
}

/* c[rows][n] = a[rows][k] b[k][n], tile by tile. */
static void multiply(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int64_t rows,
                     int n) {
  for (int64_t t = 0; t < rows; t += TILE_M_F32) {
    int m = rows - t < TILE_M_F32 ? (int)(rows - t) : TILE_M_F32;
    NAME(gemm_f32)(c + t * ldc, ldc, a + t * lda, lda, b, ldb, k, m, n, NULL);
  }
}

/* s * scale + bias in place of a row of scores. bias: of the first key. */
INLINE void row_biased(float *s, const float *bias, float scale, int64_t S) {
  v16 factor = vsplat(scale);
  LANES(S, vstore(s + k, vfma(vload(s + k, n), factor, vload(bias + k, n)), n));
}

/* The largest of a row of scores; NaN is not seen. */
INLINE float row_top(const float *s, int64_t S) {
  v16 least = vsplat(-INFINITY), most = least;
  LANES(S, most = vmax(vfirst(vload(s + k, n), least, n), most));
  return vgreatest(most);
}

/* exp(s * scale - top) in place of s; returns 1 over the sum. */
INLINE float row_exp(float *s, float scale, float top, int64_t S) {
  v16 factor = vsplat(scale), shift = vsplat(-top), sum = vsplat(0);
  LANES(S, v16 p = vexp(vfma(vload(s + k, n), factor, shift)); vstore(s + k, p, n); sum = vadd(sum, vfirst(p, vsplat(0), n)));
  return 1.0f / vsum(sum);
}

/* y = context * inverse, stored or quantized: columns d0 to d0 + width of query t. */
INLINE void store_context(const attention *a, const float *c, float inverse, int64_t t, int64_t d0, int64_t width) {
  const quantizer *z = &a->quantize;
  int64_t row = t - a->y_begin;
  v16 factor = vsplat(inverse);
  const float *mul = z->mul ? z->mul + d0 : NULL, *add = z->add ? z->add + d0 : NULL;
  if (a->y)
    LANES(width, vstore(a->y + row * a->ldy + d0 + k, vmul(vload(c + k, n), factor), n));
  if (z->mode == QUANTIZE_STATIC)
    LANES(width, store_quantized(z->q + row * z->ldq + d0 + k, scaled(vmul(vload(c + k, n), factor), mul, add, k, n),
                                 vsplat((float)z->lo), vsplat((float)z->hi), visplat(z->zero), n));
}

void NAME(attention_f32)(const attention *a, int64_t q0, int64_t q1, float *scratch) {
  int64_t S = a->S, D = a->D, ld_scores = key_panels(S) * 64;
  float *keys = scratch, *scores = keys + keys_floats(S, D), *context = scores + scores_floats(S);
  float scale = a->bias ? 1 : a->scale;
  pack_keys(keys, a);
  for (int64_t t = q0; t < q1; t += QUERIES) {
    int64_t rows = q1 - t < QUERIES ? q1 - t : QUERIES;
    float top[QUERIES], inverse[QUERIES];
    for (int64_t s = 0; s < S; s += 64)
      multiply(scores + s, ld_scores, a->q + t * a->ld, a->ld, keys + s * D, 64, D, rows, S - s < 64 ? (int)(S - s) : 64);
    for (int64_t i = 0; a->bias && i < rows; i++)
      row_biased(scores + i * ld_scores, a->bias - (t + i), a->scale, S);
    for (int64_t i = 0; i < rows; i++) /* a loop of its own: the exponentials need not wait for their row's maximum */
      top[i] = row_top(scores + i * ld_scores, S) * scale;
    for (int64_t i = 0; i < rows; i++)
      inverse[i] = row_exp(scores + i * ld_scores, scale, top[i], S);
    for (int64_t d = 0; d < D; d += 64) {
      int n = D - d < 64 ? (int)(D - d) : 64;
      multiply(context, 64, scores, ld_scores, a->v + d, a->ld, S, rows, n);
      for (int64_t i = 0; i < rows; i++)
        store_context(a, context + i * 64, inverse[i], t + i, d, n);
    }
  }
}
