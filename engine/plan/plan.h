/* plan.h: what a plan is inside the engine.
 *
 * Steps hold copies of their args, in which activations point to the plan's buffers: tensors without memory. For each
 * buffer the plan knows the steps between which its values matter; a workspace places buffers whose steps do not meet at
 * one address.
 */
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

/* What a workspace has room for: T tokens in B sequences of at most S, R of them marked. */
typedef struct plan_capacity {
  int64_t T, B, S, R;
} plan_capacity;

pgee_plan *plan_hold(const pgee_plan *p);
/* The number of a buffer; -1 for a tensor that is none of the plan's. */
int64_t plan_find(const pgee_plan *p, const pgee_tensor *t);
/* Nothing to report unless the plan is sealed. */
int plan_expect_sealed(const pgee_plan *p);
/* The most that a step needs of scratch for each thread, a multiple of 64. */
int plan_scratch(const pgee_plan *p, const plan_capacity *room, int64_t *bytes);
/* Places all buffers: offsets[buffer_count] from the first byte, multiples of 64, and the bytes of all. */
int plan_layout(const pgee_plan *p, const plan_capacity *room, int64_t *offsets, int64_t *bytes);
/* What only a run can check: ids in range and so on. S is the batch's longest sequence. */
int plan_check_batch(const pgee_plan *p, const pgee_batch *batch, int64_t S);

#endif
