/* unigram.h: cuts a word into the pieces with the greatest sum of scores, as SentencePiece's unigram model does.
 *
 *   score of a path = ((0 + score of piece 1) + score of piece 2) + ..., in double, from left to right
 *
 * Paths are found from left to right, at each place by the shortest piece first. Only a strictly better path replaces another one.
 * A character that is not a piece can be unknown; its score is the smallest score of the vocabulary minus 10. Neighbouring unknown
 * characters are joined. If they are together a piece, they become this piece; else, with byte fallback and if the vocabulary has
 * them all, the pieces <0x00> to <0xFF> of their bytes; else one unknown token. */
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

/* scores[i]: the score of piece i, whose id is i. If pieces are equal, the last one counts. unk: the id of the unknown token,
 * or -1. Fails if unk is not the id of a piece, if there are no pieces, or if they need more than UNIGRAM_MAX_UNITS nodes. */
int unigram_build(image_writer *w, const model_vocabulary *vocabulary, const double *scores, int32_t unk, int byte_fallback);
int unigram_open(unigram *m, const image *from);
/* The time is proportional to the length of the word times the length of the longest piece. */
int unigram_cut(const unigram *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out);

#endif
