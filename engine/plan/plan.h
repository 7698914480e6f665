/* plan.h: the inside of a plan.
 *
 * A step holds a copy of its args, in which activations point to the plan's buffers: tensors without memory. For each buffer
 * the plan knows the first and the last step that uses it. A workspace may place two buffers at the same address if no step
 * lies in the ranges of both. */
#ifndef PERIGEE_PLAN_H
#define PERIGEE_PLAN_H
#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/ops/operator.h"

typedef struct plan_step {
  int op;
  const operator_entry *o;
  void *args; /* owned; weights in it are held */
} plan_step;

typedef struct plan_buffer {
  pgee_tensor *t;
  int64_t first, last; /* steps that touch it; last is the number of steps for outputs. first -1: none does */
  int output;
} plan_buffer;

struct pgee_plan {
  _Atomic int64_t refs;
  ARRAY(plan_step) steps;
  ARRAY(plan_buffer) buffers;
  int sealed;
};

/* The largest batch of a workspace: T tokens in B sequences of at most S tokens, of which R are marked. */
typedef struct plan_capacity {
  int64_t T, B, S, R;
} plan_capacity;

pgee_plan *plan_hold(const pgee_plan *p);
/* The index of a buffer; -1 for a tensor that is no buffer of the plan. */
int64_t plan_find(const pgee_plan *p, const pgee_tensor *t);
/* PGEE_ARGUMENT if the plan is not sealed. */
int plan_expect_sealed(const pgee_plan *p);
/* The maximum of scratch memory that a step needs for each thread, in bytes, a multiple of 64. */
int plan_scratch(const pgee_plan *p, const plan_capacity *room, int64_t *bytes);
/* Places all buffers. offsets: where each buffer begins, a multiple of 64; *bytes: the size of all together. */
int plan_layout(const pgee_plan *p, const plan_capacity *room, int64_t *offsets, int64_t *bytes);
/* Checks what depends on the batch, such as ids in range. S: the length of its longest sequence. */
int plan_check_batch(const pgee_plan *p, const pgee_batch *batch, int64_t S);

#endif
