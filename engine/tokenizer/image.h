/* image.h: the block of bytes that a tokenizer runs from: what it is told to do and every table, in sections at multiples of 64.
 *
 *   | head | where each section is | section, pad to 64 | section | ...
 *
 * It is flat, holds no pointer and is little-endian, so that it can lie in a mapped file. Opening checks the head and where the
 * sections are; what lies in a section is checked by who reads it, when it opens or at each access: no byte of an image may lead
 * a read outside of it, or a loop to no end. */
#ifndef PERIGEE_IMAGE_H
#define PERIGEE_IMAGE_H
#include <stdint.h>

#include "engine/base/array.h"

enum {
  IMAGE_OPTIONS,    /* tokenizer_options */
  IMAGE_TEXTS,      /* the texts of all pieces and added tokens */
  IMAGE_PLACES,     /* by id: where its text is */
  IMAGE_NAMES,      /* hash table from texts to ids */
  IMAGE_TRIE_EDGES, /* of WordPiece's pieces */
  IMAGE_TRIE_VALUES,
  IMAGE_ADDED, /* added tokens; then the tries that find those not normalized and those normalized */
  IMAGE_RAW_EDGES,
  IMAGE_RAW_VALUES,
  IMAGE_NORMAL_EDGES,
  IMAGE_NORMAL_VALUES,
  IMAGE_STEPS, /* normalizers, pre-tokenizers, decoders; then their strings */
  IMAGE_STRINGS,
  IMAGE_TEMPLATES, /* what goes around one text, and around a pair */
  IMAGE_MERGES,    /* of byte-level BPE */
  IMAGE_BPE,       /* its options */
  IMAGE_UNIGRAM,   /* four for Unigram to use as it likes */
  IMAGE_UNIGRAM_1,
  IMAGE_UNIGRAM_2,
  IMAGE_UNIGRAM_3,
  IMAGE_CHARSMAP, /* two for the precompiled normalizer */
  IMAGE_CHARSMAP_1,
  IMAGE_RENAMED, /* added tokens that are shown by another text than the model's */
  IMAGE_LEFT,    /* there if texts are cut off at their beginning */
  IMAGE_SECTIONS = 32
};

typedef struct image {
  const char *bytes; /* aligned to 8 at least */
  int64_t size;
} image;

/* Checks the head and the sections. PGEE_FORMAT says what is wrong; PGEE_UNSUPPORTED another version. */
int image_open(image *m, const void *bytes, int64_t size);
/* A section: its first byte, aligned to 64 from the start of the image, and how many there are. 0 if there is none: the pointer is
 * then one into the image all the same, because C gives NULL plus 0 no meaning. */
const void *image_section(const image *m, int section, int64_t *bytes);

/* Collects sections. Begin with zeros. */
typedef struct image_writer {
  ARRAY(char) bytes;
  int64_t places[IMAGE_SECTIONS][2]; /* offset, bytes */
} image_writer;

void image_writer_free(image_writer *w);
/* A new section, zeroed; the caller fills it before the next one is asked for. NULL with the message set if there is no
 * memory. */
void *image_new(image_writer *w, int section, int64_t bytes);
/* The same, filled with a copy. */
int image_put(image_writer *w, int section, const void *data, int64_t bytes);
/* Writes the head. The image is w->bytes, whose count is a multiple of 64. It still belongs to the writer. */
int image_finish(image_writer *w);

#endif
