/* trie.c: builds a trie, writes it to an image and opens it. See trie.h. */
#include "trie.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"

enum { FIRST_BITS = 6, FIRST_ROOM = 16, MAX_BITS = 28 };

static void place(trie_builder *b, uint64_t edge) {
  uint64_t mask = ((uint64_t)1 << b->bits) - 1, i = trie_slot(b->bits, (uint32_t)(edge >> 32));
  while (b->edges[i])
    i = (i + 1) & mask;
  b->edges[i] = edge;
}

static int grow_edges(trie_builder *b) {
  trie_builder old = *b;
  uint64_t *edges = mem_array((int64_t)2 << old.bits, sizeof *edges);
  if (!edges)
    return PGEE_MEMORY;
  b->edges = edges;
  b->bits++;
  for (int64_t i = 0; i < (int64_t)1 << old.bits; i++)
    if (old.edges[i])
      place(b, old.edges[i]);
  mem_free(old.edges);
  return PGEE_OK;
}

int trie_new(trie_builder *b) {
  *b = (trie_builder){.bits = FIRST_BITS};
  b->edges = mem_array((int64_t)1 << b->bits, sizeof *b->edges);
  if (b->edges && ARRAY_PUSH(&b->values, -1) == PGEE_OK) /* the root */
    return PGEE_OK;
  trie_free(b);
  return PGEE_MEMORY;
}

void trie_free(trie_builder *b) {
  mem_free(b->edges);
  ARRAY_FREE(&b->values);
  *b = (trie_builder){0};
}

static int add_node(trie_builder *b, uint32_t parent, uint8_t byte) {
  if (b->values.count == TRIE_MAX_NODES)
    return fail(PGEE_UNSUPPORTED, "the vocabulary has more than %d different beginnings of pieces", TRIE_MAX_NODES);
  TRY(ARRAY_RESERVE(&b->values, 1));
  if (b->values.count * 2 > (int64_t)1 << b->bits)
    TRY(grow_edges(b));
  place(b, (uint64_t)(parent << 8 | byte) << 32 | (uint32_t)b->values.count);
  return ARRAY_PUSH(&b->values, -1);
}

int trie_insert(trie_builder *b, const char *s, int64_t bytes, int32_t value) {
  uint32_t node = TRIE_ROOT;
  for (int64_t i = 0; i < bytes; i++) {
    trie t = trie_of(b);
    uint32_t next = trie_next(&t, node, (uint8_t)s[i]);
    if (next == TRIE_ROOT) {
      TRY(add_node(b, node, (uint8_t)s[i]));
      next = (uint32_t)b->values.count - 1;
    }
    node = next;
  }
  b->values.list[node] = value;
  return PGEE_OK;
}

trie trie_of(const trie_builder *b) { return (trie){b->edges, b->values.list, b->bits, UINT32_MAX}; }

/* ---- In an image ----------------------------------------------------------------------------------------------------------- */

int trie_write(const trie_builder *b, image_writer *w, int edges, int values) {
  TRY(image_put(w, edges, b->edges, ((int64_t)1 << b->bits) * (int64_t)sizeof *b->edges));
  int64_t room = FIRST_ROOM; /* a power of two: a walk masks the number of a node */
  while (room < b->values.count)
    room *= 2;
  int32_t *out = image_new(w, values, room * (int64_t)sizeof *out);
  if (!out)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < room; i++)
    out[i] = i < b->values.count ? b->values.list[i] : -1;
  return PGEE_OK;
}

/* n if `bytes` are 2^n items of `size` bytes; -1 if the number of items is no power of two. */
static int power(int64_t bytes, int64_t size) {
  for (int n = 0; n <= MAX_BITS; n++)
    if (bytes == size << n)
      return n;
  return -1;
}

int trie_open(trie *t, const image *m, int edges, int values) {
  int64_t edge_bytes, value_bytes, free_edge = 0;
  t->edges = image_section(m, edges, &edge_bytes);
  t->values = image_section(m, values, &value_bytes);
  t->bits = power(edge_bytes, sizeof *t->edges);
  if (t->bits < 1 || power(value_bytes, sizeof *t->values) < 0)
    return fail(PGEE_FORMAT, "sections %d and %d of the image of a tokenizer, of %lld and %lld bytes, are no trie", edges, values,
                (long long)edge_bytes, (long long)value_bytes);
  t->mask = (uint32_t)(value_bytes / (int64_t)sizeof *t->values - 1);
  while (free_edge < (int64_t)1 << t->bits && t->edges[free_edge])
    free_edge++;
  if (free_edge == (int64_t)1 << t->bits)
    return fail(PGEE_FORMAT, "section %d of the image of a tokenizer has no free edge", edges);
  return PGEE_OK;
}
