/* normalizers.c: the steps that change a text. Results have the same spans as in the tokenizers package. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "character.h"
#include "pipeline.h"
#include "unicode.h"

/* ---- Unicode's normal forms ------------------------------------------------------------------------------------------------ */

static int32_t order_of(const spanned_edit *e) { return unicode(e->c)->order; }

static const unicode_decomposition *compatible(uint32_t c) {
  int low = 0, high = unicode_compat_count;
  while (low + 1 < high) {
    int middle = (low + high) / 2;
    if (unicode_compat[middle].c <= c)
      low = middle;
    else
      high = middle;
  }
  return &unicode_compat[low];
}

static int put_parts(spanned_edits *e, const uint32_t *parts, int count) {
  for (int i = 0; i < count; i++)
    TRY(ARRAY_PUSH(e, (spanned_edit){parts[i], i > 0}));
  return PGEE_OK;
}

static int decompose(spanned_edits *e, uint32_t c, int compat) {
  const unicode_record *r = unicode(c);
  if (c - HANGUL < HANGUL_COUNT) {
    uint32_t s = c - HANGUL;
    const uint32_t parts[] = {HANGUL_L + s / HANGUL_VT, HANGUL_V + s % HANGUL_VT / HANGUL_TS, HANGUL_T + s % HANGUL_TS};
    return put_parts(e, parts, s % HANGUL_TS ? 3 : 2);
  }
  if (compat && r->flags & UNICODE_COMPAT) {
    const unicode_decomposition *d = compatible(c);
    return put_parts(e, unicode_parts + d->parts, d->count);
  }
  return r->count ? put_parts(e, unicode_parts + r->parts, r->count) : ARRAY_PUSH(e, (spanned_edit){c, 0});
}

/* A stable counting sort: a text may be one long run of marks. */
static int sort_long(spanned_edit *list, int64_t count, model_scratch *room) {
  int64_t begin[257] = {0};
  spanned_edit *sorted = model_scratch_room(room, count * (int64_t)sizeof *sorted);
  if (!sorted)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < count; i++)
    begin[order_of(&list[i]) + 1]++;
  for (int i = 1; i < 257; i++)
    begin[i] += begin[i - 1];
  for (int64_t i = 0; i < count; i++)
    sorted[begin[order_of(&list[i])]++] = list[i];
  memcpy(list, sorted, (size_t)count * sizeof *list);
  return PGEE_OK;
}

static void sort_short(spanned_edit *list, int64_t count) {
  for (int64_t i = 1; i < count; i++) {
    spanned_edit e = list[i];
    int64_t j = i;
    for (; j > 0 && order_of(&list[j - 1]) > order_of(&e); j--)
      list[j] = list[j - 1];
    list[j] = e;
  }
}

/* Runs of combining marks in canonical order. */
static int sort_marks(spanned_edits *e, model_scratch *room) {
  for (int64_t i = 0, first; i < e->count; i++) {
    for (first = i; i < e->count && order_of(&e->list[i]) > 0; i++)
      ;
    if (i - first > 16)
      TRY(sort_long(e->list + first, i - first, room));
    else
      sort_short(e->list + first, i - first);
  }
  return PGEE_OK;
}

/* The character that NFC makes of two; 0 if there is none. */
static uint32_t compose(uint32_t a, uint32_t b) {
  uint32_t l = a - HANGUL_L, v = b - HANGUL_V, s = a - HANGUL, t = b - HANGUL_T;
  if (l < HANGUL_COUNT / HANGUL_VT && v < HANGUL_VT / HANGUL_TS)
    return HANGUL + l * HANGUL_VT + v * HANGUL_TS;
  if (s < HANGUL_COUNT && s % HANGUL_TS == 0 && t > 0 && t < HANGUL_TS)
    return a + t;
  int low = 0, high = unicode_pair_count;
  while (low < high) {
    int middle = (low + high) / 2;
    const unicode_pair *p = &unicode_pairs[middle];
    if (p->first == a && p->second == b)
      return p->c;
    if (p->first < a || (p->first == a && p->second < b))
      low = middle + 1;
    else
      high = middle;
  }
  return 0;
}

/* Composes each character with the last one that is not a combining mark, if such a character exists and if no mark of the same
 * or a higher order stands between them. */
