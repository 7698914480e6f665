/* batch.c: checks of a batch. See batch.h. */
#include "batch.h"

#include "engine/base/status.h"

static int check_marked(const pgee_batch *batch) {
  if (batch->R < 0 || batch->R > batch->T)
    return fail(PGEE_ARGUMENT, "%lld tokens of %lld are marked", (long long)batch->R, (long long)batch->T);
  if (batch->R > 0 && !batch->rows)
    return fail(PGEE_ARGUMENT, "the batch has %lld marked tokens but no rows", (long long)batch->R);
  for (int64_t r = 0; r < batch->R; r++)
    if (batch->rows[r] < (r > 0 ? batch->rows[r - 1] + (int64_t)1 : 0) || batch->rows[r] >= batch->T)
      return fail(PGEE_ARGUMENT, "marked token %lld (counted from 1) is %d, expected ascending numbers below %lld",
                  (long long)r + 1, batch->rows[r], (long long)batch->T);
  return PGEE_OK;
}

int batch_check(const pgee_batch *batch, int64_t *S) {
  if (batch->T < 0 || batch->B < 0 || batch->T > INT32_MAX || batch->B > batch->T)
    return fail(PGEE_ARGUMENT, "a batch of %lld tokens in %lld sequences", (long long)batch->T, (long long)batch->B);
  TRY(check_marked(batch));
  if (batch->B == 0 && batch->T == 0)
    return *S = 0, PGEE_OK;
  const int32_t *starts = batch->starts;
  if (!starts)
    return fail(PGEE_ARGUMENT, "the batch has no starts");
  if (starts[0] != 0)
    return fail(PGEE_ARGUMENT, "the first sequence starts at token %d, expected 0", starts[0]);
  int64_t longest = 0;
  for (int64_t b = 0; b < batch->B; b++) {
    int64_t length = (int64_t)starts[b + 1] - starts[b];
    if (length <= 0)
      return fail(PGEE_ARGUMENT, "sequence %lld of the batch (counted from 1) has %lld tokens, expected 1 or more",
                  (long long)b + 1, (long long)length);
    longest = length > longest ? length : longest;
  }
  if (starts[batch->B] != batch->T)
    return fail(PGEE_ARGUMENT, "the last sequence ends at token %d, but the batch has %lld", starts[batch->B],
                (long long)batch->T);
  *S = longest;
  return PGEE_OK;
}
