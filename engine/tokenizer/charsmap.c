/* charsmap.c: looks strings up in the double array, and replaces them in a text. See charsmap.h. */
#include "charsmap.h"

#include <string.h>

#include "engine/perigee.h"
#include "engine/base/status.h"
#include "grapheme.h"
#include "unicode.h"

enum { WHOLE = 6, ALONE_CODES = 0x10000, ALONE_BYTES = ALONE_CODES / 8 };

/* ---- The trie ------------------------------------------------------------------------------------------------------------- */

/* A unit of darts-clone: label in bits 0 to 7 (bit 31 marks a value), bit 8: a string ends here, the rest leads to its
 * children. */
static uint32_t offset_of(uint32_t unit) { return unit >> 10 << ((unit & 1u << 9) >> 6); }

/* The result of the shortest beginning of s that is in the trie, an offset in `strings`; -1 if there is none. The units are not
 * checked when the image is opened, so any unit may be wrong. */
static int64_t look_up(const charsmap *m, const char *s, int64_t bytes) {
  const uint32_t *units = m->units;
  uint32_t at = m->unit_count > 0 ? offset_of(units[0]) : 0;
  for (int64_t i = 0; i < bytes && s[i]; i++) {
    uint8_t c = (uint8_t)s[i];
    at ^= c;
    if (at >= m->unit_count || (units[at] & (1u << 31 | 0xFF)) != c)
      return -1;
    int ends = units[at] >> 8 & 1;
    at ^= offset_of(units[at]);
    if (ends) {
      int64_t found = at < m->unit_count ? units[at] & ~(1u << 31) : INT64_MAX;
      return found < m->string_bytes ? found : -1;
    }
  }
  return -1;
}

static int64_t look_up_character(const charsmap *m, uint32_t c, const char *s, int64_t bytes) {
  return c < ALONE_CODES && !(m->alone[c >> 6] >> (c & 63) & 1) ? -1 : look_up(m, s, bytes);
}

/* ---- Edits ---------------------------------------------------------------------------------------------------------------- */

/* The state of a normalization. As the tokenizers package does, it only counts which characters of the result replace which
 * characters of the input. So characters that are dropped before the result has any character are not counted, and the later
 * characters of the result get the spans of earlier ones. */
typedef struct run {
  const spanned *in;
  spanned *out;
  int64_t from;      /* where the next character of the result has its span from */
  int64_t last;      /* where the last character of the result begins in out; -1: there is none */
  uint8_t is_put_in; /* the last character of the result was inserted: it replaces none */
} run;

static int64_t after(const spanned *in, int64_t at) {
  uint32_t c;
  return at < in->length ? at + utf8_decode(in->bytes + at, in->length - at, &c) : at;
}

static span span_from(const run *r, int64_t at) {
  return at >= 0 && at < r->in->length ? r->in->spans[at] : (span){r->out->origin, r->out->origin};
}

static int put(run *r, uint32_t c, int is_put_in) {
  span s = span_from(r, is_put_in ? r->from - 1 : r->from);
  r->last = r->out->length;
  r->is_put_in = (uint8_t)is_put_in;
  if (!is_put_in)
    r->from = after(r->in, r->from);
  return spanned_put(r->out, c, s);
}

/* The last character of the result replaces `count` more characters of the input. */
static void drop(run *r, int64_t count) {
  if (r->last < 0)
    return;
  for (int64_t i = r->last; r->is_put_in && i < r->out->length; i++)
    r->out->spans[i] = span_from(r, r->from);
  r->is_put_in = 0;
  while (count-- > 0)
    r->from = after(r->in, r->from);
}

static int keep(run *r, int64_t begin, int64_t end) {
  if (begin == end)
    return PGEE_OK;
  if (r->from == begin) { /* as good as always */
    r->from = end;
    r->is_put_in = 0;
    TRY(spanned_keep(r->out, r->in, begin, end));
    r->last = r->out->length - 1;
    return PGEE_OK;
  }
  for (uint32_t c; begin < end;) {
    begin += utf8_decode(r->in->bytes + begin, r->in->length - begin, &c);
    TRY(put(r, c, 0));
  }
  return PGEE_OK;
}

static int64_t characters(const char *s, int64_t bytes) {
  int64_t count = 0;
  for (int64_t i = 0; i < bytes; i++)
    count += (s[i] & 0xC0) != 0x80;
  return count;
}

/* Replaces `count` characters by the string at `found`. */
static int replace(run *r, const charsmap *m, int64_t found, int64_t count) {
  const char *s = m->strings + found;
  int64_t bytes = (int64_t)strnlen(s, (size_t)(m->string_bytes - found)), done = 0;
  for (uint32_t c; bytes > 0; done++) {
    int size = utf8_decode(s, bytes, &c);
    TRY(put(r, c, done >= count));
    s += size;
    bytes -= size;
  }
  if (done < count)
    drop(r, count - done);
  return PGEE_OK;
}

/* ---- Texts ---------------------------------------------------------------------------------------------------------------- */

