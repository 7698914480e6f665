/* packed.c: weights in the layout that the kernels read.
 *
 * s8   W' = W * s in float; scale = absmax of the row (or of the weight) / 127, 1 if that or its reciprocal is no normal float;
 *      q = rne(W' / scale), which lies in [-127, 127]; sums[n] = sum_k q. Layout: kernels/gemm_u8s8/layout.h.
 * f32  [N/64 panels][K rounded up to 16][64 output channels], the rest zero.
 *
 * Threads take whole panels, so that each byte has one writer.
 */
#include "packed.h"

#include <stdio.h>
#include <string.h>

#include "kernels/gemm_u8s8/layout.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/cpu/team.h"
#include "tensor.h"

enum { MAX_K = 32768, F32_K = 16 };

/* ---- Weights, before they are packed ------------------------------------------------------------------------------ */

int weights_check(const pgee_tensor *const *weights, int count) {
  if (count < 1)
    return fail(PGEE_ARGUMENT, "%d weights, expected at least one", count);
  for (int i = 0; i < count; i++) {
    const pgee_tensor *w = weights[i];
    char what[32];
    snprintf(what, sizeof what, "weight %d", i + 1);
    TRY(tensor_expect(w, what, -1, 2, -1, i > 0 ? weights[0]->shape[1] : -1));
    if (w->dtype != PGEE_F32 && w->dtype != PGEE_F16 && w->dtype != PGEE_BF16)
      return fail(PGEE_ARGUMENT, "%s is %s, expected F32, F16 or BF16", what, pgee_dtype_name(w->dtype));
    TRY(tensor_expect_memory(w, what));
    if (w->shape[1] < 1 || w->shape[1] > MAX_K || w->shape[0] < 1)
      return fail(PGEE_ARGUMENT, "%s is [%lld][%lld], expected [N][K] with N of 1 or more and K of 1 to %d", what,
                  (long long)w->shape[0], (long long)w->shape[1], MAX_K);
  }
  return PGEE_OK;
}

static int64_t weights_rows(const pgee_tensor *const *weights, int count) {
  int64_t rows = 0;
  for (int i = 0; i < count; i++)
    rows += weights[i]->shape[0];
  return rows;
}

void weights_row(float *out, const pgee_tensor *const *weights, int64_t n) {
  while (n >= (*weights)->shape[0])
    n -= (*weights++)->shape[0];
  tensor_row_f32(out, *weights, n);
}

int weights_nonfinite(const pgee_tensor *const *weights, int count, const float *s) {
  int64_t K = weights[0]->shape[1];
  float *row = mem_array(K, sizeof *row);
  if (!row)
    return PGEE_MEMORY;
  int status = PGEE_OK;
  for (int i = 0; i < count && status == PGEE_OK; i++)
    for (int64_t n = 0; n < weights[i]->shape[0] && status == PGEE_OK; n++) {
      tensor_row_f32(row, weights[i], n);
      for (int64_t k = 0; k < K && status == PGEE_OK; k++) {
        float v = s ? row[k] * s[k] : row[k];
        if (is_nonfinite(v))
          status = fail(PGEE_ARGUMENT, "weight %d, row %lld, column %lld (counted from 1) is %s%s", i + 1, (long long)n + 1,
                        (long long)k + 1, nonfinite_name(v), is_nonfinite(row[k]) ? "" : " when smoothed");
      }
    }
  mem_free(row);
  return status;
}

/* ---- Handles ------------------------------------------------------------------------------------------------------ */

pgee_packed *packed_hold(const pgee_packed *p) {
  pgee_packed *held = (pgee_packed *)p;
  if (held)
    atomic_fetch_add(&held->refs, 1);
  return held;
}

void pgee_packed_free(pgee_packed *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
    return;
  pgee_tensor_free(p->bytes_held);
  pgee_tensor_free(p->scales_held);
  pgee_tensor_free(p->sums_held);
  pgee_tensor_free(p->zeros_held);
  mem_free(p);
}

static int vector_new(pgee_tensor **out, int dtype, int64_t n) { return pgee_tensor_new(out, dtype, 1, &n); }

