/* pool.c: the operators pool, which makes one row of the rows of each sequence, and unit, which scales each row to length 1. In pool
 * threads share the sequences, in unit the rows. */
#include "operator.h"
#include "engine/base/status.h"
#include "expect.h"

static int pool_check(const void *args) {
  const pgee_pool_args *a = args;
  TRY(tensor_expect(a->x, "x", PGEE_F32, 2, -1, -1));
  TRY(tensor_expect_output(a->y, "y", PGEE_F32, 2, -1, a->x->shape[1]));
  if (a->mode < PGEE_POOL_FIRST || a->mode > PGEE_POOL_WEIGHTED)
    return fail(PGEE_ARGUMENT, "mode is %d, expected one of PGEE_POOL_FIRST to PGEE_POOL_WEIGHTED", a->mode);
  if (a->x->rows > PGEE_TOKENS || (a->y->rows != PGEE_FIXED && a->y->rows != PGEE_SEQUENCES) ||
      (a->x->rows == PGEE_FIXED) != (a->y->rows == PGEE_FIXED))
    return fail(
        PGEE_ARGUMENT,
        "x or y has other rows than pooling takes, expected x with a row for each token and y with a row for each sequence");
  return PGEE_OK;
}

static int pool_check_batch(const void *args, const pgee_batch *batch, int64_t S) {
  const pgee_pool_args *a = args;
  (void)S;
  TRY(expect_tokens(a->x, "x", batch));
  if (a->y->rows == PGEE_FIXED && a->y->shape[0] != batch->B)
    return fail(PGEE_ARGUMENT, "y has %lld rows, expected %lld: one for each sequence of the batch", (long long)a->y->shape[0],
                (long long)batch->B);
  return PGEE_OK;
}

static void pool_run(const void *args, const context *c) {
  const pgee_pool_args *a = args;
  int64_t first, last;
  team_share(c, c->B, &first, &last);
  for (int64_t b = first; b < last; b++) {
    int64_t begin = c->batch->starts[b], rows = c->batch->starts[b + 1] - begin;
    c->k->pool(tensor_floats(a->y) + b * a->y->stride, tensor_floats(a->x) + begin * a->x->stride, a->x->stride, rows,
               a->x->shape[1], a->mode);
  }
}

const operator_entry op_pool = {
    .name = "pool",
    .args_bytes = sizeof(pgee_pool_args),
    .fields = {FIELD(FIELD_READ, pgee_pool_args, x), FIELD(FIELD_WRITE, pgee_pool_args, y)},
    .check = pool_check,
    .needs_batch = operator_needs_always,
    .check_batch = pool_check_batch,
    .run = pool_run,
};

static int unit_check(const void *args) {
  const pgee_unit_args *a = args;
  TRY(tensor_expect(a->x, "x", PGEE_F32, 2, -1, -1));
  return expect_output_like(a->y, "y", PGEE_F32, a->x, a->x->shape[1]);
}

static void unit_run(const void *args, const context *c) {
  const pgee_unit_args *a = args;
  int64_t first, last;
  team_share(c, operator_rows(a->x, c), &first, &last);
  for (int64_t t = first; t < last; t++)
    c->k->unit(tensor_floats(a->y) + t * a->y->stride, tensor_floats(a->x) + t * a->x->stride, a->x->shape[1]);
}

const operator_entry op_unit = {
    .name = "unit",
    .args_bytes = sizeof(pgee_unit_args),
    .fields = {FIELD(FIELD_OVER, pgee_unit_args, x), FIELD(FIELD_WRITE, pgee_unit_args, y)},
    .check = unit_check,
    .run = unit_run,
};
