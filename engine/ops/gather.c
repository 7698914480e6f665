/* gather.c: copies the rows of some tokens: of the first token of each sequence, or of the marked tokens. Threads share these rows. */
#include <string.h>

#include "operator.h"
#include "engine/base/status.h"
#include "expect.h"

static int check(const void *args) {
  const pgee_gather_args *a = args;
  int first = a->mode == PGEE_GATHER_FIRST;
  TRY(tensor_expect(a->x, "x", -1, -1, -1, -1));
  if (a->x->ndim > 2 || (a->x->dtype != PGEE_F32 && a->x->dtype != PGEE_U8 && a->x->dtype != PGEE_S32))
    return fail(PGEE_ARGUMENT, "x is %s of %d dimensions, expected F32, U8 or I32 of 1 or 2", pgee_dtype_name(a->x->dtype),
                a->x->ndim);
  TRY(tensor_expect_output(a->y, "y", a->x->dtype, a->x->ndim, -1, tensor_width(a->x)));
  if (!first && a->mode != PGEE_GATHER_MARKED)
    return fail(PGEE_ARGUMENT, "mode is %d, expected PGEE_GATHER_FIRST or PGEE_GATHER_MARKED", a->mode);
  if (a->x->rows == PGEE_FIXED)
    return expect_rows(a->y, "y", PGEE_FIXED);
  TRY(expect_rows(a->x, "x", PGEE_TOKENS));
  return expect_rows(a->y, "y", first ? PGEE_SEQUENCES : PGEE_MARKED);
}

static int check_batch(const void *args, const pgee_batch *batch, int64_t S) {
  const pgee_gather_args *a = args;
  int first = a->mode == PGEE_GATHER_FIRST;
  int64_t wanted = first ? batch->B : batch->R;
  (void)S;
  TRY(expect_tokens(a->x, "x", batch));
  if (a->y->rows == PGEE_FIXED && a->y->shape[0] != wanted)
    return fail(PGEE_ARGUMENT, "y has %lld rows, expected %lld: one for each of the batch's %s", (long long)a->y->shape[0],
                (long long)wanted, first ? "sequences" : "marked tokens");
  return PGEE_OK;
}

static void run(const void *args, const context *c) {
  const pgee_gather_args *a = args;
  const int32_t *tokens = a->mode == PGEE_GATHER_FIRST ? c->batch->starts : c->batch->rows;
  int64_t item = pgee_dtype_bytes(a->x->dtype), bytes = tensor_width(a->x) * item, first, last;
  team_share(c, a->mode == PGEE_GATHER_FIRST ? c->B : c->R, &first, &last);
  for (int64_t i = first; i < last; i++)
    memcpy((char *)a->y->data + i * a->y->stride * item, (const char *)a->x->data + tokens[i] * a->x->stride * item,
           (size_t)bytes);
}

const operator_entry op_gather = {
    .name = "gather",
    .args_bytes = sizeof(pgee_gather_args),
    .fields = {FIELD(FIELD_READ, pgee_gather_args, x), FIELD(FIELD_WRITE, pgee_gather_args, y)},
    .check = check,
    .needs_batch = operator_needs_always,
    .check_batch = check_batch,
    .run = run,
};
