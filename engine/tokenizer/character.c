/* character.c: the kind and the lower case of a code point, for callers that compare texts; and the characters of bytes. */
#include "engine/perigee.h"
#include "character.h"
#include "unicode.h"

enum { CODE_POINTS = 0x110000 };

uint32_t pgee_character_lower(uint32_t c) { return c < CODE_POINTS ? c + (uint32_t)unicode(c)->lower : c; }

int pgee_character_kind(uint32_t c) {
  int flags = c < CODE_POINTS ? unicode(c)->flags : 0;
  return (flags & UNICODE_WHITE ? PGEE_SPACE : 0) | (flags & UNICODE_PUNCT ? PGEE_PUNCTUATION : 0) |
         (flags & UNICODE_CJK ? PGEE_IDEOGRAPH : 0) | ((flags & UNICODE_WORD) && !(flags & UNICODE_MARK) ? PGEE_WORD : 0);
}

/* The alphabet of byte-level texts: a byte that can be seen is its own code point; the others get the code points from 256 on, in
 * their order. */
uint32_t character_of_byte(uint8_t byte) {
  if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD))
    return byte;
  return byte <= 0x20 ? 256u + byte : byte == 0xAD ? 256u + 0x43 : 256u + 0x21 + byte - 0x7F;
}

int character_to_byte(uint32_t c) {
  if (c < 256)
    return character_of_byte((uint8_t)c) == c ? (int)c : -1;
  uint32_t n = c - 256;
  return n <= 0x20 ? (int)n : n < 0x43 ? (int)(n - 0x21 + 0x7F) : n == 0x43 ? 0xAD : -1;
}
