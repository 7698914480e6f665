/* onednn.c: oneDNN as the rest of the world sees it. What it does is in kernels/onednn.c. */
#include "kernels/onednn.h"

#include <stddef.h>

#include "engine/data/packed.h"
#include "engine/base/status.h"

const char *pgee_onednn_version(void) {
  int isa;
  if (pgee_isa(&isa) != PGEE_OK)
    return NULL;
  const char *why = onednn_missing(isa);
  if (why)
    fail(PGEE_UNSUPPORTED, "%s", why);
  return why ? NULL : onednn_version(isa);
}

int pgee_onednn_check(const pgee_packed *w) {
  NEED(w);
  int isa;
  TRY(pgee_isa(&isa));
  if (w->dtype != PGEE_S8)
    return fail(PGEE_UNSUPPORTED, "oneDNN sums FP32 in another order than our kernels");
  const char *why = onednn_inexact(isa);
  if (why)
    return fail(PGEE_UNSUPPORTED, "%s", why);
  if (!onednn_u8s8_name(isa, 64, w->K, w->N))
    return fail(PGEE_UNSUPPORTED, "oneDNN has no optimized kernel for K %lld, N %lld", (long long)w->K, (long long)w->N);
  return PGEE_OK;
}
