/* character.c: what a code point is and its lower case, for whoever compares texts: the tokenizer's tables, read only. */
#include "engine/perigee.h"
#include "unicode.h"

enum { CODE_POINTS = 0x110000 };

uint32_t pgee_character_lower(uint32_t c) { return c < CODE_POINTS ? c + (uint32_t)unicode(c)->lower : c; }

int pgee_character_kind(uint32_t c) {
  int flags = c < CODE_POINTS ? unicode(c)->flags : 0;
  return (flags & UNICODE_WHITE ? PGEE_SPACE : 0) | (flags & UNICODE_PUNCT ? PGEE_PUNCTUATION : 0) |
         (flags & UNICODE_CJK ? PGEE_IDEOGRAPH : 0) | ((flags & UNICODE_WORD) && !(flags & UNICODE_MARK) ? PGEE_WORD : 0);
}
