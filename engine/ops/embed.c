/* embed.c: y = (word[id] + type[type id]) + position[place in the sequence + offset]. Threads share the tokens. */
#include "operator.h"
#include "engine/base/status.h"
#include "engine/data/table.h"
#include "expect.h"

/* A table that may be missing; then it has no scales either. */
static int optional_check(const pgee_tensor *t, const char *what, const pgee_tensor *scales, const char *what_scales,
                          int64_t width) {
  if (t)
    return table_check(t, what, scales, what_scales, -1, width);
  return scales ? fail(PGEE_ARGUMENT, "%s is given, but %s is not", what_scales, what) : PGEE_OK;
}

static int check(const void *args) {
  const pgee_embed_args *a = args;
  TRY(tensor_expect_output(a->y, "y", PGEE_F32, 2, -1, -1));
  int64_t H = a->y->shape[1];
  if (a->y->rows != PGEE_FIXED)
    TRY(expect_rows(a->y, "y", PGEE_TOKENS));
  TRY(table_check(a->word, "word", a->word_scales, "word_scales", -1, H));
  TRY(optional_check(a->position, "position", a->position_scales, "position_scales", H));
  TRY(optional_check(a->type, "type", a->type_scales, "type_scales", H));
  if (a->position_offset < 0)
    return fail(PGEE_ARGUMENT, "position_offset is %lld, expected 0 or more", (long long)a->position_offset);
  if (a->skip_padding && a->position_offset < 1)
    return fail(PGEE_ARGUMENT, "position_offset is 0, expected the padding token's id + 1 where skip_padding is set");
  return PGEE_OK;
}

static int check_ids(const int32_t *ids, int64_t T, const pgee_tensor *table, const char *what) {
  int64_t rows = table->shape[0];
  for (int64_t t = 0; t < T; t++)
    if (ids[t] < 0 || ids[t] >= rows)
      return fail(PGEE_ARGUMENT, "token %lld of the batch (counted from 1) has %s %d, expected 0 to %lld", (long long)t + 1, what,
                  ids[t], (long long)rows - 1);
  return PGEE_OK;
}

static int check_batch(const void *args, const pgee_batch *batch, int64_t S) {
  const pgee_embed_args *a = args;
  TRY(expect_tokens(a->y, "y", batch));
  if (!batch->ids && batch->T > 0)
    return fail(PGEE_ARGUMENT, "the batch has no ids, expected one for each token");
  TRY(check_ids(batch->ids, batch->T, a->word, "id"));
  if (a->type && batch->types)
    TRY(check_ids(batch->types, batch->T, a->type, "type"));
  if (a->type && !batch->types && a->type->shape[0] < 1 && batch->T > 0)
    return fail(PGEE_ARGUMENT, "type has no rows");
  if (a->position && S > a->position->shape[0] - a->position_offset)
    return fail(PGEE_ARGUMENT, "a sequence of %lld tokens, expected at most %lld: there are %lld positions, the first is %lld",
                (long long)S, (long long)(a->position->shape[0] - a->position_offset), (long long)a->position->shape[0],
                (long long)a->position_offset);
  return PGEE_OK;
}

/* The sequence that token t is in: the last one that starts at or before it. */
static int64_t sequence_of(const pgee_batch *batch, int64_t t) {
  int64_t low = 0, high = batch->B;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (batch->starts[middle] <= t)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static int is_padding(const pgee_embed_args *a, int32_t id) { return a->skip_padding && id == a->position_offset - 1; }

/* The number of tokens from `first` to `last` (excluded) that are not padding, because padding has no place in the sequence. */
static int64_t counted(const pgee_embed_args *a, const pgee_batch *batch, int64_t first, int64_t last) {
  int64_t count = 0;
  for (int64_t t = first; t < last; t++)
    count += !is_padding(a, batch->ids[t]);
  return count;
}

/* Prefetches the row of a token, because no hardware prefetcher can guess which row comes next. */
static void fetch_row(const pgee_tensor *word, int32_t id) {
  const char *p = table_row_at(word, NULL, id).values;
  int64_t bytes = word->shape[1] * pgee_dtype_bytes(word->dtype);
  for (int64_t i = 0; i < bytes; i += 64)
    __builtin_prefetch(p + i, 0, 3);
}

enum { PREFETCHED = 4 }; /* tokens between the one that is embedded and the one whose row is prefetched */

static void run(const void *args, const context *c) {
  const pgee_embed_args *a = args;
  const pgee_batch *batch = c->batch;
  int64_t first, last;
  team_share(c, c->T, &first, &last);
  if (first == last)
    return;
  int64_t b = sequence_of(batch, first), place = counted(a, batch, batch->starts[b], first);
  for (int64_t t = first; t < last && t < first + PREFETCHED; t++)
    fetch_row(a->word, batch->ids[t]);
  for (int64_t t = first; t < last; t++) {
    for (; t >= batch->starts[b + 1]; b++)
      place = 0;
    if (t + PREFETCHED < last)
      fetch_row(a->word, batch->ids[t + PREFETCHED]);
    int64_t at = a->position_offset + (is_padding(a, batch->ids[t]) ? -1 : place++);
    table_row word = table_row_at(a->word, a->word_scales, batch->ids[t]), position, type;
    if (a->position)
      position = table_row_at(a->position, a->position_scales, at);
    if (a->type)
      type = table_row_at(a->type, a->type_scales, batch->types ? batch->types[t] : 0);
    c->k->embed(tensor_floats(a->y) + t * a->y->stride, &word, a->position ? &position : NULL, a->type ? &type : NULL,
                a->y->shape[1]);
  }
}

const operator_entry op_embed = {
    .name = "embed",
    .args_bytes = sizeof(pgee_embed_args),
    .fields = {FIELD(FIELD_READ, pgee_embed_args, word), FIELD(FIELD_READ, pgee_embed_args, position),
               FIELD(FIELD_READ, pgee_embed_args, type), FIELD(FIELD_READ, pgee_embed_args, word_scales),
               FIELD(FIELD_READ, pgee_embed_args, position_scales), FIELD(FIELD_READ, pgee_embed_args, type_scales),
               FIELD(FIELD_WRITE, pgee_embed_args, y)},
    .check = check,
    .needs_batch = operator_needs_always,
    .check_batch = check_batch,
    .run = run,
};
