/* unigram_build.c: builds the double array of a vocabulary. See unigram.h.
 *
 * The pieces are sorted; a node is a range of pieces with the same beginning. All children of a node lie in one block of 256
 * units. They get the first base in the list of free units where all of them fit, or a new block. After OPEN_BLOCKS more
 * blocks, the free units of a block are given up, because hardly any node fits there. */
#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/perigee.h"
#include "engine/base/status.h"
#include "unigram.h"

enum { BLOCK = 256, OPEN_BLOCKS = 16 };
static const double PENALTY = 10.0;

/* The key by which a piece is sorted: its first 8 bytes, big-endian, filled up with zeros. */
typedef struct key {
  uint64_t start;
  int32_t piece;
} key;

typedef struct range {
  int64_t begin, end;
  uint32_t unit;
  int32_t depth;
} range;

typedef struct place {
  int32_t next, before; /* neighbours in the list of free units, which begins and ends in places[0] */
  uint8_t taken, is_base;
} place;

typedef struct builder {
  const model_vocabulary *vocabulary;
  key *keys; /* [2 * count], the second half for sorting */
  ARRAY(unigram_unit) units;
  ARRAY(place) places; /* one for each unit */
  ARRAY(range) ranges; /* nodes that have no children yet */
} builder;

/* ---- Sorted pieces --------------------------------------------------------------------------------------------------------- */

static const char *text_of(const model_vocabulary *v, int64_t i, int64_t *bytes) {
  int64_t begin = i > 0 ? v->ends[i - 1] : 0;
  *bytes = v->ends[i] - begin;
  return v->bytes + begin;
}

static key key_of(const model_vocabulary *v, int64_t i) {
  int64_t bytes;
  const char *s = text_of(v, i, &bytes);
  uint64_t start = 0;
  for (int j = 0; j < 8; j++)
    start = start << 8 | (j < bytes ? (uint8_t)s[j] : 0);
  return (key){start, (int32_t)i};
}

/* Equal pieces in the order of the vocabulary. */
static int is_before(const model_vocabulary *v, const key *a, const key *b) {
  if (a->start != b->start)
    return a->start < b->start;
  int64_t na, nb;
  const char *sa = text_of(v, a->piece, &na), *sb = text_of(v, b->piece, &nb);
  int order = memcmp(sa, sb, (size_t)(na < nb ? na : nb));
  return order != 0 ? order < 0 : na != nb ? na < nb : a->piece < b->piece;
}

/* Merge sort, bottom-up. Returns the one of the two arrays that holds the result. */
static const key *sort(const model_vocabulary *v, key *keys, key *other) {
  for (int64_t width = 1; width < v->count; width *= 2) {
    for (int64_t begin = 0; begin < v->count; begin += 2 * width) {
      int64_t middle = begin + width < v->count ? begin + width : v->count, end = begin + 2 * width;
      end = end < v->count ? end : v->count;
      for (int64_t i = begin, j = middle, k = begin; k < end; k++)
        other[k] = j == end || (i < middle && !is_before(v, keys + j, keys + i)) ? keys[i++] : keys[j++];
    }
    key *swap = keys;
    keys = other;
    other = swap;
  }
  return keys;
}

/* ---- Places ---------------------------------------------------------------------------------------------------------------- */

static void take(builder *b, uint32_t unit) {
  place *p = b->places.list + unit;
  b->places.list[p->before].next = p->next;
  b->places.list[p->next].before = p->before;
  p->taken = 1;
}

/* Adds a block of 256 units to the end of the list of free units. The label of a free unit can only be met from a base that no
 * node has, see fits. */
static int add_block(builder *b) {
  if (b->units.count + BLOCK > UNIGRAM_MAX_UNITS)
    return fail(PGEE_UNSUPPORTED, "the vocabulary's pieces need more than %d nodes", UNIGRAM_MAX_UNITS);
  TRY(ARRAY_RESERVE(&b->units, BLOCK));
  TRY(ARRAY_RESERVE(&b->places, BLOCK));
  for (int64_t i = b->units.count; i < b->units.count + BLOCK; i++) {
    b->units.list[i] = (unigram_unit){(uint32_t)(i % BLOCK) ^ 1, -1};
    if (i == 0)
      continue;
    b->places.list[i] = (place){.next = 0, .before = b->places.list[0].before};
    b->places.list[b->places.list[0].before].next = (int32_t)i;
    b->places.list[0].before = (int32_t)i;
  }
  int64_t closed = b->units.count - OPEN_BLOCKS * BLOCK;
  for (int64_t i = closed; i >= 0 && i < closed + BLOCK; i++)
    if (i > 0 && !b->places.list[i].taken)
      take(b, (uint32_t)i);
  b->units.count += BLOCK;
  b->places.count += BLOCK;
  return PGEE_OK;
}

/* Whether children with these bytes fit at a base. Base 0 means that a node has no children, and the second base of each block
 * is the one from which the labels of free units are met. */
static int fits(const builder *b, uint32_t base, const uint8_t *bytes, int count) {
  if (base == 0 || base % BLOCK == 1 || b->places.list[base].is_base)
    return 0;
  for (int i = 0; i < count; i++)
    if ((base ^ bytes[i]) == 0 || b->places.list[base ^ bytes[i]].taken)
      return 0;
  return 1;
}

