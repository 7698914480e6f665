/* observe.c: adds rows of activations to an observer. Threads share the channels. The result does not depend on that, because each
 * minimum and maximum is of one channel.
 *
 * If a value is not finite, the observer stays as it was: each thread updates copies of its channels' minima and maxima, waits for the
 * other threads, and replaces the originals only if all values were finite. In a plan such a failure ends the run after this step.
 */
#include <string.h>

#include "engine/base/numbers.h"
#include "engine/data/observer.h"
#include "operator.h"
#include "engine/base/status.h"

static int check(const void *args) {
  const pgee_observe_args *a = args;
  if (!a->observer)
    return fail(PGEE_ARGUMENT, "observer is missing, expected an observer");
  return tensor_expect(a->x, "x", PGEE_F32, 2, -1, a->observer->K);
}

static int any_nonfinite(const float *x, int64_t ldx, int64_t rows, int64_t width) {
  uint32_t bad = 0;
  for (int64_t t = 0; t < rows; t++)
    for (int64_t k = 0; k < width; k++)
      bad |= nonfinite_bit(x[t * ldx + k]);
  return bad >> 31;
}

static void look(const pgee_observe_args *a, const context *c, int64_t rows, int64_t first, int64_t last) {
  pgee_observer *o = a->observer;
  size_t bytes = (size_t)(last - first) * sizeof(float);
  const float *x = tensor_floats(a->x) + first;
  memcpy(o->low + first, o->min + first, bytes);
  memcpy(o->high + first, o->max + first, bytes);
  if (any_nonfinite(x, a->x->stride, rows, last - first))
    o->nonfinite = 1;
  else
    c->k->minmax(o->low + first, o->high + first, x, a->x->stride, rows, last - first);
}

/* Fails and names the first value that is not finite, so that the message does not depend on the number of threads. */
static void report(const pgee_observe_args *a, const context *c, int64_t rows) {
  const pgee_observer *o = a->observer;
  const float *x = tensor_floats(a->x);
  for (int64_t t = 0; t < rows; t++)
    for (int64_t k = 0; k < o->K; k++)
      if (is_nonfinite(x[t * a->x->stride + k])) {
        team_fail(c, PGEE_ARGUMENT, "%s%srow %lld of %lld, channel %lld of %lld is %s", o->name ? o->name : "",
                  o->name ? ": " : "", (long long)t + 1, (long long)rows, (long long)k + 1, (long long)o->K,
                  nonfinite_name(x[t * a->x->stride + k]));
        return;
      }
}

static void run(const void *args, const context *c) {
  const pgee_observe_args *a = args;
  pgee_observer *o = a->observer;
  int64_t rows = operator_rows(a->x, c), first, last;
  team_share(c, round_up(o->K, 16) / 16, &first, &last);
  first = least(first * 16, o->K);
  last = least(last * 16, o->K);
  if (first < last && rows > 0)
    look(a, c, rows, first, last);
  team_barrier(c);
  if (o->nonfinite) {
    team_barrier(c); /* until here every thread has read o->nonfinite */
    if (c->thread == 0) {
      o->nonfinite = 0;
      report(a, c, rows);
    }
    return;
  }
  if (first < last && rows > 0) {
    memcpy(o->min + first, o->low + first, (size_t)(last - first) * sizeof(float));
    memcpy(o->max + first, o->high + first, (size_t)(last - first) * sizeof(float));
  }
  for (int64_t t = 0; c->thread == 0 && t < rows; t++)
    observer_sample(o, tensor_floats(a->x) + t * a->x->stride);
}

const operator_entry op_observe = {
    .name = "observe",
    .args_bytes = sizeof(pgee_observe_args),
    .fields = {FIELD(FIELD_READ, pgee_observe_args, x), FIELD(FIELD_OBSERVER, pgee_observe_args, observer)},
    .check = check,
    .run = run,
};
