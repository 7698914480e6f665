/* operator.c: the registry of operators, and running one operator without a plan. */
#include "operator.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "batch.h"

static const operator_entry *const operators[PGEE_OPS] = {
    [PGEE_EMBED] = &op_embed,       [PGEE_LINEAR] = &op_linear,       [PGEE_NORM] = &op_norm,
    [PGEE_QUANTIZE] = &op_quantize, [PGEE_ATTENTION] = &op_attention, [PGEE_POOL] = &op_pool,
    [PGEE_UNIT] = &op_unit,         [PGEE_OBSERVE] = &op_observe,     [PGEE_GATHER] = &op_gather,
};

const operator_entry *operator_for(int op) { return op >= 0 && op < PGEE_OPS ? operators[op] : NULL; }

void *operator_field_get(const void *args, const operator_field *f) {
  void *handle;
  memcpy(&handle, (const char *)args + f->offset, sizeof handle);
  return handle;
}

void operator_field_set(void *args, const operator_field *f, void *handle) {
  memcpy((char *)args + f->offset, &handle, sizeof handle);
}

int64_t operator_rows_in(const pgee_tensor *t, int64_t T, int64_t B, int64_t R) {
  const int64_t count[] = {[PGEE_FIXED] = t->shape[0], [PGEE_TOKENS] = T, [PGEE_SEQUENCES] = B, [PGEE_MARKED] = R};
  return count[t->rows];
}

int64_t operator_rows(const pgee_tensor *t, const context *c) { return operator_rows_in(t, c->T, c->B, c->R); }

int operator_needs_always(const void *args) {
  (void)args;
  return 1;
}

/* ---- Aliases ------------------------------------------------------------------------------------------------------ */

int operator_field_is_tensor(const operator_field *f) { return f->kind >= FIELD_READ && f->kind <= FIELD_WRITE; }

static int same(const pgee_tensor *a, const pgee_tensor *b) {
  return a == b || (a->data && a->data == b->data && a->stride == b->stride && a->dtype == b->dtype &&
                    a->shape[0] == b->shape[0] && tensor_width(a) == tensor_width(b));
}

/* From the first byte of the first row to the last byte of the last. */
static int64_t span(const pgee_tensor *t) { return t->shape[0] == 0 ? 0 : t->shape[0] * t->stride * pgee_dtype_bytes(t->dtype); }

static int overlap(const pgee_tensor *a, const pgee_tensor *b) {
  if (a == b)
    return 1;
  const char *p = a->data, *q = b->data;
  return p && q && p < q + span(b) && q < p + span(a);
}

static int check_aliases(const operator_entry *o, const void *args) {
  for (const operator_field *w = o->fields; w->kind; w++) {
    const pgee_tensor *written = w->kind == FIELD_WRITE ? operator_field_get(args, w) : NULL;
    for (const operator_field *f = o->fields; written && f->kind; f++) {
      const pgee_tensor *other = f != w && operator_field_is_tensor(f) ? operator_field_get(args, f) : NULL;
      if (other && overlap(written, other) && !(f->kind == FIELD_OVER && same(written, other)))
        return fail(PGEE_ARGUMENT, "%s shares memory with %s", w->name, f->name);
    }
  }
  return PGEE_OK;
}

int operator_check(const operator_entry *o, const void *args) {
  TRY(o->check(args));
  return check_aliases(o, args);
}

/* ---- Running one operator ----------------------------------------------------------------------------------------- */

static int have_memory(const operator_entry *o, const void *args) {
  for (const operator_field *f = o->fields; f->kind; f++) {
    const pgee_tensor *t = operator_field_is_tensor(f) ? operator_field_get(args, f) : NULL;
    if (t && !t->data)
      return fail(PGEE_ARGUMENT, "%s is a plan's buffer, which has memory only in a workspace", f->name);
  }
  return PGEE_OK;
}

static int check_run_batch(const operator_entry *o, const void *args, const pgee_batch **batch, int64_t *S) {
  if (!o->needs_batch || !o->needs_batch(args)) {
    *batch = NULL;
    return PGEE_OK;
  }
  if (!*batch)
    return fail(PGEE_ARGUMENT, "no batch was given, expected one: this operator reads it");
  TRY(batch_check(*batch, S));
  return o->check_batch ? o->check_batch(args, *batch, *S) : PGEE_OK;
}

typedef struct single {
  const operator_entry *o;
  const void *args;
} single;

static void run_single(void *work, const context *c) {
  const single *s = work;
  s->o->run(s->args, c);
}

static int run_now(const operator_entry *o, const void *args, const pgee_batch *batch, int threads) {
  int64_t S = 0, bytes = 0;
  TRY(have_memory(o, args));
  TRY(operator_check(o, args));
  TRY(check_run_batch(o, args, &batch, &S));
  if (pgee_interrupted())
    return fail(PGEE_INTERRUPTED, "interrupted");
  if (o->scratch)
    bytes = round_up(o->scratch(args, batch ? batch->T : 0, S), 64);
  char *scratch = bytes > 0 ? mem_array(threads, bytes) : NULL;
  if (bytes > 0 && !scratch)
    return PGEE_MEMORY;
  int status = team_run(run_single, &(single){o, args}, threads, batch, scratch, bytes);
  mem_free(scratch);
  return status;
}

int operator_named(const operator_entry *o, int status) {
  if (status == PGEE_OK || status == PGEE_MEMORY)
    return status;
  return fail(status, "%s: %s", o->name, pgee_message());
}

int pgee_run(int op, const void *args, const pgee_batch *batch) {
  const operator_entry *o = operator_for(op);
  int isa, threads;
  TRY(pgee_isa(&isa)); /* here, so that no message blames the operator for PERIGEE_ISA or PERIGEE_THREADS */
  TRY(pgee_threads(&threads));
  if (!o)
    return fail(PGEE_ARGUMENT, "there is no operator %d, expected 0 to %d", op, PGEE_OPS - 1);
  return operator_named(o, args ? run_now(o, args, batch, threads) : fail(PGEE_ARGUMENT, "args is NULL"));
}
