/* bert.c: from text to tokens for BERT's tokenizers: BertNormalizer or no normalizer, BertPreTokenizer and WordPiece.
 *
 * This does what pipeline.c would do, and is faster: some words at a time are normalized into memory on the stack, and a word
 * is cut where it lies. Time is linear in the length of the text. */
#include "bert.h"

#include "engine/base/status.h"
#include "tokenizer.h"
#include "unicode.h"

/* The minimum size of a chunk in bytes; it ends at the next white space. Large enough to make calls rare, small enough for the
 * L1 cache. */
enum { CHUNK = BERT_TEXT_INLINE / 4 };

/* Puts the pieces of a word, from its beginning, each the longest that fits. Returns 0 if the word cannot be cut into pieces. */
static int put_pieces(sink *s, const bert_text *n, int64_t begin, int64_t end) {
  const wordpiece *m = &s->t->wordpiece;
  uint32_t node = TRIE_ROOT;
  if (wordpiece_too_long(n->bytes + begin, end - begin, m->max_chars))
    return 0;
  for (int64_t at = begin, length; at < end; at += length, node = m->inside) {
    int32_t id = node == WORDPIECE_NOWHERE ? -1 : trie_longest(&m->pieces, node, n->bytes + at, end - at, &length);
    if (id < 0)
      return 0;
    sink_put(s, id, n->spans[at].begin, n->spans[at + length - 1].end);
  }
  return 1;
}

static void put_word(sink *s, const bert_text *n, int64_t begin, int64_t end) {
  int64_t before = s->count;
  if (!put_pieces(s, n, begin, end)) {
    s->count = before;
    sink_put(s, s->t->wordpiece.unk, n->spans[begin].begin, n->spans[end - 1].end);
  }
  s->word += !s->in_words;
}

/* Words end at white space; each punctuation character is a word. */
static void put_words(sink *s, const bert_text *n, int64_t begin, int64_t end) {
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

static void put_normalized(sink *s, const bert_text *n) {
  added_search search = {.set = &s->t->added[1], .text = n->bytes, .bytes = n->length};
  for (added_match m; added_next(&search, &m); search.covered = m.end) {
    put_words(s, n, search.covered, m.begin);
    sink_put(s, m.id, n->spans[m.begin].begin, n->spans[m.end - 1].end);
    s->word += !s->in_words;
  }
  put_words(s, n, search.covered, n->length);
}

/* The text is normalized in chunks; if added tokens are looked for in it, all at once, because one could lie across two chunks. */
int bert_put(sink *s, const char *text, int64_t begin, int64_t end) {
  const pgee_tokenizer *t = s->t;
  int64_t enough = t->added[1].empty ? CHUNK : INT64_MAX;
  bert_normalizer from;
  bert_text n;
  bert_normalizer_init(&from, &t->bert, &t->ascii, text, begin, end);
  bert_text_init(&n);
  int status = PGEE_OK;
  while (status == PGEE_OK && from.at < from.end) {
    n.length = 0;
    status = bert_normalize(&from, &n, enough);
    if (status == PGEE_OK)
      put_normalized(s, &n);
  }
  bert_text_free(&n);
  bert_normalizer_free(&from);
  return status;
}
