/* tokenizer.h: what a tokenizer is inside the engine: an image, and pointers into it.
 *
 *   tokenizer.c   opened from an image, and what it knows
 *   build.c       a definition becomes an image
 *   encode.c      texts to tokens: truncation, templates, what post-processors do to offsets
 *   words.c       a stretch of text to tokens, for any frame
 *   normalizers.c, pre_tokenizers.c, decode.c   the steps */
#ifndef PERIGEE_TOKENIZER_H
#define PERIGEE_TOKENIZER_H
#include "engine/perigee.h"
#include "added.h"
#include "bpe.h"
#include "charsmap.h"
#include "image.h"
#include "names.h"
#include "normalize.h"
#include "pattern.h"
#include "spanned.h"
#include "unigram.h"
#include "wordpiece.h"

/* A step as it is run. Its strings lie in the image. */
typedef struct step {
  int32_t kind, a, b, c, d;
  const char *text, *more;
  int64_t text_bytes, more_bytes;
  pattern *pattern; /* owned; NULL: `text` as it is */
} step;

typedef struct steps {
  step *list;
  int64_t count;
} steps;

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
  int64_t special; /* how many of them are special tokens */
  int plain;       /* the first text once, then the second: what stands before, between and behind is put around in place */
  int64_t before, between;
} tokenizer_template;

struct pgee_tokenizer {
  pgee_tensor *tensor; /* held: the image */
  image image;
  const tokenizer_options *options;
  names names;
  added_set added[2]; /* those not normalized, those normalized */
  steps normalizers, pre_tokenizers, decoders;
  charsmap charsmap;
  wordpiece wordpiece;
  unigram unigram;
  bpe bpe;
  tokenizer_template templates[2];
  int left; /* texts are cut off at their beginning */
  int fast; /* WordPiece after BertNormalizer or nothing and BertPreTokenizer: `bert` and `ascii` say how */
  bert_options bert;
  ascii_table ascii;
};

enum { MAX_STEPS = 64, MAX_TEMPLATE = 64 };

/* IMAGE_STEPS: normalizers, pre-tokenizers, decoders; the strings are in IMAGE_STRINGS. */
typedef struct stored_step {
  int32_t kind, a, b, c, d;
  uint32_t text, text_bytes, more, more_bytes;
} stored_step;

/* Takes over the reference to the tensor, which holds the image. */
int tokenizer_open(pgee_tokenizer **out, pgee_tensor *tensor);
/* `count` steps from the one with index `first` on. What was opened before a failure is for steps_free. */
int steps_open(pgee_tokenizer *t, steps *out, int64_t first, int64_t count);
void steps_free(steps *s);
int tokenizer_is_utf8(const char *text, int64_t bytes);

/* What one call of encode needs. Begin with zeros. */
typedef struct split {
  int32_t begin, end; /* bytes of the text */
  int32_t id;         /* of an added token; -1: to be cut by the model */
} split;

typedef ARRAY(split) splits;

typedef struct run {
  spanned texts[3]; /* what goes in, what comes out; a text between */
  splits splits[2];
  edits edits;
  pieces pieces;
  scratch room;
} run;

void run_free(run *r);
int splits_put(splits *s, int64_t begin, int64_t end, int32_t id);

/* Appends to `out` what a normalizer makes of `in`. */
int normalizer_run(const pgee_tokenizer *t, const step *s, const spanned *in, run *r, spanned *out);
/* All of them: r->texts[0] becomes normalized. */
int normalize_all(const pgee_tokenizer *t, run *r);
/* Cuts r->splits[0] of r->texts[0] further, but added tokens. */
int pre_tokenize_all(const pgee_tokenizer *t, run *r);

/* The code point that stands for a byte in byte-level texts, and back (-1). */
uint32_t byte_character(uint8_t byte);
int byte_of_character(uint32_t c);

/* Where tokens of one text go. All are counted, `limit` are written. */
typedef struct sink {
  const pgee_tokenizer *t;
  int32_t *ids, *offsets, *words; /* the last two may be NULL */
  int64_t limit, count;
  int64_t first;    /* the token that the post-processor has first: texts may be cut off at their beginning */
  int32_t word;     /* the index of the word that comes next */
  int trim;         /* offsets without the white space of the token's text */
  int in_words;     /* `word` is that of a given word, and stays */
  const char *text; /* the text, for trim */
  int64_t bytes;
} sink;

void sink_trim(sink *s, int32_t *begin, int32_t *end, const char *token, int64_t bytes);

static inline void put(sink *s, int32_t id, int32_t begin, int32_t end) {
  if (s->count < s->limit) {
    s->ids[s->count] = id;
    if (s->offsets) {
      s->offsets[2 * s->count] = begin;
      s->offsets[2 * s->count + 1] = end;
    }
    if (s->words)
      s->words[s->count] = s->word;
  }
  s->count++;
}

/* A stretch of text without added tokens that are not normalized, by way of the steps. */
int put_stretch_any(sink *s, run *r, const char *text, int64_t begin, int64_t end);

#endif
