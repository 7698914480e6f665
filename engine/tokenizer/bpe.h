/* bpe.h: byte pair encoding (Sennrich et al. 2016). A word begins as the list of its characters. Then one pair of neighbours
 * after another is merged: always the pair that comes first in the list of merges, the leftmost one of equal pairs, until no
 * pair is in the list.
 *
 * A character that is not a piece becomes the pieces <0x00> to <0xFF> of its bytes (byte fallback), or else the unknown piece.
 * Without an unknown piece it is left out, and the pieces after it move to the left in the offsets, as in the tokenizers
 * package. */
#ifndef PERIGEE_BPE_H
#define PERIGEE_BPE_H
#include <stdint.h>

#include "model.h"
#include "names.h"

enum { BPE_FIRSTS = 512, BPE_AFFIX = 64 };

typedef struct bpe_head {
  int32_t unk; /* -1: none */
  int32_t byte_fallback, fuse_unk, ignore_merges;
  int32_t prefix_bytes, suffix_bytes;
  char prefix[BPE_AFFIX], suffix[BPE_AFFIX];
  int32_t firsts[BPE_FIRSTS]; /* the piece that is this code point alone, -1: none */
  int32_t bytes[256];         /* <0x00> to <0xFF> */
} bpe_head;

/* A place of the hash table of merges. A place with left 0 is free, and at least one place is free. */
typedef struct bpe_merge {
  int32_t left, right; /* ids plus 1 */
  int32_t rank, id;
} bpe_merge;

typedef struct bpe {
  const bpe_head *head;
  const bpe_merge *merges; /* [1 << bits] */
  const names *names;
  int bits;
} bpe;

/* The options besides the vocabulary, see pgee_tokenizer_definition. */
typedef struct bpe_options {
  int32_t unk, byte_fallback, fuse_unk, ignore_merges;
  const char *prefix, *suffix; /* NULL: none */
  const int32_t *merges;       /* [merge_count][3] */
  int64_t merge_count;
} bpe_options;

/* The names must be in the image already. If two merges have the same pair, the last one counts. */
int bpe_build(image_writer *w, const model_vocabulary *vocabulary, const bpe_options *options);
int bpe_open(bpe *m, const image *from, const names *n);
/* The time is proportional to n log n for a word of n characters. */
int bpe_cut(const bpe *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out);

#endif
