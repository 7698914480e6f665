/* image.h: the block of bytes that a tokenizer runs from. Its sections hold the options and all tables; each section begins at a
 * multiple of 64.
 *
 *   | head | where each section is | section, pad to 64 | section | ...
 *
 * An image has no pointers and is little-endian, so that it can lie in a mapped file. image_open checks the head, and that the
 * sections lie in the image. The reader of a section checks its content, when it opens the section or at each access. Whatever
 * bytes an image has, reading it must stay inside of it, and every loop must end. */
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
  IMAGE_UNIGRAM,   /* four sections of Unigram */
  IMAGE_UNIGRAM_1,
  IMAGE_UNIGRAM_2,
  IMAGE_UNIGRAM_3,
  IMAGE_CHARSMAP, /* two sections of the precompiled normalizer */
  IMAGE_CHARSMAP_1,
  IMAGE_RENAMED, /* added tokens that decoding shows by another text than the model's */
  IMAGE_LEFT,    /* present if truncation cuts texts off at their beginning */
  IMAGE_SECTIONS = 32
};

typedef struct image {
  const char *bytes; /* aligned to 8 at least */
  int64_t size;
} image;

/* Checks the head and the places of the sections. PGEE_FORMAT if they are wrong, PGEE_UNSUPPORTED for another version. */
int image_open(image *m, const void *bytes, int64_t size);
/* The first byte of a section, and its size in *bytes, 0 if the section is missing. The pointer then points into the image too,
 * because in C NULL plus 0 is undefined. */
const void *image_section(const image *m, int section, int64_t *bytes);

/* Collects sections. Begin with zeros. */
typedef struct image_writer {
  ARRAY(char) bytes;
  int64_t places[IMAGE_SECTIONS][2]; /* offset, bytes */
} image_writer;

void image_writer_free(image_writer *w);
/* A new section of zeros. The caller fills it before it calls the writer again. NULL, with the message set, if there is no
 * memory. */
void *image_new(image_writer *w, int section, int64_t bytes);
/* Writes a section: a copy of `data`. */
int image_put(image_writer *w, int section, const void *data, int64_t bytes);
/* Writes the head. The image is w->bytes, whose count is a multiple of 64. It still belongs to the writer. */
int image_finish(image_writer *w);

#endif
