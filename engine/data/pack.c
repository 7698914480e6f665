/* pack.c: packs float weights into the layout that the kernels read.
 *
 * s8   W' = W * s in float; scale = absmax of the row (or of the weight) / 127, or 1 if that or its reciprocal is not a normal
 *      float; q = rne(W' / scale), which lies in [-127, 127]; sums[n] = sum_k q. Layout: kernels/gemm_u8s8/layout.h.
 * bf16 W rounded to the nearest BF16. Layout: kernels/gemm_bf16/layout.h.
 * f32  [N/64 panels][K rounded up to 16][64 output channels], the rest zero.
 *
 * Each thread packs whole panels, so that every byte is written by one thread.
 */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/cpu/team.h"
#include "kernels/gemm_bf16/layout.h"
#include "kernels/gemm_u8s8/layout.h"
#include "packed.h"
#include "table.h"
#include "tensor.h"
#include "weights.h"

/* Vectors of four, on any CPU, because a change of settings packs many weights again. Rows are padded with zeros to a multiple
 * of 64. */
typedef float v4 __attribute__((vector_size(16)));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef uint32_t v4u __attribute__((vector_size(16)));
typedef uint64_t v2l __attribute__((vector_size(16)));

typedef struct packing {
  const pgee_tensor *const *weights;
  int count, per;
  const float *s; /* [K] or NULL */
  pgee_packed *p;
  _Atomic int nonfinite;
} packing;

static int64_t padded_row(int64_t K) { return round_up(K, BLOCK_K); }

static void load_row(const packing *w, int64_t n, float *row) {
  int64_t K = w->p->K, k = 0;
  weights_row(row, w->weights, n);
  memset(row + K, 0, (size_t)(padded_row(K) - K) * sizeof *row);
  if (!w->s)
    return;
  for (v4 v, f; k + 4 <= K; k += 4) {
    memcpy(&v, row + k, sizeof v);
    memcpy(&f, w->s + k, sizeof f);
    v *= f;
    memcpy(row + k, &v, sizeof v);
  }
  for (; k < K; k++)
    row[k] *= w->s[k];
}

/* The largest magnitude of a row; sets w->nonfinite if it is not finite. Magnitudes have the order of their bits, with infinity
 * and NaN above all numbers. */
static float row_absmax(packing *w, const float *row) {
  v4i most = {0};
  for (int64_t k = 0; k < padded_row(w->p->K); k += 4) {
    v4i bits;
    memcpy(&bits, row + k, sizeof bits);
    bits &= 0x7fffffff;
    v4i more = bits > most;
    most = (bits & more) | (most & ~more);
  }
  int32_t bits = most[0];
  for (int i = 1; i < 4; i++)
    bits = most[i] > bits ? most[i] : bits;
  float absmax;
  memcpy(&absmax, &bits, sizeof absmax);
  if (is_nonfinite(absmax))
    w->nonfinite = 1;
  return absmax;
}

/* Replaces the largest magnitudes of rows by the scale of their weight. */
static void set_tensor_scales(const packing *w, float *scales) {
  for (int i = 0; i < w->count; i++) {
    int64_t rows = w->weights[i]->shape[0];
    float most = 0;
    for (int64_t n = 0; n < rows; n++)
      most = scales[n] > most ? scales[n] : most;
    for (int64_t n = 0; n < rows; n++)
      scales[n] = usable_scale(most / 127);
    scales += rows;
  }
}

/* Quantizes 64 values of a row into their places in a block; returns their sum in four parts. Adding 1.5 * 2^23 rounds to the
 * nearest integer, ties to even, and leaves q in the lowest bits. */
static v4u pack_block(int8_t *to, const float *row, float scale) {
  const v4 divisor = {scale, scale, scale, scale}, round = {12582912.0f, 12582912.0f, 12582912.0f, 12582912.0f};
  v4u sum = {0};
  for (int group = 0; group < 16; group++) {
    v4 v;
    memcpy(&v, row + 4 * group, sizeof v);
    v4u q = (v4u)(v / divisor + round) - 0x4b400000;
    sum += q;
    v2l pairs = (v2l)(q & 0xff); /* a byte in each half of both */
    pairs |= pairs >> 24;
    uint32_t bytes = (uint16_t)pairs[0] | (uint32_t)pairs[1] << 16;
    memcpy(to + group * GROUP_BYTES, &bytes, sizeof bytes);
  }
  return sum;
}

