/* bpe.c: cuts words into pieces by merging. See bpe.h. */
#include "bpe.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/status.h"
#include "unicode.h"

/* A word of at most SHORT_WORD bytes is merged by looking at all pairs before each merge, a longer one with a heap. */
enum { SHORT_WORD = 32, MIN_BITS = 4, MAX_BITS = 28 };
static const int32_t NO_RANK = INT32_MAX;

static uint64_t slot_of(int bits, int32_t left, int32_t right) {
  uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
  return (key * 0x9E3779B97F4A7C15u) >> (64 - bits);
}

/* ---- Building -------------------------------------------------------------------------------------------------------------- */

static int put_merges(image_writer *w, const bpe_options *o) {
  int bits = MIN_BITS;
  while ((int64_t)1 << bits < 2 * o->merge_count)
    bits++;
  uint64_t mask = ((uint64_t)1 << bits) - 1;
  bpe_merge *out = image_new(w, IMAGE_MERGES, (int64_t)(mask + 1) * (int64_t)sizeof *out);
  if (!out)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < o->merge_count; i++) {
    const int32_t *m = o->merges + 3 * i;
    if (m[0] < 0 || m[1] < 0 || m[2] < 0 || m[0] == INT32_MAX || m[1] == INT32_MAX)
      return fail(PGEE_ARGUMENT, "merge %lld is of ids %d and %d into %d, expected 0 or more", (long long)i, m[0], m[1], m[2]);
    uint64_t slot = slot_of(bits, m[0] + 1, m[1] + 1);
    while (out[slot].left && (out[slot].left != m[0] + 1 || out[slot].right != m[1] + 1))
      slot = (slot + 1) & mask;
    out[slot] = (bpe_merge){m[0] + 1, m[1] + 1, (int32_t)i, m[2]};
  }
  return PGEE_OK;
}

static int put_affix(char *out, int32_t *bytes, const char *affix, const char *what) {
  size_t length = affix ? strlen(affix) : 0;
  if (length > BPE_AFFIX)
    return fail(PGEE_UNSUPPORTED, "the %s of pieces has %zu bytes, expected %d or fewer", what, length, BPE_AFFIX);
  if (length > 0)
    memcpy(out, affix, length);
  *bytes = (int32_t)length;
  return PGEE_OK;
}

/* Tables of the pieces that are one character, and of those that name a byte: <0x0A>. */
static void fill_tables(bpe_head *h, const model_vocabulary *v) {
  memset(h->firsts, -1, sizeof h->firsts);
  memset(h->bytes, -1, sizeof h->bytes);
  for (int64_t i = 0; i < v->count; i++) {
    int64_t begin = i > 0 ? v->ends[i - 1] : 0, bytes = v->ends[i] - begin;
    const char *text = v->bytes + begin;
    int32_t id = v->ids ? v->ids[i] : (int32_t)i;
    char name[8];
    uint32_t c;
    unsigned byte;
    if (bytes > 0 && bytes <= 2 && utf8_decode(text, bytes, &c) == bytes && c < BPE_FIRSTS)
      h->firsts[c] = id;
    if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
      continue;
    memcpy(name, text, 6);
    name[6] = 0;
    if (sscanf(name, "<0x%2X>", &byte) == 1 && snprintf(name, sizeof name, "<0x%02X>", byte) == 6 && memcmp(name, text, 6) == 0)
      h->bytes[byte] = id;
  }
}

int bpe_build(image_writer *w, const model_vocabulary *vocabulary, const bpe_options *o) {
  bpe_head *h = image_new(w, IMAGE_BPE, sizeof *h);
  if (!h)
    return PGEE_MEMORY;
  h->unk = o->unk;
  h->byte_fallback = o->byte_fallback != 0;
  h->fuse_unk = o->fuse_unk != 0;
  h->ignore_merges = o->ignore_merges != 0;
  TRY(put_affix(h->prefix, &h->prefix_bytes, o->prefix, "prefix"));
  TRY(put_affix(h->suffix, &h->suffix_bytes, o->suffix, "suffix"));
  fill_tables(h, vocabulary);
  return put_merges(w, o);
}

int bpe_open(bpe *m, const image *from, const names *n) {
  int64_t head, merges, slot = 0;
  m->head = image_section(from, IMAGE_BPE, &head);
  m->merges = image_section(from, IMAGE_MERGES, &merges);
  m->names = n;
  for (m->bits = MIN_BITS; m->bits <= MAX_BITS && merges != (int64_t)sizeof *m->merges << m->bits;)
    m->bits++;
  if (head != sizeof *m->head || m->bits > MAX_BITS)
    return fail(PGEE_FORMAT, "the merges in the image of a tokenizer have %lld bytes, their head %lld", (long long)merges,
                (long long)head);
  if (m->head->prefix_bytes < 0 || m->head->prefix_bytes > BPE_AFFIX || m->head->suffix_bytes < 0 ||
      m->head->suffix_bytes > BPE_AFFIX)
    return fail(PGEE_FORMAT, "the prefix and suffix in the image of a tokenizer have %d and %d bytes", m->head->prefix_bytes,
                m->head->suffix_bytes);
  while (slot < (int64_t)1 << m->bits && m->merges[slot].left)
    slot++;
  return slot < (int64_t)1 << m->bits ? PGEE_OK : fail(PGEE_FORMAT, "the merges in the image of a tokenizer have no free place");
}

