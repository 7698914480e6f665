/* packed.h: what a packed weight is inside the engine. */
#ifndef PERIGEE_PACKED_H
#define PERIGEE_PACKED_H
#include <stdatomic.h>
#include <stdint.h>

#include "engine/perigee.h"

struct pgee_packed {
  _Atomic int64_t refs;
  int dtype; /* PGEE_S8 or PGEE_F32 */
  int64_t K, N;
  int64_t panel_bytes;                                            /* from one panel of 64 output channels to the next */
  int64_t panels;                                                 /* N / 64 rounded up */
  const char *bytes;                                              /* the panels, aligned to 64; NULL if there is a table */
  const pgee_tensor *table;                                       /* NULL, or [N][K] of a float type: rows that are not packed */
  const float *scales;                                            /* [N], s8 only */
  const int32_t *sums;                                            /* [N], s8 only */
  const float *zeros;                                             /* [N] zeros: the bias of a linear that has none */
  pgee_tensor *bytes_held, *scales_held, *sums_held, *zeros_held; /* whose memory these are */
};

pgee_packed *packed_hold(const pgee_packed *p);
/* Of a table: a panel as it would be packed, but for what lies beyond N and K. rows: packed_scratch(p) bytes, aligned to 64. */
void packed_panel(const pgee_packed *p, int64_t panel, float *to, float *rows);
int64_t packed_scratch(const pgee_packed *p);

/* For all that reads weights: at least one, each [N][K] of one K from 1 to 32768 and of type F32, F16 or BF16, with memory. */
int weights_check(const pgee_tensor *const *weights, int count);
/* Row n of the weights stacked, as floats. */
void weights_row(float *out, const pgee_tensor *const *weights, int64_t n);
/* The error that names the first of the weights' values times s (NULL: all 1) that is not finite; PGEE_OK if all are. */
int weights_nonfinite(const pgee_tensor *const *weights, int count, const float *s);

#endif
