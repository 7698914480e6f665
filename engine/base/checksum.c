/* checksum.c: CRC-32 (ISO 3309, polynomial 0x04c11db7, bits reflected), sixteen bytes at a time by tables.
 *
 * table[j][b] is the remainder of byte b with j zero bytes after it: sixteen bytes take sixteen lookups that wait for no other.
 */
#include "checksum.h"

#include <pthread.h>

enum { STEP = 16 };

static uint32_t table[STEP][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_table(void) {
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t r = b;
    for (int bit = 0; bit < 8; bit++)
      r = r >> 1 ^ (r & 1 ? 0xedb88320u : 0);
    table[0][b] = r;
  }
  for (int j = 1; j < STEP; j++)
    for (int b = 0; b < 256; b++)
      table[j][b] = table[j - 1][b] >> 8 ^ table[0][table[j - 1][b] & 255];
}

/* The four bytes of a word, `after` bytes before the end of the step. */
static inline uint32_t four(uint32_t word, int after) {
  return table[after + 3][word & 255] ^ table[after + 2][word >> 8 & 255] ^ table[after + 1][word >> 16 & 255] ^
         table[after][word >> 24];
}

static inline uint32_t word_at(const unsigned char *p) {
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t checksum(uint32_t crc, const void *bytes, int64_t count) {
  const unsigned char *p = bytes;
  pthread_once(&once, fill_table);
  crc = ~crc;
  for (; count >= STEP; count -= STEP, p += STEP)
    crc = four(word_at(p) ^ crc, 12) ^ four(word_at(p + 4), 8) ^ four(word_at(p + 8), 4) ^ four(word_at(p + 12), 0);
  for (; count > 0; count--)
    crc = crc >> 8 ^ table[0][(crc ^ *p++) & 255];
  return ~crc;
}
