/* image.c: the head of an image and its sections. See image.h. */
#include "image.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"

enum { ALIGN = 64, VERSION = 1 };
static const char MAGIC[8] = "pgeetok";

typedef struct head {
  char magic[8];
  uint32_t version, sections;
  uint64_t size;
  uint64_t zero[5];
  uint64_t places[IMAGE_SECTIONS][2]; /* offset, bytes */
} head;

_Static_assert(sizeof(head) % ALIGN == 0, "the first section begins right behind the head");

static int check_head(const head *h, int64_t size) {
  if (memcmp(h->magic, MAGIC, sizeof MAGIC) != 0)
    return fail(PGEE_FORMAT, "these bytes are not the image of a tokenizer: they do not begin with '%s'", MAGIC);
  if (h->version != VERSION || h->sections != IMAGE_SECTIONS)
    return fail(PGEE_UNSUPPORTED, "the image of a tokenizer has version %u, expected %d", h->version, VERSION);
  if (h->size > (uint64_t)size)
    return fail(PGEE_FORMAT, "the image of a tokenizer has %lld bytes, its head says %llu", (long long)size,
                (unsigned long long)h->size);
  return PGEE_OK;
}

int image_open(image *m, const void *bytes, int64_t size) {
  head h;
  if (size < (int64_t)sizeof h)
    return fail(PGEE_FORMAT, "the image of a tokenizer has %lld bytes, expected %lld or more", (long long)size,
                (long long)sizeof h);
  if ((uintptr_t)bytes % 8 != 0)
    return fail(PGEE_ARGUMENT, "the image of a tokenizer begins at an address that is not a multiple of 8");
  memcpy(&h, bytes, sizeof h);
  TRY(check_head(&h, size));
  for (int i = 0; i < IMAGE_SECTIONS; i++) {
    uint64_t offset = h.places[i][0], length = h.places[i][1];
    if (offset > h.size || length > h.size - offset || offset % ALIGN != 0)
      return fail(PGEE_FORMAT, "section %d of the image of a tokenizer is at %llu to %llu, outside of its %llu bytes", i,
                  (unsigned long long)offset, (unsigned long long)(offset + length), (unsigned long long)h.size);
  }
  *m = (image){bytes, (int64_t)h.size};
  return PGEE_OK;
}

const void *image_section(const image *m, int section, int64_t *bytes) {
  const head *h = (const head *)m->bytes;
  *bytes = (int64_t)h->places[section][1];
  return m->bytes + h->places[section][0];
}

/* ---- Writing --------------------------------------------------------------------------------------------------------------- */

void image_writer_free(image_writer *w) {
  ARRAY_FREE(&w->bytes);
  *w = (image_writer){0};
}

/* `bytes` more at the end, padded to 64; the block is zeroed. */
static int extend(image_writer *w, int64_t bytes) {
  int64_t padded = (bytes + ALIGN - 1) / ALIGN * ALIGN;
  TRY(ARRAY_RESERVE(&w->bytes, padded));
  w->bytes.count += padded;
  return PGEE_OK;
}

void *image_new(image_writer *w, int section, int64_t bytes) {
  if (w->bytes.count == 0 && extend(w, sizeof(head)) != PGEE_OK)
    return NULL;
  int64_t at = w->bytes.count;
  if (extend(w, bytes) != PGEE_OK)
    return NULL;
  w->places[section][0] = at;
  w->places[section][1] = bytes;
  return w->bytes.list + at;
}

int image_put(image_writer *w, int section, const void *data, int64_t bytes) {
  void *place = image_new(w, section, bytes);
  if (!place)
    return PGEE_MEMORY;
  if (bytes > 0)
    memcpy(place, data, (size_t)bytes);
  return PGEE_OK;
}

int image_finish(image_writer *w) {
  if (w->bytes.count == 0)
    TRY(extend(w, sizeof(head)));
  head h = {.version = VERSION, .sections = IMAGE_SECTIONS, .size = (uint64_t)w->bytes.count};
  memcpy(h.magic, MAGIC, sizeof MAGIC);
  for (int i = 0; i < IMAGE_SECTIONS; i++)
    for (int j = 0; j < 2; j++)
      h.places[i][j] = (uint64_t)w->places[i][j];
  memcpy(w->bytes.list, &h, sizeof h);
  return PGEE_OK;
}
