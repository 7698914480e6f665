/* tensor.h: the inside of a tensor. Tensors are reference counted: a view holds its base, a plan its weights. */
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

/* Adds a reference; t may be NULL. The tensor may be const, because the count is not part of its value. */
pgee_tensor *tensor_hold(const pgee_tensor *t);
/* A tensor over bytes of a map, which it holds, or (file NULL) over bytes that the caller keeps alive. */
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

/* Checks of arguments. They return PGEE_OK, or PGEE_ARGUMENT with a message that names `what`. -1 allows any type or size. */
int tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
/* The same for a tensor that is written: it must not be part of a mapped file. */
int tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width);
/* The tensor must have memory: it must not be a plan's buffer. */
int tensor_expect_memory(const pgee_tensor *t, const char *what);

#endif
