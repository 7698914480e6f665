/* decode.c: from ids to text. The pieces of the ids are a list of texts. Each decoder makes a new list of texts from it. At the
 * end the texts are joined; if there are no decoders, with spaces between them. */
#include <string.h>

#include "engine/base/array.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "character.h"
#include "tokenizer.h"
#include "unicode.h"

static const char REPLACEMENT[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* A list of texts: text i is bytes[ends[i - 1]] to bytes[ends[i] - 1]. texts_put adds bytes to a new text, and texts_end ends
 * it. */
typedef struct texts {
  ARRAY(char) bytes;
  ARRAY(int64_t) ends;
} texts;

static void texts_free(texts *t) {
  ARRAY_FREE(&t->bytes);
  ARRAY_FREE(&t->ends);
}

static int texts_put(texts *t, const char *bytes, int64_t count) {
  TRY(ARRAY_RESERVE(&t->bytes, count));
  if (count > 0)
    memcpy(t->bytes.list + t->bytes.count, bytes, (size_t)count);
  t->bytes.count += count;
  return PGEE_OK;
}

static int texts_end(texts *t) { return ARRAY_PUSH(&t->ends, t->bytes.count); }

static const char *text_of(const texts *t, int64_t i, int64_t *bytes) {
  int64_t begin = i > 0 ? t->ends.list[i - 1] : 0;
  *bytes = t->ends.list[i] - begin;
  return *bytes > 0 ? t->bytes.list + begin : "";
}

/* ---- Decoders that see a text alone ---------------------------------------------------------------------------------------- */

/* Appends the text with every `from` replaced. */
static int replace_all(texts *out, const char *text, int64_t bytes, const char *from, int64_t from_bytes, const char *to,
                       int64_t to_bytes) {
  const char *end = text + bytes, *found;
  while (from_bytes > 0 && (found = memmem(text, (size_t)(end - text), from, (size_t)from_bytes))) {
    TRY(texts_put(out, text, found - text));
    TRY(texts_put(out, to, to_bytes));
    text = found + from_bytes;
  }
  return texts_put(out, text, end - text);
}

static int replace_matches(texts *out, const char *text, int64_t bytes, const step *s) {
  int64_t at = 0, begin, end;
  if (!s->pattern)
    return replace_all(out, text, bytes, s->text, s->text_bytes, s->more, s->more_bytes);
  for (; pattern_next(s->pattern, text, at, bytes, &begin, &end); at = end) {
    TRY(texts_put(out, text + at, begin - at));
    TRY(texts_put(out, s->more, s->more_bytes));
  }
  return texts_put(out, text + at, bytes - at);
}

/* The replacements of the cleanup option, in the order in which the tokenizers package makes them. */
static const char *const REPAIRS[][2] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},    {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
};

/* Cleans up the last text of `out`, which begins at `begin` and is not ended yet. */
static int clean_up(texts *out, int64_t begin) {
  texts copy = {0};
  int status = PGEE_OK;
  for (size_t i = 0; status == PGEE_OK && i < sizeof REPAIRS / sizeof *REPAIRS; i++) {
    size_t length = strlen(REPAIRS[i][0]);
    if (!memmem(out->bytes.list + begin, (size_t)(out->bytes.count - begin), REPAIRS[i][0], length))
      continue;
    copy.bytes.count = 0;
    status = texts_put(&copy, out->bytes.list + begin, out->bytes.count - begin);
    out->bytes.count = begin;
    if (status == PGEE_OK)
      status = replace_all(out, copy.bytes.list, copy.bytes.count, REPAIRS[i][0], (int64_t)length, REPAIRS[i][1],
                           (int64_t)strlen(REPAIRS[i][1]));
  }
  texts_free(&copy);
  return status;
}

static int decode_wordpiece(texts *out, const char *text, int64_t bytes, const step *s, int first) {
  int64_t begin = out->bytes.count;
  if (!first && bytes >= s->text_bytes && memcmp(text, s->text, (size_t)s->text_bytes) == 0) {
    text += s->text_bytes;
    bytes -= s->text_bytes;
  } else if (!first)
    TRY(texts_put(out, " ", 1));
  TRY(texts_put(out, text, bytes));
  return s->a && out->bytes.count > begin ? clean_up(out, begin) : PGEE_OK;
}

