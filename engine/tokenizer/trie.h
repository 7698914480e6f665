/* trie.h: byte strings to numbers, walked one byte at a time, so that the longest that a text begins with is found in one go.
 *
 * Nodes are numbered from the root, 0. An edge is one word in an open-addressing hash table, `parent node, byte | child node`, at
 * most half full: a step is one multiplication and mostly one load. Building is the same walk, in any order of strings. The two
 * tables are what lies in an image; whatever their words are, a walk ends and stays inside them. */
#ifndef PERIGEE_TRIE_H
#define PERIGEE_TRIE_H
#include <stdint.h>

#include "image.h"

typedef struct trie {
  const uint64_t *edges; /* [1 << bits]; 0 is free, and one at least is */
  const int32_t *values; /* [mask + 1] of each node; -1: no string ends here */
  int bits;
  uint32_t mask;
} trie;

enum { TRIE_ROOT = 0, TRIE_MAX_NODES = 1 << 24 };

typedef struct trie_builder {
  uint64_t *edges; /* [1 << bits] */
  int bits;
  ARRAY(int32_t) values; /* of each node */
} trie_builder;

/* An empty one. */
int trie_new(trie_builder *b);
void trie_free(trie_builder *b);
/* value >= 0; that of a string which is there already is replaced. PGEE_UNSUPPORTED beyond TRIE_MAX_NODES. */
int trie_insert(trie_builder *b, const char *s, int64_t bytes, int32_t value);
/* What is built so far, as long as nothing is inserted. */
trie trie_of(const trie_builder *b);

int trie_write(const trie_builder *b, image_writer *w, int edges, int values);
int trie_open(trie *t, const image *m, int edges, int values);

static inline uint64_t trie_slot(int bits, uint32_t key) { return (uint32_t)(key * 0x9E3779B1u) >> (32 - bits); }

/* The child of `node` by `byte`; TRIE_ROOT, which is nobody's child, if there is none. */
static inline uint32_t trie_next(const trie *t, uint32_t node, uint8_t byte) {
  uint32_t key = node << 8 | byte;
  uint64_t mask = ((uint64_t)1 << t->bits) - 1;
  for (uint64_t i = trie_slot(t->bits, key);; i = (i + 1) & mask) {
    uint64_t edge = t->edges[i];
    if (edge >> 32 == key || edge == 0)
      return (uint32_t)edge;
  }
}

static inline int32_t trie_value(const trie *t, uint32_t node) { return t->values[node & t->mask]; }

/* The longest string that text begins with, from `node` on: its value and length. -1 if there is none but the empty one. */
static inline int32_t trie_longest(const trie *t, uint32_t node, const char *text, int64_t bytes, int64_t *length) {
  int32_t best = -1;
  for (int64_t i = 0; i < bytes && (node = trie_next(t, node, (uint8_t)text[i])) != TRIE_ROOT; i++) {
    int32_t value = trie_value(t, node);
    if (value >= 0) {
      best = value;
      *length = i + 1;
    }
  }
  return best;
}

#endif
