/* pipeline.h: from text to tokens for any tokenizer: normalizers, pre-tokenizers, the model. */
#ifndef PERIGEE_PIPELINE_H
#define PERIGEE_PIPELINE_H
#include "sink.h"
#include "spanned.h"
#include "split.h"
#include "tokenizer.h"

/* The memory of one call of encode. Begin with zeros. */
typedef struct pipeline {
  spanned texts[3];     /* a step reads texts[0] and writes texts[1]; texts[2] is for a step's own use */
  split_list splits[2]; /* a pre-tokenizer reads splits[0] and writes splits[1] */
  spanned_edits edits;
  model_pieces pieces;
  model_scratch room;
} pipeline;

void pipeline_free(pipeline *p);
/* Puts the tokens of text[begin] to text[end - 1], which has no added tokens but those that are looked for after normalizing. */
int pipeline_put(sink *s, pipeline *p, const char *text, int64_t begin, int64_t end);

/* In normalizers.c: runs all normalizers on p->texts[0], in place. */
int normalizers_run(const pgee_tokenizer *t, pipeline *p);
/* In pre_tokenizers.c: cuts the words in p->splits[0] of p->texts[0] into smaller words; added tokens stay. */
int pre_tokenizers_run(const pgee_tokenizer *t, pipeline *p);

#endif
