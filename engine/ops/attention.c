/* attention.c: softmax(Q K^T scale + bias) V for each sequence and head. F32 input is computed in FP32, U8 input in INT8.
 *
 * The work is a list of rows: for each sequence, for each head, one row for each query. The queries are all tokens, the first token of
 * each sequence, or the marked tokens. A row of a sequence of length S costs S. Each thread takes a contiguous part of the list. The
 * parts have equal cost, and a part may begin and end in the middle of a head.
 */
#include "engine/base/numbers.h"
#include "operator.h"
#include "engine/base/status.h"
#include "expect.h"
#include "quantizer.h"

/* The largest number of tokens in a sequence, and of channels in a head, for INT8: sums of products stay below 2^31. */
enum { MAX_U8 = 32768 };

static int is_u8(const pgee_attention_args *a) { return a->qkv->dtype == PGEE_U8; }

/* Checks that t has one factor for each head, and that each factor times `by` is positive, finite and not denormal. */
static int head_scales(const pgee_tensor *t, const char *what, int64_t heads, float by) {
  TRY(expect_vector(t, what, heads));
  for (int64_t h = 0; h < heads; h++) {
    float x = tensor_floats(t)[h * t->stride];
    if (is_nonfinite(x))
      return fail(PGEE_ARGUMENT, "%s[%lld] is %s, expected a positive number", what, (long long)h + 1, nonfinite_name(x));
    if (!(x > 0) || !is_normal(x) || !is_normal(x * by))
      return fail(PGEE_ARGUMENT, "%s[%lld] is %g, expected a positive number%s", what, (long long)h + 1, (double)x,
                  by == 1 ? "" : ", times scale a normal float");
  }
  return PGEE_OK;
}

/* Checks that the bias is [heads][2M - 1] and finite, also after the kernel multiplies it by log2 e. */
static int bias_check(const pgee_tensor *t, int64_t heads) {
  TRY(tensor_expect(t, "bias", PGEE_F32, 2, heads, -1));
  TRY(tensor_expect_memory(t, "bias"));
  if (t->shape[1] % 2 == 0)
    return fail(PGEE_ARGUMENT, "bias is %lld wide, expected an odd number: distances from 1 - M to M - 1",
                (long long)t->shape[1]);
  for (int64_t h = 0; h < heads; h++)
    for (int64_t i = 0; i < t->shape[1]; i++) {
      float x = tensor_floats(t)[h * t->stride + i];
      if (is_nonfinite(x * 1.5f))
        return fail(PGEE_ARGUMENT, "bias[%lld][%lld] is %s, expected a number", (long long)h + 1, (long long)i + 1,
                    is_nonfinite(x) ? nonfinite_name(x) : "too large");
    }
  return PGEE_OK;
}

static int u8_check(const pgee_attention_args *a) {
  TRY(expect_u8_stride(a->qkv, "qkv"));
  if (a->qkv->shape[1] / 3 / a->heads > MAX_U8)
    return fail(PGEE_ARGUMENT, "a head of %lld channels, expected at most %d in INT8",
                (long long)(a->qkv->shape[1] / 3 / a->heads), MAX_U8);
  if (!(a->scale > 0))
    return fail(PGEE_ARGUMENT, "scale is %g, expected a positive number for U8 qkv", (double)a->scale);
  TRY(head_scales(a->qk_scale, "qk_scale", a->heads, a->scale * 1.5f)); /* the kernel multiplies by log2 e */
  return head_scales(a->v_scale, "v_scale", a->heads, 1);
}

/* Checks that an output has one row for each query. */
static int check_output(const pgee_attention_args *a, const pgee_tensor *t, const char *what) {
  static const int rows[] = {PGEE_TOKENS, PGEE_SEQUENCES, PGEE_MARKED};
  return expect_rows(t, what, a->qkv->rows == PGEE_FIXED ? PGEE_FIXED : rows[a->queries]);
}

