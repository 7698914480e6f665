/* table.c: checks tables of embeddings, and makes F16 and S8 tables of wider ones. kernels/ARITHMETIC.md has the rounding. */
#include "table.h"

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/cpu/team.h"

int table_check(const pgee_tensor *t, const char *what, const pgee_tensor *scales, const char *what_scales, int64_t rows,
                int64_t width) {
  TRY(tensor_expect(t, what, -1, 2, rows, width));
  if (t->dtype != PGEE_F32 && t->dtype != PGEE_F16 && t->dtype != PGEE_BF16 && t->dtype != PGEE_S8)
    return fail(PGEE_ARGUMENT, "%s is %s, expected F32, F16, BF16 or I8", what, pgee_dtype_name(t->dtype));
  if (t->rows != PGEE_FIXED)
    return fail(PGEE_ARGUMENT, "%s is a plan's buffer, expected a weight", what);
  if (t->dtype != PGEE_S8)
    return !scales ? PGEE_OK
                   : fail(PGEE_ARGUMENT, "%s is given, but %s is %s: only a table of type I8 has scales", what_scales, what,
                          pgee_dtype_name(t->dtype));
  if (!scales)
    return fail(PGEE_ARGUMENT, "%s is missing, expected F32 [%lld], one scale for each row of %s, which is I8", what_scales,
                (long long)t->shape[0], what);
  TRY(tensor_expect(scales, what_scales, PGEE_F32, 1, t->shape[0], -1));
  return tensor_expect_memory(scales, what_scales);
}

void table_row_f32(float *out, const pgee_tensor *t, const pgee_tensor *scales, int64_t i) {
  tensor_row_f32(out, t, i);
  for (int64_t k = 0; scales && k < t->shape[1]; k++)
    out[k] *= tensor_floats(scales)[i];
}

/* ---- Making tables ------------------------------------------------------------------------------------------------- */

typedef struct making {
  const pgee_tensor *from;
  pgee_tensor *to, *scales;
  _Atomic int refused; /* whether a value cannot be stored */
} making;

static const float f16_limit = 65520; /* from here on a float rounds to infinity in F16 */

/* To the nearest F16, ties to even, for a magnitude below f16_limit. Adding 0.5 rounds a small one at 2^-24. */
static uint16_t narrow_f16(float x) {
  uint32_t sign = float_bits(x) >> 16 & 0x8000, bits = float_bits(x) & 0x7fffffff;
  uint32_t small = float_bits(magnitude(x) + 0.5f) - float_bits(0.5f);
  uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
  return (uint16_t)(sign | (bits < 113u << 23 ? small : normal));
}

static void make_f16(void *work, const context *c) {
  making *m = work;
  int64_t width = m->from->shape[1], first, last;
  float *row = (float *)c->scratch;
  team_share(c, m->from->shape[0], &first, &last);
  for (int64_t i = first; i < last; i++) {
    uint16_t *to = (uint16_t *)m->to->data + i * width;
    uint32_t within = 1;
    tensor_row_f32(row, m->from, i);
    for (int64_t k = 0; k < width; k++)
      within &= magnitude(row[k]) < f16_limit; /* false for NaN */
    for (int64_t k = 0; within && k < width; k++)
      to[k] = narrow_f16(row[k]);
    if (!within)
      m->refused = 1;
  }
}

static void make_s8(void *work, const context *c) {
  making *m = work;
  int64_t width = m->from->shape[1], first, last;
  float *row = (float *)c->scratch;
  team_share(c, m->from->shape[0], &first, &last);
  for (int64_t i = first; i < last; i++) {
    int8_t *to = (int8_t *)m->to->data + i * width;
    float top = 0;
    uint32_t bad = 0;
    tensor_row_f32(row, m->from, i);
    for (int64_t k = 0; k < width; k++) {
      float v = magnitude(row[k]);
      bad |= nonfinite_bit(v);
      top = v > top ? v : top;
    }
    float scale = usable_scale(top / 127);
    tensor_floats(m->scales)[i] = scale;
    for (int64_t k = 0; !(bad >> 31) && k < width; k++)
      to[k] = (int8_t)round_even(row[k] / scale);
    if (bad >> 31)
      m->refused = 1;
  }
}

/* The error that names the first value that `limit` excludes. */
static int refuse(const pgee_tensor *from, float limit, const char *type) {
  float *row = mem_array(from->shape[1], sizeof *row);
  if (!row)
    return PGEE_MEMORY;
  int status = PGEE_OK;
  for (int64_t i = 0; i < from->shape[0] && status == PGEE_OK; i++) {
    tensor_row_f32(row, from, i);
    for (int64_t k = 0; k < from->shape[1] && status == PGEE_OK; k++)
      if (is_nonfinite(row[k]))
        status = fail(PGEE_ARGUMENT, "row %lld, column %lld (counted from 1) is %s, which a table of type %s cannot hold",
                      (long long)i + 1, (long long)k + 1, nonfinite_name(row[k]), type);
      else if (magnitude(row[k]) >= limit)
        status = fail(PGEE_ARGUMENT, "row %lld, column %lld (counted from 1) is %g, expected less than %g in magnitude for %s",
                      (long long)i + 1, (long long)k + 1, (double)row[k], (double)limit, type);
  }
  mem_free(row);
  return status;
}

static int make(making *m, phase *f, float limit) {
  int64_t bytes = round_up(m->from->shape[1] * (int64_t)sizeof(float) + 1, 64);
  int threads;
  TRY(pgee_threads(&threads));
  char *scratch = mem_array(threads, bytes);
  int status = scratch ? team_run(f, m, threads, NULL, scratch, bytes) : PGEE_MEMORY;
  mem_free(scratch);
  return status == PGEE_OK && m->refused ? refuse(m->from, limit, pgee_dtype_name(m->to->dtype)) : status;
}

static int source_check(const pgee_tensor *table) {
  TRY(tensor_expect(table, "table", -1, 2, -1, -1));
  if (table->dtype != PGEE_F32 && table->dtype != PGEE_F16 && table->dtype != PGEE_BF16)
    return fail(PGEE_ARGUMENT, "table is %s, expected F32, F16 or BF16", pgee_dtype_name(table->dtype));
  return tensor_expect_memory(table, "table");
}

int pgee_table_f16(pgee_tensor **out, const pgee_tensor *table) {
  NEED(out, table);
  TRY(source_check(table));
  making m = {.from = table};
  TRY(pgee_tensor_new(&m.to, PGEE_F16, 2, table->shape));
  int status = make(&m, make_f16, f16_limit);
  if (status == PGEE_OK)
    *out = m.to;
  else
    pgee_tensor_free(m.to);
  return status;
}

int pgee_table_s8(pgee_tensor **out, pgee_tensor **scales, const pgee_tensor *table) {
  NEED(out, scales, table);
  TRY(source_check(table));
  making m = {.from = table};
  TRY(pgee_tensor_new(&m.to, PGEE_S8, 2, table->shape));
  int status = pgee_tensor_new(&m.scales, PGEE_F32, 1, table->shape);
  if (status == PGEE_OK)
    status = make(&m, make_s8, __builtin_inff());
  if (status == PGEE_OK) {
    *out = m.to;
    *scales = m.scales;
  } else {
    pgee_tensor_free(m.to);
    pgee_tensor_free(m.scales);
  }
  return status;
}
