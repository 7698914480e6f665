/* targets.h: the targets of `make fuzz`, and how they read their input.
 *
 * A target takes any bytes and returns 0. It stops the process where the engine does not do what perigee.h promises; sanitizers stop
 * it at reads and writes outside of memory. main.c gives a target to libFuzzer; spec/fuzz/replay_spec.lua calls it on kept inputs. */
#ifndef PERIGEE_FUZZ_TARGETS_H
#define PERIGEE_FUZZ_TARGETS_H
#include <stddef.h>
#include <stdint.h>

#include "engine/perigee.h"

#define PUBLIC __attribute__((visibility("default")))

/* The bytes of a safetensors file: every reader of it, and the checks of an artifact's checksums. */
PUBLIC int fuzz_safetensors(const uint8_t *bytes, size_t count);
/* The text of a tokenizer.json, by its Unigram vocabulary. */
PUBLIC int fuzz_vocabulary(const uint8_t *bytes, size_t count);
/* A definition of a tokenizer, then what to encode with it. */
PUBLIC int fuzz_definition(const uint8_t *bytes, size_t count);
/* What to encode, its length before it, then the image of a tokenizer. */
PUBLIC int fuzz_image(const uint8_t *bytes, size_t count);
/* Which of the built-in tokenizers, then what to encode with it. */
PUBLIC int fuzz_encode(const uint8_t *bytes, size_t count);

/* Stops the process and names the condition. */
#define PROMISED(condition) promised((condition) != 0, #condition, __FILE__, __LINE__)
void promised(int holds, const char *condition, const char *file, int line);

/* An input that is read from front to back. Past its end everything is zero. */
typedef struct input {
  const uint8_t *at, *end;
  void *blocks[1024]; /* copies of strings, each a block of its own, so that sanitizers see its end */
  int count;
} input;

uint8_t take_byte(input *in);
/* 0 to n - 1. */
int take_choice(input *in, int n);
/* Mostly a small number, sometimes any. */
int32_t take_integer(input *in);
/* Up to `most` bytes in a block of their own, ended by zero behind them only if asked for. */
const char *take_text(input *in, int64_t most, int64_t *bytes, int zero);
/* A block of `bytes` bytes that input_free frees; NULL if there are too many blocks. */
void *take_block(input *in, int64_t bytes);
void input_free(input *in);

/* Builds a tokenizer, encodes and decodes what the input says, and does the same with its image: both must agree. */
void use_definition(const pgee_tokenizer_definition *d, input *in);
/* Encodes and decodes what the input says, and asks for every piece. Returns a digest of the ids. */
uint32_t use_tokenizer(const pgee_tokenizer *t, input *in);

#endif
