/* spanned.c: texts with spans, and edits. See spanned.h. */
#include "spanned.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "unicode.h"

void spanned_free(spanned *t) {
  mem_free(t->spans);
  mem_free(t->bytes);
  *t = (spanned){0};
}

int spanned_reserve(spanned *t, int64_t more) {
  if (t->length + more > MAX_SPANNED_BYTES)
    return fail(PGEE_ARGUMENT, "the text has more than %d bytes when it is normalized: cut it into several texts",
                MAX_SPANNED_BYTES);
  if (t->length + more <= t->capacity)
    return PGEE_OK;
  int64_t spans = t->capacity, bytes = t->capacity;
  TRY(array_grow(&t->spans, &spans, t->length + more, sizeof *t->spans));
  TRY(array_grow(&t->bytes, &bytes, t->length + more, sizeof *t->bytes));
  t->capacity = spans < bytes ? spans : bytes;
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

/* Where the character after the one at `at` begins. */
static int64_t after(const spanned *in, int64_t at, int64_t end) {
  uint32_t c;
  return at < end ? at + utf8_decode(in->bytes + at, end - at, &c) : end;
}

int spanned_apply(spanned *out, const spanned *in, int64_t begin, int64_t end, int64_t dropped, const spanned_edits *e) {
  span origin = {in->origin, in->origin};
  int64_t at = begin + dropped;
  TRY(spanned_reserve(out, end - begin));
  for (int64_t i = 0; i < e->count; i++) {
    int32_t change = e->list[i].change;
    int64_t from = change > 0 || at >= end ? at - 1 : at; /* an edit past the end of the input gets the last span */
    TRY(spanned_put(out, e->list[i].c, from < 0 ? origin : in->spans[from]));
    for (; change <= 0; change++)
      at = after(in, at, end);
  }
  return PGEE_OK;
}
