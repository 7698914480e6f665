/* utf8.h: reads and writes characters of UTF-8. */
#ifndef PERIGEE_UTF8_H
#define PERIGEE_UTF8_H
#include <stdint.h>

/* U+FFFD, which stands for a byte that is part of no well-formed character. */
enum { UTF8_REPLACEMENT = 0xFFFD };

/* Reads the character that begins at `text`, of which `bytes` >= 1 bytes are left. Returns the number of bytes that it takes. A
 * byte that begins no well-formed character gives UTF8_REPLACEMENT and takes 1. */
static inline int utf8_decode(const char *text, int64_t bytes, uint32_t *c) {
  const uint8_t *s = (const uint8_t *)text;
  *c = s[0];
  if (s[0] < 0x80)
    return 1;
  int more = s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 1 : s[0] < 0xF0 ? 2 : s[0] < 0xF5 ? 3 : 0;
  /* The second byte's range excludes overlong forms, surrogates and what is past U+10FFFF. */
  uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80, high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
  uint32_t value = s[0] & (0x3Fu >> more);
  int good = more > 0 && more < bytes && s[1] >= low && s[1] <= high;
  for (int i = 1; good && i <= more; i++) {
    good = (s[i] & 0xC0) == 0x80;
    value = value << 6 | (s[i] & 0x3Fu);
  }
  *c = good ? value : UTF8_REPLACEMENT;
  return good ? more + 1 : 1;
}

/* Reads the character whose last byte is text[end - 1], end >= 1. Returns the number of its bytes. */
static inline int utf8_before(const char *text, int64_t end, uint32_t *c) {
  for (int n = 1; n <= 4 && n <= end; n++)
    if ((text[end - n] & 0xC0) != 0x80 && utf8_decode(text + end - n, n, c) == n)
      return n;
  *c = UTF8_REPLACEMENT;
  return 1;
}

/* Writes c to `text`, which has room for 4 bytes. Returns the number of bytes written. */
static inline int utf8_encode(char *text, uint32_t c) {
  uint8_t *s = (uint8_t *)text;
  int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  for (int i = more; i > 0; i--, c >>= 6)
    s[i] = (uint8_t)(0x80 | (c & 0x3F));
  s[0] = (uint8_t)(more ? (0xFF00u >> (more + 1) & 0xFF) | c : c);
  return more + 1;
}

#endif
