/* table.h: tables of embeddings, [rows][width] of type F32, F16, BF16, or S8 with one scale for each row. */
#ifndef PERIGEE_TABLE_H
#define PERIGEE_TABLE_H
#include "engine/perigee.h"
#include "kernels/arguments.h"
#include "tensor.h"

/* Checks that `t` is a table with memory and `scales` what its type needs: F32 [rows] for S8, NULL for another type. what,
 * what_scales: how errors call them. rows, width: -1 allows any number. */
int table_check(const pgee_tensor *t, const char *what, const pgee_tensor *scales, const char *what_scales, int64_t rows,
                int64_t width);

/* Row i, for kernels. */
static inline table_row table_row_at(const pgee_tensor *t, const pgee_tensor *scales, int64_t i) {
  return (table_row){(const char *)t->data + i * t->stride * pgee_dtype_bytes(t->dtype), t->dtype,
                     scales ? tensor_floats(scales)[i] : 0};
}

/* Row i as floats, [width]. */
void table_row_f32(float *out, const pgee_tensor *t, const pgee_tensor *scales, int64_t i);

#endif
