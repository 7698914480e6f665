/* operator.h: the registry of operators. One row of it is all that a plan and pgee_run know about an operator.
 *
 * An operator is one function over its args for a team of threads: it takes its share of the work from the context. Its
 * args are a plain struct in which every activation is a pgee_tensor. On a plan these are buffers without memory; a
 * workspace copies the args and puts its own tensors in their place.
 */
#ifndef PERIGEE_OPERATOR_H
#define PERIGEE_OPERATOR_H
#include <stddef.h>

#include "engine/data/packed.h"
#include "engine/cpu/team.h"
#include "engine/data/tensor.h"

enum { MAX_FIELDS = 13 };
/* FIELD_OVER: read, and what is written may be the very same tensor. */
enum { FIELD_READ = 1, FIELD_OVER = 2, FIELD_WRITE = 3, FIELD_PACKED = 4, FIELD_OBSERVER = 5 };

typedef struct field {
  int kind;      /* 0 ends the list */
  size_t offset; /* of the pointer in the args */
  const char *name;
} field;

/* clang-format off */ /* its versions differ */
#define FIELD(kind, type, member) { kind, offsetof(type, member), #member }
/* clang-format on */
/* The fields of a pgee_quantizer `quantize` in args of this type. */
#define QUANTIZER_FIELDS(type)                                                                                             \
  FIELD(FIELD_READ, type, quantize.m), FIELD(FIELD_WRITE, type, quantize.q), FIELD(FIELD_WRITE, type, quantize.row_scale), \
      FIELD(FIELD_WRITE, type, quantize.row_zero)

typedef struct operator {
  const char *name;
  size_t args_bytes;
  field fields[MAX_FIELDS]; /* every handle in the args, NULL ones included */
  /* Shapes, types and options, whether tensors have memory or not. */
  int (*check)(const void *args);
  /* 1 if it reads ids, types or sequence starts. NULL: never. */
  int (*needs_batch)(const void *args);
  /* What can be said of a batch only when it is there, such as ids in range. S is its longest sequence. NULL: nothing. */
  int (*check_batch)(const void *args, const pgee_batch *batch, int64_t S);
  /* Bytes of scratch each thread needs for T tokens, sequences up to S, whatever the ISA. NULL: none. */
  int64_t (*scratch)(const void *args, int64_t T, int64_t S);
  void (*run)(const void *args, const context *c);
  /* The weights that this thread goes through; steps before may bring their beginning into the cache. NULL: none. */
  stretch (*weights)(const void *args, const context *c);
  /* Multiply-adds of this thread, by the same division of work as run. NULL: none worth counting. */
  int64_t (*work)(const void *args, const context *c);
} operator;

/* The row of an operator; NULL for a number that is none. */
const operator *operator_for(int op);
/* All that can be checked of args without a batch. */
int operator_check(const operator *o, const void *args);
/* Puts the operator's name before the message of a failure. */
int operator_named(const operator *o, int status);
int field_is_tensor(const field *f);
/* The handle in a field of args. */
void *field_get(const void *args, const field *f);
void field_set(void *args, const field *f, void *handle);
/* A batch as perigee.h says: starts ascend from 0 to T, marked rows within it. Its longest sequence. */
int batch_check(const pgee_batch *batch, int64_t *S);

/* ---- For operators ------------------------------------------------------------------------------------------------ */

/* How many rows a tensor has in a batch of T tokens in B sequences, R marked; and in this context. */
int64_t rows_in(const pgee_tensor *t, int64_t T, int64_t B, int64_t R);
int64_t rows_of(const pgee_tensor *t, const context *c);
/* That a tensor's rows are PGEE_FIXED, PGEE_TOKENS, ... */
int expect_rows(const pgee_tensor *t, const char *what, int rows);
/* A tensor [rows][width], or [rows] if width is 0, with one row for each of like's. */
int expect_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width);
int expect_output_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width);
/* A vector of weights: F32 [n], not a plan's buffer. */
int expect_vector(const pgee_tensor *t, const char *what, int64_t n);
/* As the kernels read u8: rows readable up to K rounded up to 64. */
int expect_u8_stride(const pgee_tensor *t, const char *what);
/* For needs_batch of an operator that always does. */
int needs_always(const void *args);
/* If the rows of `like` are counted already, there must be one for each token of the batch. */
int expect_tokens(const pgee_tensor *like, const char *what, const pgee_batch *batch);

/* Shared by the operators that quantize: checks a pgee_quantizer for rows like x's and width K; `modes` has bit 1 << mode
 * set for each mode that the operator knows; and turns it into the kernels'. */
int quantizer_check(const pgee_quantizer *q, unsigned modes, const pgee_tensor *like, int64_t K);
quantizer quantizer_lower(const pgee_quantizer *q);

static inline float *floats(const pgee_tensor *t) { return t ? (float *)t->data : NULL; }
static inline int64_t stride_of(const pgee_tensor *t) { return t ? t->stride : 0; }

/* The rows of the table, one in each operator's file. */
extern const operator op_embed, op_linear, op_norm, op_quantize, op_attention, op_pool, op_unit, op_observe, op_gather;

#endif
