/* trie.h: maps byte strings to numbers. A walk reads a text byte by byte and finds the longest string that the text begins
 * with.
 *
 * Nodes are numbered from the root, 0. An edge is one word, `parent node, byte | child node`, in a hash table with open
 * addressing that is at most half full. So one step of a walk is one multiplication and usually one load. Strings can be
 * inserted in any order. An image stores the two tables. Whatever their words are, a walk ends and stays inside of them. */
#ifndef PERIGEE_TRIE_H
#define PERIGEE_TRIE_H
#include <stdint.h>

#include "image.h"

typedef struct trie {
  const uint64_t *edges; /* [1 << bits]; 0 is a free place, and at least one place is free */
  const int32_t *values; /* [mask + 1] the value of each node; -1: no string ends here */
  int bits;
  uint32_t mask;
} trie;

enum { TRIE_ROOT = 0, TRIE_MAX_NODES = 1 << 24 };

typedef struct trie_builder {
  uint64_t *edges; /* [1 << bits] */
  int bits;
  ARRAY(int32_t) values; /* of each node */
} trie_builder;

/* A builder without strings. */
int trie_new(trie_builder *b);
void trie_free(trie_builder *b);
/* Inserts a string with value >= 0, which replaces the value of an equal string. PGEE_UNSUPPORTED if the trie would have more
 * than TRIE_MAX_NODES nodes. */
int trie_insert(trie_builder *b, const char *s, int64_t bytes, int32_t value);
/* A view of the strings inserted so far, valid until the next insertion. */
trie trie_of(const trie_builder *b);

int trie_write(const trie_builder *b, image_writer *w, int edges, int values);
int trie_open(trie *t, const image *m, int edges, int values);

static inline uint64_t trie_slot(int bits, uint32_t key) { return (uint32_t)(key * 0x9E3779B1u) >> (32 - bits); }

/* The child of `node` by `byte`; TRIE_ROOT if there is none. */
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

/* Walks from `node` and finds the longest string that `text` begins with. Returns its value and writes its length; -1 if the text
 * begins with none of the strings, or only with the empty one. */
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
