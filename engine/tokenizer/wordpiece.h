/* wordpiece.h: WordPiece cuts a word from its beginning, each time by the longest piece that fits. If none fits, the whole word
 * is unknown. */
#ifndef PERIGEE_WORDPIECE_H
#define PERIGEE_WORDPIECE_H
#include "model.h"
#include "trie.h"

/* No node: no piece begins inside a word. */
#define WORDPIECE_NOWHERE UINT32_MAX

typedef struct wordpiece {
  trie pieces;
  uint32_t inside; /* the node of the prefix, where pieces inside a word begin */
  int32_t unk, max_chars;
} wordpiece;

/* Writes the trie of the pieces. The caller stores *inside and sets it before wordpiece_open. */
int wordpiece_build(image_writer *w, const model_vocabulary *vocabulary, const char *prefix, int32_t *inside);
/* The caller has set unk, inside and max_chars. */
int wordpiece_open(wordpiece *m, const image *from);
int wordpiece_cut(const wordpiece *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out);

static inline int wordpiece_too_long(const char *word, int64_t bytes, int64_t limit) {
  if (bytes <= limit)
    return 0;
  int64_t characters = 0;
  for (int64_t i = 0; i < bytes; i++)
    characters += (word[i] & 0xC0) != 0x80;
  return characters > limit;
}

#endif
