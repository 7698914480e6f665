/* tokenizer.c: BERT's WordPiece tokenizer, made to give the ids and offsets of the `tokenizers` package for every text.
 *
 *   text --added tokens cut out--> stretches --normalized, some words at a time--> words and punctuation --longest pieces--> ids
 *
 * A tokenizer is not changed by encoding. What a call needs lies on its stack and grows elsewhere only for words of kilobytes.
 * Time is linear in the text. */
#include <string.h>

#include "../memory.h"
#include "../status.h"
#include "added.h"
#include "normalize.h"
#include "trie.h"
#include "unicode.h"

/* Bytes of a chunk before it may end at white space: enough to amortize the call, little enough to stay in the nearest cache. */
enum { CHUNK = NORMALIZED_INLINE / 4 };
static const uint32_t NOWHERE = UINT32_MAX;

struct pgee_tokenizer {
  pgee_wordpiece_options options; /* without the prefix, which is the caller's */
  ascii_table ascii;
  trie pieces;
  uint32_t inside;    /* the node of the prefix, where pieces inside a word begin; NOWHERE if there are none */
  added_set added[2]; /* those not normalized, those normalized */
};

/* ---- Words to ids ------------------------------------------------------------------------------------------------------- */

/* Where one text's tokens go. All are counted, `limit` are written. */
typedef struct sink {
  const pgee_tokenizer *t;
  int32_t *ids, *offsets; /* offsets may be NULL */
  int64_t limit, count;
} sink;

static void put(sink *s, int32_t id, int32_t begin, int32_t end) {
  if (s->count < s->limit) {
    s->ids[s->count] = id;
    if (s->offsets) {
      s->offsets[2 * s->count] = begin;
      s->offsets[2 * s->count + 1] = end;
    }
  }
  s->count++;
}

static int too_long(const char *word, int64_t bytes, int64_t limit) {
  if (bytes <= limit)
    return 0;
  int64_t characters = 0;
  for (int64_t i = 0; i < bytes; i++)
    characters += (word[i] & 0xC0) != 0x80;
  return characters > limit;
}

/* Whether the word could be put together from pieces: each the longest that fits, from its beginning. */
static int put_pieces(sink *s, const normalized *n, int64_t begin, int64_t end) {
  const pgee_tokenizer *t = s->t;
  uint32_t node = TRIE_ROOT;
  if (too_long(n->bytes + begin, end - begin, t->options.max_word_chars))
    return 0;
  for (int64_t at = begin, length; at < end; at += length, node = t->inside) {
    int32_t id = node == NOWHERE ? -1 : trie_longest(&t->pieces, node, n->bytes + at, end - at, &length);
    if (id < 0)
      return 0;
    put(s, id, n->spans[at].begin, n->spans[at + length - 1].end);
  }
  return 1;
}

static void put_word(sink *s, const normalized *n, int64_t begin, int64_t end) {
  int64_t before = s->count;
  if (!put_pieces(s, n, begin, end)) {
    s->count = before;
    put(s, s->t->options.unk, n->spans[begin].begin, n->spans[end - 1].end);
  }
}

/* Words end at white space; punctuation is a word, each character its own. */
static void put_words(sink *s, const normalized *n, int64_t begin, int64_t end) {
  const uint8_t *kinds = n->kinds;
  for (int64_t i = begin, word; i < end;) {
    word = i;
    if (kinds[i] == 0) {
      while (i < end && kinds[i] == 0)
        i++;
      put_word(s, n, word, i);
    } else {
      do
        i++;
      while (i < end && (n->bytes[i] & 0xC0) == 0x80);
      if (kinds[word] == UNICODE_PUNCT)
        put_word(s, n, word, i);
    }
  }
}

/* ---- Texts to words ----------------------------------------------------------------------------------------------------- */

static void put_normalized(sink *s, const normalized *n) {
  added_search search = {.set = &s->t->added[1], .text = n->bytes, .bytes = n->length};
  for (added_match m; added_next(&search, &m); search.covered = m.end) {
    put_words(s, n, search.covered, m.begin);
    put(s, m.id, n->spans[m.begin].begin, n->spans[m.end - 1].end);
  }
  put_words(s, n, search.covered, n->length);
}

/* A stretch of text without added tokens. It is normalized in chunks, unless a token could lie across two of them. */
static int put_stretch(sink *s, const char *text, int64_t begin, int64_t end) {
  const pgee_tokenizer *t = s->t;
  int64_t enough = t->added[1].count > 0 ? INT64_MAX : CHUNK;
  normalizer from;
  normalized n;
  normalizer_init(&from, &t->options, &t->ascii, text, begin, end);
  normalized_init(&n);
  int status = PGEE_OK;
  while (status == PGEE_OK && from.at < from.end) {
    n.length = 0;
    status = normalize(&from, &n, enough);
    if (status == PGEE_OK)
      put_normalized(s, &n);
  }
  normalized_free(&n);
  normalizer_free(&from);
  return status;
}