static int find_base(builder *b, const uint8_t *bytes, int count, uint32_t *base) {
  for (int32_t p = b->places.list[0].next; p != 0; p = b->places.list[p].next) {
    *base = (uint32_t)p ^ bytes[0];
    if (fits(b, *base, bytes, count))
      return PGEE_OK;
  }
  *base = (uint32_t)b->units.count + 2;
  return add_block(b);
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------------------- */

static uint8_t byte_at(const builder *b, const key *k, int32_t depth) {
  int64_t bytes;
  return depth < 8 ? (uint8_t)(k->start >> (56 - 8 * depth)) : (uint8_t)text_of(b->vocabulary, k->piece, &bytes)[depth];
}

/* Gives a node its piece and its children their places. */
static int add_node(builder *b, const key *keys, range r) {
  uint8_t bytes[256];
  int64_t begins[257], length;
  int count = 0;
  for (; r.begin < r.end && (text_of(b->vocabulary, keys[r.begin].piece, &length), length == r.depth); r.begin++)
    b->units.list[r.unit].id = r.depth > 0 ? keys[r.begin].piece : -1; /* an empty piece is never found */
  for (int64_t i = r.begin; i < r.end; i++) {
    uint8_t byte = byte_at(b, keys + i, r.depth);
    if (count == 0 || byte != bytes[count - 1]) {
      begins[count] = i;
      bytes[count++] = byte;
    }
  }
  if (count == 0)
    return PGEE_OK;
  begins[count] = r.end;
  uint32_t base;
  TRY(find_base(b, bytes, count, &base));
  b->places.list[base].is_base = 1;
  b->units.list[r.unit].base_label |= base << 8;
  for (int i = count - 1; i >= 0; i--) {
    uint32_t unit = base ^ bytes[i];
    take(b, unit);
    b->units.list[unit].base_label = bytes[i];
    TRY(ARRAY_PUSH(&b->ranges, (range){begins[i], begins[i + 1], unit, r.depth + 1}));
  }
  return PGEE_OK;
}

static int add_nodes(builder *b) {
  const model_vocabulary *v = b->vocabulary;
  b->keys = mem_array(2 * v->count, sizeof *b->keys);
  if (!b->keys)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < v->count; i++)
    b->keys[i] = key_of(v, i);
  const key *keys = sort(v, b->keys, b->keys + v->count);
  TRY(add_block(b));
  TRY(ARRAY_PUSH(&b->ranges, (range){0, v->count, 0, 0}));
  while (b->ranges.count > 0)
    TRY(add_node(b, keys, b->ranges.list[--b->ranges.count]));
  return PGEE_OK;
}

/* ---- The image ------------------------------------------------------------------------------------------------------------- */

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* The byte that a piece such as <0x0A> stands for, or -1. */
static int byte_of(const char *s, int64_t bytes) {
  if (bytes != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>' || hex(s[3]) < 0 || hex(s[4]) < 0)
    return -1;
  return hex(s[3]) * 16 + hex(s[4]);
}

static int put_head(image_writer *w, const model_vocabulary *v, const double *scores, int32_t unk, int byte_fallback) {
  unigram_head h = {.unknown = scores[0], .unk = unk, .fallback = byte_fallback != 0};
  for (int i = 0; i < 256; i++)
    h.bytes[i] = -1;
  for (int64_t i = 0, bytes; i < v->count; i++) {
    const char *s = text_of(v, i, &bytes);
    int byte = byte_of(s, bytes);
    if (byte >= 0)
      h.bytes[byte] = (int32_t)i;
    if (scores[i] < h.unknown)
      h.unknown = scores[i];
  }
  h.unknown -= PENALTY;
  return image_put(w, IMAGE_UNIGRAM, &h, sizeof h);
}

int unigram_build(image_writer *w, const model_vocabulary *vocabulary, const double *scores, int32_t unk, int byte_fallback) {
  if (vocabulary->count < 1 || vocabulary->count > UNIGRAM_MAX_UNITS)
    return fail(PGEE_ARGUMENT, "Unigram with %lld pieces, expected 1 to %d", (long long)vocabulary->count, UNIGRAM_MAX_UNITS);
  if (unk < -1 || unk >= vocabulary->count)
    return fail(PGEE_ARGUMENT, "the unknown token of Unigram has id %d, expected that of one of %lld pieces", unk,
                (long long)vocabulary->count);
  for (int64_t i = 0; i < vocabulary->count; i++)
    if (!isfinite(scores[i]))
      return fail(PGEE_ARGUMENT, "the score of piece %lld is %g, expected a finite number", (long long)i, scores[i]);
  builder b = {.vocabulary = vocabulary};
  int status = add_nodes(&b);
  if (status == PGEE_OK)
    status = put_head(w, vocabulary, scores, unk, byte_fallback);
  if (status == PGEE_OK)
    status = image_put(w, IMAGE_UNIGRAM_1, b.units.list, b.units.count * (int64_t)sizeof *b.units.list);
  if (status == PGEE_OK)
    status = image_put(w, IMAGE_UNIGRAM_2, scores, vocabulary->count * (int64_t)sizeof *scores);
  mem_free(b.keys);
  ARRAY_FREE(&b.units);
  ARRAY_FREE(&b.places);
  ARRAY_FREE(&b.ranges);
  return status;
}
