/* expect.c: what operators expect of the tensors in their args. See expect.h. */
#include "expect.h"

#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/data/tensor.h"

static const char *rows_name(int rows) {
  static const char *const names[] = {[PGEE_FIXED] = "a number of rows of its own",
                                      [PGEE_TOKENS] = "a row for each token",
                                      [PGEE_SEQUENCES] = "a row for each sequence",
                                      [PGEE_MARKED] = "a row for each marked token"};
  return names[rows];
}

int expect_rows(const pgee_tensor *t, const char *what, int rows) {
  if (t->rows == rows)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "%s has %s, expected %s", what, rows_name(t->rows), rows_name(rows));
}

static int64_t fixed_rows(const pgee_tensor *like) { return like->rows == PGEE_FIXED ? like->shape[0] : -1; }

int expect_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width) {
  TRY(tensor_expect(t, what, dtype, width > 0 ? 2 : 1, fixed_rows(like), width > 0 ? width : -1));
  return expect_rows(t, what, like->rows);
}

int expect_output_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width) {
  TRY(tensor_expect_output(t, what, dtype, width > 0 ? 2 : 1, fixed_rows(like), width > 0 ? width : -1));
  return expect_rows(t, what, like->rows);
}

int expect_vector(const pgee_tensor *t, const char *what, int64_t n) {
  TRY(tensor_expect(t, what, PGEE_F32, 1, n, -1));
  return t->rows == PGEE_FIXED ? PGEE_OK : fail(PGEE_ARGUMENT, "%s is a plan's buffer, expected a weight", what);
}

int expect_u8_stride(const pgee_tensor *t, const char *what) {
  int64_t wanted = round_up(tensor_width(t), 64);
  if (t->stride >= wanted)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "the rows of %s lie %lld bytes apart, expected %lld: a tensor of its own has that", what,
              (long long)t->stride, (long long)wanted);
}

int expect_tokens(const pgee_tensor *like, const char *what, const pgee_batch *batch) {
  if (like->rows != PGEE_FIXED || like->shape[0] == batch->T)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "%s has %lld rows, expected %lld: one for each token of the batch", what, (long long)like->shape[0],
              (long long)batch->T);
}
