/* plan.c: builds a plan and places its buffers. workspace.c runs it. */
#include "plan.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/data/observer.h"
#include "engine/base/status.h"
#include "engine/ops/batch.h"

/* ---- Handles ------------------------------------------------------------------------------------------------------ */

int pgee_plan_new(pgee_plan **out) {
  NEED(out);
  pgee_plan *p = mem_new(sizeof *p);
  if (!p)
    return PGEE_MEMORY;
  p->refs = 1;
  *out = p;
  return PGEE_OK;
}

pgee_plan *plan_hold(const pgee_plan *p) {
  pgee_plan *held = (pgee_plan *)p;
  atomic_fetch_add(&held->refs, 1);
  return held;
}

/* Adds (hold = 1) or releases (hold = 0) a reference of each handle in the args that is not a buffer of a plan. */
static void hold_weights(const operator_entry *o, const void *args, int hold) {
  for (const operator_field *f = o->fields; f->kind; f++) {
    void *handle = operator_field_get(args, f);
    if (!handle)
      continue;
    if (f->kind == FIELD_PACKED)
      hold ? (void)packed_hold(handle) : pgee_packed_free(handle);
    else if (f->kind == FIELD_OBSERVER)
      hold ? (void)observer_hold(handle) : pgee_observer_free(handle);
    else if (((pgee_tensor *)handle)->rows == PGEE_FIXED)
      hold ? (void)tensor_hold(handle) : pgee_tensor_free(handle);
  }
}

void pgee_plan_free(pgee_plan *p) {
  if (!p || atomic_fetch_sub(&p->refs, 1) > 1)
    return;
  for (int64_t i = 0; i < p->steps.count; i++) {
    hold_weights(p->steps.list[i].o, p->steps.list[i].args, 0);
    mem_free(p->steps.list[i].args);
  }
  for (int64_t i = 0; i < p->buffers.count; i++)
    pgee_tensor_free(p->buffers.list[i].t);
  mem_free(p->steps.list);
  mem_free(p->buffers.list);
  mem_free(p);
}

/* ---- Building ----------------------------------------------------------------------------------------------------- */

static int expect_open(const pgee_plan *p) {
  return p->sealed ? fail(PGEE_ARGUMENT, "the plan is sealed: nothing can be added") : PGEE_OK;
}

int plan_expect_sealed(const pgee_plan *p) { return p->sealed ? PGEE_OK : fail(PGEE_ARGUMENT, "the plan is not sealed yet"); }

int pgee_plan_buffer(pgee_plan *p, pgee_tensor **out, int dtype, int rows, int64_t width) {
  NEED(p, out);
  TRY(expect_open(p));
  if (rows < PGEE_TOKENS || rows > PGEE_MARKED)
    return fail(PGEE_ARGUMENT, "a buffer's rows are %d, expected PGEE_TOKENS, PGEE_SEQUENCES or PGEE_MARKED", rows);
  if (width < 0 || width > INT32_MAX)
    return fail(PGEE_ARGUMENT, "a buffer %lld wide, expected 0 to %d", (long long)width, INT32_MAX);
  if (dtype != PGEE_F32 && dtype != PGEE_U8 && dtype != PGEE_S32)
    return fail(PGEE_ARGUMENT, "a buffer of type %d, expected F32, U8 or I32", dtype);
  TRY(ARRAY_RESERVE(&p->buffers, 1));
  const int64_t shape[2] = {0, width};
  pgee_tensor *t;
  TRY(tensor_over(&t, dtype, width > 0 ? 2 : 1, shape, NULL, NULL));
  t->rows = rows;
  if (dtype == PGEE_U8 && width > 0)
    t->stride = round_up(width, 64);
  p->buffers.list[p->buffers.count++] = (plan_buffer){.t = t, .first = -1, .last = -1};
  *out = t;
  return PGEE_OK;
}

int64_t plan_find(const pgee_plan *p, const pgee_tensor *t) {
  for (int64_t i = p->buffers.count - 1; i >= 0; i--)
    if (p->buffers.list[i].t == t)
      return i;
  return -1;
}

/* Checks that buffers belong to this plan and are written before they are read, and that only buffers are written, because
 * several threads may run a plan at the same time. */
