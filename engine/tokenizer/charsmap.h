/* charsmap.h: SentencePiece's precompiled normalizer, which maps short strings to others, as the tokenizers package applies it.
 *
 * The blob is `bytes of the trie | trie | strings`: a darts-clone double array from UTF-8 to where in `strings`, which end with
 * zeros, the result begins. Grapheme clusters of less than 6 bytes are looked up whole, and then taken whole for what their
 * *shortest* beginning in the trie maps to; others, and those without one, are looked up a character at a time. */
#ifndef PERIGEE_CHARSMAP_H
#define PERIGEE_CHARSMAP_H
#include <stdint.h>

#include "image.h"
#include "spanned.h"

typedef struct charsmap {
  const uint32_t *units; /* [unit_count] */
  const uint64_t *alone; /* a bit for each code point below 0x10000: whether it has a result by itself */
  const char *strings;
  int64_t unit_count, string_bytes;
} charsmap;

/* PGEE_FORMAT: the blob is cut short, or its strings are not UTF-8. */
int charsmap_build(image_writer *w, const char *blob, int64_t bytes);
int charsmap_open(charsmap *m, const image *from);
/* Normalizes the whole text `in` and appends the result to `out`. */
int charsmap_normalize(const charsmap *m, const spanned *in, spanned *out);

#endif
