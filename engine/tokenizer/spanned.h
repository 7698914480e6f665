/* spanned.h: a text that normalizers change: UTF-8, and for each byte the span of the original text that it comes from.
 *
 *   bytes  h  e  l  l  o
 *   spans  01 12 23 34 45      half open, of whole original characters, in bytes of the text given to encode
 *
 * A normalizer reads one spanned text and appends its result to another one. It can describe its result by edits, one edit for each
 * character of the result. The edit's change says where the character's span comes from:
 *
 *   0           the character replaces the next character of the input and has its span
 *   1 or more   the character is inserted and has the span of the character before it
 *   -n          the character replaces the next character of the input, and the n characters after that are dropped
 */
#ifndef PERIGEE_SPANNED_H
#define PERIGEE_SPANNED_H
#include <stdint.h>

#include "engine/base/array.h"

typedef struct span {
  int32_t begin, end;
} span;

/* Begin with zeros, and set `origin` to the place in the original text where the input begins. */
typedef struct spanned {
  char *bytes; /* NULL while capacity is 0 */
  span *spans;
  int64_t length, capacity;
  int32_t origin; /* a character that is inserted before all others has the span (origin, origin) */
} spanned;

/* The maximum size of a normalized text. Without a limit a text of some megabytes could take all memory, because normalizing
 * can make one character eleven times as long (U+FDFA), and later steps need several bytes of memory for each byte of text. */
enum { MAX_SPANNED_BYTES = 64 << 20 };

void spanned_free(spanned *t);
/* Makes room for `more` bytes behind the text. PGEE_ARGUMENT if the text could then have more than MAX_SPANNED_BYTES. */
int spanned_reserve(spanned *t, int64_t more);
/* Appends a character, all bytes of which get the span `from`. */
int spanned_put(spanned *t, uint32_t c, span from);
/* Appends in[begin] to in[end - 1] with their spans. */
int spanned_keep(spanned *t, const spanned *in, int64_t begin, int64_t end);

typedef struct spanned_edit {
  uint32_t c;
  int32_t change;
} spanned_edit;

/* Begin with zeros. */
typedef ARRAY(spanned_edit) spanned_edits;

/* Applies edits to in[begin + dropped] to in[end - 1] and appends the result to `out`. A character that is inserted first gets
 * the span of the byte before its place, or (origin, origin) at the beginning of the text. */
int spanned_apply(spanned *out, const spanned *in, int64_t begin, int64_t end, int64_t dropped, const spanned_edits *e);

#endif
