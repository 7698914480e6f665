/* operator.c: the registry of operators, what they share, and running one at once. */
#include "operator.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"

static const operator *const operators[PGEE_OPS] = {
    [PGEE_EMBED] = &op_embed,       [PGEE_LINEAR] = &op_linear,       [PGEE_NORM] = &op_norm,
    [PGEE_QUANTIZE] = &op_quantize, [PGEE_ATTENTION] = &op_attention, [PGEE_POOL] = &op_pool,
    [PGEE_UNIT] = &op_unit,         [PGEE_OBSERVE] = &op_observe,     [PGEE_GATHER] = &op_gather,
};

const operator *operator_for(int op) { return op >= 0 && op < PGEE_OPS ? operators[op] : NULL; }

void *field_get(const void *args, const field *f) {
  void *handle;
  memcpy(&handle, (const char *)args + f->offset, sizeof handle);
  return handle;
}

void field_set(void *args, const field *f, void *handle) { memcpy((char *)args + f->offset, &handle, sizeof handle); }

int64_t rows_in(const pgee_tensor *t, int64_t T, int64_t B, int64_t R) {
  const int64_t count[] = {[PGEE_FIXED] = t->shape[0], [PGEE_TOKENS] = T, [PGEE_SEQUENCES] = B, [PGEE_MARKED] = R};
  return count[t->rows];
}

int64_t rows_of(const pgee_tensor *t, const context *c) { return rows_in(t, c->T, c->B, c->R); }

int needs_always(const void *args) {
  (void)args;
  return 1;
}

/* ---- Checks that operators share ---------------------------------------------------------------------------------- */

static const char *rows_name(int rows) {
  static const char *const names[] = {[PGEE_FIXED] = "a number of rows of its own",
                                      [PGEE_TOKENS] = "a row for each token",
                                      [PGEE_SEQUENCES] = "a row for each sequence",
                                      [PGEE_MARKED] = "a row for each marked token"};
  return names[rows];
}

int expect_rows(const pgee_tensor *t, const char *what, int rows) {
  if (t->rows == rows)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "%s has %s, expected %s", what, rows_name(t->rows), rows_name(rows));
}

static int64_t fixed_rows(const pgee_tensor *like) { return like->rows == PGEE_FIXED ? like->shape[0] : -1; }

int expect_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width) {
  TRY(tensor_expect(t, what, dtype, width > 0 ? 2 : 1, fixed_rows(like), width > 0 ? width : -1));
  return expect_rows(t, what, like->rows);
}

int expect_output_like(const pgee_tensor *t, const char *what, int dtype, const pgee_tensor *like, int64_t width) {
  TRY(tensor_expect_output(t, what, dtype, width > 0 ? 2 : 1, fixed_rows(like), width > 0 ? width : -1));
  return expect_rows(t, what, like->rows);
}

int expect_vector(const pgee_tensor *t, const char *what, int64_t n) {
  TRY(tensor_expect(t, what, PGEE_F32, 1, n, -1));
  return t->rows == PGEE_FIXED ? PGEE_OK : fail(PGEE_ARGUMENT, "%s is a plan's buffer, expected a weight", what);
}

int expect_u8_stride(const pgee_tensor *t, const char *what) {
  int64_t wanted = round_up(tensor_width(t), 64);
  if (t->stride >= wanted)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "the rows of %s lie %lld bytes apart, expected %lld: a tensor of its own has that", what,
              (long long)t->stride, (long long)wanted);
}

int expect_tokens(const pgee_tensor *like, const char *what, const pgee_batch *batch) {
  if (like->rows != PGEE_FIXED || like->shape[0] == batch->T)
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "%s has %lld rows, the batch %lld tokens", what, (long long)like->shape[0], (long long)batch->T);
}

/* ---- Quantizers --------------------------------------------------------------------------------------------------- */

static int static_check(const pgee_quantizer *q, int64_t K) {
  TRY(expect_vector(q->m, "quantize.m", K));
  if (q->row_scale || q->row_zero)
    return fail(PGEE_ARGUMENT, "quantize.row_scale and row_zero are for dynamic quantization, not static");
  if (q->symmetric ? q->zero != 128 : q->zero < 0 || q->zero > 255)
    return fail(PGEE_ARGUMENT, "quantize.zero is %d, expected %s", q->zero, q->symmetric ? "128 if symmetric" : "0 to 255");
  return PGEE_OK;
}