static int put_text(sink *s, const char *text, int64_t bytes) {
  added_search search = {.set = &s->t->added[0], .text = text, .bytes = bytes};
  for (added_match m; added_next(&search, &m); search.covered = m.end) {
    if (search.covered < m.begin)
      TRY(put_stretch(s, text, search.covered, m.begin));
    put(s, m.id, (int32_t)m.begin, (int32_t)m.end);
  }
  return search.covered < bytes ? put_stretch(s, text, search.covered, bytes) : PGEE_OK;
}

/* ---- A tokenizer ---------------------------------------------------------------------------------------------------------- */

static int check_utf8(const char *text, int64_t bytes, const char *what, int32_t id) {
  uint32_t c;
  for (int64_t i = 0, size; i < bytes; i += size) {
    size = utf8_decode(text + i, bytes - i, &c);
    if (c == UNICODE_REPLACEMENT && size == 1)
      return fail(PGEE_ARGUMENT, "the %s with id %d is not UTF-8 at byte %lld", what, id, (long long)i);
  }
  return PGEE_OK;
}

static int add_pieces(pgee_tokenizer *t, const char *pieces, const int32_t *ids, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    int64_t bytes = (int64_t)strlen(pieces);
    if (ids[i] < 0)
      return fail(PGEE_ARGUMENT, "piece %lld has id %d, expected 0 or more", (long long)i, ids[i]);
    TRY(check_utf8(pieces, bytes, "piece", ids[i]));
    TRY(trie_insert(&t->pieces, pieces, bytes, ids[i]));
    pieces += bytes + 1;
  }
  return PGEE_OK;
}

static uint32_t node_of(const trie *t, const char *s) {
  uint32_t node = TRIE_ROOT;
  for (; *s; s++)
    if ((node = trie_next(t, node, (uint8_t)*s)) == TRIE_ROOT)
      return NOWHERE;
  return node;
}

static int check_options(const pgee_wordpiece_options *o) {
  if (!o->prefix)
    return fail(PGEE_ARGUMENT, "the prefix is NULL, expected a string such as '##'");
  if (o->max_word_chars < 0)
    return fail(PGEE_ARGUMENT, "max_word_chars is %d, expected 0 or more", o->max_word_chars);
  const int32_t special[] = {o->unk, o->cls, o->sep};
  for (int i = 0; i < 3; i++)
    if (special[i] < 0)
      return fail(PGEE_ARGUMENT, "the id of %s is %d, expected 0 or more", (const char *[]){"unk", "cls", "sep"}[i], special[i]);
  return PGEE_OK;
}

static int fill(pgee_tokenizer *t, const char *pieces, const int32_t *ids, int64_t count, const char *prefix) {
  TRY(trie_new(&t->pieces));
  TRY(added_new(&t->added[0]));
  TRY(added_new(&t->added[1]));
  ascii_table_fill(&t->ascii, &t->options);
  TRY(add_pieces(t, pieces, ids, count));
  t->inside = node_of(&t->pieces, prefix);
  return PGEE_OK;
}

int pgee_wordpiece_new(pgee_tokenizer **out, const char *pieces, const int32_t *ids, int64_t count,
                       const pgee_wordpiece_options *options) {
  NEED(out, options);
  if (count < 0)
    return fail(PGEE_ARGUMENT, "%lld pieces, expected 0 or more", (long long)count);
  if (count > 0)
    NEED(pieces, ids);
  TRY(check_options(options));
  pgee_tokenizer *t = mem_new(sizeof *t);
  if (!t)
    return PGEE_MEMORY;
  t->options = *options;
  t->options.prefix = NULL;
  int status = fill(t, pieces, ids, count, options->prefix);
  if (status == PGEE_OK)
    *out = t;
  else
    pgee_tokenizer_free(t);
  return status;
}

void pgee_tokenizer_free(pgee_tokenizer *t) {
  if (!t)
    return;
  added_free(&t->added[0]);
  added_free(&t->added[1]);
  trie_free(&t->pieces);
  mem_free(t);
}

