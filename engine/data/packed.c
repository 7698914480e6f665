/* packed.c: the handle of packed weights: made empty for pack.c, made over bytes that are packed already, and read. */
#include "packed.h"

#include <string.h>

#include "kernels/gemm_bf16/layout.h"
#include "kernels/gemm_u8s8/layout.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/cpu/team.h"
#include "table.h"
#include "tensor.h"
#include "weights.h"

enum { F32_K = 16 };

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

/* The multiple to which K is padded. */
static int64_t grain(int dtype) { return dtype == PGEE_S8 ? BLOCK_K : dtype == PGEE_BF16 ? BF16_BLOCK_K : F32_K; }

/* Computes the size and the number of panels. Their product may overflow for a weight that pgee_packed_over is given;
 * check_packed checks it. */
static void packed_measure(pgee_packed *p) {
  p->panels = p->N / PANEL + (p->N % PANEL > 0);
  p->panel_bytes = round_up(p->K, grain(p->dtype)) * PANEL * pgee_dtype_bytes(p->dtype);
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

int packed_new(pgee_packed **out, int dtype, int64_t K, int64_t N) {
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

/* ---- Weights that are packed already ------------------------------------------------------------------------------- */

/* Checks that each sum is possible for K values from -128 to 127. The accumulators begin at -zero * sum, which must not
 * overflow. */
static int check_sums(const pgee_tensor *sums, int64_t K) {
  const int32_t *sum = sums->data;
  for (int64_t n = 0; n < sums->shape[0]; n++)
    if (sum[n] > 127 * K || sum[n] < -128 * K)
      return fail(PGEE_ARGUMENT, "sum %lld is %d, which %lld weights of 8 bits cannot add up to", (long long)n + 1, sum[n],
                  (long long)K);
  return PGEE_OK;
}

static int has_no(const pgee_packed *p, const char *what) {
  return fail(PGEE_ARGUMENT, "%s weight has no %s", p->dtype == PGEE_BF16 ? "a BF16" : "an FP32", what);
}

static int check_size(const pgee_packed *p) {
  if (p->N >= 1 && p->K >= 1 && p->K <= WEIGHTS_MAX_K)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "a weight [%lld][%lld], expected [N][K] with N of 1 or more and K of 1 to %d", (long long)p->N,
              (long long)p->K, WEIGHTS_MAX_K);
}

static int check_packed(const pgee_packed *p, const pgee_tensor *bytes, const pgee_tensor *scales, const pgee_tensor *sums) {
  int64_t total;
  TRY(check_size(p));
  if (__builtin_mul_overflow(p->panels, p->panel_bytes, &total))
    return fail(PGEE_ARGUMENT, "N is %lld, which is more than can be counted", (long long)p->N);
  TRY(tensor_expect(bytes, "bytes", -1, 1, total / pgee_dtype_bytes(p->dtype), -1));
  TRY(tensor_expect_memory(bytes, "bytes"));
  if ((uintptr_t)bytes->data % 64 != 0)
    return fail(PGEE_ARGUMENT, "bytes do not begin at a multiple of 64");
  if (p->dtype != PGEE_S8 && (scales || sums))
    return has_no(p, scales ? "scales" : "sums");
  if (p->dtype != PGEE_S8)
    return PGEE_OK;
  TRY(tensor_expect(scales, "scales", PGEE_F32, 1, p->N, -1));
  TRY(tensor_expect_memory(scales, "scales"));
  TRY(tensor_expect(sums, "sums", PGEE_S32, 1, p->N, -1));
  TRY(tensor_expect_memory(sums, "sums"));
  return check_sums(sums, p->K);
}

/* [N][K] of a float type, or of S8 with scales; with memory. */
static int check_table(const pgee_packed *p, const pgee_tensor *table, const pgee_tensor *scales, const pgee_tensor *sums) {
  if (table->dtype == PGEE_S8) {
    if (sums)
      return fail(PGEE_ARGUMENT, "a table of type I8 has no sums");
    TRY(check_size(p));
    TRY(tensor_expect_memory(table, "bytes"));
    return table_check(table, "bytes", scales, "scales", p->N, p->K);
  }
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
  if (!table && bytes->dtype != PGEE_S8 && bytes->dtype != PGEE_BF16 && bytes->dtype != PGEE_F32)
    return fail(PGEE_ARGUMENT, "bytes is %s, expected I8, BF16 or F32", pgee_dtype_name(bytes->dtype));
  pgee_packed made = {.refs = 1, .dtype = table ? PGEE_F32 : bytes->dtype, .K = K, .N = N};
  if (K > 0 && K <= WEIGHTS_MAX_K && N > 0)
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
  p->scales = scales && !table ? scales->data : NULL;
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
  if (!p)
    return 0;
  int64_t own = p->table ? 0 : vector_bytes(p->bytes_held) + vector_bytes(p->scales_held);
  return own + vector_bytes(p->sums_held) + vector_bytes(p->zeros_held);
}

int pgee_packed_read(const pgee_packed *p, pgee_tensor **scales, pgee_tensor **sums, pgee_tensor **bytes) {
  NEED(p);
  const pgee_tensor *from[3] = {p->scales_held, p->sums_held, p->bytes_held};
  pgee_tensor **out[3] = {scales, sums, bytes}, *made[3] = {NULL, NULL, NULL};
  int status = PGEE_OK;
  for (int i = 0; i < 3 && status == PGEE_OK; i++) {
    if (out[i] && !from[i])
      status = has_no(p, i == 0 ? "scales" : "sums");
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
  int64_t kblocks = round_up(p->K, BLOCK_K) / BLOCK_K, bf16_blocks = round_up(p->K, BF16_BLOCK_K) / BF16_BLOCK_K;
  pgee_tensor *t;
  TRY(pgee_tensor_new(&t, p->dtype, 2, shape));
  for (int64_t n = 0; n < p->N; n++) {
    if (p->table) {
      table_row_f32((float *)t->data + n * t->stride, p->table, p->scales_held, n);
      continue;
    }
    for (int64_t k = 0; k < p->K; k++) {
      if (p->dtype == PGEE_S8)
        ((int8_t *)t->data)[n * t->stride + k] = p->bytes[packed_index(n, k, kblocks)];
      else if (p->dtype == PGEE_BF16)
        ((uint16_t *)t->data)[n * t->stride + k] = ((const uint16_t *)(const void *)p->bytes)[bf16_index(n, k, bf16_blocks)];
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
    return has_no(p, "multiplier");
  if (is_nonfinite(x_scale) || x_scale <= 0)
    return fail(PGEE_ARGUMENT, "x_scale is %g, expected a positive number", (double)x_scale);
  pgee_tensor *t;
  TRY(vector_new(&t, PGEE_F32, p->N));
  unsigned before = team_float_default();
  for (int64_t n = 0; n < p->N; n++)
    ((float *)t->data)[n] = x_scale * p->scales[n];
  team_float_restore(before);
  *out = t;
  return PGEE_OK;
}
