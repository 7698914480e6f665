/* normalize.h: BERT's normalizer: text to the characters that its tokenizer sees, each with the bytes that it comes from.
 *
 * In this order, as the options say: clean (drop controls, make white space ' '), put spaces around ideographs, decompose (NFD)
 * and drop accents, lower the case. Every normalized byte remembers the span of one original character. Where marks are put in
 * canonical order, spans stay in the order of the text: the i-th character of the reordered run has the span of the i-th one
 * there was. That is what the reference does, and with it the offsets of neighbours never cross. */
#ifndef PERIGEE_NORMALIZE_H
#define PERIGEE_NORMALIZE_H
#include <stdint.h>

#include "spanned.h"

enum { NORMALIZED_INLINE = 1024, MARKS_INLINE = 16 };

typedef struct bert_options {
  int32_t clean_text;           /* drop controls, make every white space ' ' */
  int32_t handle_chinese_chars; /* spaces around CJK ideographs */
  int32_t strip_accents;        /* decompose and drop accents */
  int32_t lowercase;
} bert_options;

/* UTF-8 bytes and, for each, its character's kind (UNICODE_WHITE, UNICODE_PUNCT or 0) and span. They lie in `first` until they
 * outgrow it, because most chunks of text fit there and then need no allocation (ARRAY of array.h always allocates). So the struct
 * cannot be copied. */
typedef struct normalized {
  span *spans;
  char *bytes;
  uint8_t *kinds;
  int64_t length, capacity;
  char *block; /* what was allocated, or NULL */
  _Alignas(span) char first[NORMALIZED_INLINE * (sizeof(span) + 2)];
} normalized;

void normalized_init(normalized *n);
void normalized_free(normalized *n);

/* What an ASCII byte becomes, worked out from the options once. */
typedef struct ascii_table {
  uint8_t byte[128];
  uint8_t kind[128]; /* UNICODE_DROP: nothing */
} ascii_table;

void ascii_table_fill(ascii_table *t, const bert_options *options);

/* A combining mark that waits for the ones that sort before it. */
typedef struct mark {
  uint32_t c;
  uint8_t order, added; /* added: not the first part of its original character */
  span from;
} mark;

typedef struct normalizer {
  const bert_options *options;
  const ascii_table *ascii;
  const char *text;
  int64_t at, end; /* what is left to normalize */
  span last;       /* the span given out last: what added parts share */
  mark *marks;     /* [2 * mark_room], the second half is for sorting */
  int64_t mark_count, mark_room;
  int sorted;
  mark *block;
  mark first[2 * MARKS_INLINE];
} normalizer;

/* For text[at] to text[end - 1], which is normalized as if there was nothing before and after it. */
void normalizer_init(normalizer *s, const bert_options *options, const ascii_table *ascii, const char *text, int64_t at,
                     int64_t end);
void normalizer_free(normalizer *s);
/* Appends to `out` up to the first white space after `enough` bytes, or all that is left. */
int normalize(normalizer *s, normalized *out, int64_t enough);

#endif
