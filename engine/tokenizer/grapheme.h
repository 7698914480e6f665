/* grapheme.h: where one user-perceived character ends and the next begins: extended grapheme clusters (UAX 29) of Unicode 17. The
 * tokenizers package applies SentencePiece's normalizer to these clusters. spec/golden/tokenizer/grapheme.py writes
 * grapheme_tables.c.
 *
 *   code point --grapheme_first, grapheme_second--> its class --grapheme_break, one after another--> is there a boundary before?
 */
#ifndef PERIGEE_GRAPHEME_H
#define PERIGEE_GRAPHEME_H
#include <stdint.h>

/* Classes. Between two of PLAIN to PICTOGRAPH there is always a boundary. */
enum {
  GRAPHEME_PLAIN,
  GRAPHEME_CONTROL,
  GRAPHEME_CR,
  GRAPHEME_LF,
  GRAPHEME_PICTOGRAPH,
  GRAPHEME_CONSONANT, /* of an Indic script that makes conjuncts */
  GRAPHEME_REGIONAL,  /* half of a flag */
  GRAPHEME_PREPEND,
  GRAPHEME_L, /* Hangul: leading consonants, vowels, trailing consonants, syllables without and with one */
  GRAPHEME_V,
  GRAPHEME_T,
  GRAPHEME_LV,
  GRAPHEME_LVT,
  GRAPHEME_SPACING, /* from here on: never a boundary before it, but after a control */
  GRAPHEME_EXTEND,
  GRAPHEME_LINKER, /* an EXTEND that makes a conjunct of two consonants */
  GRAPHEME_LOOSE,  /* an EXTEND that ends what could become a conjunct */
  GRAPHEME_ZWJ
};

enum { GRAPHEME_BITS = 7 };

extern const uint8_t grapheme_first[];
extern const uint8_t grapheme_second[];

/* c <= 0x10FFFF */
static inline int grapheme_class(uint32_t c) {
  return grapheme_second[(uint32_t)grapheme_first[c >> GRAPHEME_BITS] << GRAPHEME_BITS | (c & ((1u << GRAPHEME_BITS) - 1))];
}

/* What came before. Begin with zeros, at the beginning of a text; its first answer means nothing. */
typedef struct grapheme_state {
  uint8_t last;     /* class of the character before */
  uint8_t joined;   /* 1 after a pictograph and its extends, 2 after their ZWJ, else 0 */
  uint8_t conjunct; /* 1 after a consonant and its extends, 2 if a linker was among them, else 0 */
  uint8_t odd;      /* 1 after an odd number of regional indicators */
} grapheme_state;

/* Whether there is a boundary before a character of this class, the next one of the text. */
int grapheme_break(grapheme_state *s, int class);

#endif
