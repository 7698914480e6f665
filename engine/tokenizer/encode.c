/* encode.c: encodes a text, or a pair of texts.
 *
 *   1. Added tokens that are looked for in the text as it is are cut out.
 *   2. bert.c or pipeline.c makes tokens of each part between them.
 *   3. Tokens are cut off so that max_tokens suffices.
 *   4. Special tokens are put around the texts, as the template says.
 *
 * Encoding does not change the tokenizer. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "bert.h"
#include "pipeline.h"
#include "sink.h"
#include "tokenizer.h"
#include "unicode.h"

/* ---- One text -------------------------------------------------------------------------------------------------------------- */

static int put_plain(sink *s, pipeline *r, const char *text, int64_t bytes) {
  added_search search = {.set = &s->t->added[0], .text = text, .bytes = bytes};
  s->text = text;
  s->bytes = bytes;
  for (int more = 1; more;) {
    added_match m;
    more = added_next(&search, &m);
    if (!more)
      m = (added_match){.begin = bytes, .end = bytes};
    if (search.covered < m.begin)
      TRY(s->t->fast ? bert_put(s, text, search.covered, m.begin) : pipeline_put(s, r, text, search.covered, m.begin));
    if (more) {
      int32_t begin = (int32_t)m.begin, end = (int32_t)m.end;
      if (s->trim && s->offsets)
        sink_trim(s, &begin, &end, text + m.begin, m.end - m.begin);
      sink_put(s, m.id, begin, end);
      s->word += !s->in_words;
    }
    search.covered = m.end;
  }
  return PGEE_OK;
}

static int put_text(sink *s, pipeline *r, const pgee_text *text) {
  if (!text->word_ends)
    return put_plain(s, r, text->bytes, text->count);
  s->in_words = 1;
  for (int64_t i = 0, begin = 0; i < text->words; begin = text->word_ends[i++]) {
    s->word = (int32_t)i;
    TRY(put_plain(s, r, text->bytes + begin, text->word_ends[i] - begin));
  }
  return PGEE_OK;
}

/* ---- Truncation ------------------------------------------------------------------------------------------------------------ */

/* Cuts two texts of n1 and n2 tokens to `room` tokens in all, the longer one first. The counts are those of the tokenizers
 * package, which differ from cutting one token after another. */
static void cut_longest(int64_t *n1, int64_t *n2, int64_t room) {
  int64_t *shorter = *n1 <= *n2 ? n1 : n2, *longer = *n1 <= *n2 ? n2 : n1;
  *longer = *shorter > room - *shorter ? *shorter : room - *shorter;
  if (*shorter + *longer > room) {
    *shorter = room / 2;
    *longer = room - room / 2;
  }
}

static int cut_one(int64_t *n, int64_t other, int64_t room, const char *which) {
  if (other >= room)
    return fail(PGEE_ARGUMENT,
                "the %s text, which is to be truncated, would have no token left: the other has %lld, and there is "
                "room for %lld",
                which, (long long)other, (long long)room);
  *n = room - other;
  return PGEE_OK;
}

static int cut(int64_t *n1, int64_t *n2, int64_t room, int pair, int how) {
  if (*n1 + *n2 <= room)
    return PGEE_OK;
  if (room == 0) /* nothing is left of either, however they are cut */
    *n1 = *n2 = 0;
  else if (how == PGEE_TRUNCATE_FIRST)
    return cut_one(n1, *n2, room, "first");
  else if (how == PGEE_TRUNCATE_SECOND && !pair)
    return fail(PGEE_ARGUMENT, "the second text is to be truncated, but there is none");
  else if (how == PGEE_TRUNCATE_SECOND)
    return cut_one(n2, *n1, room, "second");
  else if (pair)
    cut_longest(n1, n2, room);
  else
    *n1 = room;
  return PGEE_OK;
}

/* The arguments and the state of one call. */
typedef struct call {
  const pgee_tokenizer *t;
  pgee_encoding *e;
  const pgee_text *texts[2]; /* the second may be NULL */
  const pgee_encode_options *o;
  const tokenizer_template *shape;
  int64_t special; /* the number of special tokens that the template adds */
  int left;        /* 1: texts are cut off at their beginning */
  pipeline run;
} call;

