/* step.h: the steps of a tokenizer: normalizers, pre-tokenizers and decoders, as an image stores them and as they are run. */
#ifndef PERIGEE_STEP_H
#define PERIGEE_STEP_H
#include <stdint.h>

#include "charsmap.h"
#include "image.h"
#include "pattern.h"

/* How many normalizers a tokenizer can have, how many pre-tokenizers, and how many decoders. */
enum { STEP_MAX = 64 };

/* A step as it is run. perigee.h says for each kind what a, b, c, d, text and more mean. */
typedef struct step {
  int32_t kind, a, b, c, d;
  const char *text, *more; /* in the image */
  int64_t text_bytes, more_bytes;
  pattern *pattern; /* owned; `text` compiled, if it is a regular expression, else NULL */
} step;

typedef struct step_list {
  step *list;
  int64_t count;
} step_list;

/* A step in IMAGE_STEPS: normalizers first, then pre-tokenizers, then decoders. `text` and `more` are offsets in IMAGE_STRINGS. */
typedef struct step_stored {
  int32_t kind, a, b, c, d;
  uint32_t text, text_bytes, more, more_bytes;
} step_stored;

/* Opens `count` steps, from number `first` (counted from 0) on. If one of them is PGEE_STEP_PRECOMPILED, also opens the charsmap.
 * After a failure the caller frees `out` as after a success. */
int step_list_open(step_list *out, charsmap *c, const image *m, int64_t first, int64_t count);
void step_list_free(step_list *s);

#endif