static int dynamic_check(const pgee_quantizer *q, const pgee_tensor *like, int64_t K) {
  if (q->m)
    TRY(expect_vector(q->m, "quantize.m", K));
  if (q->zero != 0)
    return fail(PGEE_ARGUMENT, "quantize.zero is %d, expected 0: dynamic quantization finds its own", q->zero);
  TRY(expect_output_like(q->row_scale, "quantize.row_scale", PGEE_F32, like, 0));
  return expect_output_like(q->row_zero, "quantize.row_zero", PGEE_S32, like, 0);
}

int quantizer_check(const pgee_quantizer *q, unsigned modes, const pgee_tensor *like, int64_t K) {
  if (q->mode < 0 || q->mode > PGEE_DYNAMIC_SEQUENCE || !(modes >> q->mode & 1))
    return fail(PGEE_ARGUMENT, "quantize.mode is %d, which this operator does not do", q->mode);
  if (q->symmetric != 0 && q->symmetric != 1)
    return fail(PGEE_ARGUMENT, "quantize.symmetric is %d, expected 0 or 1", q->symmetric);
  if (q->mode == 0)
    return q->q || q->m || q->row_scale || q->row_zero ? fail(PGEE_ARGUMENT, "quantize has tensors but no mode") : PGEE_OK;
  TRY(q->mode == PGEE_STATIC ? static_check(q, K) : dynamic_check(q, like, K));
  TRY(expect_output_like(q->q, "quantize.q", PGEE_U8, like, K));
  return expect_u8_stride(q->q, "quantize.q");
}

quantizer quantizer_lower(const pgee_quantizer *q) {
  quantizer k = {.mode = QUANTIZE_NONE};
  if (q->mode == 0)
    return k;
  k.mode = q->mode == PGEE_STATIC ? QUANTIZE_STATIC : QUANTIZE_DYNAMIC;
  k.symmetric = q->symmetric;
  k.mul = floats(q->m);
  k.zero = q->zero;
  k.lo = q->symmetric ? -127 : -q->zero;
  k.hi = q->symmetric ? 127 : 255 - q->zero;
  k.q = q->q->data;
  k.ldq = q->q->stride;
  k.row_scale = floats(q->row_scale);
  k.row_zero = q->row_zero ? q->row_zero->data : NULL;
  return k;
}

/* ---- Aliases ------------------------------------------------------------------------------------------------------ */

int field_is_tensor(const field *f) { return f->kind >= FIELD_READ && f->kind <= FIELD_WRITE; }

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

static int check_aliases(const operator *o, const void *args) {
  for (const field *w = o->fields; w->kind; w++) {
    const pgee_tensor *written = w->kind == FIELD_WRITE ? field_get(args, w) : NULL;
    for (const field *f = o->fields; written && f->kind; f++) {
      const pgee_tensor *other = f != w && field_is_tensor(f) ? field_get(args, f) : NULL;
      if (other && overlap(written, other) && !(f->kind == FIELD_OVER && same(written, other)))
        return fail(PGEE_ARGUMENT, "%s shares memory with %s", w->name, f->name);
    }
  }
  return PGEE_OK;
}

int operator_check(const operator *o, const void *args) {
  TRY(o->check(args));
  return check_aliases(o, args);
}

/* ---- Batches ------------------------------------------------------------------------------------------------------ */

static int check_marked(const pgee_batch *batch) {
  if (batch->R < 0 || batch->R > batch->T)
    return fail(PGEE_ARGUMENT, "%lld tokens of %lld are marked", (long long)batch->R, (long long)batch->T);
  if (batch->R > 0 && !batch->rows)
    return fail(PGEE_ARGUMENT, "the batch has %lld marked tokens but no rows", (long long)batch->R);
  for (int64_t r = 0; r < batch->R; r++)
    if (batch->rows[r] < (r > 0 ? batch->rows[r - 1] + (int64_t)1 : 0) || batch->rows[r] >= batch->T)
      return fail(PGEE_ARGUMENT, "marked token %lld (counted from 1) is %d, expected ascending numbers below %lld",
                  (long long)r + 1, batch->rows[r], (long long)batch->T);
  return PGEE_OK;
}

