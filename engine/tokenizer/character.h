/* character.h: the characters that stand for bytes in byte-level texts. */
#ifndef PERIGEE_CHARACTER_H
#define PERIGEE_CHARACTER_H
#include <stdint.h>

/* The code point that stands for a byte: itself if it can be seen, else one from 256 on. */
uint32_t character_of_byte(uint8_t byte);
/* The byte that a code point stands for, or -1. */
int character_to_byte(uint32_t c);

#endif
