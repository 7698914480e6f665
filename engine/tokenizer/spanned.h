/* spanned.h: a text on its way through normalizers, UTF-8 with, for each byte, the bytes of the original text that it comes from.
 *
 *   bytes  h  e  l  l  o
 *   spans  01 12 23 34 45      half open, of whole original characters, in bytes of the text given to encode
 *
 * A normalizer reads one and appends to another. What it does to characters it says as edits, one for each character of the
 * result: change 0 takes the place of the next character, 1 and more is put in and has the span of what stands before it, -n
 * takes the place of the next one and drops n more. Two texts that went through equal edits have equal spans. */
#ifndef PERIGEE_SPANNED_H
#define PERIGEE_SPANNED_H
#include <stdint.h>

#include "engine/base/array.h"

typedef struct span {
  int32_t begin, end;
} span;

/* Begin with zeros, and `origin` where the stretch begins in the original. */
typedef struct spanned {
  char *bytes; /* NULL while there is no room */
  span *spans;
  int64_t length, capacity;
  int32_t origin; /* what is put in before everything has the span (origin, origin); the caller sets it */
} spanned;

/* The most bytes of a normalized text. A character may become eleven times as many bytes (U+FDFA), and later steps need several
 * bytes of memory for each, so that a text of some megabytes could take all memory. */
enum { MAX_SPANNED_BYTES = 64 << 20 };

void spanned_free(spanned *t);
/* Makes room for `more` bytes after the bytes of t. PGEE_ARGUMENT if these would be more than MAX_SPANNED_BYTES. */
int spanned_reserve(spanned *t, int64_t more);
/* Appends a character; all its bytes have the one span. */
int spanned_put(spanned *t, uint32_t c, span from);
/* Appends in[begin] to in[end - 1] as they are. */
int spanned_keep(spanned *t, const spanned *in, int64_t begin, int64_t end);

typedef struct spanned_edit {
  uint32_t c;
  int32_t change;
} spanned_edit;

/* Begin with zeros. */
typedef ARRAY(spanned_edit) spanned_edits;

/* Appends to `out` what the edits make of in[begin] to in[end - 1], of which the first `dropped` bytes are gone before the first
 * edit. What is put in before everything has the span of the byte before `begin`, or (origin, origin) where that is 0. */
int spanned_apply(spanned *out, const spanned *in, int64_t begin, int64_t end, int64_t dropped, const spanned_edits *e);

#endif