static int check_buffers(const pgee_plan *p, const operator_entry *o, const void *args) {
  for (const operator_field *f = o->fields; f->kind; f++) {
    const pgee_tensor *t = operator_field_is_tensor(f) ? operator_field_get(args, f) : NULL;
    if (!t)
      continue;
    int64_t i = plan_find(p, t);
    if (i < 0 && t->rows != PGEE_FIXED)
      return fail(PGEE_ARGUMENT, "%s is a buffer of another plan", f->name);
    if (i < 0 && f->kind == FIELD_WRITE)
      return fail(PGEE_ARGUMENT, "%s is a tensor of its own, expected a buffer of the plan", f->name);
    if (i >= 0 && f->kind != FIELD_WRITE && p->buffers.list[i].first < 0)
      return fail(PGEE_ARGUMENT, "%s is read before any step has written it", f->name);
  }
  return PGEE_OK;
}

static void touch_buffers(pgee_plan *p, const operator_entry *o, const void *args) {
  for (const operator_field *f = o->fields; f->kind; f++) {
    int64_t i = operator_field_is_tensor(f) ? plan_find(p, operator_field_get(args, f)) : -1;
    if (i < 0)
      continue;
    if (p->buffers.list[i].first < 0)
      p->buffers.list[i].first = p->steps.count;
    p->buffers.list[i].last = p->steps.count;
  }
}

static int push(pgee_plan *p, int op, const operator_entry *o, const void *args) {
  TRY(check_buffers(p, o, args));
  TRY(operator_check(o, args));
  TRY(ARRAY_RESERVE(&p->steps, 1));
  void *copy = mem_new((int64_t)o->args_bytes);
  if (!copy)
    return PGEE_MEMORY;
  memcpy(copy, args, o->args_bytes);
  hold_weights(o, copy, 1);
  touch_buffers(p, o, copy);
  p->steps.list[p->steps.count++] = (plan_step){op, o, copy};
  return PGEE_OK;
}

int pgee_plan_push(pgee_plan *p, int op, const void *args) {
  NEED(p);
  const operator_entry *o = operator_for(op);
  TRY(expect_open(p));
  if (!o)
    return fail(PGEE_ARGUMENT, "there is no operator %d, expected 0 to %d", op, PGEE_OPS - 1);
  return operator_named(o, args ? push(p, op, o, args) : fail(PGEE_ARGUMENT, "args is NULL"));
}

int pgee_plan_seal(pgee_plan *p, const pgee_tensor *const *outputs, int count) {
  NEED(p);
  TRY(expect_open(p));
  if (count < 0)
    return fail(PGEE_ARGUMENT, "%d outputs, expected 0 or more", count);
  if (count > 0)
    NEED(outputs);
  for (int i = 0; i < count; i++) {
    int64_t at = plan_find(p, outputs[i]);
    if (at < 0 || p->buffers.list[at].first < 0)
      return fail(PGEE_ARGUMENT, "output %d (counted from 1) is %s", i + 1,
                  at < 0 ? "no buffer of the plan" : "written by no step");
  }
  for (int i = 0; i < count; i++) {
    plan_buffer *b = &p->buffers.list[plan_find(p, outputs[i])];
    b->output = 1;
    b->last = p->steps.count;
  }
  p->sealed = 1;
  return PGEE_OK;
}

int64_t pgee_plan_steps(const pgee_plan *p) { return p ? p->steps.count : 0; }
int pgee_plan_op(const pgee_plan *p, int64_t i) { return p && i >= 0 && i < p->steps.count ? p->steps.list[i].op : -1; }

/* ---- Layout ------------------------------------------------------------------------------------------------------- */

static int too_large(void) { return fail(PGEE_ARGUMENT, "a workspace for so many tokens or sequences is larger than memory"); }

static int buffer_bytes(const pgee_tensor *t, const plan_capacity *room, int64_t *bytes) {
  int64_t n;
  if (__builtin_mul_overflow(operator_rows_in(t, room->T, room->B, room->R), t->stride * pgee_dtype_bytes(t->dtype), &n) ||
      n > INT64_MAX / 4)
    return too_large();
  *bytes = round_up(n, 64);
  return PGEE_OK;
}

static int alive_together(const plan_buffer *a, const plan_buffer *b) {
  return a->first >= 0 && b->first >= 0 && a->first <= b->last && b->first <= a->last;
}