/* ---- Characters ------------------------------------------------------------------------------------------------------------ */

/* A word while it is merged: symbol i has `bytes[i]` bytes. */
typedef struct symbols {
  int32_t *ids, *bytes;
  int64_t count;
} symbols;

static void put_symbol(symbols *s, int32_t id, int64_t bytes) {
  s->ids[s->count] = id;
  s->bytes[s->count++] = (int32_t)bytes;
}

/* An unknown token that is not put yet: one unknown character, or several if they are fused. */
typedef struct waiting {
  int there;
  int64_t bytes;
} waiting;

static void put_waiting(symbols *s, const bpe *m, waiting *u) {
  if (u->there)
    put_symbol(s, m->head->unk, u->bytes);
  u->there = 0;
}

/* Puts the pieces of a character's bytes and returns 1; returns 0 if a byte has no piece. They go before an unknown token that
 * waits, as in the tokenizers package. */
static int put_bytes(symbols *s, const bpe *m, const char *text, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i++)
    if (m->head->bytes[(uint8_t)text[i]] < 0)
      return 0;
  for (int64_t i = 0; i < bytes; i++)
    put_symbol(s, m->head->bytes[(uint8_t)text[i]], 1);
  return 1;
}

static void put_character(symbols *s, const bpe *m, waiting *u, int32_t id, const char *text, int64_t text_bytes, int64_t bytes) {
  if (id >= 0) {
    put_waiting(s, m, u);
    put_symbol(s, id, bytes);
  } else if (!(m->head->byte_fallback && put_bytes(s, m, text, text_bytes)) && m->head->unk >= 0) {
    if (u->there && m->head->fuse_unk)
      u->bytes += bytes;
    else {
      put_waiting(s, m, u);
      *u = (waiting){1, bytes};
    }
  }
}

static void put_characters(symbols *s, const bpe *m, const char *word, int64_t bytes) {
  const bpe_head *h = m->head;
  int plain = h->prefix_bytes == 0 && h->suffix_bytes == 0;
  waiting u = {0};
  for (int64_t i = 0, size; i < bytes; i += size) {
    char text[4 + 2 * BPE_AFFIX];
    uint32_t c;
    size = utf8_decode(word + i, bytes - i, &c);
    if (plain) {
      int32_t id = c < BPE_FIRSTS ? h->firsts[c] : names_id(m->names, word + i, size);
      put_character(s, m, &u, id, word + i, size, size);
      continue;
    }
    int64_t before = i > 0 ? h->prefix_bytes : 0, behind = i + size == bytes ? h->suffix_bytes : 0, all = before + size + behind;
    memcpy(text, h->prefix, (size_t)before);
    memcpy(text + before, word + i, (size_t)size);
    memcpy(text + before + size, h->suffix, (size_t)behind);
    put_character(s, m, &u, names_id(m->names, text, all), text, all, size);
  }
  put_waiting(s, m, &u);
}

/* ---- Merging --------------------------------------------------------------------------------------------------------------- */

static const bpe_merge *find(const bpe *m, int32_t left, int32_t right) {
  uint64_t mask = ((uint64_t)1 << m->bits) - 1;
  uint32_t l = (uint32_t)left + 1, r = (uint32_t)right + 1;
  for (uint64_t i = slot_of(m->bits, (int32_t)l, (int32_t)r); m->merges[i].left; i = (i + 1) & mask)
    if ((uint32_t)m->merges[i].left == l && (uint32_t)m->merges[i].right == r)
      return &m->merges[i];
  return NULL;
}

/* Each pair of neighbours is looked up once; each round makes the merge of the lowest rank. */
static void merge_short(const bpe *m, symbols *s) {
  int32_t ranks[SHORT_WORD], into[SHORT_WORD];
  int64_t n = s->count;
  for (int64_t i = 0; i + 1 < n; i++) {
    const bpe_merge *found = find(m, s->ids[i], s->ids[i + 1]);
    ranks[i] = found ? found->rank : NO_RANK;
    into[i] = found ? found->id : 0;
  }
  while (n > 1) {
    int64_t best = 0;
    for (int64_t i = 1; i + 1 < n; i++)
      best = ranks[i] < ranks[best] ? i : best;
    if (ranks[best] == NO_RANK)
      break;
    s->ids[best] = into[best];
    s->bytes[best] += s->bytes[best + 1];
    n--;
    for (int64_t i = best + 1; i < n; i++) {
      s->ids[i] = s->ids[i + 1];
      s->bytes[i] = s->bytes[i + 1];
      ranks[i - 1] = ranks[i]; /* that of best, too, for now */
      into[i - 1] = into[i];
    }
    for (int64_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < n; i++) {
      const bpe_merge *found = find(m, s->ids[i], s->ids[i + 1]);
      ranks[i] = found ? found->rank : NO_RANK;
      into[i] = found ? found->id : 0;
    }
  }
  s->count = n;
}

