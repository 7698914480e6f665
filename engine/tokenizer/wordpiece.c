/* wordpiece.c: WordPiece for pipeline.c. bert.c has its own loop over the same trie. See wordpiece.h. */
#include "wordpiece.h"

#include "engine/base/status.h"

static uint32_t node_of(const trie *t, const char *s) {
  uint32_t node = TRIE_ROOT;
  for (; *s; s++)
    if ((node = trie_next(t, node, (uint8_t)*s)) == TRIE_ROOT)
      return WORDPIECE_NOWHERE;
  return node;
}

static int insert_all(trie_builder *b, const model_vocabulary *v) {
  for (int64_t i = 0; i < v->count; i++) {
    int64_t begin = i > 0 ? v->ends[i - 1] : 0;
    if (v->ends[i] > begin)
      TRY(trie_insert(b, v->bytes + begin, v->ends[i] - begin, v->ids ? v->ids[i] : (int32_t)i));
  }
  return PGEE_OK;
}

int wordpiece_build(image_writer *w, const model_vocabulary *vocabulary, const char *prefix, int32_t *inside) {
  trie_builder b;
  TRY(trie_new(&b));
  int status = insert_all(&b, vocabulary);
  if (status == PGEE_OK)
    status = trie_write(&b, w, IMAGE_TRIE_EDGES, IMAGE_TRIE_VALUES);
  trie t = trie_of(&b);
  *inside = (int32_t)node_of(&t, prefix ? prefix : "");
  trie_free(&b);
  return status;
}

int wordpiece_open(wordpiece *m, const image *from) { return trie_open(&m->pieces, from, IMAGE_TRIE_EDGES, IMAGE_TRIE_VALUES); }

int wordpiece_cut(const wordpiece *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out) {
  (void)room;
  int64_t before = out->count, length = 0;
  uint32_t node = TRIE_ROOT;
  int known = !wordpiece_too_long(word, bytes, m->max_chars);
  for (int64_t at = 0; known && at < bytes; at += length, node = m->inside) {
    int32_t id = node == WORDPIECE_NOWHERE ? -1 : trie_longest(&m->pieces, node, word + at, bytes - at, &length);
    known = id >= 0;
    if (known)
      TRY(model_put(out, id, at, at + length));
  }
  if (known)
    return PGEE_OK;
  out->count = before;
  return model_put(out, m->unk, 0, bytes);
}
