/* weights.c: the weights of several linears stacked, before they are packed. See weights.h. */
#include "weights.h"

#include <stdio.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "tensor.h"

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
    if (w->shape[1] < 1 || w->shape[1] > WEIGHTS_MAX_K || w->shape[0] < 1)
      return fail(PGEE_ARGUMENT, "%s is [%lld][%lld], expected [N][K] with N of 1 or more and K of 1 to %d", what,
                  (long long)w->shape[0], (long long)w->shape[1], WEIGHTS_MAX_K);
  }
  return PGEE_OK;
}

int64_t weights_rows(const pgee_tensor *const *weights, int count) {
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