/* The size of a panel, and how many there are. The product may be beyond what can be counted: only where all is given. */
static void packed_measure(pgee_packed *p) {
  p->panels = p->N / PANEL + (p->N % PANEL > 0);
  p->panel_bytes = round_up(p->K, p->dtype == PGEE_S8 ? BLOCK_K : F32_K) * PANEL * pgee_dtype_bytes(p->dtype);
}

static int packed_fill(pgee_packed *p) {
  int element = pgee_dtype_bytes(p->dtype);
  packed_measure(p);
  TRY(vector_new(&p->bytes_held, p->dtype, p->panels * p->panel_bytes / element));
  TRY(vector_new(&p->zeros_held, PGEE_F32, p->N));
  if (p->dtype == PGEE_S8) {
    TRY(vector_new(&p->scales_held, PGEE_F32, p->N));
    TRY(vector_new(&p->sums_held, PGEE_S32, p->N));
    p->scales = p->scales_held->data;
    p->sums = p->sums_held->data;
  }
  p->bytes = p->bytes_held->data;
  p->zeros = p->zeros_held->data;
  return PGEE_OK;
}

static int packed_new(pgee_packed **out, int dtype, int64_t K, int64_t N) {
  pgee_packed *p = mem_new(sizeof *p);
  if (!p)
    return PGEE_MEMORY;
  p->refs = 1;
  p->dtype = dtype;
  p->K = K;
  p->N = N;
  int status = packed_fill(p);
  if (status != PGEE_OK)
    pgee_packed_free(p);
  else
    *out = p;
  return status;
}

/* ---- Packing ------------------------------------------------------------------------------------------------------ */

/* Four at a time, on any CPU: a change of settings packs again all that depends on it. Rows are padded with zeros to 64. */
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

/* Largest magnitude; notes what is not finite. Magnitudes are ordered as their bits are, infinity and NaN above all numbers. */
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

/* From the rows' largest magnitudes to one scale for each weight, in place. */
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

/* 64 inputs of a row into their places in a block; returns their sums in four parts. Adding 1.5 * 2^23 rounds to the nearest,
 * ties to even, and leaves q in the lowest bits. */
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

/* At most 127 in magnitude: |w| / (absmax / 127) is 127 to within an ulp, and if the scale is 1 |w| is less than 2^-119. A scale
 * above the normal range's reciprocal cannot be: absmax / 127 is less than 2^122. */
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
  share(c, w->p->panels, &first, &last);
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

enum { F32_ROWS = 16 }; /* packed together: their floats of one input fill a line */

/* Four floats of each of four rows into as many columns of a panel. */
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

/* Up to 16 rows of K floats into as many columns of a panel. next: NULL, or 16 K floats to bring into the cache meanwhile. */
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
  share(c, w->p->panels, &first, &last);
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

int64_t packed_scratch(const pgee_packed *p) { return F32_ROWS * padded_row(p->K) * (int64_t)sizeof(float); }

/* Floats are taken from where they lie, while those after them come from memory: the rows of a table are each other's neighbours. */
void packed_panel(const pgee_packed *p, int64_t panel, float *to, float *rows) {
  const pgee_tensor *table = p->table;
  int in_place = table->dtype == PGEE_F32;
  int64_t stride = in_place ? table->stride : padded_row(p->K), last = least((panel + 1) * PANEL, p->N);
  for (int64_t n = panel * PANEL; n < last; n += F32_ROWS) {
    int64_t count = least(F32_ROWS, last - n);
    const float *from = in_place ? (const float *)table->data + n * stride : rows;
    for (int64_t i = 0; i < count && !in_place; i++)
      tensor_row_f32(rows + i * stride, table, n + i);
    pack_columns(to + n % PANEL, from, stride, p->K, count,
                 in_place && n + 2 * F32_ROWS <= p->N ? from + F32_ROWS * stride : NULL);
  }
}

