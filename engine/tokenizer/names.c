/* names.c: texts to ids and back, as tables of an image. See names.h. */
#include "names.h"

#include <string.h>

#include "engine/base/status.h"

enum { MIN_BITS = 4, MAX_BITS = 28, SPARE_IDS = 1 << 20 };

static uint64_t slot_of(int bits, const char *text, int64_t bytes) {
  uint64_t h = (uint64_t)bytes * 0x9E3779B97F4A7C15u;
  for (int64_t i = 0; i < bytes; i++)
    h = (h ^ (uint8_t)text[i]) * 0x100000001B3u;
  return (h * 0x9E3779B97F4A7C15u) >> (64 - bits);
}

static int32_t id_at(const model_vocabulary *v, int64_t i) { return v->ids ? v->ids[i] : (int32_t)i; }
static int64_t begin_at(const model_vocabulary *v, int64_t i) { return i > 0 ? v->ends[i - 1] : 0; }

/* ---- Building -------------------------------------------------------------------------------------------------------------- */

static int count_ids(const model_vocabulary *v, const names_added *added, int64_t added_count, int64_t *count) {
  int32_t last = -1;
  for (int64_t i = 0; i < v->count; i++)
    last = id_at(v, i) > last ? id_at(v, i) : last;
  for (int64_t i = 0; i < added_count; i++)
    last = added[i].id > last ? added[i].id : last;
  *count = (int64_t)last + 1;
  if (*count > 2 * v->count + SPARE_IDS)
    return fail(PGEE_UNSUPPORTED, "the vocabulary has %lld pieces but ids up to %d, expected fewer gaps", (long long)v->count,
                last);
  return PGEE_OK;
}

static int put_texts(image_writer *w, const model_vocabulary *v, const names_added *added, int64_t added_count) {
  int64_t bytes = begin_at(v, v->count), at = bytes;
  for (int64_t i = 0; i < added_count; i++)
    bytes += added[i].bytes;
  if (bytes >= NAME_MISSING)
    return fail(PGEE_UNSUPPORTED, "the texts of the vocabulary have %lld bytes, expected less than 2^30 - 1", (long long)bytes);
  char *out = image_new(w, IMAGE_TEXTS, bytes);
  if (!out)
    return PGEE_MEMORY;
  if (at > 0)
    memcpy(out, v->bytes, (size_t)at);
  for (int64_t i = 0; i < added_count; at += added[i++].bytes)
    if (added[i].bytes > 0)
      memcpy(out + at, added[i].text, (size_t)added[i].bytes);
  return PGEE_OK;
}

static int is_named(const names_place *p, const char *texts, const names_added *a) {
  return (p->length & NAME_MISSING) == a->bytes && memcmp(texts + p->begin, a->text, (size_t)a->bytes) == 0;
}

static int put_places(image_writer *w, const model_vocabulary *v, const names_added *added, int64_t added_count, int64_t ids) {
  names_place *out = image_new(w, IMAGE_PLACES, ids * (int64_t)sizeof *out);
  if (!out)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < ids; i++)
    out[i].length = NAME_MISSING;
  for (int64_t i = 0; i < v->count; i++)
    out[id_at(v, i)] = (names_place){(uint32_t)begin_at(v, i), (uint32_t)(v->ends[i] - begin_at(v, i))};
  uint32_t at = (uint32_t)begin_at(v, v->count);
  for (int64_t i = 0; i < added_count; at += (uint32_t)added[i++].bytes) {
    names_place *p = &out[added[i].id];
    if (p->length == NAME_MISSING)
      *p = (names_place){at, (uint32_t)added[i].bytes};
    else if (p->begin >= (uint32_t)begin_at(v, v->count) || !is_named(p, v->bytes, &added[i]))
      p->length |= NAME_RENAMED;
    p->length |= added[i].special ? NAME_SPECIAL : 0;
  }
  return PGEE_OK;
}

/* The added tokens that put_places marked. */
static int put_renamed(image_writer *w, const model_vocabulary *v, const names_added *added, int64_t added_count) {
  int64_t renamed = 0, places_at = w->places[IMAGE_PLACES][0];
  for (int64_t i = 0; i < added_count; i++)
    renamed += (((const names_place *)(w->bytes.list + places_at))[added[i].id].length & NAME_RENAMED) != 0;
  names_change *out = image_new(w, IMAGE_RENAMED, renamed * (int64_t)sizeof *out);
  if (!out)
    return PGEE_MEMORY;
  const names_place *places = (const names_place *)(w->bytes.list + places_at);
  uint32_t at = (uint32_t)begin_at(v, v->count);
  for (int64_t i = 0; i < added_count; at += (uint32_t)added[i++].bytes)
    if (places[added[i].id].length & NAME_RENAMED)
      *out++ = (names_change){added[i].id, at, (uint32_t)added[i].bytes};
  return PGEE_OK;
}

