/* operator.h: the registry of operators. One row of it is all that a plan and pgee_run know about an operator.
 *
 * An operator is one function over its args for a team of threads: it takes its share of the work from the context. Its args are a plain
 * struct in which every activation is a pgee_tensor. On a plan these are buffers without memory; a workspace copies the args
 * and puts its own tensors in their place.
 */
#ifndef PERIGEE_OPERATOR_H
#define PERIGEE_OPERATOR_H
#include <stddef.h>

#include "packed.h"
#include "team.h"
#include "tensor.h"

enum { MAX_FIELDS = 12 };
enum { FIELD_READ = 1, FIELD_WRITE = 2, FIELD_PACKED = 3 };

typedef struct field {
  int kind;      /* 0 ends the list */
  size_t offset; /* of the pointer in the args */
} field;

typedef struct operator {
  const char *name;
  size_t args_bytes;
  field fields[MAX_FIELDS]; /* every tensor and packed weight in the args, NULL ones included */
  /* Shapes, types and options, whether tensors have memory or not. */
  int (*check)(const void *args);
  /* 1 if it reads ids, types or sequence starts. */
  int needs_batch;
  /* Bytes of scratch each thread needs for T tokens, sequences up to S. NULL: none. */
  int64_t (*scratch)(const void *args, int64_t T, int64_t S);
  void (*run)(const void *args, const context *c);
  /* Multiply-adds of this thread, by the same division of work as run. NULL: none worth counting. */
  int64_t (*work)(const void *args, const context *c);
} operator;

extern const operator operators[PGEE_OPS];

/* How many rows a tensor has in this context. */
int64_t rows_of(const pgee_tensor *t, const context *c);

/* Shared by the operators that quantize: checks a pgee_quantizer for rows like x's and width K, and turns it into the kernels'. */
int quantizer_check(const pgee_quantizer *q, const char *what, int rows, int64_t count, int64_t K);
quantizer quantizer_lower(const pgee_quantizer *q);

/* The rows of the table, one in each operator's file. */
extern const operator op_embed, op_linear, op_norm, op_quantize, op_attention, op_pool, op_unit, op_observe;

#endif
