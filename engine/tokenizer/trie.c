/* trie.c: how a trie is built. See trie.h. */
#include "trie.h"

#include <string.h>

#include "../memory.h"
#include "../status.h"

enum { FIRST_BITS = 6, FIRST_ROOM = 16 };

static void place(trie *t, uint64_t edge) {
  uint64_t mask = ((uint64_t)1 << t->bits) - 1, i = trie_slot(t, (uint32_t)(edge >> 32));
  while (t->edges[i])
    i = (i + 1) & mask;
  t->edges[i] = edge;
}

static int grow_edges(trie *t) {
  trie old = *t;
  uint64_t *edges = mem_array((int64_t)2 << old.bits, sizeof *edges);
  if (!edges)
    return PGEE_MEMORY;
  t->edges = edges;
  t->bits++;
  for (int64_t i = 0; i < (int64_t)1 << old.bits; i++)
    if (old.edges[i])
      place(t, old.edges[i]);
  mem_free(old.edges);
  return PGEE_OK;
}

static int grow_values(trie *t) {
  int32_t *values = mem_resize(t->values, (int64_t)t->room * 2 * (int64_t)sizeof *values);
  if (!values)
    return PGEE_MEMORY;
  t->values = values;
  t->room *= 2;
  return PGEE_OK;
}

int trie_new(trie *t) {
  *t = (trie){.bits = FIRST_BITS, .nodes = 1, .room = FIRST_ROOM};
  t->edges = mem_array((int64_t)1 << t->bits, sizeof *t->edges);
  t->values = t->edges ? mem_array(t->room, sizeof *t->values) : NULL;
  if (!t->values) {
    trie_free(t);
    return PGEE_MEMORY;
  }
  t->values[TRIE_ROOT] = -1;
  return PGEE_OK;
}

void trie_free(trie *t) {
  mem_free(t->edges);
  mem_free(t->values);
  *t = (trie){0};
}

static int add_node(trie *t, uint32_t parent, uint8_t byte) {
  if (t->nodes == TRIE_MAX_NODES)
    return fail(PGEE_UNSUPPORTED, "the vocabulary has more than %d different beginnings of pieces", TRIE_MAX_NODES);
  if (t->nodes == t->room)
    TRY(grow_values(t));
  if ((uint64_t)t->nodes * 2 > (uint64_t)1 << t->bits)
    TRY(grow_edges(t));
  place(t, (uint64_t)(parent << 8 | byte) << 32 | t->nodes);
  t->values[t->nodes++] = -1;
  return PGEE_OK;
}

int trie_insert(trie *t, const char *s, int64_t bytes, int32_t value) {
  uint32_t node = TRIE_ROOT;
  for (int64_t i = 0; i < bytes; i++) {
    uint32_t next = trie_next(t, node, (uint8_t)s[i]);
    if (next == TRIE_ROOT) {
      TRY(add_node(t, node, (uint8_t)s[i]));
      next = t->nodes - 1;
    }
    node = next;
  }
  t->values[node] = value;
  return PGEE_OK;
}