static int check_outputs(const pgee_attention_args *a, int64_t H) {
  if (a->y) {
    TRY(tensor_expect_output(a->y, "y", PGEE_F32, 2, -1, H));
    TRY(check_output(a, a->y, "y"));
  } else if (a->quantize.mode == 0) {
    return fail(PGEE_ARGUMENT, "neither y nor quantize is given, expected at least one of these outputs");
  }
  const pgee_tensor *q = a->quantize.q;
  TRY(quantizer_check(&a->quantize, 1u | 1u << PGEE_STATIC, a->y ? a->y : q ? q : a->qkv, H));
  return q ? check_output(a, q, "quantize.q") : PGEE_OK;
}

static int check(const void *args) {
  const pgee_attention_args *a = args;
  TRY(tensor_expect(a->qkv, "qkv", a->qkv && is_u8(a) ? PGEE_U8 : PGEE_F32, 2, -1, -1));
  int64_t width = a->qkv->shape[1], H = width / 3;
  if (a->qkv->rows != PGEE_FIXED)
    TRY(expect_rows(a->qkv, "qkv", PGEE_TOKENS));
  if (a->heads < 1 || width == 0 || width % 3 != 0 || H % a->heads != 0)
    return fail(PGEE_ARGUMENT, "qkv is %lld wide, expected 3 times a multiple of %lld heads", (long long)width,
                (long long)a->heads);
  if (is_nonfinite(a->scale))
    return fail(PGEE_ARGUMENT, "scale is not finite");
  if (is_u8(a))
    TRY(u8_check(a));
  else if (a->qk_scale || a->v_scale)
    return fail(PGEE_ARGUMENT, "qk_scale and v_scale are for U8 qkv, which is F32");
  if (a->bias)
    TRY(bias_check(a->bias, a->heads));
  if (a->queries < PGEE_QUERIES_ALL || a->queries > PGEE_QUERIES_MARKED)
    return fail(PGEE_ARGUMENT, "queries is %d, expected PGEE_QUERIES_ALL, _FIRST or _MARKED", a->queries);
  return check_outputs(a, H);
}

static int check_batch(const void *args, const pgee_batch *batch, int64_t S) {
  const pgee_attention_args *a = args;
  if (is_u8(a) && S > MAX_U8)
    return fail(PGEE_ARGUMENT, "a sequence of %lld tokens, expected at most %d in INT8", (long long)S, MAX_U8);
  if (a->bias && S > a->bias->shape[1] / 2 + 1)
    return fail(PGEE_ARGUMENT, "a sequence of %lld tokens, expected at most %lld, the distances that bias has", (long long)S,
                (long long)a->bias->shape[1] / 2 + 1);
  TRY(expect_tokens(a->qkv, "qkv", batch));
  const pgee_tensor *out = a->y ? a->y : a->quantize.q;
  const int64_t wanted[] = {batch->T, batch->B, batch->R};
  if (out->rows == PGEE_FIXED && out->shape[0] != wanted[a->queries])
    return fail(PGEE_ARGUMENT, "%s has %lld rows, expected one for each query, %lld", a->y ? "y" : "quantize.q",
                (long long)out->shape[0], (long long)wanted[a->queries]);
  return PGEE_OK;
}

static int64_t head_width(const pgee_attention_args *a) { return a->qkv->shape[1] / 3 / a->heads; }

static int64_t scratch(const void *args, int64_t T, int64_t S) {
  (void)T;
  return is_u8(args) ? attention_u8s8_scratch(S, head_width(args))
                     : attention_scratch(S, head_width(args)) * (int64_t)sizeof(float);
}

/* ---- The parts of the threads ------------------------------------------------------------------------------------- */

/* A place in the list of rows. `row` is the index of a query in its sequence. */
typedef struct place {
  int64_t sequence, head, row;
} place;

enum { GRAIN = 8 }; /* the kernel is faster on multiples of this number of rows */

static int64_t length_of(const pgee_batch *batch, int64_t b) { return batch->starts[b + 1] - batch->starts[b]; }

