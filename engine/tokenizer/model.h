/* model.h: what the models have in common. A model cuts one word, bytes of normalized UTF-8, into pieces.
 *
 *   x_build   writes the tables of the model into an image, when a tokenizer is built from a definition
 *   x_open    fills a struct with pointers into an image, and checks what x_cut needs to stay inside the image
 *   x_cut     appends pieces to `out`; changes only `out` and `room`, so that several threads may use one tokenizer
 *
 * x is wordpiece, unigram or bpe. */
#ifndef PERIGEE_MODEL_H
#define PERIGEE_MODEL_H
#include <stdint.h>

#include "engine/base/array.h"
#include "image.h"

/* A vocabulary: piece i is bytes[ends[i - 1]] to bytes[ends[i] - 1] and has id ids[i], or i if ids is NULL. */
typedef struct model_vocabulary {
  const char *bytes;
  const int64_t *ends; /* [count] */
  const int32_t *ids;  /* [count] or NULL */
  int64_t count;
} model_vocabulary;

typedef struct model_piece {
  int32_t id;
  int32_t begin, end; /* bytes of the word */
} model_piece;

/* Begin with zeros. */
typedef ARRAY(model_piece) model_pieces;

static inline int model_put(model_pieces *p, int32_t id, int64_t begin, int64_t end) {
  return ARRAY_PUSH(p, (model_piece){id, (int32_t)begin, (int32_t)end});
}

/* Memory for one call of encode, used again for every word. Begin with zeros. */
typedef struct model_scratch {
  void *block;
  int64_t bytes;
} model_scratch;

void model_scratch_free(model_scratch *s);
/* At least `bytes` bytes, aligned to 64, with undefined content. NULL, with the message set, if there is no memory. */
void *model_scratch_room(model_scratch *s, int64_t bytes);

#endif