static sink sink_at(const call *c, int64_t at, int64_t limit) {
  const pgee_encoding *e = c->e;
  return (sink){.t = c->t,
                .ids = e->ids + at,
                .offsets = e->offsets ? e->offsets + 2 * at : NULL,
                .words = e->words ? e->words + at : NULL,
                .limit = limit > 0 ? limit : 0,
                .trim = c->t->options->trim_offsets};
}

static int does_not_hold(const call *c, int64_t length) {
  c->e->length = length;
  return fail(PGEE_ARGUMENT, "the arrays hold %lld tokens, expected %lld", (long long)c->e->capacity, (long long)length);
}

/* The number of tokens after the template is applied to texts of n1 and n2 tokens; at least their sum and the special tokens. */
static int64_t templated_length(const call *c, int64_t n1, int64_t n2) {
  int64_t all = 0;
  for (int64_t i = 0; i < c->shape->count; i++) {
    int32_t id = c->shape->list[i].id;
    all += id == PGEE_TEXT_A ? n1 : id == PGEE_TEXT_B ? n2 : !c->o->bare;
  }
  return all > n1 + n2 + c->special ? all : n1 + n2 + c->special;
}

static void copy_tokens(const pgee_encoding *to, int64_t at, const pgee_encoding *from, int64_t begin, int64_t count) {
  size_t bytes = (size_t)count * sizeof(int32_t);
  if (count == 0)
    return;
  memcpy(to->ids + at, from->ids + begin, bytes);
  if (to->offsets)
    memcpy(to->offsets + 2 * at, from->offsets + 2 * begin, 2 * bytes);
  if (to->words)
    memcpy(to->words + at, from->words + begin, bytes);
}

/* Writes the last n of a text's `all` tokens to place `at`. All tokens are computed again, into a block of their own. */
static int put_end(call *c, const pgee_text *text, int64_t all, int64_t n, int64_t at) {
  const pgee_encoding *e = c->e;
  if (n == 0)
    return PGEE_OK;
  int32_t *block = mem_array(all, 4 * sizeof *block);
  if (!block)
    return PGEE_MEMORY;
  pgee_encoding whole = {.ids = block, .offsets = e->offsets ? block + all : NULL, .words = e->words ? block + 3 * all : NULL};
  sink s = {.t = c->t,
            .ids = whole.ids,
            .offsets = whole.offsets,
            .words = whole.words,
            .limit = all,
            .first = all - n,
            .trim = c->t->options->trim_offsets};
  int status = put_text(&s, &c->run, text);
  if (status == PGEE_OK)
    copy_tokens(e, at, &whole, all - n, n);
  mem_free(block);
  return status;
}

/* Writes the tokens of the first text to place `at`, and those of the second text `between` places behind them. *n1, *n2: their
 * numbers, together at most `room`. */
static int put_texts(call *c, int64_t at, int64_t between, int64_t room, int64_t *n1, int64_t *n2) {
  int64_t held = c->e->capacity - (at + between), pair = c->texts[1] != NULL;
  sink first = sink_at(c, at, least(room, held));
  TRY(put_text(&first, &c->run, c->texts[0]));
  *n1 = first.count;
  *n2 = 0;
  int64_t kept = least(first.count, first.limit);
  if (pair) {
    sink second = sink_at(c, at + kept + between, first.limit - kept);
    TRY(put_text(&second, &c->run, c->texts[1]));
    *n2 = second.count;
  }
  int64_t all1 = *n1, all2 = *n2;
  TRY(cut(n1, n2, room, (int)pair, c->o->truncate));
  c->e->dropped = all1 + all2 - *n1 - *n2;
  int64_t length = templated_length(c, *n1, *n2);
  if (length > c->e->capacity)
    return does_not_hold(c, length);
  if (c->left && c->e->dropped > 0) {
    TRY(put_end(c, c->texts[0], all1, *n1, at));
    return pair ? put_end(c, c->texts[1], all2, *n2, at + *n1 + between) : PGEE_OK;
  }
  if (pair && *n1 < kept) { /* the first text was cut, so the second one begins earlier: write it again */
    sink again = sink_at(c, at + *n1 + between, *n2);
    TRY(put_text(&again, &c->run, c->texts[1]));
  }
  return PGEE_OK;
}