/* The slot of piece i: free, or of the last one so far that is equal. For now slots hold indices into the vocabulary, plus 1. */
static int64_t slot_for(const int32_t *slots, int bits, const model_vocabulary *v, int64_t i) {
  const char *text = v->bytes + begin_at(v, i);
  int64_t bytes = v->ends[i] - begin_at(v, i), mask = ((int64_t)1 << bits) - 1, slot = (int64_t)slot_of(bits, text, bytes);
  for (; slots[slot]; slot = (slot + 1) & mask) {
    int64_t other = slots[slot] - 1;
    if (v->ends[other] - begin_at(v, other) == bytes && memcmp(v->bytes + begin_at(v, other), text, (size_t)bytes) == 0)
      break;
  }
  return slot;
}

static int put_slots(image_writer *w, const model_vocabulary *v) {
  int bits = MIN_BITS, repeated = 0;
  while ((int64_t)1 << bits < 2 * v->count)
    bits++;
  int32_t *out = image_new(w, IMAGE_NAMES, ((int64_t)1 << bits) * (int64_t)sizeof *out);
  if (!out)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < v->count; i++) {
    int64_t slot = slot_for(out, bits, v, i);
    repeated |= out[slot] != 0;
    out[slot] = (int32_t)i + 1;
  }
  names_place *places = (names_place *)(w->bytes.list + w->places[IMAGE_PLACES][0]);
  for (int64_t i = 0; repeated && i < v->count; i++) /* decoding leaves out by the text: equal pieces are special together */
    places[id_at(v, i)].length |= places[id_at(v, out[slot_for(out, bits, v, i)] - 1)].length & NAME_SPECIAL;
  for (int64_t slot = 0; slot < (int64_t)1 << bits; slot++)
    if (out[slot])
      out[slot] = id_at(v, out[slot] - 1) + 1;
  return PGEE_OK;
}

int names_build(image_writer *w, const model_vocabulary *vocabulary, const names_added *added, int64_t added_count) {
  int64_t ids;
  TRY(count_ids(vocabulary, added, added_count, &ids));
  TRY(put_texts(w, vocabulary, added, added_count));
  TRY(put_places(w, vocabulary, added, added_count, ids));
  TRY(put_renamed(w, vocabulary, added, added_count));
  return put_slots(w, vocabulary);
}

/* ---- Reading --------------------------------------------------------------------------------------------------------------- */

int names_open(names *n, const image *m) {
  int64_t places, slots, renamed, free_slot = 0;
  n->texts = image_section(m, IMAGE_TEXTS, &n->bytes);
  n->places = image_section(m, IMAGE_PLACES, &places);
  n->slots = image_section(m, IMAGE_NAMES, &slots);
  n->renamed = image_section(m, IMAGE_RENAMED, &renamed);
  n->count = places / (int64_t)sizeof *n->places;
  n->renamed_count = renamed / (int64_t)sizeof *n->renamed;
  for (n->bits = MIN_BITS; n->bits <= MAX_BITS && slots != (int64_t)sizeof *n->slots << n->bits;)
    n->bits++;
  if (n->bits > MAX_BITS || n->count > INT32_MAX)
    return fail(PGEE_FORMAT, "the names in the image of a tokenizer have %lld slots of 4 bytes for %lld ids",
                (long long)slots / 4, (long long)n->count);
  while (free_slot < (int64_t)1 << n->bits && n->slots[free_slot])
    free_slot++;
  if (free_slot == (int64_t)1 << n->bits)
    return fail(PGEE_FORMAT, "the names in the image of a tokenizer have no free slot");
  return PGEE_OK;
}

/* The bytes at a place, if they are there. */
static const char *text_at(const names *n, uint32_t begin, uint32_t length, int64_t *bytes) {
  *bytes = length & NAME_MISSING;
  if (*bytes == NAME_MISSING || *bytes > n->bytes || begin > n->bytes - *bytes) {
    *bytes = 0;
    return NULL;
  }
  return *bytes > 0 ? n->texts + begin : "";
}

const char *names_piece(const names *n, int64_t id, int64_t *bytes) {
  *bytes = 0;
  return id >= 0 && id < n->count ? text_at(n, n->places[id].begin, n->places[id].length, bytes) : NULL;
}

const char *names_text(const names *n, int64_t id, int64_t *bytes, int *special) {
  *bytes = 0;
  if (id < 0 || id >= n->count)
    return NULL;
  uint32_t length = n->places[id].length;
  if (special)
    *special = (length & NAME_SPECIAL) != 0;
  if (length & NAME_RENAMED)
    for (int64_t i = n->renamed_count; i-- > 0;)
      if (n->renamed[i].id == id)
        return text_at(n, n->renamed[i].begin, n->renamed[i].length, bytes);
  return names_piece(n, id, bytes);
}

int32_t names_id(const names *n, const char *text, int64_t bytes) {
  int64_t mask = ((int64_t)1 << n->bits) - 1, length;
  for (int64_t i = (int64_t)slot_of(n->bits, text, bytes); n->slots[i]; i = (i + 1) & mask) {
    int64_t id = (int64_t)n->slots[i] - 1;
    const char *found = id >= 0 && id < n->count ? text_at(n, n->places[id].begin, n->places[id].length, &length) : NULL;
    if (found && length == bytes && memcmp(found, text, (size_t)bytes) == 0)
      return (int32_t)id;
  }
  return -1;
}
