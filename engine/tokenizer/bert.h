/* bert.h: BERT's normalizer, and from text to tokens for BERT's tokenizers.
 *
 * The normalizer does in this order, as the options say: clean the text (drop controls, make white space ' '), put spaces
 * around ideographs, decompose (NFD) and drop accents, lower the case. Every byte of the result has the span of one original
 * character. When combining marks are put in canonical order, the spans stay in the order of the text: the i-th character of
 * the reordered run has the span of the i-th original one. The tokenizers package does the same, and so the offsets of
 * neighbours never cross. */
#ifndef PERIGEE_BERT_H
#define PERIGEE_BERT_H
#include <stdint.h>

#include "sink.h"
#include "spanned.h"

enum { BERT_TEXT_INLINE = 1024, BERT_MARKS_INLINE = 16 };

typedef struct bert_options {
  int32_t clean_text;           /* drop controls, make every white space ' ' */
  int32_t handle_chinese_chars; /* spaces around CJK ideographs */
  int32_t strip_accents;        /* decompose and drop accents */
  int32_t lowercase;
} bert_options;

/* UTF-8 bytes and, for each, its character's kind (UNICODE_WHITE, UNICODE_PUNCT or 0) and span. They lie in `first` until they
 * outgrow it, because most chunks of text fit there and then need no allocation (ARRAY of array.h always allocates). So the
 * struct cannot be copied. */
typedef struct bert_text {
  span *spans;
  char *bytes;
  uint8_t *kinds;
  int64_t length, capacity;
  char *block; /* what was allocated, or NULL */
  _Alignas(span) char first[BERT_TEXT_INLINE * (sizeof(span) + 2)];
} bert_text;

void bert_text_init(bert_text *n);
void bert_text_free(bert_text *n);

/* What the normalizer makes of each ASCII character, computed once from the options. */
typedef struct bert_ascii {
  uint8_t byte[128];
  uint8_t kind[128]; /* UNICODE_DROP: the character is dropped */
} bert_ascii;

void bert_ascii_fill(bert_ascii *t, const bert_options *options);

/* A combining mark that waits until all marks of its run are known, because they are sorted. */
typedef struct bert_mark {
  uint32_t c;
  uint8_t order, added; /* added: not the first part of its original character */
  span from;
} bert_mark;

typedef struct bert_normalizer {
  const bert_options *options;
  const bert_ascii *ascii;
  const char *text;
  int64_t at, end;  /* what is left to normalize */
  span last;        /* the last span that was used: the further parts of a decomposition get it too */
  bert_mark *marks; /* [2 * mark_room], the second half is for sorting */
  int64_t mark_count, mark_room;
  int sorted;
  bert_mark *block;
  bert_mark first[2 * BERT_MARKS_INLINE];
} bert_normalizer;

/* Begins to normalize text[at] to text[end - 1], independently of the text around it. */
void bert_normalizer_init(bert_normalizer *s, const bert_options *options, const bert_ascii *ascii, const char *text, int64_t at,
                          int64_t end);
void bert_normalizer_free(bert_normalizer *s);
/* Appends to `out`: up to the first white space after `enough` bytes, or all that is left. */
int bert_normalize(bert_normalizer *s, bert_text *out, int64_t enough);

/* Puts the tokens of text[begin] to text[end - 1], which has no added tokens but those that are looked for after normalizing.
 * s->t must be `fast`, see tokenizer.h. */
int bert_put(sink *s, const char *text, int64_t begin, int64_t end);

#endif