/* ---- Templates ------------------------------------------------------------------------------------------------------------- */

static void set(const pgee_encoding *e, int64_t at, int64_t count, int32_t type, int32_t sequence) {
  for (int64_t i = at; i < at + count; i++) {
    e->types[i] = type;
    if (e->sequences)
      e->sequences[i] = sequence;
  }
}

static void put_special(const pgee_encoding *e, int64_t at, pgee_template_piece p) {
  e->ids[at] = p.id;
  if (e->offsets)
    e->offsets[2 * at] = e->offsets[2 * at + 1] = 0;
  if (e->words)
    e->words[at] = -1;
  set(e, at, 1, p.type, 0);
}

/* Adds special tokens, token types and sequences. The tokens of the texts are already at their places. */
static int64_t apply_plain_template(const call *c, int64_t n1, int64_t n2) {
  int64_t at = 0;
  for (int64_t i = 0; i < c->shape->count; i++) {
    pgee_template_piece p = c->shape->list[i];
    if (p.id >= 0) {
      if (!c->o->bare)
        put_special(c->e, at++, p);
      continue;
    }
    int64_t n = p.id == PGEE_TEXT_A ? n1 : n2;
    set(c->e, at, n, p.type, p.id == PGEE_TEXT_A ? 1 : 2);
    at += n;
  }
  return at;
}

/* The same for a template that has a text twice, or not at all, or the second text first. The tokens of the texts are copied to
 * a block of their own first. */
static int apply_template(call *c, int64_t n1, int64_t n2, int64_t *length) {
  pgee_encoding *e = c->e, apart = {0};
  int64_t n = n1 + n2, at = 0;
  int32_t *block = mem_array(n, 4 * sizeof *block);
  if (!block)
    return PGEE_MEMORY;
  apart = (pgee_encoding){.ids = block, .offsets = block + n, .words = block + 3 * n};
  copy_tokens(&(pgee_encoding){.ids = block, .offsets = e->offsets ? block + n : NULL, .words = e->words ? block + 3 * n : NULL},
              0, e, 0, n);
  for (int64_t i = 0; i < c->shape->count; i++) {
    pgee_template_piece p = c->shape->list[i];
    int64_t count = p.id == PGEE_TEXT_A ? n1 : n2;
    if (p.id >= 0) {
      if (!c->o->bare)
        put_special(e, at++, p);
      continue;
    }
    copy_tokens(e, at, &apart, p.id == PGEE_TEXT_A ? 0 : n1, count);
    set(e, at, count, p.type, p.id == PGEE_TEXT_A ? 1 : 2);
    at += count;
  }
  mem_free(block);
  *length = at;
  return PGEE_OK;
}

/* ---- Offsets in characters ------------------------------------------------------------------------------------------------- */

/* The number of characters up to byte `to`, counted from the last place asked for, *at: offsets mostly ascend, so few
 * characters are read twice. */
static int64_t characters_to(const char *text, int64_t *at, int64_t *count, int64_t to) {
  for (; *at < to; (*count)++) {
    uint32_t c;
    *at += utf8_decode(text + *at, to - *at, &c);
  }
  while (*at > to) {
    uint32_t c;
    *at -= utf8_before(text, *at, &c);
    (*count)--;
  }
  return *count;
}

static void count_characters(const call *c, int64_t length) {
  const pgee_encoding *e = c->e;
  for (int sequence = 1; sequence <= 2; sequence++) {
    const pgee_text *text = c->texts[sequence - 1];
    int64_t at[2] = {0}, count[2] = {0}, word = -1, from = 0; /* one counter for begins and one for ends: each ascends */
    for (int64_t i = 0; text && i < length; i++) {
      if (e->sequences[i] != sequence)
        continue;
      if (text->word_ends && e->words[i] != word) {
        word = e->words[i];
        from = word > 0 ? text->word_ends[word - 1] : 0;
        at[0] = at[1] = count[0] = count[1] = 0;
      }
      for (int j = 0; j < 2; j++)
        e->offsets[2 * i + j] = (int32_t)characters_to(text->bytes + from, &at[j], &count[j], e->offsets[2 * i + j]);
    }
  }
}