static void recompose(spanned_edits *e) {
  int64_t count = 0, base = -1;
  int32_t last = -1; /* the order of what stands behind the base */
  for (int64_t i = 0; i < e->count; i++) {
    spanned_edit next = e->list[i];
    int32_t order = order_of(&next);
    uint32_t c = base >= 0 && last < order ? compose(e->list[base].c, next.c) : 0;
    if (c) {
      e->list[base].c = c;
      e->list[base].change += next.change - 1;
      continue;
    }
    if (order == 0)
      base = count;
    last = order == 0 ? -1 : order;
    e->list[count++] = next;
  }
  e->count = count;
}

/* The end of a chunk: the next ASCII character. Characters outside of a chunk have no effect on its normal form. */
static int64_t chunk_end(const spanned *in, int64_t at) {
  for (at++; at < in->length && (uint8_t)in->bytes[at] >= 128;)
    at++;
  return at;
}

static int normal_form(const spanned *in, pipeline *r, spanned *out, int compat, int composed) {
  for (int64_t at = 0, end; at < in->length; at = end) {
    int64_t plain = at;
    while (plain < in->length && (uint8_t)in->bytes[plain] < 128)
      plain++;
    plain -= plain > at && plain < in->length; /* the last one may be composed with the next character */
    TRY(spanned_keep(out, in, at, plain));
    if ((at = plain) == in->length)
      break;
    end = chunk_end(in, at);
    r->edits.count = 0;
    for (int64_t i = at, size; i < end; i += size) {
      uint32_t c;
      size = utf8_decode(in->bytes + i, end - i, &c);
      TRY(decompose(&r->edits, c, compat));
    }
    TRY(sort_marks(&r->edits, &r->room));
    if (composed)
      recompose(&r->edits);
    TRY(spanned_apply(out, in, at, end, 0, &r->edits));
  }
  return PGEE_OK;
}

/* ---- A character at a time ------------------------------------------------------------------------------------------------- */

enum { DROPPED = 0x110000 };

static uint32_t without_combining(uint32_t c) { return unicode(c)->flags & UNICODE_COMBINING ? DROPPED : c; }

static uint32_t nmt(uint32_t c) {
  if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F)
    return DROPPED;
  switch (c) {
  case 0x9:
  case 0xA:
  case 0xC:
  case 0xD:
  case 0x1680:
  case 0x200B:
  case 0x200C:
  case 0x200D:
  case 0x200E:
  case 0x200F:
  case 0x2028:
  case 0x2029:
  case 0x2581:
  case 0xFEFF:
  case 0xFFFD: return ' ';
  }
  return c;
}

static int map(const spanned *in, spanned *out, uint32_t (*to)(uint32_t)) {
  TRY(spanned_reserve(out, in->length));
  for (int64_t i = 0, size; i < in->length; i += size) {
    uint32_t c;
    size = utf8_decode(in->bytes + i, in->length - i, &c);
    uint32_t mapped = to(c);
    if (mapped != DROPPED)
      TRY(spanned_put(out, mapped, in->spans[i]));
  }
  return PGEE_OK;
}

static int lowercase(const spanned *in, spanned *out) {
  TRY(spanned_reserve(out, in->length));
  for (int64_t i = 0, size; i < in->length; i += size) {
    uint32_t c;
    size = utf8_decode(in->bytes + i, in->length - i, &c);
    TRY(spanned_put(out, c == 0x130 ? 'i' : c + (uint32_t)unicode(c)->lower, in->spans[i]));
    if (c == 0x130)
      TRY(spanned_put(out, 0x307, in->spans[i]));
  }
  return PGEE_OK;
}

static int byte_level(const spanned *in, spanned *out) {
  TRY(spanned_reserve(out, 2 * in->length));
  for (int64_t i = 0; i < in->length; i++)
    TRY(spanned_put(out, character_of_byte((uint8_t)in->bytes[i]), in->spans[i]));
  return PGEE_OK;
}

/* ---- Others ---------------------------------------------------------------------------------------------------------------- */

static int strip(const step *s, const spanned *in, spanned *out) {
  int64_t begin = 0, end = in->length;
  uint32_t c;
  for (int size; s->a && begin < end; begin += size) {
    size = utf8_decode(in->bytes + begin, end - begin, &c);
    if (!(unicode(c)->flags & UNICODE_WHITE))
      break;
  }
  for (int size; s->b && end > begin; end -= size) {
    size = utf8_before(in->bytes, end, &c);
    if (!(unicode(c)->flags & UNICODE_WHITE))
      break;
  }
  return spanned_keep(out, in, begin, end);
}