/* The lowest offset where buffer i overlaps none of the `placed` buffers that are alive in the same steps. Each round moves the
 * offset past one of them, or ends. */
static int64_t lowest_place(const pgee_plan *p, int64_t i, const int64_t *order, int64_t placed, const int64_t *offsets,
                            const int64_t *sizes) {
  int64_t at = 0;
  for (int64_t moved = 1; moved;) {
    moved = 0;
    for (int64_t j = 0; j < placed; j++) {
      int64_t other = order[j], end = offsets[other] + sizes[other];
      if (alive_together(&p->buffers.list[i], &p->buffers.list[other]) && at < end && offsets[other] < at + sizes[i]) {
        at = end;
        moved = 1;
      }
    }
  }
  return at;
}

/* Sorts buffers by size, the largest first; equal ones stay in the order of creation. */
static void sort_by_size(int64_t *order, const int64_t *sizes, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    int64_t j = i;
    for (; j > 0 && sizes[order[j - 1]] < sizes[i]; j--)
      order[j] = order[j - 1];
    order[j] = i;
  }
}

static int place(const pgee_plan *p, const plan_capacity *room, int64_t *offsets, int64_t *sizes, int64_t *order,
                 int64_t *bytes) {
  for (int64_t i = 0; i < p->buffers.count; i++)
    TRY(buffer_bytes(p->buffers.list[i].t, room, &sizes[i]));
  sort_by_size(order, sizes, p->buffers.count);
  *bytes = 0;
  for (int64_t j = 0; j < p->buffers.count; j++) {
    int64_t i = order[j];
    offsets[i] = p->buffers.list[i].first < 0 ? 0 : lowest_place(p, i, order, j, offsets, sizes);
    if (p->buffers.list[i].first >= 0 && offsets[i] + sizes[i] > *bytes)
      *bytes = offsets[i] + sizes[i];
    if (*bytes > INT64_MAX / 4)
      return too_large();
  }
  return PGEE_OK;
}

int plan_layout(const pgee_plan *p, const plan_capacity *room, int64_t *offsets, int64_t *bytes) {
  int64_t *sizes = mem_array(2 * p->buffers.count, sizeof *sizes);
  if (!sizes)
    return PGEE_MEMORY;
  int status = place(p, room, offsets, sizes, sizes + p->buffers.count, bytes);
  mem_free(sizes);
  return status;
}

int plan_scratch(const pgee_plan *p, const plan_capacity *room, int64_t *bytes) {
  *bytes = 0;
  for (int64_t i = 0; i < p->steps.count; i++) {
    const plan_step *s = &p->steps.list[i];
    int64_t wanted = s->o->scratch ? s->o->scratch(s->args, room->T, room->S) : 0;
    if (wanted > INT64_MAX / 1024)
      return too_large();
    if (wanted > *bytes)
      *bytes = round_up(wanted, 64);
  }
  return PGEE_OK;
}

/* ---- Batches ------------------------------------------------------------------------------------------------------ */

int plan_check_batch(const pgee_plan *p, const pgee_batch *batch, int64_t S) {
  for (int64_t i = 0; i < p->steps.count; i++) {
    const operator_entry *o = p->steps.list[i].o;
    if (o->check_batch)
      TRY(operator_named(o, o->check_batch(p->steps.list[i].args, batch, S)));
  }
  return PGEE_OK;
}

int pgee_plan_work(const pgee_plan *p, const pgee_batch *batch, int threads, int64_t *multiply_adds) {
  NEED(p, batch, multiply_adds);
  int64_t S;
  int isa;
  TRY(plan_expect_sealed(p));
  TRY(batch_check(batch, &S));
  TRY(pgee_isa(&isa));
  if (threads < 1)
    return fail(PGEE_ARGUMENT, "%d threads, expected 1 or more", threads);
  for (int t = 0; t < threads; t++) {
    context c = team_context(batch, t, threads);
    c.k = kernels_for(isa);
    multiply_adds[t] = 0;
    for (int64_t i = 0; i < p->steps.count; i++)
      if (p->steps.list[i].o->work && batch->T > 0)
        multiply_adds[t] += p->steps.list[i].o->work(p->steps.list[i].args, &c);
  }
  return PGEE_OK;
}
