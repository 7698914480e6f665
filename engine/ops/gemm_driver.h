/* gemm_driver.h: how a thread multiplies its part of a linear with our own kernels; linear.c calls it. */
#ifndef PERIGEE_GEMM_DRIVER_H
#define PERIGEE_GEMM_DRIVER_H
#include "operator.h"

/* A thread's part of a linear: the items first to last (excluded) of the list of all rows of panel 0, all rows of panel 1, ... Item i
 * is row i % rows of panel i / rows. */
typedef struct gemm_part {
  int64_t rows, first, last;
} gemm_part;

/* The part of the thread in `c`. */
gemm_part gemm_driver_part(const pgee_linear_args *a, const context *c);
/* The weights that a part reads. Empty if the weight is a table, whose panels are laid out when they are needed. */
weight_span gemm_driver_weights(const pgee_packed *w, gemm_part p);
/* How the sums of a linear become its results. */
epilogue gemm_driver_epilogue(const pgee_linear_args *a);
/* Multiplies the part of the thread in `c`. */
void gemm_driver_run(const pgee_linear_args *a, const context *c, const epilogue *e);
/* Multiplies rows `row` to `row_end` by panels `panel` to `panel_end` (ends excluded). */
void gemm_driver_rectangle(const pgee_linear_args *a, const context *c, const epilogue *e, int64_t row, int64_t row_end,
                           int64_t panel, int64_t panel_end);

/* gemm_bf16.c: the same for BF16 weights, and the bytes of scratch memory that it needs. */
int64_t gemm_bf16_scratch(const pgee_packed *w);
void gemm_bf16_rectangle(const pgee_linear_args *a, const context *c, const epilogue *e, int64_t row, int64_t row_end,
                         int64_t panel, int64_t panel_end);

#endif