/* A possible merge of symbol `at` with the next one. It is made only if both symbols are still `left` and `right`. */
typedef struct candidate {
  int32_t rank, at, left, right, id;
} candidate;

typedef struct heap {
  candidate *list; /* a binary heap, the best candidate first */
  int64_t count;
} heap;

static int better(const candidate *a, const candidate *b) { return a->rank != b->rank ? a->rank < b->rank : a->at < b->at; }

static void push(heap *h, candidate c) {
  int64_t i = h->count++;
  for (; i > 0 && better(&c, &h->list[(i - 1) / 2]); i = (i - 1) / 2)
    h->list[i] = h->list[(i - 1) / 2];
  h->list[i] = c;
}

static candidate pop(heap *h) {
  candidate top = h->list[0], last = h->list[--h->count];
  int64_t i = 0;
  for (int64_t child; (child = 2 * i + 1) < h->count; i = child) {
    if (child + 1 < h->count && better(&h->list[child + 1], &h->list[child]))
      child++;
    if (!better(&h->list[child], &last))
      break;
    h->list[i] = h->list[child];
  }
  h->list[i] = last;
  return top;
}

static void consider(const bpe *m, heap *h, const symbols *s, int32_t at, int32_t next) {
  const bpe_merge *found = find(m, s->ids[at], s->ids[next]);
  if (found)
    push(h, (candidate){found->rank, at, s->ids[at], s->ids[next], found->id});
}

/* links: for each symbol the symbols before and after it, -1 at the ends. Each merge pushes at most two candidates, so there
 * are never more than three for each symbol. */
static void merge_long(const bpe *m, symbols *s, int32_t (*links)[2], heap *h) {
  int32_t n = (int32_t)s->count;
  for (int32_t i = 0; i < n; i++) {
    links[i][0] = i - 1;
    links[i][1] = i + 1 < n ? i + 1 : -1;
    if (i + 1 < n)
      consider(m, h, s, i, i + 1);
  }
  while (h->count > 0) {
    candidate c = pop(h);
    int32_t next = links[c.at][1];
    if (s->bytes[c.at] == 0 || next < 0 || s->ids[c.at] != c.left || s->ids[next] != c.right)
      continue;
    s->ids[c.at] = c.id;
    s->bytes[c.at] += s->bytes[next];
    s->bytes[next] = 0;
    links[c.at][1] = links[next][1];
    if (links[next][1] >= 0)
      links[links[next][1]][0] = c.at;
    if (links[c.at][0] >= 0)
      consider(m, h, s, links[c.at][0], c.at);
    if (links[c.at][1] >= 0)
      consider(m, h, s, c.at, links[c.at][1]);
  }
  s->count = 0;
  for (int32_t i = 0; i < n; i++)
    if (s->bytes[i] > 0)
      put_symbol(s, s->ids[i], s->bytes[i]);
}

/* ---- Words ----------------------------------------------------------------------------------------------------------------- */

static int put_pieces(model_pieces *out, const symbols *s) {
  for (int64_t i = 0, at = 0; i < s->count; at += s->bytes[i++])
    TRY(model_put(out, s->ids[i], at, at + s->bytes[i]));
  return PGEE_OK;
}

static int cut_short(const bpe *m, const char *word, int64_t bytes, model_pieces *out) {
  int32_t ids[SHORT_WORD], sizes[SHORT_WORD];
  symbols s = {ids, sizes, 0};
  put_characters(&s, m, word, bytes);
  merge_short(m, &s);
  return put_pieces(out, &s);
}

/* There is room for as many symbols as the word has bytes with the prefix of each character and the suffix, because a character
 * gives at most one symbol for each byte. */
static int cut_long(const bpe *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out) {
  int64_t most = bytes * (1 + m->head->prefix_bytes) + m->head->suffix_bytes;
  if (most > INT32_MAX / 2)
    return fail(PGEE_ARGUMENT, "a word of %lld bytes, expected fewer than 2^30", (long long)bytes);
  char *block = model_scratch_room(room, most * (int64_t)(4 * sizeof(int32_t) + 3 * sizeof(candidate)));
  if (!block)
    return PGEE_MEMORY;
  symbols s = {(int32_t *)block, (int32_t *)block + most, 0};
  heap h = {(candidate *)((int32_t *)block + 4 * most), 0};
  put_characters(&s, m, word, bytes);
  merge_long(m, &s, (int32_t(*)[2])((int32_t *)block + 2 * most), &h);
  return put_pieces(out, &s);
}

int bpe_cut(const bpe *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out) {
  int32_t id = m->head->ignore_merges ? names_id(m->names, word, bytes) : -1;
  if (id >= 0)
    return model_put(out, id, 0, bytes);
  int plain = m->head->prefix_bytes == 0 && m->head->suffix_bytes == 0;
  return plain && bytes <= SHORT_WORD ? cut_short(m, word, bytes, out) : cut_long(m, word, bytes, room, out);
}
