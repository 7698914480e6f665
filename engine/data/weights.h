/* weights.h: the float weights [N_i][K] of linears that read one input, taken as one weight [N][K] of all their rows. */
#ifndef PERIGEE_WEIGHTS_H
#define PERIGEE_WEIGHTS_H
#include <stdint.h>

#include "engine/perigee.h"

enum { WEIGHTS_MAX_K = 32768 };

/* Checks that there is at least one weight and that each is [N_i][K], with the same K from 1 to WEIGHTS_MAX_K, of type F32, F16
 * or BF16, and has memory. */
int weights_check(const pgee_tensor *const *weights, int count);
/* N: the rows of all weights. */
int64_t weights_rows(const pgee_tensor *const *weights, int count);
/* Row n of the stacked weight, as floats. */
void weights_row(float *out, const pgee_tensor *const *weights, int64_t n);
/* An error that names the first value, times s of its column (s NULL: times 1), that is NaN or infinite; PGEE_OK if all are
 * finite. */
int weights_nonfinite(const pgee_tensor *const *weights, int count, const float *s);

#endif