/* |q| is at most 127: |w| / (absmax / 127) is at most 127 up to one ulp, and if the scale is 1 because it is too small, |w| is
 * less than 2^-119. A scale is never too large, because absmax / 127 is less than 2^122. */
static void pack_row_s8(packing *w, int64_t n, const float *row) {
  pgee_packed *p = w->p;
  int64_t kblocks = padded_row(p->K) / BLOCK_K;
  int8_t *to = (int8_t *)p->bytes_held->data + packed_index(n, 0, kblocks);
  v4u sum = {0};
  for (int64_t block = 0; block < kblocks; block++)
    sum += pack_block(to + block * BLOCK_BYTES, row + block * BLOCK_K, p->scales[n]);
  ((uint32_t *)p->sums_held->data)[n] = sum[0] + sum[1] + sum[2] + sum[3];
}

static void pack_s8(void *work, const context *c) {
  packing *w = work;
  float *row = (float *)c->scratch, *scales = w->p->scales_held->data;
  int64_t first, last;
  team_share(c, w->p->panels, &first, &last);
  last = least(last * PANEL, w->p->N);
  for (int64_t n = first * PANEL; n < last; n++) {
    load_row(w, n, row);
    scales[n] = row_absmax(w, row);
    if (w->per == PGEE_PER_ROW) {
      scales[n] = usable_scale(scales[n] / 127);
      pack_row_s8(w, n, row);
    }
  }
  if (w->per == PGEE_PER_ROW)
    return;
  team_barrier(c);
  if (c->thread == 0)
    set_tensor_scales(w, scales);
  team_barrier(c);
  for (int64_t n = first * PANEL; n < last; n++) {
    load_row(w, n, row);
    pack_row_s8(w, n, row);
  }
}

enum { F32_ROWS = 16 }; /* rows packed together: their floats of one input fill a cache line */

/* Transposes four floats of each of four rows into four columns of a panel. */
static inline void pack_square(float *to, const float *rows, int64_t stride) {
  v4 r[4];
  for (int i = 0; i < 4; i++)
    memcpy(r + i, rows + i * stride, sizeof *r);
  v4 ab = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), cd = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  v4 ef = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7), gh = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  v4 c[4] = {__builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
             __builtin_shufflevector(ef, gh, 0, 1, 4, 5), __builtin_shufflevector(ef, gh, 2, 3, 6, 7)};
  for (int k = 0; k < 4; k++)
    memcpy(to + k * PANEL, c + k, sizeof *c);
}

/* Copies up to 16 rows of K floats to as many columns of a panel. next: NULL, or 16 K floats to prefetch meanwhile. */
static void pack_columns(float *to, const float *rows, int64_t stride, int64_t K, int64_t count, const float *next) {
  int64_t whole = count == F32_ROWS ? K & ~3 : 0;
  for (int64_t k = 0; k < whole; k += 4) {
    for (int i = 0; i < F32_ROWS; i += 4)
      pack_square(to + k * PANEL + i, rows + i * stride + k, stride);
    for (int i = 0; next && i < 4 * F32_ROWS; i += 16)
      __builtin_prefetch(next + k * F32_ROWS + i, 0, 2);
  }
  for (int64_t k = whole; k < K; k++)
    for (int64_t i = 0; i < count; i++)
      to[k * PANEL + i] = rows[i * stride + k];
}

static void pack_f32(void *work, const context *c) {
  packing *w = work;
  int64_t K = w->p->K, stride = padded_row(K), panel = w->p->panel_bytes / (int64_t)sizeof(float), first, last;
  float *rows = (float *)c->scratch, *bytes = w->p->bytes_held->data;
  team_share(c, w->p->panels, &first, &last);
  last = least(last * PANEL, w->p->N);
  for (int64_t n = first * PANEL; n < last; n += F32_ROWS) {
    int64_t count = least(F32_ROWS, last - n);
    for (int64_t i = 0; i < count; i++) {
      load_row(w, n + i, rows + i * stride);
      row_absmax(w, rows + i * stride);
    }
    pack_columns(bytes + n / PANEL * panel + n % PANEL, rows, stride, K, count, NULL);
  }
}

