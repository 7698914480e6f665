/* workspace.c: the memory that one caller runs a plan in, and the run.
 *
 *   | pgee_workspace | tensors, one a buffer | args, one a step | buffers | scratch, one a thread |
 *
 * All of it is one block, the data of a tensor that views of outputs hold: they outlive the workspace if they must.
 */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/cpu/thread_count.h"
#include "plan.h"
#include "engine/base/status.h"
#include "engine/ops/batch.h"

enum { MAX_PREFETCH_DISTANCE = 96 << 10 };

struct pgee_workspace {
  pgee_tensor *memory; /* that this lies in */
  pgee_plan *plan;
  plan_capacity room;
  int threads;             /* that there is scratch for */
  thread_count counts[32]; /* of batches of 1 token, 2 to 3, 4 to 7, ... */
  int64_t scratch_bytes;
  pgee_tensor *tensors; /* [buffers] */
  void **args;          /* [steps] */
  char *scratch;
};

/* ---- Layout ------------------------------------------------------------------------------------------------------- */

/* Offsets in the block. */
typedef struct layout {
  int64_t tensors, args, buffers, scratch, bytes, scratch_bytes;
  int64_t *offsets; /* of each buffer, from `buffers` */
} layout;

static int64_t args_bytes(const pgee_plan *p) {
  int64_t bytes = p->steps.count * (int64_t)sizeof(void *);
  for (int64_t i = 0; i < p->steps.count; i++)
    bytes += round_up((int64_t)p->steps.list[i].o->args_bytes, 16);
  return bytes;
}

static int lay_out(layout *l, const pgee_plan *p, const plan_capacity *room, int threads) {
  int64_t buffers, all_scratch;
  TRY(plan_layout(p, room, l->offsets, &buffers));
  TRY(plan_scratch(p, room, &l->scratch_bytes));
  l->tensors = round_up((int64_t)sizeof(pgee_workspace), 64);
  l->args = round_up(l->tensors + p->buffers.count * (int64_t)sizeof(pgee_tensor), 64);
  l->buffers = round_up(l->args + args_bytes(p), 64);
  l->scratch = l->buffers + buffers;
  if (__builtin_mul_overflow(l->scratch_bytes, threads, &all_scratch) ||
      __builtin_add_overflow(l->scratch, all_scratch, &l->bytes))
    return fail(PGEE_ARGUMENT, "the scratch of %d threads is larger than memory", threads);
  return PGEE_OK;
}

static int is_count(int64_t n) { return n >= 0 && n <= INT32_MAX; }

static int check_capacity(const pgee_plan *p, const plan_capacity *room) {
  TRY(plan_expect_sealed(p));
  if (!is_count(room->T) || !is_count(room->B) || !is_count(room->S) || !is_count(room->R))
    return fail(PGEE_ARGUMENT, "a workspace for %lld tokens in %lld sequences of up to %lld tokens, %lld marked",
                (long long)room->T, (long long)room->B, (long long)room->S, (long long)room->R);
  return PGEE_OK;
}

/* Calls use(l, ...) with the layout of a capacity, and frees what the layout holds. */
static int with_layout(int (*use)(const layout *l, void *to, const pgee_plan *p, int threads), void *to, const pgee_plan *p,
                       const plan_capacity *room) {
  int threads;
  TRY(check_capacity(p, room));
  TRY(pgee_threads(&threads));
  layout l = {.offsets = mem_array(p->buffers.count, sizeof *l.offsets)};
  if (!l.offsets)
    return PGEE_MEMORY;
  int status = lay_out(&l, p, room, threads);
  if (status == PGEE_OK)
    status = use(&l, to, p, threads);
  mem_free(l.offsets);
  return status;
}

/* ---- Handles ------------------------------------------------------------------------------------------------------ */

/* The block, and the tensor that stands for it. */
static int64_t all_bytes(int64_t block) { return block + (int64_t)sizeof(pgee_tensor); }

static int take_bytes(const layout *l, void *to, const pgee_plan *p, int threads) {
  (void)p, (void)threads;
  *(int64_t *)to = all_bytes(l->bytes);
  return PGEE_OK;
}

int pgee_plan_bytes(const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R, int64_t *bytes) {
  NEED(p, bytes);
  return with_layout(take_bytes, bytes, p, &(plan_capacity){T, B, S, R});
}

static void bind_tensors(pgee_workspace *w, const layout *l, char *block) {
  for (int64_t i = 0; i < w->plan->buffers.count; i++) {
    pgee_tensor *t = &w->tensors[i];
    *t = *w->plan->buffers.list[i].t;
    t->data = block + l->buffers + l->offsets[i];
    t->base = w->memory;
  }
}