static int put_text(spanned *out, const char *text, int64_t bytes, span from) {
  TRY(spanned_reserve(out, bytes));
  for (int64_t i = 0; i < bytes; i++) {
    out->bytes[out->length] = text[i];
    out->spans[out->length++] = from;
  }
  return PGEE_OK;
}

/* Finds the next match of a step's pattern from `at` on. */
static int next_match(const step *s, const spanned *in, int64_t at, int64_t *begin, int64_t *end) {
  if (s->pattern)
    return pattern_next(s->pattern, in->bytes, at, in->length, begin, end);
  if (s->text_bytes == 0 || at >= in->length)
    return 0;
  const char *found = memmem(in->bytes + at, (size_t)(in->length - at), s->text, (size_t)s->text_bytes);
  *begin = found ? found - in->bytes : 0;
  *end = *begin + s->text_bytes;
  return found != NULL;
}

/* The replacement of a match gets the span of the match's last character. */
static int replace(const step *s, const spanned *in, spanned *out) {
  int64_t at = 0, begin, end;
  while (next_match(s, in, at, &begin, &end)) {
    TRY(spanned_keep(out, in, at, begin));
    TRY(put_text(out, s->more, s->more_bytes, in->spans[end - 1]));
    at = end;
  }
  return spanned_keep(out, in, at, in->length);
}

static int prepend(const step *s, const spanned *in, spanned *out) {
  if (in->length > 0)
    TRY(put_text(out, s->text, s->text_bytes, in->spans[0]));
  return spanned_keep(out, in, 0, in->length);
}

/* BertNormalizer. bert_normalize gives spans of `in`, which are then mapped to spans of the original text. */
static int bert(const bert_options *o, const spanned *in, spanned *out) {
  bert_ascii ascii;
  bert_normalizer from;
  bert_text n;
  bert_ascii_fill(&ascii, o);
  bert_normalizer_init(&from, o, &ascii, in->bytes, 0, in->length);
  bert_text_init(&n);
  int status = in->length > 0 ? bert_normalize(&from, &n, INT64_MAX) : PGEE_OK;
  if (status == PGEE_OK)
    status = spanned_reserve(out, n.length);
  for (int64_t i = 0; status == PGEE_OK && i < n.length; i++) {
    out->bytes[out->length] = n.bytes[i];
    out->spans[out->length++] = in->spans[n.spans[i].begin];
  }
  bert_text_free(&n);
  bert_normalizer_free(&from);
  return status;
}

int normalizer_run(const pgee_tokenizer *t, const step *s, const spanned *in, pipeline *r, spanned *out) {
  switch (s->kind) {
  case PGEE_STEP_BERT_NORMALIZER: return bert(&(bert_options){s->a, s->b, s->c, s->d}, in, out);
  case PGEE_STEP_NFC: return normal_form(in, r, out, 0, 1);
  case PGEE_STEP_NFD: return normal_form(in, r, out, 0, 0);
  case PGEE_STEP_NFKC: return normal_form(in, r, out, 1, 1);
  case PGEE_STEP_NFKD: return normal_form(in, r, out, 1, 0);
  case PGEE_STEP_LOWERCASE: return lowercase(in, out);
  case PGEE_STEP_STRIP_ACCENTS: return map(in, out, without_combining);
  case PGEE_STEP_STRIP: return strip(s, in, out);
  case PGEE_STEP_REPLACE: return replace(s, in, out);
  case PGEE_STEP_PREPEND: return prepend(s, in, out);
  case PGEE_STEP_NMT: return map(in, out, nmt);
  case PGEE_STEP_BYTE_LEVEL_NORMALIZER: return byte_level(in, out);
  case PGEE_STEP_PRECOMPILED: return charsmap_normalize(&t->charsmap, in, out);
  }
  return fail(PGEE_FORMAT, "a normalizer of kind %d", s->kind);
}

int normalizers_run(const pgee_tokenizer *t, pipeline *r) {
  for (int64_t i = 0; i < t->normalizers.count; i++) {
    spanned *in = &r->texts[0], *out = &r->texts[1], swap;
    out->length = 0;
    out->origin = in->origin;
    TRY(normalizer_run(t, &t->normalizers.list[i], in, r, out));
    swap = *in;
    *in = *out;
    *out = swap;
  }
  return PGEE_OK;
}