int pgee_tokenizer_add(pgee_tokenizer *t, const char *text, int32_t id, int is_normalized, int single_word, int lstrip,
                       int rstrip) {
  NEED(t, text);
  if (id < 0)
    return fail(PGEE_ARGUMENT, "an added token has id %d, expected 0 or more", id);
  int64_t bytes = (int64_t)strlen(text);
  added_token token = {.id = id, .single_word = single_word != 0, .lstrip = lstrip != 0, .rstrip = rstrip != 0};
  TRY(check_utf8(text, bytes, "added token", id));
  if (!is_normalized)
    return added_add(&t->added[0], text, bytes, token);
  normalizer from;
  normalized n;
  normalizer_init(&from, &t->options, &t->ascii, text, 0, bytes);
  normalized_init(&n);
  int status = normalize(&from, &n, INT64_MAX);
  if (status == PGEE_OK)
    status = added_add(&t->added[1], n.bytes, n.length, token);
  normalized_free(&n);
  normalizer_free(&from);
  return status;
}

/* ---- Encoding ------------------------------------------------------------------------------------------------------------- */

/* Two texts of n1 and n2 tokens into `room`, the longest cut first: as the reference counts, not one by one. */
static void cut(int64_t *n1, int64_t *n2, int64_t room) {
  int64_t *shorter = *n1 <= *n2 ? n1 : n2, *longer = *n1 <= *n2 ? n2 : n1;
  *longer = *shorter > room - *shorter ? *shorter : room - *shorter;
  if (*shorter + *longer > room) {
    *shorter = room / 2;
    *longer = room - room / 2;
  }
}

static int check_text(const char *text, int64_t bytes) {
  if (bytes < 0 || bytes > INT32_MAX - 3)
    return fail(PGEE_ARGUMENT, "a text of %lld bytes, expected 0 to %d", (long long)bytes, INT32_MAX - 3);
  return text || bytes == 0 ? PGEE_OK : fail(PGEE_ARGUMENT, "a text is NULL, expected %lld bytes", (long long)bytes);
}

static int check_room(const pgee_encoding *e, int64_t bytes, int64_t special, int64_t max_tokens) {
  int64_t need = max_tokens < bytes + 3 ? max_tokens : bytes + 3;
  if (max_tokens < special)
    return fail(PGEE_ARGUMENT, "max_tokens is %lld, expected %lld or more: the special tokens alone are as many",
                (long long)max_tokens, (long long)special);
  if (e->capacity < need || !e->ids || !e->types)
    return fail(PGEE_ARGUMENT, "the arrays hold %lld tokens, expected %lld: max_tokens, or the bytes of the text and 3",
                (long long)e->capacity, (long long)need);
  return PGEE_OK;
}

static sink sink_at(const pgee_tokenizer *t, const pgee_encoding *e, int64_t at, int64_t limit) {
  return (sink){.t = t, .ids = e->ids + at, .offsets = e->offsets ? e->offsets + 2 * at : NULL, .limit = limit};
}

static void put_special(const pgee_encoding *e, int64_t at, int32_t id) {
  sink s = sink_at(NULL, e, at, 1);
  put(&s, id, 0, 0);
}

int pgee_tokenizer_encode(const pgee_tokenizer *t, pgee_encoding *e, const char *a, int64_t a_bytes, const char *b,
                          int64_t b_bytes, int64_t max_tokens) {
  NEED(t, e);
  int64_t special = b ? 3 : 2;
  TRY(check_text(a, a_bytes));
  TRY(check_text(b, b ? b_bytes : 0));
  TRY(check_room(e, a_bytes + (b ? b_bytes : 0), special, max_tokens));
  int64_t room = (max_tokens < e->capacity ? max_tokens : e->capacity) - special;
  sink first = sink_at(t, e, 1, room);
  TRY(put_text(&first, a, a_bytes));
  int64_t n1 = first.count < room ? first.count : room, n2 = 0, dropped = first.count - n1;
  if (b) {
    sink second = sink_at(t, e, n1 + 2, room - n1);
    TRY(put_text(&second, b, b_bytes));
    n2 = second.count;
    if (first.count + n2 > room) {
      n1 = first.count;
      cut(&n1, &n2, room);
      dropped = first.count + second.count - n1 - n2;
      second = sink_at(t, e, n1 + 2, n2); /* its place is known only now */
      TRY(put_text(&second, b, b_bytes));
    }
    put_special(e, n1 + n2 + 2, t->options.sep);
  }
  put_special(e, 0, t->options.cls);
  put_special(e, n1 + 1, t->options.sep);
  e->length = n1 + n2 + special;
  e->dropped = dropped;
  for (int64_t i = 0; i < e->length; i++)
    e->types[i] = i >= n1 + 2;
  return PGEE_OK;
}