/* Copies the steps' args with the workspace's tensors in place of the plan's buffers. */
static void bind_args(pgee_workspace *w, char *at) {
  for (int64_t i = 0; i < w->plan->steps.count; i++) {
    const plan_step *s = &w->plan->steps.list[i];
    w->args[i] = at;
    memcpy(at, s->args, s->o->args_bytes);
    for (const operator_field *f = s->o->fields; f->kind; f++) {
      int64_t buffer_number = plan_find(w->plan, operator_field_get(at, f));
      if (buffer_number >= 0)
        operator_field_set(at, f, &w->tensors[buffer_number]);
    }
    at += round_up((int64_t)s->o->args_bytes, 16);
  }
}

static int make(const layout *l, void *to, const pgee_plan *p, int threads) {
  pgee_tensor *memory;
  TRY(pgee_tensor_new(&memory, PGEE_U8, 1, &l->bytes));
  char *block = memory->data;
  pgee_workspace *w = memory->data;
  w->memory = memory;
  w->plan = plan_hold(p);
  w->threads = threads;
  w->scratch_bytes = l->scratch_bytes;
  w->tensors = (pgee_tensor *)(block + l->tensors);
  w->args = (void **)(block + l->args);
  w->scratch = block + l->scratch;
  bind_tensors(w, l, block);
  bind_args(w, block + l->args + p->steps.count * (int64_t)sizeof(void *));
  *(pgee_workspace **)to = w;
  return PGEE_OK;
}

int pgee_workspace_new(pgee_workspace **out, const pgee_plan *p, int64_t T, int64_t B, int64_t S, int64_t R) {
  NEED(out, p);
  pgee_workspace *w;
  const plan_capacity room = {T, B, S, R};
  TRY(with_layout(make, &w, p, &room));
  w->room = room;
  *out = w;
  return PGEE_OK;
}

void pgee_workspace_free(pgee_workspace *w) {
  if (!w)
    return;
  pgee_plan_free(w->plan);
  pgee_tensor_free(w->memory);
}

int64_t pgee_workspace_bytes(const pgee_workspace *w) { return w ? all_bytes(w->memory->shape[0]) : 0; }
int64_t pgee_workspace_steps(const pgee_workspace *w) { return w ? w->plan->steps.count : 0; }

int pgee_workspace_output(pgee_tensor **out, const pgee_workspace *w, const pgee_tensor *buffer_of_plan) {
  NEED(out, w, buffer_of_plan);
  int64_t i = plan_find(w->plan, buffer_of_plan);
  if (i < 0 || !w->plan->buffers.list[i].output)
    return fail(PGEE_ARGUMENT, "the tensor asked for is no output of the plan");
  pgee_tensor *view;
  TRY(pgee_tensor_rows(&view, &w->tensors[i], 0, w->tensors[i].shape[0]));
  view->rows = PGEE_FIXED;
  *out = view;
  return PGEE_OK;
}

/* ---- Running ------------------------------------------------------------------------------------------------------ */

typedef struct run {
  pgee_workspace *w;
  double *seconds; /* [steps] or NULL */
  int64_t *broken; /* the first step whose result is not finite; NULL: nobody looks. By one thread alone */
} run;

/* The weights that this thread reads in the first step after number `after` that has weights. */
static weight_span weights_after(const pgee_workspace *w, const context *c, int64_t after) {
  for (int64_t i = after + 1; i < w->plan->steps.count; i++) {
    const operator_entry *o = w->plan->steps.list[i].o;
    if (o->weights)
      return o->weights(w->args[i], c);
  }
  return (weight_span){0};
}

/* The size of the largest piece of any step, so that every step prefetches by the same distance and the next step finds its
 * beginning in the cache. At most what a small second-level cache can spare. */
static int64_t prefetch_distance(const pgee_workspace *w, const context *c) {
  int64_t distance = 0;
  for (int64_t i = 0; i < w->plan->steps.count; i++) {
    const operator_entry *o = w->plan->steps.list[i].o;
    int64_t piece = o->weights ? o->weights(w->args[i], c).piece : 0;
    distance = piece > distance ? piece : distance;
  }
  return distance < MAX_PREFETCH_DISTANCE ? distance : MAX_PREFETCH_DISTANCE;
}

/* Prefetches the beginning of the first step's weights, which may lie in memory or in a slow cache. Each step prefetches the
 * rest. */
static void prefetch_first(const pgee_workspace *w, context *c) {
  c->prefetch_distance = prefetch_distance(w, c);
  weight_span s = weights_after(w, c, -1);
  for (int64_t i = 0; i < s.bytes && i < c->prefetch_distance; i += 64)
    __builtin_prefetch(s.from + i, 0, 2);
}