static void pack_row_bf16(const pgee_packed *p, int64_t n, const float *row) {
  int64_t kblocks = round_up(p->K, BF16_BLOCK_K) / BF16_BLOCK_K;
  uint16_t *to = (uint16_t *)p->bytes_held->data + bf16_index(n, 0, kblocks);
  for (int64_t k = 0; k < kblocks * BF16_BLOCK_K; k += 2, to += BF16_PAIR) {
    uint32_t bits[2];
    memcpy(bits, row + k, sizeof bits);
    to[0] = bf16_of_bits(bits[0]);
    to[1] = bf16_of_bits(bits[1]);
  }
}

static void pack_bf16(void *work, const context *c) {
  packing *w = work;
  float *row = (float *)c->scratch;
  int64_t first, last;
  team_share(c, w->p->panels, &first, &last);
  last = least(last * PANEL, w->p->N);
  for (int64_t n = first * PANEL; n < last; n++) {
    load_row(w, n, row);
    row_absmax(w, row);
    pack_row_bf16(w->p, n, row);
  }
}

int64_t packed_scratch(const pgee_packed *p) { return F32_ROWS * padded_row(p->K) * (int64_t)sizeof(float); }

/* An F32 table is packed from where it lies. The rows of other tables are widened first. Meanwhile the next 16 rows, which follow in memory, are prefetched. */
void packed_panel(const pgee_packed *p, const kernels *k, int64_t panel, float *to, float *rows) {
  const pgee_tensor *table = p->table;
  int in_place = table->dtype == PGEE_F32;
  int64_t stride = in_place ? table->stride : padded_row(p->K), last = least((panel + 1) * PANEL, p->N);
  for (int64_t n = panel * PANEL; n < last; n += F32_ROWS) {
    int64_t count = least(F32_ROWS, last - n);
    const float *from = in_place ? (const float *)table->data + n * stride : rows;
    for (int64_t i = 0; i < count && !in_place; i++) {
      table_row row = table_row_at(table, p->scales_held, n + i);
      k->embed(rows + i * stride, &row, NULL, NULL, p->K);
    }
    pack_columns(to + n % PANEL, from, stride, p->K, count,
                 in_place && n + 2 * F32_ROWS <= p->N ? from + F32_ROWS * stride : NULL);
  }
}

static int pack(pgee_packed **out, packing *w, int dtype, phase *f) {
  int64_t K = w->weights[0]->shape[1],
          scratch_bytes = padded_row(K) * (dtype == PGEE_F32 ? F32_ROWS : 1) * (int64_t)sizeof(float);
  int threads;
  TRY(pgee_threads(&threads));
  TRY(packed_new(&w->p, dtype, K, weights_rows(w->weights, w->count)));
  char *scratch = mem_array(threads, scratch_bytes);
  int status = scratch ? team_run(f, w, threads, NULL, scratch, scratch_bytes) : PGEE_MEMORY;
  mem_free(scratch);
  if (status == PGEE_OK && w->nonfinite)
    status = weights_nonfinite(w->weights, w->count, w->s);
  if (status == PGEE_OK)
    *out = w->p;
  else
    pgee_packed_free(w->p);
  return status;
}

int pgee_packed_s8(pgee_packed **out, const pgee_tensor *const *weights, int count, const pgee_tensor *s, int per) {
  NEED(out, weights);
  TRY(weights_check(weights, count));
  if (per != PGEE_PER_ROW && per != PGEE_PER_TENSOR)
    return fail(PGEE_ARGUMENT, "per is %d, expected PGEE_PER_ROW or PGEE_PER_TENSOR", per);
  if (s) {
    TRY(tensor_expect(s, "s", PGEE_F32, 1, weights[0]->shape[1], -1));
    TRY(tensor_expect_memory(s, "s"));
  }
  packing w = {.weights = weights, .count = count, .per = per, .s = s ? s->data : NULL};
  return pack(out, &w, PGEE_S8, pack_s8);
}

int pgee_packed_f32(pgee_packed **out, const pgee_tensor *const *weights, int count) {
  NEED(out, weights);
  TRY(weights_check(weights, count));
  packing w = {.weights = weights, .count = count};
  return pack(out, &w, PGEE_F32, pack_f32);
}

int pgee_packed_bf16(pgee_packed **out, const pgee_tensor *const *weights, int count) {
  NEED(out, weights);
  TRY(weights_check(weights, count));
  packing w = {.weights = weights, .count = count};
  return pack(out, &w, PGEE_BF16, pack_bf16);
}