/* Normalizes a grapheme cluster. The bytes from *kept on did not change; they are copied when a change comes or the text ends. */
static int cluster(run *r, const charsmap *m, int64_t begin, int64_t end, int64_t *kept) {
  const char *s = r->in->bytes;
  int64_t found = end - begin < WHOLE ? look_up(m, s + begin, end - begin) : -1;
  if (found >= 0) {
    TRY(keep(r, *kept, begin));
    *kept = end;
    return replace(r, m, found, characters(s + begin, end - begin));
  }
  for (int64_t at = begin; at < end;) {
    uint32_t c;
    int size = utf8_decode(s + at, end - at, &c);
    found = look_up_character(m, c, s + at, size);
    if (found >= 0) {
      TRY(keep(r, *kept, at));
      TRY(replace(r, m, found, 1));
      *kept = at + size;
    }
    at += size;
  }
  return PGEE_OK;
}

/* Whether an ASCII character does not change; before another ASCII character it is then a cluster of its own. */
static int is_still(const charsmap *m, uint8_t byte) {
  return byte < 0x80 && byte != '\r' && !(m->alone[byte >> 6] >> (byte & 63) & 1);
}

/* Skips ASCII characters that do not change, but not the last one of a run, because the next character may extend it. */
static int64_t skip_ascii(const charsmap *m, const spanned *in, int64_t at) {
  const uint8_t *s = (const uint8_t *)in->bytes;
  while (at + 1 < in->length && is_still(m, s[at]) && s[at + 1] < 0x80)
    at++;
  return at;
}

int charsmap_normalize(const charsmap *m, const spanned *in, spanned *out) {
  run r = {.in = in, .out = out, .last = -1};
  int64_t kept = 0, at = 0;
  TRY(spanned_reserve(out, in->length));
  while ((at = skip_ascii(m, in, at)) < in->length) {
    uint32_t c, next;
    grapheme_state state = {0};
    int64_t end = at + utf8_decode(in->bytes + at, in->length - at, &c), size;
    grapheme_break(&state, grapheme_class(c));
    for (; end < in->length; end += size) {
      size = utf8_decode(in->bytes + end, in->length - end, &next);
      if (grapheme_break(&state, grapheme_class(next)))
        break;
    }
    TRY(cluster(&r, m, at, end, &kept));
    at = end;
  }
  return keep(&r, kept, in->length);
}

/* ---- The image ------------------------------------------------------------------------------------------------------------ */

static int check_strings(const char *s, int64_t bytes) {
  uint32_t c;
  for (int64_t i = 0, size; i < bytes; i += size) {
    size = utf8_decode(s + i, bytes - i, &c);
    if (c == UTF8_REPLACEMENT && size == 1)
      return fail(PGEE_FORMAT, "the precompiled charsmap: its strings are not UTF-8 at byte %lld", (long long)i);
  }
  return PGEE_OK;
}

static void find_alone(const charsmap *m, uint64_t *alone) {
  char s[4];
  for (uint32_t c = 1; c < ALONE_CODES; c++)
    if ((c < 0xD800 || c >= 0xE000) && look_up(m, s, utf8_encode(s, c)) >= 0)
      alone[c >> 6] |= (uint64_t)1 << (c & 63);
}

int charsmap_build(image_writer *w, const char *blob, int64_t bytes) {
  uint32_t trie = 0;
  if (bytes >= 4)
    memcpy(&trie, blob, 4);
  if (bytes < 4 || trie > bytes - 4 || trie % 4 != 0 || trie == 0)
    return fail(PGEE_FORMAT, "the precompiled charsmap: %lld bytes with a trie of %u, expected a multiple of 4 that fits",
                (long long)bytes, trie);
  charsmap m = {.unit_count = trie / 4, .strings = blob + 4 + trie, .string_bytes = bytes - 4 - trie};
  TRY(check_strings(m.strings, m.string_bytes));
  TRY(image_put(w, IMAGE_CHARSMAP, blob + 4, trie));
  char *second = image_new(w, IMAGE_CHARSMAP_1, ALONE_BYTES + m.string_bytes);
  if (!second)
    return PGEE_MEMORY;
  m.units = (const uint32_t *)(const void *)(w->bytes.list + w->places[IMAGE_CHARSMAP][0]);
  find_alone(&m, (uint64_t *)(void *)second);
  memcpy(second + ALONE_BYTES, m.strings, (size_t)m.string_bytes);
  return PGEE_OK;
}

int charsmap_open(charsmap *m, const image *from) {
  int64_t units, rest;
  const void *first = image_section(from, IMAGE_CHARSMAP, &units), *second = image_section(from, IMAGE_CHARSMAP_1, &rest);
  if (units % 4 != 0 || rest < ALONE_BYTES)
    return fail(
        PGEE_FORMAT,
        "the precompiled charsmap in the image of a tokenizer has %lld and %lld bytes, expected a multiple of 4 and %d or more",
        (long long)units, (long long)rest, ALONE_BYTES);
  *m = (charsmap){.units = first,
                  .unit_count = units / 4,
                  .alone = second,
                  .strings = (const char *)second + ALONE_BYTES,
                  .string_bytes = rest - ALONE_BYTES};
  return PGEE_OK;
}
