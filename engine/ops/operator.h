/* operator.h: the registry of operators. A plan and pgee_run know an operator only by its entry in the registry.
 *
 * An operator is one function over its args. A team of threads calls it, and each thread takes its share of the work from the
 * context. The args are a plain struct of perigee.h in which every activation is a pgee_tensor. In a plan these tensors are
 * buffers without memory; a workspace copies the args and puts its own tensors in their place.
 */
#ifndef PERIGEE_OPERATOR_H
#define PERIGEE_OPERATOR_H
#include <stddef.h>

#include "engine/cpu/team.h"
#include "engine/data/packed.h"
#include "engine/data/tensor.h"

enum { MAX_FIELDS = 14 };
/* FIELD_OVER: is read, and the operator may write its result into the very same tensor. */
enum { FIELD_READ = 1, FIELD_OVER = 2, FIELD_WRITE = 3, FIELD_PACKED = 4, FIELD_OBSERVER = 5 };

/* A field of an args struct that holds a handle: a tensor, a packed weight or an observer. */
typedef struct operator_field {
  int kind;      /* FIELD_READ, ...; 0 ends the list */
  size_t offset; /* of the pointer in the args */
  const char *name;
} operator_field;

/* clang-format off */ /* its versions differ */
#define FIELD(kind, type, member) { kind, offsetof(type, member), #member }
/* clang-format on */
/* The fields of a pgee_quantizer `quantize` in args of this type. */
#define QUANTIZER_FIELDS(type)                                                                                    \
  FIELD(FIELD_READ, type, quantize.m), FIELD(FIELD_READ, type, quantize.b), FIELD(FIELD_WRITE, type, quantize.q), \
      FIELD(FIELD_WRITE, type, quantize.row_scale), FIELD(FIELD_WRITE, type, quantize.row_zero)

/* A pointer to a function may be NULL where the comment says so. */
typedef struct operator_entry {
  const char *name;
  size_t args_bytes;
  operator_field fields[MAX_FIELDS]; /* every handle in the args, also those that may be NULL */
  /* Checks shapes, types and options. The tensors need no memory yet. */
  int (*check)(const void *args);
  /* 1 if the operator reads the batch: ids, token types or sequence starts. NULL: it never does. */
  int (*needs_batch)(const void *args);
  /* Checks what depends on the batch, such as ids in range. S: length of the longest sequence. NULL: there is nothing to check. */
  int (*check_batch)(const void *args, const pgee_batch *batch, int64_t S);
  /* Bytes of scratch memory for each thread, for T tokens in sequences of at most S, enough for every ISA. NULL: none. */
  int64_t (*scratch)(const void *args, int64_t T, int64_t S);
  void (*run)(const void *args, const context *c);
  /* The weights that this thread reads. Steps before this one may prefetch their beginning. NULL: none. */
  weight_span (*weights)(const void *args, const context *c);
  /* Multiply-adds of this thread, by the same division of work as `run`. NULL: too few to count. */
  int64_t (*work)(const void *args, const context *c);
} operator_entry;

/* The entry of the operator with number `op` (PGEE_EMBED, ...); NULL if there is no such operator. */
const operator_entry *operator_for(int op);
/* Checks the args as far as that is possible without a batch. */
int operator_check(const operator_entry *o, const void *args);
/* Puts the operator's name before the message of a failure. Returns `status`. */
int operator_named(const operator_entry *o, int status);
int operator_field_is_tensor(const operator_field *f);
/* The handle in a field of args. */
void *operator_field_get(const void *args, const operator_field *f);
void operator_field_set(void *args, const operator_field *f, void *handle);

/* ---- For operators ------------------------------------------------------------------------------------------------ */

/* How many rows a tensor has in a batch of T tokens in B sequences, of which R tokens are marked. */
int64_t operator_rows_in(const pgee_tensor *t, int64_t T, int64_t B, int64_t R);
/* The same for the batch of a context. */
int64_t operator_rows(const pgee_tensor *t, const context *c);
/* `needs_batch` of an operator that always reads the batch. */
int operator_needs_always(const void *args);

/* The entries of the registry. Each one is defined in its operator's file. */
extern const operator_entry op_embed, op_linear, op_norm, op_quantize, op_attention, op_pool, op_unit, op_observe, op_gather;

#endif
