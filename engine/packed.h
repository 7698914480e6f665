/* packed.h: what a packed weight is inside the engine. */
#ifndef PERIGEE_PACKED_H
#define PERIGEE_PACKED_H
#include <stdatomic.h>
#include <stdint.h>

#include "perigee.h"

struct pgee_packed {
  _Atomic int64_t refs;
  int dtype;            /* PGEE_S8 or PGEE_F32 */
  int64_t K, N;
  int64_t panel_bytes;  /* from one panel of 64 output channels to the next */
  int64_t panels;       /* N / 64 rounded up */
  char *bytes;          /* the panels; owned, aligned to 64 */
  float *scales;        /* [N], s8 only, owned */
  int32_t *sums;        /* [N], s8 only, owned */
  float *zeros;         /* [N] zeros: the bias of a linear that has none; owned */
};

pgee_packed *packed_hold(const pgee_packed *p);

#endif
