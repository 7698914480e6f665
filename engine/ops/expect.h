/* expect.h: what operators expect of the tensors in their args.
 *
 * Each function returns PGEE_OK, or PGEE_ARGUMENT with a message that names the tensor `what`. */
#ifndef PERIGEE_EXPECT_H
#define PERIGEE_EXPECT_H
#include "engine/perigee.h"

/* How the tensor counts its rows: PGEE_FIXED, PGEE_TOKENS, PGEE_SEQUENCES or PGEE_MARKED. */
int expect_rows(const pgee_tensor *t, const char *what, int rows);
/* A tensor to read, [rows][width], or [rows] if width is 0. It has as many rows as `like`. */
int expect_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width);
/* The same for a tensor to write. */
int expect_output_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width);
/* A vector of weights: F32 [n], which is not a plan's buffer. */
int expect_vector(const pgee_tensor *t, const char *what, int64_t n);
/* U8 rows as the kernels read them: each row can be read up to its width K rounded up to 64. */
int expect_u8_stride(const pgee_tensor *t, const char *what);
/* One row for each token of the batch, if `like` has a fixed number of rows. */
int expect_tokens(const pgee_tensor *like, const char *what, const pgee_batch *batch);

#endif
