/* unigram.h: cuts a word into the pieces with the greatest sum of scores, as SentencePiece's unigram model does.
 *
 *   score of a path = ((0 + score of piece 1) + score of piece 2) + ..., in double, from left to right
 *
 * Paths are found forward, each beginning with its pieces by length; only a strictly better one takes another's place. A
 * character that is no piece may be unknown, for the least score of the vocabulary minus 10. Unknowns side by side are one; if
 * together they are a piece they are that piece, else, with byte fallback, the pieces <0x00> to <0xFF> of their bytes if all are
 * there. */
#ifndef PERIGEE_UNIGRAM_H
#define PERIGEE_UNIGRAM_H
#include <stdint.h>

#include "model.h"

/* A node of the double array: the child by byte c of a node is units[base ^ c] if that one's label is c. */
typedef struct unigram_unit {
  uint32_t base_label; /* base << 8 | label. base 0: no children */
  int32_t id;          /* of the piece that ends here, or -1 */
} unigram_unit;

enum { UNIGRAM_MAX_UNITS = 1 << 24 };

typedef struct unigram_head {
  double unknown; /* the score of an unknown character */
  int32_t unk;    /* -1: a character that is no piece is an error */
  int32_t fallback;
  int32_t bytes[256]; /* ids of <0x00> to <0xFF>, -1 where there is none */
} unigram_head;

typedef struct unigram {
  const unigram_head *head;
  const unigram_unit *units;
  const double *scores;
  int64_t unit_count, count; /* units, pieces */
} unigram;

/* scores[i] of piece i, whose id is i: of equal pieces the last counts. unk: a piece, or -1. Errors: unk is no piece; no pieces;
 * more beginnings of pieces than UNIGRAM_MAX_UNITS. */
int unigram_build(image_writer *w, const model_vocabulary *vocabulary, const double *scores, int32_t unk, int byte_fallback);
int unigram_open(unigram *m, const image *from);
/* Time is linear in the word, times the length of the longest piece. */
int unigram_cut(const unigram *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out);

#endif