/* The number of marked tokens before sequence b. */
static int64_t marked_before(const pgee_batch *batch, int64_t b) {
  int64_t low = 0, high = batch->R;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (batch->rows[middle] < batch->starts[b])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* The row of the result that belongs to the first query of sequence b. */
static int64_t query_begin(const pgee_attention_args *a, const pgee_batch *batch, int64_t b) {
  return a->queries == PGEE_QUERIES_ALL ? batch->starts[b] : a->queries == PGEE_QUERIES_FIRST ? b : marked_before(batch, b);
}

static int64_t queries_of(const pgee_attention_args *a, const pgee_batch *batch, int64_t b) {
  return query_begin(a, batch, b + 1) - query_begin(a, batch, b);
}

/* The place where the part of thread `thread` begins. All threads compute the same places, so the parts neither overlap nor leave gaps. */
static place begin_of(const pgee_attention_args *a, const pgee_batch *batch, int thread, int threads) {
  int64_t total = 0, b = 0;
  for (int64_t i = 0; i < batch->B; i++)
    total += a->heads * queries_of(a, batch, i) * length_of(batch, i);
  int64_t part = total / threads, at = part * thread + total % threads * thread / threads;
  for (; b < batch->B; b++) {
    int64_t S = length_of(batch, b), n = queries_of(a, batch, b), cost = a->heads * n * S;
    if (at < cost) {
      int64_t grain = part >= 20 * GRAIN * S ? GRAIN : 1, row = (at % (n * S) / S + grain / 2) / grain * grain;
      return row < n ? (place){b, at / (n * S), row} : (place){b, at / (n * S) + 1, 0};
    }
    at -= cost;
  }
  return (place){b, 0, 0};
}

static int before(place a, place b) {
  return a.sequence != b.sequence ? a.sequence < b.sequence : a.head != b.head ? a.head < b.head : a.row < b.row;
}

/* Takes the next rows of a part, which belong to one head: from head->row to *last. Moves *at behind them. Returns 0 at the end. */
static int next_rows(place *at, place end, const pgee_attention_args *a, const pgee_batch *batch, place *head, int64_t *last) {
  if (at->head == a->heads)
    *at = (place){at->sequence + 1, 0, 0};
  if (!before(*at, end))
    return 0;
  *head = *at;
  *last = end.sequence == at->sequence && end.head == at->head ? end.row : queries_of(a, batch, at->sequence);
  *at = (place){at->sequence, at->head + 1, 0};
  return 1;
}

/* Consecutive queries of one head. Their results are consecutive rows, too. */
typedef struct piece {
  int64_t sequence, head;
  int64_t first, last; /* tokens of the sequence */
  int64_t y;           /* the row of the first query's result */
} piece;

/* The quantizer of one head's results from row `row` on, for FP32 and INT8. */
static quantizer head_quantizer(const pgee_attention_args *a, int64_t row, int64_t column) {
  quantizer q = quantizer_lower(&a->quantize);
  if (q.mode != QUANTIZE_NONE) {
    q.q += row * q.ldq + column;
    q.mul += column;
    q.add = q.add ? q.add + column : NULL;
  }
  return q;
}

/* The bias of a head at distance 0 between key and query. */
static const float *head_bias(const pgee_attention_args *a, int64_t head) {
  return a->bias ? tensor_floats(a->bias) + head * a->bias->stride + a->bias->shape[1] / 2 : NULL;
}

static void run_f32(const pgee_attention_args *a, const context *c, piece p, int64_t start, int64_t column) {
  int64_t H = a->qkv->shape[1] / 3;
  const float *q = tensor_floats(a->qkv) + start * a->qkv->stride + column;
  attention k = {
      .q = q,
      .k = q + H,
      .v = q + 2 * H,
      .ld = a->qkv->stride,
      .S = length_of(c->batch, p.sequence),
      .D = head_width(a),
      .scale = a->scale,
      .bias = head_bias(a, p.head),
      .y = a->y ? tensor_floats(a->y) + p.y * a->y->stride + column : NULL,
      .ldy = tensor_stride(a->y),
      .y_begin = p.first,
      .quantize = head_quantizer(a, p.y, column),
  };
  c->k->attention_f32(&k, p.first, p.last, (float *)c->scratch);
}

static void run_u8(const pgee_attention_args *a, const context *c, piece p, int64_t start, int64_t column) {
  int64_t H = a->qkv->shape[1] / 3;
  const uint8_t *q = (const uint8_t *)a->qkv->data + start * a->qkv->stride + column;
  attention_u8s8 k = {
      .q = q,
      .k = q + H,
      .v = q + 2 * H,
      .ld = a->qkv->stride,
      .S = length_of(c->batch, p.sequence),
      .D = head_width(a),
      .scale = tensor_floats(a->qk_scale)[p.head * a->qk_scale->stride] * a->scale,
      .v_scale = tensor_floats(a->v_scale)[p.head * a->v_scale->stride],
      .bias = head_bias(a, p.head),
      .y = a->y ? tensor_floats(a->y) + p.y * a->y->stride + column : NULL,
      .ldy = tensor_stride(a->y),
      .y_begin = p.first,
      .quantize = head_quantizer(a, p.y, column),
  };
  c->k->attention_u8s8(&k, p.first, p.last, c->scratch);
}

static void run_piece(const pgee_attention_args *a, const context *c, piece p) {
  int64_t start = c->batch->starts[p.sequence], column = p.head * head_width(a);
  (is_u8(a) ? run_u8 : run_f32)(a, c, p, start, column);
}

/* Queries p.row to last of one head. Marked queries are computed one by one, because they may stand anywhere in the sequence. */
static void run_head(const pgee_attention_args *a, const context *c, place p, int64_t last) {
  int64_t y = query_begin(a, c->batch, p.sequence), start = c->batch->starts[p.sequence];
  if (a->queries != PGEE_QUERIES_MARKED) {
    run_piece(a, c, (piece){p.sequence, p.head, p.row, last, y + p.row});
    return;
  }
  for (int64_t r = y + p.row; r < y + last; r++)
    run_piece(a, c, (piece){p.sequence, p.head, c->batch->rows[r] - start, c->batch->rows[r] - start + 1, r});
}

static void run(const void *args, const context *c) {
  const pgee_attention_args *a = args;
  place at = begin_of(a, c->batch, c->thread, c->threads), end = begin_of(a, c->batch, c->thread + 1, c->threads), p;
  int64_t last;
  while (next_rows(&at, end, a, c->batch, &p, &last))
    run_head(a, c, p, last);
}

/* Each pair of a query and a key takes 2 D multiply-adds: D for its score, D for the sum of the values. */
static int64_t work(const void *args, const context *c) {
  const pgee_attention_args *a = args;
  place at = begin_of(a, c->batch, c->thread, c->threads), end = begin_of(a, c->batch, c->thread + 1, c->threads), p;
  int64_t last, sum = 0;
  while (next_rows(&at, end, a, c->batch, &p, &last))
    sum += (last - p.row) * length_of(c->batch, p.sequence) * 2 * head_width(a);
  return sum;
}

const operator_entry op_attention = {
    .name = "attention",
    .args_bytes = sizeof(pgee_attention_args),
    .fields = {FIELD(FIELD_READ, pgee_attention_args, qkv), FIELD(FIELD_WRITE, pgee_attention_args, y),
               FIELD(FIELD_READ, pgee_attention_args, qk_scale), FIELD(FIELD_READ, pgee_attention_args, v_scale),
               FIELD(FIELD_READ, pgee_attention_args, bias), QUANTIZER_FIELDS(pgee_attention_args)},
    .check = check,
    .needs_batch = operator_needs_always,
    .check_batch = check_batch,
    .scratch = scratch,
    .run = run,
    .work = work,
};
