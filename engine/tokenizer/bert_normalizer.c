/* bert_normalizer.c: BERT's normalizer as a stream of characters. See bert.h. */
#include "bert.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "unicode.h"

/* ---- The normalized text ---------------------------------------------------------------------------------------------- */

/* | spans | bytes | kinds | */
static void lay_out(bert_text *n, char *block, int64_t capacity) {
  n->spans = (span *)block;
  n->bytes = block + capacity * (int64_t)sizeof(span);
  n->kinds = (uint8_t *)n->bytes + capacity;
  n->capacity = capacity;
}

void bert_text_init(bert_text *n) {
  n->block = NULL;
  n->length = 0;
  lay_out(n, n->first, BERT_TEXT_INLINE);
}

void bert_text_free(bert_text *n) { mem_free(n->block); }

static int grow(bert_text *n) {
  bert_text old = {.spans = n->spans, .bytes = n->bytes, .kinds = n->kinds, .block = n->block};
  char *block = mem_array(n->capacity * 2, sizeof(span) + 2);
  if (!block)
    return PGEE_MEMORY;
  lay_out(n, block, n->capacity * 2);
  n->block = block;
  memcpy(n->spans, old.spans, (size_t)n->length * sizeof(span));
  memcpy(n->bytes, old.bytes, (size_t)n->length);
  memcpy(n->kinds, old.kinds, (size_t)n->length);
  mem_free(old.block);
  return PGEE_OK;
}

static int push(bert_text *n, uint32_t c, int kind, span from) {
  if (n->length + 4 > n->capacity)
    TRY(grow(n));
  int size = utf8_encode(n->bytes + n->length, c);
  for (int i = 0; i < size; i++, n->length++) {
    n->kinds[n->length] = (uint8_t)kind;
    n->spans[n->length] = from;
  }
  return PGEE_OK;
}

/* ---- Accents and case --------------------------------------------------------------------------------------------------- */

static int emit(bert_normalizer *s, bert_text *out, uint32_t c, span from) {
  const unicode_record *r = unicode(c);
  if (s->options->strip_accents && r->flags & UNICODE_MARK)
    return PGEE_OK;
  if (s->options->lowercase && c == 0x130) {
    TRY(push(out, 'i', 0, from));
    return push(out, 0x307, 0, from);
  }
  if (s->options->lowercase)
    c = (uint32_t)((int32_t)c + r->lower);
  return push(out, c, r->flags & (UNICODE_WHITE | UNICODE_PUNCT), from);
}

/* A stable counting sort into the second half: a text may be one long run of marks. */
static bert_mark *sort_marks(bert_normalizer *s) {
  int64_t begin[257] = {0};
  bert_mark *to = s->marks + s->mark_room;
  for (int64_t i = 0; i < s->mark_count; i++)
    begin[s->marks[i].order + 1]++;
  for (int i = 1; i < 256; i++)
    begin[i] += begin[i - 1];
  for (int64_t i = 0; i < s->mark_count; i++)
    to[begin[s->marks[i].order]++] = s->marks[i];
  return to;
}

/* Puts the waiting marks in canonical order. Spans stay in the order of the text, see bert.h. */
static int flush_marks(bert_normalizer *s, bert_text *out) {
  const bert_mark *order = s->sorted ? s->marks : sort_marks(s), *next = s->marks;
  for (int64_t i = 0; i < s->mark_count; i++) {
    if (!order[i].added) {
      while (next->added)
        next++;
      s->last = next++->from;
    }
    TRY(emit(s, out, order[i].c, s->last));
  }
  s->mark_count = 0;
  s->sorted = 1;
  return PGEE_OK;
}

static int wait_mark(bert_normalizer *s, bert_mark m) {
  if (s->mark_count == s->mark_room) {
    bert_mark *block = mem_array(s->mark_room * 4, sizeof *block);
    if (!block)
      return PGEE_MEMORY;
    memcpy(block, s->marks, (size_t)s->mark_count * sizeof *block);
    mem_free(s->block);
    s->marks = s->block = block;
    s->mark_room *= 2;
  }
  if (s->mark_count > 0 && s->marks[s->mark_count - 1].order > m.order)
    s->sorted = 0;
  s->marks[s->mark_count++] = m;
  return PGEE_OK;
}

/* One part of a decomposition. */
static int part(bert_normalizer *s, bert_text *out, uint32_t c, int added, span from) {
  uint8_t order = unicode(c)->order;
  if (order != 0)
    return wait_mark(s, (bert_mark){.c = c, .order = order, .added = (uint8_t)added, .from = from});
  if (s->mark_count > 0)
    TRY(flush_marks(s, out));
  if (!added)
    s->last = from;
  return emit(s, out, c, s->last);
}

