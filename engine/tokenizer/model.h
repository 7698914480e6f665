/* model.h: what a model is to the frame: it cuts one pre-token, bytes of normalized UTF-8, into pieces.
 *
 *   x_build   writes the model's tables into an image, once, when a tokenizer is loaded from a checkpoint's files
 *   x_open    fills a struct with pointers into an image; checks what must hold for x_cut to stay inside it, whatever the
 *             bytes are
 *   x_cut     appends pieces; changes nothing but `out` and `room`, so that several threads may use one tokenizer
 *
 * x is wordpiece, unigram or bpe. */
#ifndef PERIGEE_MODEL_H
#define PERIGEE_MODEL_H
#include <stdint.h>

#include "engine/base/array.h"
#include "image.h"

/* A vocabulary as it is given: piece i is bytes[ends[i - 1]] to bytes[ends[i] - 1] and has id ids[i], or i where ids is NULL. */
typedef struct model_vocabulary {
  const char *bytes;
  const int64_t *ends; /* [count] */
  const int32_t *ids;  /* [count] or NULL */
  int64_t count;
} model_vocabulary;

typedef struct model_piece {
  int32_t id;
  int32_t begin, end; /* bytes of the pre-token */
} model_piece;

/* Begin with zeros. */
typedef ARRAY(model_piece) model_pieces;

static inline int model_put(model_pieces *p, int32_t id, int64_t begin, int64_t end) {
  return ARRAY_PUSH(p, (model_piece){id, (int32_t)begin, (int32_t)end});
}

/* Memory that lasts for one call of encode, used again for every word. Begin with zeros. */
typedef struct model_scratch {
  void *block;
  int64_t bytes;
} model_scratch;

void model_scratch_free(model_scratch *s);
/* At least so many bytes, aligned to 64; what they held is lost. NULL with the message set if there is no memory. */
void *model_scratch_room(model_scratch *s, int64_t bytes);

/* For instance (the others have the same form):
 *   int unigram_build(image_writer *w, const model_vocabulary *vocabulary, const double *scores, int32_t unk, int byte_fallback);
 *   int unigram_open(unigram *m, const image *from);
 *   int unigram_cut(const unigram *m, const char *word, int64_t bytes, scratch *room, pieces *out);
 * The precompiled normalizer of SentencePiece:
 *   int charsmap_build(image_writer *w, const char *blob, int64_t bytes);
 *   int charsmap_open(charsmap *m, const image *from);
 *   int charsmap_normalize(const charsmap *m, const spanned *in, spanned *out); */

#endif