/* ---- Encoding -------------------------------------------------------------------------------------------------------------- */

static int check_text(const pgee_text *t) {
  int64_t last = 0;
  if (t->count < 0 || t->count > INT32_MAX - 3)
    return fail(PGEE_ARGUMENT, "a text of %lld bytes, expected 0 to %d", (long long)t->count, INT32_MAX - 3);
  if (!t->bytes && t->count > 0)
    return fail(PGEE_ARGUMENT, "a text is NULL, expected %lld bytes", (long long)t->count);
  for (int64_t i = 0; t->word_ends && i < t->words; last = t->word_ends[i++])
    if (t->word_ends[i] < last || t->word_ends[i] > t->count)
      return fail(PGEE_ARGUMENT, "word %lld ends at byte %lld, expected %lld to %lld", (long long)i, (long long)t->word_ends[i],
                  (long long)last, (long long)t->count);
  return PGEE_OK;
}

static int check_room(const call *c, int64_t bytes) {
  const pgee_encoding *e = c->e;
  int64_t most = c->o->max_tokens, need = most < bytes + c->special ? most : bytes + c->special;
  if (most < c->special)
    return fail(PGEE_ARGUMENT, "max_tokens is %lld, expected %lld or more: the special tokens alone are as many", (long long)most,
                (long long)c->special);
  if (e->capacity < (c->t->fast ? need : c->special))
    return fail(PGEE_ARGUMENT,
                "the arrays hold %lld tokens, expected %lld: max_tokens, or the bytes of the text and %lld special tokens",
                (long long)e->capacity, (long long)need, (long long)c->special);
  if (!e->ids || !e->types)
    return fail(PGEE_ARGUMENT, "the arrays for ids and types are NULL");
  if (c->o->characters && (!e->offsets || !e->sequences || (c->texts[0]->word_ends && !e->words)))
    return fail(PGEE_ARGUMENT, "for offsets in characters the arrays for offsets, sequences and, with words, words are needed");
  return PGEE_OK;
}

static int encode(call *c) {
  int64_t n1, n2, length = 0, room = c->o->max_tokens - c->special;
  const tokenizer_template *shape = c->shape;
  TRY(put_texts(c, shape->plain && !c->o->bare ? shape->before : 0, shape->plain && !c->o->bare ? shape->between : 0, room, &n1,
                &n2));
  if (shape->plain)
    length = apply_plain_template(c, n1, n2);
  else
    TRY(apply_template(c, n1, n2, &length));
  for (int64_t i = 0; i < length; i++) /* a damaged image must not give ids without a row in the embedding */
    if ((uint32_t)c->e->ids[i] >= c->t->names.count)
      return fail(PGEE_FORMAT, "the tokenizer gives id %d, but its ids end at %lld", c->e->ids[i],
                  (long long)c->t->names.count - 1);
  if (c->o->characters)
    count_characters(c, length);
  c->e->length = length;
  return PGEE_OK;
}

int pgee_tokenizer_encode_texts(const pgee_tokenizer *t, pgee_encoding *e, const pgee_text *a, const pgee_text *b,
                                const pgee_encode_options *options) {
  NEED(t, e, a, options);
  TRY(check_text(a));
  if (b)
    TRY(check_text(b));
  call c = {.t = t, .e = e, .texts = {a, b}, .o = options, .shape = &t->templates[b != NULL]};
  c.special = options->bare ? 0 : c.shape->special;
  c.left = options->side == PGEE_SIDE_DEFAULT ? t->left : options->side == PGEE_SIDE_LEFT;
  TRY(check_room(&c, a->count + (b ? b->count : 0)));
  int status = encode(&c);
  pipeline_free(&c.run);
  return status;
}

int pgee_tokenizer_encode(const pgee_tokenizer *t, pgee_encoding *e, const char *a, int64_t a_bytes, const char *b,
                          int64_t b_bytes, int64_t max_tokens) {
  pgee_text first = {.bytes = a, .count = a_bytes}, second = {.bytes = b, .count = b_bytes};
  return pgee_tokenizer_encode_texts(t, e, &first, b ? &second : NULL, &(pgee_encode_options){.max_tokens = max_tokens});
}