static int hangul(bert_normalizer *s, bert_text *out, uint32_t syllable, span from) {
  uint32_t tail = syllable % HANGUL_TS;
  TRY(part(s, out, HANGUL_L + syllable / HANGUL_VT, 0, from));
  TRY(part(s, out, HANGUL_V + syllable % HANGUL_VT / HANGUL_TS, 1, from));
  return tail ? part(s, out, HANGUL_T + tail, 1, from) : PGEE_OK;
}

/* Strips accents and lowers the case of one character. */
static int accents(bert_normalizer *s, bert_text *out, uint32_t c, span from) {
  if (!s->options->strip_accents)
    return emit(s, out, c, from);
  if (c - HANGUL < HANGUL_COUNT)
    return hangul(s, out, c - HANGUL, from);
  const unicode_record *r = unicode(c);
  if (r->count == 0)
    return part(s, out, c, 0, from);
  for (int i = 0; i < r->count; i++)
    TRY(part(s, out, unicode_parts[r->parts + i], i > 0, from));
  return PGEE_OK;
}

/* ---- The stream ----------------------------------------------------------------------------------------------------------- */

static int character(bert_normalizer *s, bert_text *out, uint32_t c, span from) {
  int flags = unicode(c)->flags;
  if (s->options->clean_text && flags & (UNICODE_DROP | UNICODE_WHITE))
    return flags & UNICODE_DROP ? PGEE_OK : accents(s, out, ' ', from);
  if (!s->options->handle_chinese_chars || !(flags & UNICODE_CJK))
    return accents(s, out, c, from);
  TRY(accents(s, out, ' ', from));
  TRY(accents(s, out, c, from));
  return accents(s, out, ' ', from);
}

void bert_ascii_fill(bert_ascii *t, const bert_options *options) {
  for (uint32_t c = 0; c < 128; c++) {
    const unicode_record *r = unicode(c);
    int clean = options->clean_text ? r->flags & (UNICODE_DROP | UNICODE_WHITE) : 0;
    t->byte[c] = (uint8_t)(clean ? ' ' : options->lowercase ? c + (uint32_t)r->lower : c);
    t->kind[c] = clean & UNICODE_DROP ? UNICODE_DROP : r->flags & (UNICODE_WHITE | UNICODE_PUNCT);
  }
}

/* Normalizes ASCII characters while no mark waits. Stops at the first byte that is not ASCII, at the first white space after
 * `enough` bytes, or when `out` is full. */
static void ascii_run(bert_normalizer *s, bert_text *out, int64_t enough) {
  int64_t room = out->capacity - out->length, end = s->end - s->at < room ? s->end : s->at + room, i = s->at, n = out->length;
  for (; i < end && (uint8_t)s->text[i] < 128; i++) {
    uint8_t kind = s->ascii->kind[(uint8_t)s->text[i]];
    if (kind == UNICODE_DROP)
      continue;
    out->bytes[n] = (char)s->ascii->byte[(uint8_t)s->text[i]];
    out->kinds[n] = kind;
    out->spans[n++] = (span){(int32_t)i, (int32_t)i + 1};
    if (kind == UNICODE_WHITE && n >= enough) {
      i++;
      break;
    }
  }
  if (n > out->length)
    s->last = out->spans[n - 1];
  s->at = i;
  out->length = n;
}

void bert_normalizer_init(bert_normalizer *s, const bert_options *options, const bert_ascii *ascii, const char *text, int64_t at,
                          int64_t end) {
  s->options = options;
  s->ascii = ascii;
  s->text = text;
  s->at = at;
  s->end = end;
  s->last = (span){0, 0};
  s->marks = s->first;
  s->mark_count = 0;
  s->mark_room = BERT_MARKS_INLINE;
  s->sorted = 1;
  s->block = NULL;
}

void bert_normalizer_free(bert_normalizer *s) { mem_free(s->block); }

int bert_normalize(bert_normalizer *s, bert_text *out, int64_t enough) {
  while (s->at < s->end) {
    uint32_t c;
    int size = utf8_decode(s->text + s->at, s->end - s->at, &c);
    if (c < 128 && s->mark_count == 0) {
      if (out->length == out->capacity)
        TRY(grow(out));
      ascii_run(s, out, enough);
    } else {
      TRY(character(s, out, c, (span){(int32_t)s->at, (int32_t)s->at + size}));
      s->at += size;
    }
    if (out->length >= enough && out->kinds[out->length - 1] == UNICODE_WHITE) /* white space lets no mark wait */
      return PGEE_OK;
  }
  return flush_marks(s, out);
}
