/* input.c: how a target reads its input. See targets.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "targets.h"

void promised(int holds, const char *condition, const char *file, int line) {
  if (holds)
    return;
  fprintf(stderr, "%s:%d: what was promised does not hold: %s\n", file, line, condition);
  abort();
}

uint8_t take_byte(input *in) { return in->at < in->end ? *in->at++ : 0; }

int take_choice(input *in, int n) { return take_byte(in) % n; }

int32_t take_integer(input *in) {
  uint8_t first = take_byte(in);
  uint32_t value = 0;
  if (first < 0xF0)
    return (int32_t)first - 1;
  for (int i = 0; i < 4; i++)
    value = value << 8 | take_byte(in);
  return (int32_t)value;
}

void *take_block(input *in, int64_t bytes) {
  void *block = in->count < (int)(sizeof in->blocks / sizeof *in->blocks) ? calloc(1, bytes > 0 ? (size_t)bytes : 1) : NULL;
  if (block)
    in->blocks[in->count++] = block;
  return block;
}

const char *take_text(input *in, int64_t most, int64_t *bytes, int zero) {
  int64_t length = take_byte(in);
  if (length == 0xFF)
    length = 256 * take_byte(in) + take_byte(in);
  int64_t left = in->end - in->at;
  length = length < left ? length : left;
  length = length < most ? length : most;
  char *block = take_block(in, length + zero);
  *bytes = block ? length : 0;
  if (block && length > 0)
    memcpy(block, in->at, (size_t)length);
  in->at += length;
  return block ? block : "";
}

void input_free(input *in) {
  for (int i = 0; i < in->count; i++)
    free(in->blocks[i]);
  in->count = 0;
}
