/* unigram.c: grapheme clusters, charsmaps and Unigram by themselves, for the specs: each builds its tables into an image and runs
 * from a copy of that, which the spec may damage. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/tokenizer/charsmap.h"
#include "engine/tokenizer/grapheme.h"
#include "engine/tokenizer/unicode.h"
#include "engine/tokenizer/unigram.h"

#define PUBLIC __attribute__((visibility("default")))

/* Where the clusters of a text end. Returns how many there are. */
PUBLIC int64_t spec_graphemes(int64_t *ends, const char *text, int64_t bytes);
/* An image of one charsmap, or of one Unigram, copied to a block of exactly its size that is to be freed. */
PUBLIC int spec_charsmap_image(char **out, int64_t *size, const char *blob, int64_t bytes);
PUBLIC int spec_unigram_image(char **out, int64_t *size, const char *bytes, const int64_t *ends, int64_t count,
                              const double *scores, int32_t unk, int byte_fallback);
PUBLIC void spec_free(void *block);
/* What becomes of a text: at most `capacity` bytes and as many pairs of offsets. Returns how many there are, or -1 - status. */
PUBLIC int64_t spec_charsmap_run(const char *image, int64_t size, const char *text, int64_t bytes, char *out, int32_t *spans,
                                 int64_t capacity);
/* Pieces as id, begin, end; at most `capacity`. Returns the same. */
PUBLIC int64_t spec_unigram_run(const char *image, int64_t size, const char *word, int64_t bytes, int32_t *out, int64_t capacity);

int64_t spec_graphemes(int64_t *ends, const char *text, int64_t bytes) {
  grapheme_state state = {0};
  int64_t count = 0;
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    if (grapheme_break(&state, grapheme_class(c)) && i > 0)
      ends[count++] = i;
  }
  if (bytes > 0)
    ends[count++] = bytes;
  return count;
}

static int finish(char **out, int64_t *size, image_writer *w, int status) {
  if (status == PGEE_OK)
    status = image_finish(w);
  char *copy = status == PGEE_OK ? mem_new(w->bytes.count) : NULL;
  if (copy) {
    memcpy(copy, w->bytes.list, (size_t)w->bytes.count);
    *out = copy;
    *size = w->bytes.count;
  } else if (status == PGEE_OK) {
    status = PGEE_MEMORY;
  }
  image_writer_free(w);
  return status;
}

int spec_charsmap_image(char **out, int64_t *size, const char *blob, int64_t bytes) {
  image_writer w = {0};
  return finish(out, size, &w, charsmap_build(&w, blob, bytes));
}

int spec_unigram_image(char **out, int64_t *size, const char *bytes, const int64_t *ends, int64_t count, const double *scores,
                       int32_t unk, int byte_fallback) {
  image_writer w = {0};
  model_vocabulary list = {.bytes = bytes, .ends = ends, .count = count};
  return finish(out, size, &w, unigram_build(&w, &list, scores, unk, byte_fallback));
}

void spec_free(void *block) { mem_free(block); }

static int given(spanned *in, const char *text, int64_t bytes) {
  TRY(spanned_reserve(in, bytes));
  for (int64_t i = 0, size; i < bytes; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, bytes - i, &c);
    TRY(spanned_put(in, c, (span){(int32_t)i, (int32_t)(i + size)}));
  }
  return PGEE_OK;
}

int64_t spec_charsmap_run(const char *bytes, int64_t size, const char *text, int64_t text_bytes, char *out, int32_t *spans,
                          int64_t capacity) {
  image from;
  charsmap m;
  spanned in = {0}, normal = {0};
  int status = image_open(&from, bytes, size);
  if (status == PGEE_OK)
    status = charsmap_open(&m, &from);
  if (status == PGEE_OK)
    status = given(&in, text, text_bytes);
  if (status == PGEE_OK)
    status = charsmap_normalize(&m, &in, &normal);
  int64_t length = normal.length, room = length < capacity ? length : capacity;
  if (status == PGEE_OK && room > 0) {
    memcpy(out, normal.bytes, (size_t)room);
    memcpy(spans, normal.spans, (size_t)room * sizeof(span));
  }
  spanned_free(&in);
  spanned_free(&normal);
  return status == PGEE_OK ? length : -1 - status;
}

int64_t spec_unigram_run(const char *bytes, int64_t size, const char *word, int64_t word_bytes, int32_t *out, int64_t capacity) {
  image from;
  unigram m;
  model_scratch room = {0};
  model_pieces found = {0};
  int status = image_open(&from, bytes, size);
  if (status == PGEE_OK)
    status = unigram_open(&m, &from);
  if (status == PGEE_OK)
    status = unigram_cut(&m, word, word_bytes, &room, &found);
  int64_t count = found.count, copied = count < capacity ? count : capacity;
  if (status == PGEE_OK && copied > 0)
    memcpy(out, found.list, (size_t)copied * sizeof(model_piece));
  model_scratch_free(&room);
  ARRAY_FREE(&found);
  return status == PGEE_OK ? count : -1 - status;
}
