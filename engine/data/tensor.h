/* tensor.h: what a tensor is inside the engine. Reference counted: views hold their base, plans hold their weights. */
#ifndef PERIGEE_TENSOR_H
#define PERIGEE_TENSOR_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/perigee.h"

typedef struct map map;

struct pgee_tensor {
  _Atomic int64_t refs;
  int dtype;
  int ndim;
  int64_t shape[PGEE_MAX_DIMS];
  int64_t stride;    /* elements from one index of the first dimension to the next */
  void *data;        /* NULL in a plan's buffer */
  int rows;          /* PGEE_FIXED, or how a plan's buffer counts its rows (shape[0] is then 0) */
  int owned;         /* data is a block of memory.h to free at the end */
  pgee_tensor *base; /* held, or NULL */
  map *file;         /* held, or NULL */
};

/* One more reference; t may be NULL. Cast away const: the count is not part of the value. */
pgee_tensor *tensor_hold(const pgee_tensor *t);
/* A tensor over bytes that a map holds (taken a reference on) or that the caller outlives (file NULL). */
int tensor_over(pgee_tensor **out, int dtype, int ndim, const int64_t *shape, void *data, map *file);
/* Product of the dimensions. */
int64_t tensor_count(const pgee_tensor *t);
/* Elements in one row: the product of all dimensions but the first. */
int64_t tensor_width(const pgee_tensor *t);
/* The values of an F32 tensor; NULL if t is NULL. */
static inline float *tensor_floats(const pgee_tensor *t) { return t ? (float *)t->data : NULL; }
/* Elements from one row to the next; 0 if t is NULL. */
static inline int64_t tensor_stride(const pgee_tensor *t) { return t ? t->stride : 0; }
/* Row i of an F32, F16 or BF16 matrix as floats. */
void tensor_row_f32(float *out, const pgee_tensor *t, int64_t i);

/* A shape as text, "[3][5]"; `text` has room for any shape and some more. */
typedef struct tensor_shape_text {
  char text[128];
} tensor_shape_text;

tensor_shape_text tensor_shape_print(int ndim, const int64_t *shape);

/* Tests of what a function was given. They set the message, naming `what`, and return PGEE_ARGUMENT. -1 for any size. */
int tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
/* The same for what is written: part of a mapped file is refused. */
int tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
/* A plan's buffer, which has no memory of its own, is refused. */
int tensor_expect_memory(const pgee_tensor *t, const char *what);

#endif