int batch_check(const pgee_batch *batch, int64_t *S) {
  if (batch->T < 0 || batch->B < 0 || batch->T > INT32_MAX || batch->B > batch->T)
    return fail(PGEE_ARGUMENT, "a batch of %lld tokens in %lld sequences", (long long)batch->T, (long long)batch->B);
  TRY(check_marked(batch));
  if (batch->B == 0 && batch->T == 0)
    return *S = 0, PGEE_OK;
  const int32_t *starts = batch->starts;
  if (!starts)
    return fail(PGEE_ARGUMENT, "the batch has no starts");
  if (starts[0] != 0)
    return fail(PGEE_ARGUMENT, "the first sequence starts at token %d, expected 0", starts[0]);
  int64_t longest = 0;
  for (int64_t b = 0; b < batch->B; b++) {
    int64_t length = (int64_t)starts[b + 1] - starts[b];
    if (length <= 0)
      return fail(PGEE_ARGUMENT, "sequence %lld of the batch (counted from 1) has %lld tokens, expected 1 or more",
                  (long long)b + 1, (long long)length);
    longest = length > longest ? length : longest;
  }
  if (starts[batch->B] != batch->T)
    return fail(PGEE_ARGUMENT, "the last sequence ends at token %d, but the batch has %lld", starts[batch->B],
                (long long)batch->T);
  *S = longest;
  return PGEE_OK;
}

/* ---- Running one operator ----------------------------------------------------------------------------------------- */

static int have_memory(const operator *o, const void *args) {
  for (const field *f = o->fields; f->kind; f++) {
    const pgee_tensor *t = field_is_tensor(f) ? field_get(args, f) : NULL;
    if (t && !t->data)
      return fail(PGEE_ARGUMENT, "%s is a plan's buffer, which has memory only in a workspace", f->name);
  }
  return PGEE_OK;
}

static int check_run_batch(const operator *o, const void *args, const pgee_batch **batch, int64_t *S) {
  if (!o->needs_batch || !o->needs_batch(args)) {
    *batch = NULL;
    return PGEE_OK;
  }
  if (!*batch)
    return fail(PGEE_ARGUMENT, "no batch was given");
  TRY(batch_check(*batch, S));
  return o->check_batch ? o->check_batch(args, *batch, *S) : PGEE_OK;
}

typedef struct single {
  const operator *o;
  const void *args;
} single;

static void run_single(void *work, const context *c) {
  const single *s = work;
  s->o->run(s->args, c);
}

static int run_now(const operator *o, const void *args, const pgee_batch *batch) {
  int64_t S = 0, bytes = 0;
  int threads;
  TRY(have_memory(o, args));
  TRY(operator_check(o, args));
  TRY(check_run_batch(o, args, &batch, &S));
  if (pgee_interrupted())
    return fail(PGEE_INTERRUPTED, "interrupted");
  TRY(pgee_threads(&threads));
  if (o->scratch)
    bytes = round_up(o->scratch(args, batch ? batch->T : 0, S), 64);
  char *scratch = bytes > 0 ? mem_array(threads, bytes) : NULL;
  if (bytes > 0 && !scratch)
    return PGEE_MEMORY;
  int status = team_run(run_single, &(single){o, args}, threads, batch, scratch, bytes);
  mem_free(scratch);
  return status;
}

int operator_named(const operator *o, int status) {
  if (status == PGEE_OK || status == PGEE_MEMORY)
    return status;
  return fail(status, "%s: %s", o->name, pgee_message());
}

int pgee_run(int op, const void *args, const pgee_batch *batch) {
  const operator *o = operator_for(op);
  if (!o)
    return fail(PGEE_ARGUMENT, "%d is no operator", op);
  return operator_named(o, args ? run_now(o, args, batch) : fail(PGEE_ARGUMENT, "args is NULL"));
}
