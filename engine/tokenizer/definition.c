/* definition.c: checks a pgee_tokenizer_definition. See definition.h. */
#include "definition.h"

#include <string.h>

#include "engine/base/status.h"
#include "tokenizer.h"
#include "unicode.h"

static int check_utf8(const char *text, int64_t bytes, const char *what, int32_t id) {
  uint32_t c;
  for (int64_t i = 0, size; i < bytes; i += size) {
    size = utf8_decode(text + i, bytes - i, &c);
    if (c == UTF8_REPLACEMENT && size == 1)
      return fail(PGEE_ARGUMENT, "the %s with id %d is not UTF-8 at byte %lld", what, id, (long long)i);
  }
  return PGEE_OK;
}

static int check_pieces(const pgee_tokenizer_definition *d) {
  if (d->count < 0 || d->count > INT32_MAX)
    return fail(PGEE_ARGUMENT, "%lld pieces, expected 0 to %d", (long long)d->count, INT32_MAX);
  if (d->count > 0)
    NEED(d->pieces, d->ends);
  for (int64_t i = 0, begin = 0; i < d->count; begin = d->ends[i++]) {
    int32_t id = d->ids ? d->ids[i] : (int32_t)i;
    if (id < 0)
      return fail(PGEE_ARGUMENT, "piece %lld has id %d, expected 0 or more", (long long)i, id);
    if (d->ends[i] < begin)
      return fail(PGEE_ARGUMENT, "piece %lld ends at byte %lld, expected %lld or more", (long long)i, (long long)d->ends[i],
                  (long long)begin);
    TRY(check_utf8(d->pieces + begin, d->ends[i] - begin, "piece", id));
  }
  return PGEE_OK;
}

static int check_steps(const pgee_tokenizer_step *list, int64_t count, const char *what) {
  if (count < 0 || count > STEP_MAX)
    return fail(PGEE_UNSUPPORTED, "%lld %s, expected %d or fewer", (long long)count, what, STEP_MAX);
  if (count > 0)
    NEED(list);
  for (int64_t i = 0; i < count; i++) {
    const pgee_tokenizer_step *s = &list[i];
    if (s->text_bytes < 0 || s->more_bytes < 0 || s->text_bytes + s->more_bytes > INT32_MAX ||
        (s->text_bytes > 0 && (!s->text || !tokenizer_is_utf8(s->text, s->text_bytes))) ||
        (s->more_bytes > 0 && (!s->more || !tokenizer_is_utf8(s->more, s->more_bytes))))
      return fail(PGEE_ARGUMENT, "a string of step %lld of the %s is not UTF-8", (long long)i, what);
  }
  return PGEE_OK;
}

static int check_template(const pgee_template_piece *list, int64_t count, int pair) {
  int a = 0, b = 0;
  if (count < 0 || count > MAX_TEMPLATE)
    return fail(PGEE_UNSUPPORTED, "a template of %lld pieces, expected %d or fewer", (long long)count, MAX_TEMPLATE);
  for (int64_t i = 0; list && i < count; i++) {
    if (list[i].id < PGEE_TEXT_B || (list[i].id == PGEE_TEXT_B && !pair))
      return fail(PGEE_ARGUMENT, "piece %lld of a template has id %d", (long long)i, list[i].id);
    a += list[i].id == PGEE_TEXT_A;
    b += list[i].id == PGEE_TEXT_B;
  }
  if (list && (a == 0 || (pair && b == 0)))
    return fail(PGEE_ARGUMENT, "the template for %s lacks %s", pair ? "a pair" : "one text", a ? "the second" : "the first");
  return PGEE_OK;
}

static int check_added(const pgee_tokenizer_definition *d) {
  if (d->added_count < 0 || d->added_count > INT32_MAX / 2)
    return fail(PGEE_ARGUMENT, "%lld added tokens", (long long)d->added_count);
  if (d->added_count > 0)
    NEED(d->added);
  for (int64_t i = 0; i < d->added_count; i++) {
    const pgee_added_token *a = &d->added[i];
    if (a->id < -1)
      return fail(PGEE_ARGUMENT, "an added token has id %d, expected 0 or more, or -1", a->id);
    if (a->bytes < 0 || a->bytes > INT32_MAX || (a->bytes > 0 && !a->text))
      return fail(PGEE_ARGUMENT, "the added token with id %d has %lld bytes", a->id, (long long)a->bytes);
    TRY(check_utf8(a->text, a->bytes, "added token", a->id));
  }
  return PGEE_OK;
}

int definition_check(const pgee_tokenizer_definition *d) {
  if (d->model < PGEE_WORDPIECE || d->model > PGEE_BPE)
    return fail(PGEE_ARGUMENT, "the model is %d, expected %d to %d", d->model, PGEE_WORDPIECE, PGEE_BPE);
  if (d->max_word_chars < 0)
    return fail(PGEE_ARGUMENT, "max_word_chars is %d, expected 0 or more", d->max_word_chars);
  if (d->unk < (d->model == PGEE_WORDPIECE ? 0 : -1))
    return fail(PGEE_ARGUMENT, "the id of unk is %d, expected 0 or more", d->unk);
  if (d->prefix && strlen(d->prefix) >= MAX_PREFIX)
    return fail(PGEE_UNSUPPORTED, "the prefix of pieces has %zu bytes, expected fewer than %d", strlen(d->prefix), MAX_PREFIX);
  if (d->model == PGEE_UNIGRAM && d->count > 0)
    NEED(d->scores);
  if (d->model == PGEE_BPE && d->merge_count > 0)
    NEED(d->merges);
  if (d->merge_count < 0 || d->merge_count > INT32_MAX || d->charsmap_bytes < 0)
    return fail(PGEE_ARGUMENT, "%lld merges, %lld bytes of a charsmap", (long long)d->merge_count, (long long)d->charsmap_bytes);
  TRY(check_pieces(d));
  TRY(check_steps(d->normalizers, d->normalizer_count, "normalizers"));
  TRY(check_steps(d->pre_tokenizers, d->pre_tokenizer_count, "pre-tokenizers"));
  TRY(check_steps(d->decoders, d->decoder_count, "decoders"));
  TRY(check_template(d->single, d->single_count, 0));
  TRY(check_template(d->pair, d->pair_count, 1));
  return check_added(d);
}