/* Whether a step wrote a NaN or an infinity. */
static int wrote_nonfinite(const operator_entry *o, const void *args) {
  for (const operator_field *f = o->fields; f->kind; f++)
    if (f->kind == FIELD_WRITE && operator_field_get(args, f) && pgee_tensor_nonfinite(operator_field_get(args, f)) >= 0)
      return 1;
  return 0;
}

/* Between steps thread 0 looks whether to stop; the barrier tells the others. */
static void run_steps(void *work, const context *common) {
  const run *r = work;
  const pgee_plan *p = r->w->plan;
  context c = *common;
  double began = r->seconds ? pgee_seconds() : 0;
  prefetch_first(r->w, &c);
  for (c.step = 0; c.step < p->steps.count; c.step++) {
    const operator_entry *o = p->steps.list[c.step].o;
    if (o->weights)
      c.next_weights = weights_after(r->w, &c, c.step);
    o->run(r->w->args[c.step], &c);
    if (r->broken && wrote_nonfinite(o, r->w->args[c.step])) {
      *r->broken = c.step;
      return;
    }
    int last = c.step + 1 == p->steps.count;
    if (c.thread == 0 && !last && pgee_interrupted())
      team_fail(&c, PGEE_INTERRUPTED, "interrupted after step %lld of %lld", (long long)c.step + 1, (long long)p->steps.count);
    if (!last || r->seconds)
      team_barrier(&c);
    if (team_failed(&c))
      return;
    if (c.thread == 0 && r->seconds) {
      double now = pgee_seconds();
      r->seconds[c.step] = now - began;
      began = now;
    }
  }
}

static int check_batch(const pgee_workspace *w, const pgee_batch *batch) {
  int64_t S;
  const plan_capacity *room = &w->room;
  TRY(batch_check(batch, &S));
  if (batch->T > room->T || batch->B > room->B || S > room->S)
    return fail(PGEE_ARGUMENT,
                "a batch of %lld tokens in %lld sequences, the longest of %lld, in a workspace for %lld in %lld of up to %lld",
                (long long)batch->T, (long long)batch->B, (long long)S, (long long)room->T, (long long)room->B,
                (long long)room->S);
  if (batch->R > room->R)
    return fail(PGEE_ARGUMENT, "a batch with %lld marked tokens in a workspace for %lld", (long long)batch->R,
                (long long)room->R);
  return plan_check_batch(w->plan, batch, S);
}

static void set_rows(pgee_workspace *w, const pgee_batch *batch) {
  for (int64_t i = 0; i < w->plan->buffers.count; i++)
    w->tensors[i].shape[0] = operator_rows_in(&w->tensors[i], batch->T, batch->B, batch->R);
}

static int run_adaptive(pgee_workspace *w, const pgee_batch *batch, double *seconds) {
  thread_count *p = &w->counts[31 - __builtin_clz((unsigned)batch->T)];
  int max;
  TRY(pgee_threads(&max));
  max = max < w->threads ? max : w->threads;
  int threads = thread_count_next(p, max, !seconds);
  double began = pgee_seconds();
  TRY(team_run(run_steps, &(run){w, seconds, NULL}, threads, batch, w->scratch, w->scratch_bytes));
  if (!seconds)
    thread_count_measured(p, max, pgee_seconds() - began, w->plan->steps.count, batch->T);
  return PGEE_OK;
}

int pgee_workspace_profile(pgee_workspace *w, const pgee_batch *batch, double *seconds) {
  NEED(w, batch);
  TRY(check_batch(w, batch));
  if (pgee_interrupted())
    return fail(PGEE_INTERRUPTED, "interrupted before the first step");
  set_rows(w, batch);
  if (batch->T > 0)
    return run_adaptive(w, batch, seconds);
  for (int64_t i = 0; seconds && i < w->plan->steps.count; i++)
    seconds[i] = 0;
  return PGEE_OK;
}

int pgee_workspace_nonfinite(pgee_workspace *w, const pgee_batch *batch, int64_t *first) {
  NEED(w, batch, first);
  TRY(check_batch(w, batch));
  set_rows(w, batch);
  int64_t broken = -1;
  if (batch->T > 0)
    TRY(team_run(run_steps, &(run){w, NULL, &broken}, 1, batch, w->scratch, w->scratch_bytes));
  *first = broken;
  return PGEE_OK;
}

int pgee_workspace_run(pgee_workspace *w, const pgee_batch *batch) { return pgee_workspace_profile(w, batch, NULL); }
