/* unicode.h: what BERT's normalizer and pre-tokenizer and the other steps do with each code point, as tables. unicode_tables.c is
 * written by spec/golden/tokenizer/tables.py, which asks the tokenizers package about every code point.
 *
 *   code point --unicode_first, unicode_second--> its record in unicode_records --> its decomposition in unicode_parts
 */
#ifndef PERIGEE_UNICODE_H
#define PERIGEE_UNICODE_H
#include <stdint.h>

#include "utf8.h"

/* Flags of a code point. WHITE, PUNCT and plain are also the kinds of a normalized character. */
enum {
  UNICODE_DROP = 1,        /* clean_text removes it: controls, U+0000, U+FFFD */
  UNICODE_WHITE = 2,       /* separates words */
  UNICODE_PUNCT = 4,       /* is a word of its own */
  UNICODE_CJK = 8,         /* an ideograph: spaces go around it */
  UNICODE_MARK = 16,       /* an accent: strip_accents removes it */
  UNICODE_WORD = 32,       /* part of a word where an added token asks for whole words (\w) */
  UNICODE_NUMERIC = 64,    /* a digit to the Digits pre-tokenizer */
  UNICODE_COMBINING = 128, /* StripAccents removes it */
  UNICODE_COMPAT = 256,    /* has a compatibility decomposition, in unicode_compat */
  UNICODE_LETTER = 512,    /* these four as the regular expressions of Split and ByteLevel see them: \p{L} */
  UNICODE_NUMBER = 1024,   /* \p{N} */
  UNICODE_SPACE = 2048,    /* \s */
  UNICODE_WORDS = 4096,    /* \w */
  UNICODE_DIGIT = 8192     /* \d */
};

enum { UNICODE_BITS = 7 };
/* Syllables decompose by arithmetic: leading consonant, vowel, and one of 27 trailing consonants or none. */
enum {
  HANGUL = 0xAC00,
  HANGUL_COUNT = 11172,
  HANGUL_L = 0x1100,
  HANGUL_V = 0x1161,
  HANGUL_T = 0x11A7,
  HANGUL_VT = 588, /* vowels times trailing consonants or none */
  HANGUL_TS = 28
};

typedef struct unicode_record {
  int32_t lower;  /* its lower case minus itself. U+0130 alone becomes two, i and U+0307, and has 0 here */
  uint16_t parts; /* where its full canonical decomposition begins in unicode_parts */
  uint16_t flags;
  uint8_t order; /* combining marks are sorted by this; 0: not a combining mark */
  uint8_t count; /* how many parts it has; 0: it is its own decomposition */
} unicode_record;

/* A full compatibility decomposition: parts unicode_parts[parts] and on. */
typedef struct unicode_decomposition {
  uint32_t c;
  uint16_t parts, count;
} unicode_decomposition;

/* Two characters that NFC makes one. */
typedef struct unicode_pair {
  uint32_t first, second, c;
} unicode_pair;

extern const unicode_decomposition unicode_compat[]; /* by c */
extern const int unicode_compat_count;
extern const unicode_pair unicode_pairs[]; /* by first, then second; not those of Hangul */
extern const int unicode_pair_count;
extern const uint8_t unicode_first[];
extern const uint16_t unicode_second[];
extern const unicode_record unicode_records[];
extern const uint32_t unicode_parts[];

/* c <= 0x10FFFF */
static inline const unicode_record *unicode(uint32_t c) {
  uint32_t block = unicode_first[c >> UNICODE_BITS];
  return &unicode_records[unicode_second[block << UNICODE_BITS | (c & ((1u << UNICODE_BITS) - 1))]];
}

#endif
