/* bpe.h: byte pair encoding: a word begins as its characters, and of all pairs side by side the one that stands first in the list
 * of merges becomes one, the leftmost of equals, until there is none.
 *
 * A character that is no piece is unknown, or, with byte fallback, the pieces <0x00> to <0xFF> of its bytes; without an unknown
 * piece it is left out, and what follows moves up, as in the reference. */
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

/* A place of the hash table of merges; left 0 is free, and one at least is. */
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

/* What is told of it beside the vocabulary; see pgee_tokenizer_definition. */
typedef struct bpe_options {
  int32_t unk, byte_fallback, fuse_unk, ignore_merges;
  const char *prefix, *suffix; /* NULL: none */
  const int32_t *merges;       /* [merge_count][3] */
  int64_t merge_count;
} bpe_options;

/* The names must be in the image already. Of equal pairs the last counts. */
int bpe_build(image_writer *w, const model_vocabulary *vocabulary, const bpe_options *options);
int bpe_open(bpe *m, const image *from, const names *n);
/* Time is n log n in the characters of a word. */
int bpe_cut(const bpe *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out);

#endif
