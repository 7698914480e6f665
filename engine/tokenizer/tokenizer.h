/* tokenizer.h: what a tokenizer is inside the engine: an image, and pointers into it.
 *
 *   definition.c, build.c, unigram_build.c          from a definition to an image
 *   tokenizer.c, step.c                             from an image to a tokenizer
 *   encode.c, bert.c, pipeline.c, sink.c            from texts to tokens
 *   normalizers.c, pre_tokenizers.c                 the steps of pipeline.c, before the model
 *   wordpiece.c, unigram.c, bpe.c                   the models, see model.h
 *   decode.c                                        from ids to text
 */
#ifndef PERIGEE_TOKENIZER_H
#define PERIGEE_TOKENIZER_H
#include "engine/perigee.h"
#include "added.h"
#include "bert.h"
#include "bpe.h"
#include "charsmap.h"
#include "image.h"
#include "names.h"
#include "step.h"
#include "unigram.h"
#include "wordpiece.h"

enum { MAX_PREFIX = 64 };

/* IMAGE_OPTIONS */
typedef struct tokenizer_options {
  int32_t model, size;
  int32_t specials[5];            /* unk, cls, sep, pad, mask */
  int32_t unk;                    /* the model's */
  int32_t max_word_chars, inside; /* of WordPiece */
  int32_t trim_offsets, add_prefix_space;
  int32_t step_counts[3];     /* normalizers, pre-tokenizers, decoders in IMAGE_STEPS */
  int32_t template_counts[2]; /* of one text, of a pair, in IMAGE_TEMPLATES */
  char prefix[MAX_PREFIX];    /* ends with zero */
} tokenizer_options;

typedef struct tokenizer_template {
  const pgee_template_piece *list;
  int64_t count;
  int64_t special;         /* the number of special tokens in it */
  int plain;               /* 1: the first text once, then the second text once: encode writes tokens straight to their places */
  int64_t before, between; /* special tokens before the first text, and between the texts */
} tokenizer_template;

struct pgee_tokenizer {
  pgee_tensor *tensor; /* held: the image */
  image image;
  const tokenizer_options *options;
  names names;
  added_set added[2]; /* looked for in the text as it is; in the normalized text */
  step_list normalizers, pre_tokenizers, decoders;
  charsmap charsmap;
  wordpiece wordpiece;
  unigram unigram;
  bpe bpe;
  tokenizer_template templates[2];
  int left; /* truncation cuts texts off at their beginning */
  int fast; /* bert.c can encode: BertNormalizer or none, BertPreTokenizer, WordPiece. Its options are `bert` and `ascii` */
  bert_options bert;
  bert_ascii ascii;
};

enum { MAX_TEMPLATE = 64 };

/* Opens the image in a tensor. Takes over the caller's reference to the tensor, also on failure. */
int tokenizer_open(pgee_tokenizer **out, pgee_tensor *tensor);
int tokenizer_is_utf8(const char *text, int64_t bytes);

#endif
