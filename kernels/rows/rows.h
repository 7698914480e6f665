/* rows.h: the row operators and tile epilogues, one body (body.h) compiled for each ISA; kernels.h says what each does. */
#ifndef PERIGEE_ROWS_H
#define PERIGEE_ROWS_H
#include "kernels/kernels.h"
#include "engine/perigee.h"

/* GELU is rounded where its result is only stored in 8 bits. */
static inline int rounded_activation(const epilogue *e) {
  int gelu = e->activation == PGEE_GELU ? PGEE_GELU_ROUNDED : e->activation == PGEE_GELU_TANH ? PGEE_GELU_TANH_ROUNDED : 0;
  return gelu && e->q && !e->y ? gelu : e->activation;
}

#define ROWS(isa)                                                                                                            \
  void epilogue_s32_##isa(const epilogue *e, const int32_t *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);           \
  void epilogue_f32_##isa(const epilogue *e, const float *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);             \
  void norm_##isa(const norm *a, int64_t begin, int64_t end);                                                                \
  void quantize_##isa(const quantizer *a, const float *x, int64_t ldx, int64_t width, int64_t begin, int64_t end);           \
  void range_##isa(float *ranges, const float *x, int64_t ldx, const float *mul, int64_t width, int64_t begin, int64_t end); \
  void embed_##isa(float *y, const void *word, int word_dtype, const void *position, int position_dtype, const void *type,   \
                   int type_dtype, int64_t width);                                                                           \
  void pool_##isa(float *y, const float *x, int64_t ldx, int64_t rows, int64_t width, int mode);                             \
  void unit_##isa(float *y, const float *x, int64_t width);                                                                  \
  void minmax_##isa(float *min, float *max, const float *x, int64_t ldx, int64_t rows, int64_t width);

ROWS(ref)
ROWS(avx2)
ROWS(avx512vnni)

#endif
