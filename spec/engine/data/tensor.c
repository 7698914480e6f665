/* tensor.c: what the engine knows of tensors beyond perigee.h, for the specs. */
#include "engine/data/tensor.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int spec_tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
PUBLIC int spec_tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
PUBLIC void spec_tensor_row_f32(float *out, const pgee_tensor *t, int64_t i);

int spec_tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width) {
  return tensor_expect(t, what, dtype, ndim, rows, width);
}

int spec_tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width) {
  return tensor_expect_output(t, what, dtype, ndim, rows, width);
}

void spec_tensor_row_f32(float *out, const pgee_tensor *t, int64_t i) { tensor_row_f32(out, t, i); }
