/* spanned.c: texts with spans, and edits. See spanned.h. */
#include "spanned.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "unicode.h"

enum { FIRST_CAPACITY = 512, FIRST_EDITS = 256 };

void spanned_free(spanned *t) {
  mem_free(t->spans);
  *t = (spanned){0};
}

/* | spans | bytes | */
int spanned_reserve(spanned *t, int64_t more) {
  if (t->length + more > MAX_SPANNED_BYTES)
    return fail(PGEE_ARGUMENT, "the text has more than %d bytes when it is normalized: cut it into several texts",
                MAX_SPANNED_BYTES);
  if (t->length + more <= t->capacity)
    return PGEE_OK;
  int64_t capacity = t->capacity ? t->capacity * 2 : FIRST_CAPACITY;
  if (capacity < t->length + more)
    capacity = t->length + more;
  span *spans = mem_array(capacity, sizeof(span) + 1);
  if (!spans)
    return PGEE_MEMORY;
  char *bytes = (char *)(spans + capacity);
  if (t->length > 0) {
    memcpy(spans, t->spans, (size_t)t->length * sizeof(span));
    memcpy(bytes, t->bytes, (size_t)t->length);
  }
  mem_free(t->spans);
  t->spans = spans;
  t->bytes = bytes;
  t->capacity = capacity;
  return PGEE_OK;
}

int spanned_put(spanned *t, uint32_t c, span from) {
  TRY(spanned_reserve(t, 4));
  int size = utf8_encode(t->bytes + t->length, c);
  for (int i = 0; i < size; i++)
    t->spans[t->length++] = from;
  return PGEE_OK;
}

int spanned_keep(spanned *t, const spanned *in, int64_t begin, int64_t end) {
  if (begin >= end)
    return PGEE_OK;
  TRY(spanned_reserve(t, end - begin));
  memcpy(t->bytes + t->length, in->bytes + begin, (size_t)(end - begin));
  memcpy(t->spans + t->length, in->spans + begin, (size_t)(end - begin) * sizeof(span));
  t->length += end - begin;
  return PGEE_OK;
}

/* ---- Edits ----------------------------------------------------------------------------------------------------------------- */

void edits_free(edits *e) {
  mem_free(e->list);
  *e = (edits){0};
}

int edits_put(edits *e, uint32_t c, int32_t change) {
  if (e->count == e->capacity) {
    int64_t capacity = e->capacity ? e->capacity * 2 : FIRST_EDITS;
    edit *list = mem_resize(e->list, capacity * (int64_t)sizeof *list);
    if (!list)
      return PGEE_MEMORY;
    e->list = list;
    e->capacity = capacity;
  }
  e->list[e->count++] = (edit){c, change};
  return PGEE_OK;
}

/* Where the character after the one at `at` begins. */
static int64_t after(const spanned *in, int64_t at, int64_t end) {
  uint32_t c;
  return at < end ? at + utf8_decode(in->bytes + at, end - at, &c) : end;
}

int spanned_edit(spanned *out, const spanned *in, int64_t begin, int64_t end, int64_t dropped, const edits *e) {
  span origin = {in->origin, in->origin};
  int64_t at = begin + dropped;
  TRY(spanned_reserve(out, end - begin));
  for (int64_t i = 0; i < e->count; i++) {
    int32_t change = e->list[i].change;
    int64_t from = change > 0 || at >= end ? at - 1 : at; /* edits that ask for more than there is have the last span */
    TRY(spanned_put(out, e->list[i].c, from < 0 ? origin : in->spans[from]));
    for (; change <= 0; change++)
      at = after(in, at, end);
  }
  return PGEE_OK;
}
