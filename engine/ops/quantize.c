/* quantize.c: rows of floats to u8.
 *
 * Threads share the rows. If the quantizer is static or per token, the rows are independent. If it is per sequence, all rows of a
 * sequence have one range. Then each thread finds the ranges of its rows, waits for the other threads, and takes for each of its rows
 * the union of the ranges of the row's sequence. A sequence's bits do not depend on the rest of the batch.
 */
#include "operator.h"
#include "engine/base/status.h"
#include "expect.h"
#include "quantizer.h"

static int check(const void *args) {
  const pgee_quantize_args *a = args;
  TRY(tensor_expect(a->x, "x", PGEE_F32, 2, -1, -1));
  if (a->quantize.mode == PGEE_DYNAMIC_SEQUENCE && a->x->rows > PGEE_TOKENS)
    return fail(PGEE_ARGUMENT, "x has rows of sequences or marked tokens, expected a row for each token; quantize it per token");
  unsigned modes = 1u << PGEE_STATIC | 1u << PGEE_DYNAMIC_TOKEN | 1u << PGEE_DYNAMIC_SEQUENCE;
  return quantizer_check(&a->quantize, modes, a->x, a->x->shape[1]);
}

static int needs_batch(const void *args) { return ((const pgee_quantize_args *)args)->quantize.mode == PGEE_DYNAMIC_SEQUENCE; }

static int check_batch(const void *args, const pgee_batch *batch, int64_t S) {
  (void)S;
  return expect_tokens(((const pgee_quantize_args *)args)->x, "x", batch);
}

/* The first half, [T][2], is used in thread 0's scratch only: each thread writes the ranges of its rows there. The second half, [T][2],
 * has the united ranges of the thread's own rows. */
static int64_t scratch(const void *args, int64_t T, int64_t S) {
  (void)S;
  return needs_batch(args) ? 4 * T * (int64_t)sizeof(float) : 0;
}

/* own[t] = the union of all[] over t's sequence, for rows first to last. */
static void unite(float *own, const float *all, const pgee_batch *batch, int64_t first, int64_t last) {
  for (int64_t b = 0; b < batch->B; b++) {
    int64_t begin = batch->starts[b], end = batch->starts[b + 1];
    if (end <= first || begin >= last)
      continue;
    float low = 0, high = 0;
    for (int64_t t = begin; t < end; t++) {
      low = all[2 * t] < low ? all[2 * t] : low;
      high = all[2 * t + 1] > high ? all[2 * t + 1] : high;
    }
    for (int64_t t = begin > first ? begin : first; t < end && t < last; t++) {
      own[2 * t] = low;
      own[2 * t + 1] = high;
    }
  }
}

static void run(const void *args, const context *c) {
  const pgee_quantize_args *a = args;
  int64_t first, last, width = a->x->shape[1];
  quantizer q = quantizer_lower(&a->quantize);
  team_share(c, operator_rows(a->x, c), &first, &last);
  if (a->quantize.mode == PGEE_DYNAMIC_SEQUENCE) {
    float *all = (float *)c->shared, *own = (float *)c->scratch + 2 * c->T;
    if (first < last)
      c->k->range(all, tensor_floats(a->x), a->x->stride, q.mul, width, first, last);
    team_barrier(c);
    unite(own, all, c->batch, first, last);
    q.ranges = own;
  }
  if (first < last)
    c->k->quantize(&q, tensor_floats(a->x), a->x->stride, width, first, last);
}

const operator_entry op_quantize = {
    .name = "quantize",
    .args_bytes = sizeof(pgee_quantize_args),
    .fields = {FIELD(FIELD_READ, pgee_quantize_args, x), QUANTIZER_FIELDS(pgee_quantize_args)},
    .check = check,
    .needs_batch = needs_batch,
    .check_batch = check_batch,
    .scratch = scratch,
    .run = run,
};