static int decode_metaspace(texts *out, const char *text, int64_t bytes, const step *s, int first) {
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    if (c != (uint32_t)s->a)
      TRY(texts_put(out, text + i, size));
    else if (!first || s->b == PGEE_PREPEND_NEVER)
      TRY(texts_put(out, " ", 1));
  }
  return PGEE_OK;
}

static int strip(texts *out, const char *text, int64_t bytes, const step *s) {
  int64_t begin = 0, end = bytes, size;
  uint32_t c;
  for (int i = 0; i < s->b && begin < bytes; i++, begin += size) {
    size = utf8_decode(text + begin, bytes - begin, &c);
    if (c != (uint32_t)s->a)
      break;
  }
  for (int i = 0; i < s->c && end > begin; i++, end -= size) {
    size = utf8_before(text, end, &c);
    if (c != (uint32_t)s->a)
      break;
  }
  return texts_put(out, text + begin, end - begin);
}

static int decode_each(texts *out, const texts *in, const step *s) {
  for (int64_t i = 0; i < in->ends.count; i++) {
    int64_t bytes;
    const char *text = text_of(in, i, &bytes);
    int last = i + 1 == in->ends.count;
    switch (s->kind) {
    case PGEE_STEP_DECODE_WORDPIECE: TRY(decode_wordpiece(out, text, bytes, s, i == 0)); break;
    case PGEE_STEP_METASPACE: TRY(decode_metaspace(out, text, bytes, s, i == 0)); break;
    case PGEE_STEP_DECODE_BPE: TRY(replace_all(out, text, bytes, s->text, s->text_bytes, " ", last ? 0 : 1)); break;
    case PGEE_STEP_REPLACE: TRY(replace_matches(out, text, bytes, s)); break;
    case PGEE_STEP_DECODE_STRIP: TRY(strip(out, text, bytes, s)); break;
    default: return fail(PGEE_FORMAT, "a decoder of kind %d", s->kind);
    }
    TRY(texts_end(out));
  }
  return PGEE_OK;
}

/* ---- Decoders that join them ----------------------------------------------------------------------------------------------- */

/* The text begins with bytes that are not valid UTF-8. Returns how many of them one U+FFFD replaces: the longest prefix that could
 * begin a valid character, else 1, as Rust's String::from_utf8_lossy does. */
static int64_t ill_formed(const char *text, int64_t bytes) {
  const uint8_t *s = (const uint8_t *)text;
  int more = s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 1 : s[0] < 0xF0 ? 2 : s[0] < 0xF5 ? 3 : 0;
  uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80, high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
  if (more == 0 || bytes < 2 || s[1] < low || s[1] > high)
    return 1;
  int64_t n = 2;
  while (n < more && n < bytes && (s[n] & 0xC0) == 0x80)
    n++;
  return n;
}

static int put_repaired(texts *out, const char *text, int64_t bytes) {
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    if (c == UTF8_REPLACEMENT && size == 1) {
      size = ill_formed(text + i, bytes - i);
      TRY(texts_put(out, REPLACEMENT, 3));
    } else
      TRY(texts_put(out, text + i, size));
  }
  return PGEE_OK;
}

/* If all characters of a text stand for bytes, puts these bytes, else the text itself. */
static int put_bytes_of(texts *out, const char *text, int64_t bytes) {
  int64_t begin = out->bytes.count;
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    int byte = character_to_byte(c);
    if (byte < 0) {
      out->bytes.count = begin;
      return texts_put(out, text, bytes);
    }
    char one = (char)byte;
    TRY(texts_put(out, &one, 1));
  }
  return PGEE_OK;
}

static int decode_byte_level(texts *out, const texts *in) {
  texts raw = {0};
  int status = PGEE_OK;
  for (int64_t i = 0; status == PGEE_OK && i < in->ends.count; i++) {
    int64_t bytes;
    const char *text = text_of(in, i, &bytes);
    status = put_bytes_of(&raw, text, bytes);
  }
  if (status == PGEE_OK)
    status = put_repaired(out, raw.bytes.list, raw.bytes.count);
  texts_free(&raw);
  return status == PGEE_OK ? texts_end(out) : status;
}

