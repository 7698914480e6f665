/* packed.h: what a packed weight is inside the engine. */
#ifndef PERIGEE_PACKED_H
#define PERIGEE_PACKED_H
#include <stdatomic.h>
#include <stdint.h>

#include "engine/perigee.h"
#include "kernels/kernels.h"

struct pgee_packed {
  _Atomic int64_t refs;
  int dtype; /* PGEE_S8, PGEE_BF16 or PGEE_F32 */
  int64_t K, N;
  int64_t panel_bytes;                                            /* from one panel of 64 output channels to the next */
  int64_t panels;                                                 /* N / 64 rounded up */
  const char *bytes;                                              /* the panels, aligned to 64; NULL if there is a table */
  const pgee_tensor *table;                                       /* NULL, or [N][K] of table.h: rows that are not packed */
  const float *scales;                                            /* [N], s8 only; those of a table are in scales_held */
  const int32_t *sums;                                            /* [N], s8 only */
  const float *zeros;                                             /* [N] zeros: the bias of a linear that has none */
  pgee_tensor *bytes_held, *scales_held, *sums_held, *zeros_held; /* whose memory these are */
};

/* A packed weight [N][K] whose panels, scales and sums are zeros. */
int packed_new(pgee_packed **out, int dtype, int64_t K, int64_t N);
pgee_packed *packed_hold(const pgee_packed *p);
/* Packs one panel of a weight that has a table; `to` is not written beyond N and K. k: whose `embed` widens rows. rows:
 * packed_scratch(p) bytes of scratch memory, aligned to 64. */
void packed_panel(const pgee_packed *p, const kernels *k, int64_t panel, float *to, float *rows);
int64_t packed_scratch(const pgee_packed *p);

#endif