static int pack(pgee_packed **out, packing *w, int dtype, phase *f) {
  int64_t K = w->weights[0]->shape[1], scratch_bytes = padded_row(K) * (dtype == PGEE_S8 ? 1 : F32_ROWS) * (int64_t)sizeof(float);
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

/* ---- Weights that are packed already ------------------------------------------------------------------------------- */

/* Within what bytes from -128 to 127 can add up to: the accumulators begin at -zero * sum and must not overflow. */
static int check_sums(const pgee_tensor *sums, int64_t K) {
  const int32_t *sum = sums->data;
  for (int64_t n = 0; n < sums->shape[0]; n++)
    if (sum[n] > 127 * K || sum[n] < -128 * K)
      return fail(PGEE_ARGUMENT, "sum %lld is %d, which %lld weights of 8 bits cannot add up to", (long long)n + 1, sum[n],
                  (long long)K);
  return PGEE_OK;
}

static int check_packed(const pgee_packed *p, const pgee_tensor *bytes, const pgee_tensor *scales, const pgee_tensor *sums) {
  int64_t total;
  if (p->N < 1 || p->K < 1 || p->K > MAX_K)
    return fail(PGEE_ARGUMENT, "a weight [%lld][%lld], expected [N][K] with N of 1 or more and K of 1 to %d", (long long)p->N,
                (long long)p->K, MAX_K);
  if (__builtin_mul_overflow(p->panels, p->panel_bytes, &total))
    return fail(PGEE_ARGUMENT, "N is %lld, which is more than can be counted", (long long)p->N);
  TRY(tensor_expect(bytes, "bytes", -1, 1, total / pgee_dtype_bytes(p->dtype), -1));
  TRY(tensor_expect_memory(bytes, "bytes"));
  if ((uintptr_t)bytes->data % 64 != 0)
    return fail(PGEE_ARGUMENT, "bytes do not begin at a multiple of 64");
  if (p->dtype == PGEE_F32 && (scales || sums))
    return fail(PGEE_ARGUMENT, "an FP32 weight has no %s", scales ? "scales" : "sums");
  if (p->dtype == PGEE_F32)
    return PGEE_OK;
  TRY(tensor_expect(scales, "scales", PGEE_F32, 1, p->N, -1));
  TRY(tensor_expect_memory(scales, "scales"));
  TRY(tensor_expect(sums, "sums", PGEE_S32, 1, p->N, -1));
  TRY(tensor_expect_memory(sums, "sums"));
  return check_sums(sums, p->K);
}

/* [N][K] of a float type, with memory. */
static int check_table(const pgee_packed *p, const pgee_tensor *table, const pgee_tensor *scales, const pgee_tensor *sums) {
  TRY(weights_check(&table, 1));
  if (p->N != table->shape[0] || p->K != table->shape[1])
    return fail(PGEE_ARGUMENT, "bytes is [%lld][%lld], expected [%lld][%lld]", (long long)table->shape[0],
                (long long)table->shape[1], (long long)p->N, (long long)p->K);
  if (scales || sums)
    return fail(PGEE_ARGUMENT, "an FP32 weight has no %s", scales ? "scales" : "sums");
  return PGEE_OK;
}

int pgee_packed_over(pgee_packed **out, int64_t N, int64_t K, const pgee_tensor *bytes, const pgee_tensor *scales,
                     const pgee_tensor *sums) {
  NEED(out, bytes);
  int table = bytes->ndim == 2;
  if (!table && bytes->dtype != PGEE_S8 && bytes->dtype != PGEE_F32)
    return fail(PGEE_ARGUMENT, "bytes is %s, expected I8 or F32", pgee_dtype_name(bytes->dtype));
  pgee_packed made = {.refs = 1, .dtype = table ? PGEE_F32 : bytes->dtype, .K = K, .N = N};
  if (K > 0 && K <= MAX_K && N > 0)
    packed_measure(&made);
  TRY(table ? check_table(&made, bytes, scales, sums) : check_packed(&made, bytes, scales, sums));
  pgee_packed *p = mem_new(sizeof *p);
  if (!p)
    return PGEE_MEMORY;
  *p = made;
  p->bytes_held = tensor_hold(bytes);
  p->scales_held = tensor_hold(scales);
  p->sums_held = tensor_hold(sums);
  p->bytes = table ? NULL : bytes->data;
  p->table = table ? p->bytes_held : NULL;
  p->scales = scales ? scales->data : NULL;
  p->sums = sums ? sums->data : NULL;
  int status = vector_new(&p->zeros_held, PGEE_F32, N);
  if (status != PGEE_OK) {
    pgee_packed_free(p);
    return status;
  }
  p->zeros = p->zeros_held->data;
  *out = p;
  return PGEE_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

int64_t pgee_packed_K(const pgee_packed *p) { return p ? p->K : 0; }
int64_t pgee_packed_N(const pgee_packed *p) { return p ? p->N : 0; }
int pgee_packed_dtype(const pgee_packed *p) { return p ? p->dtype : -1; }

static int64_t vector_bytes(const pgee_tensor *t) { return t ? t->shape[0] * pgee_dtype_bytes(t->dtype) : 0; }

int64_t pgee_packed_bytes(const pgee_packed *p) {
  return !p ? 0
            : (p->table ? 0 : vector_bytes(p->bytes_held)) + vector_bytes(p->scales_held) + vector_bytes(p->sums_held) +
                  vector_bytes(p->zeros_held);
}

int pgee_packed_read(const pgee_packed *p, pgee_tensor **scales, pgee_tensor **sums, pgee_tensor **bytes) {
  NEED(p);
  const pgee_tensor *from[3] = {p->scales_held, p->sums_held, p->bytes_held};
  pgee_tensor **out[3] = {scales, sums, bytes}, *made[3] = {NULL, NULL, NULL};
  int status = PGEE_OK;
  for (int i = 0; i < 3 && status == PGEE_OK; i++) {
    if (out[i] && !from[i])
      status = fail(PGEE_ARGUMENT, "an FP32 weight has no %s", i == 0 ? "scales" : "sums");
    else if (out[i])
      status = pgee_tensor_rows(&made[i], from[i], 0, from[i]->shape[0]);
  }
  for (int i = 0; i < 3; i++) {
    if (status != PGEE_OK)
      pgee_tensor_free(made[i]);
    else if (out[i])
      *out[i] = made[i];
  }
  return status;
}

int pgee_packed_unpack(pgee_tensor **out, const pgee_packed *p) {
  NEED(out, p);
  const int64_t shape[2] = {p->N, p->K};
  int64_t kblocks = round_up(p->K, BLOCK_K) / BLOCK_K;
  pgee_tensor *t;
  TRY(pgee_tensor_new(&t, p->dtype, 2, shape));
  for (int64_t n = 0; n < p->N; n++) {
    if (p->table) {
      tensor_row_f32((float *)t->data + n * t->stride, p->table, n);
      continue;
    }
    for (int64_t k = 0; k < p->K; k++) {
      if (p->dtype == PGEE_S8)
        ((int8_t *)t->data)[n * t->stride + k] = p->bytes[packed_index(n, k, kblocks)];
      else
        ((float *)t->data)[n * t->stride + k] = ((const float *)(p->bytes + n / PANEL * p->panel_bytes))[k * PANEL + n % PANEL];
    }
  }
  *out = t;
  return PGEE_OK;
}

int pgee_packed_multiplier(pgee_tensor **out, const pgee_packed *p, float x_scale) {
  NEED(out, p);
  if (p->dtype != PGEE_S8)
    return fail(PGEE_ARGUMENT, "an FP32 weight has no multiplier");
  if (is_nonfinite(x_scale) || x_scale <= 0)
    return fail(PGEE_ARGUMENT, "x_scale is %g, expected a positive number", (double)x_scale);
  pgee_tensor *t;
  TRY(vector_new(&t, PGEE_F32, p->N));
  unsigned before = float_default();
  for (int64_t n = 0; n < p->N; n++)
    ((float *)t->data)[n] = x_scale * p->scales[n];
  float_restore(before);
  *out = t;
  return PGEE_OK;
}