static int is_utf8(const char *text, int64_t bytes) {
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    if (c == UTF8_REPLACEMENT && size == 1)
      return 0;
  }
  return 1;
}

/* The byte that <0xHH> names, or -1. As in the tokenizers package, the first digit may be a plus sign. */
static int named_byte(const char *text, int64_t bytes) {
  int value = 0, digits = 0;
  if (bytes != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
    return -1;
  for (int i = 3; i < 5; i++) {
    int c = text[i] | 32, digit = text[i] >= '0' && text[i] <= '9' ? text[i] - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0 && !(i == 3 && text[i] == '+'))
      return -1;
    value = digit < 0 ? 0 : value * 16 + digit;
    digits += digit >= 0;
  }
  return digits > 0 ? value : -1;
}

/* Ends the last *count bytes: as one text if they are valid UTF-8, else as one U+FFFD for each byte. */
static int end_bytes(texts *out, int64_t *count) {
  int64_t n = *count, begin = out->bytes.count - n;
  *count = 0;
  if (n == 0)
    return PGEE_OK;
  if (is_utf8(out->bytes.list + begin, n))
    return texts_end(out);
  out->bytes.count = begin;
  for (int64_t i = 0; i < n; i++) {
    TRY(texts_put(out, REPLACEMENT, 3));
    TRY(texts_end(out));
  }
  return PGEE_OK;
}

static int decode_bytes(texts *out, const texts *in) {
  int64_t waiting = 0;
  for (int64_t i = 0; i < in->ends.count; i++) {
    int64_t bytes;
    const char *text = text_of(in, i, &bytes);
    int byte = named_byte(text, bytes);
    if (byte >= 0) {
      char one = (char)byte;
      TRY(texts_put(out, &one, 1));
      waiting++;
      continue;
    }
    TRY(end_bytes(out, &waiting));
    TRY(texts_put(out, text, bytes));
    TRY(texts_end(out));
  }
  return end_bytes(out, &waiting);
}

/* ---- All of them ----------------------------------------------------------------------------------------------------------- */

static int decode_step(texts *out, const texts *in, const step *s) {
  switch (s->kind) {
  case PGEE_STEP_BYTE_LEVEL: return decode_byte_level(out, in);
  case PGEE_STEP_BYTE_FALLBACK: return decode_bytes(out, in);
  case PGEE_STEP_DECODE_FUSE: TRY(texts_put(out, in->bytes.list, in->bytes.count)); return texts_end(out);
  }
  return decode_each(out, in, s);
}

static int take_pieces(texts *out, const pgee_tokenizer *t, const int32_t *ids, int64_t count, int special) {
  for (int64_t i = 0; i < count; i++) {
    int64_t bytes;
    int is_special;
    const char *text = names_text(&t->names, ids[i], &bytes, &is_special);
    if (!text)
      return fail(PGEE_ARGUMENT, "id %lld is %d, which the vocabulary does not have", (long long)i + 1, ids[i]);
    if (is_special && !special)
      continue;
    if (out->ends.count > 0 && t->decoders.count == 0)
      TRY(texts_put(out, " ", 1));
    TRY(texts_put(out, text, bytes));
    TRY(texts_end(out));
  }
  return PGEE_OK;
}

int pgee_tokenizer_decode(const pgee_tokenizer *t, const int32_t *ids, int64_t count, int special, char *out, int64_t capacity,
                          int64_t *bytes) {
  NEED(t, bytes);
  if (count > 0)
    NEED(ids);
  if (capacity > 0)
    NEED(out);
  texts in = {0}, next = {0};
  int status = take_pieces(&in, t, ids, count, special);
  for (int64_t i = 0; status == PGEE_OK && i < t->decoders.count; i++) {
    next.bytes.count = next.ends.count = 0;
    status = decode_step(&next, &in, &t->decoders.list[i]);
    texts swap = in;
    in = next;
    next = swap;
  }
  if (status == PGEE_OK) {
    *bytes = in.bytes.count;
    if (least(in.bytes.count, capacity) > 0)
      memcpy(out, in.bytes.list, (size_t)least(in.bytes.count, capacity));
  }
  texts_free(&in);
  texts_free(&next);
  return status;
}
