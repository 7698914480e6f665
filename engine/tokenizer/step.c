/* step.c: takes steps from an image. See step.h. */
#include "step.h"

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/perigee.h"
#include "tokenizer.h"

static int broken(const char *what) { return fail(PGEE_FORMAT, "the steps in the image of a tokenizer are broken: %s", what); }

static int open_string(const char **out, int64_t *bytes, uint32_t begin, uint32_t length, const char *strings, int64_t count) {
  if (length > count || begin > count - length)
    return broken("a string lies outside of its section or is not UTF-8");
  *out = length > 0 ? strings + begin : ""; /* without strings there is no section to point into */
  *bytes = length;
  return tokenizer_is_utf8(*out, length) ? PGEE_OK : broken("a string lies outside of its section or is not UTF-8");
}

static int needs_pattern(const step *s) { return (s->kind == PGEE_STEP_SPLIT || s->kind == PGEE_STEP_REPLACE) && s->a; }

int step_list_open(step_list *out, charsmap *c, const image *m, int64_t first, int64_t count) {
  int64_t stored_bytes, string_bytes;
  const step_stored *stored = image_section(m, IMAGE_STEPS, &stored_bytes);
  const char *strings = image_section(m, IMAGE_STRINGS, &string_bytes);
  if (count < 0 || count > STEP_MAX || first + count > stored_bytes / (int64_t)sizeof *stored)
    return broken("the section of steps is too short");
  if (count == 0)
    return PGEE_OK;
  if (!(out->list = mem_array(count, sizeof *out->list)))
    return PGEE_MEMORY;
  out->count = count;
  for (int64_t i = 0; i < count; i++) {
    step_stored from = stored[first + i];
    step *s = &out->list[i];
    *s = (step){.kind = from.kind, .a = from.a, .b = from.b, .c = from.c, .d = from.d};
    TRY(open_string(&s->text, &s->text_bytes, from.text, from.text_bytes, strings, string_bytes));
    TRY(open_string(&s->more, &s->more_bytes, from.more, from.more_bytes, strings, string_bytes));
    if (needs_pattern(s))
      TRY(pattern_new(&s->pattern, s->text, s->text_bytes));
    if ((s->kind == PGEE_STEP_METASPACE || s->kind == PGEE_STEP_CHAR_DELIMITER) && (uint32_t)s->a > 0x10FFFF)
      return broken("a character is no code point");
    if (s->kind == PGEE_STEP_FIXED_LENGTH && s->a < 1)
      return broken("the length of FixedLength is 0 or less");
    if (s->kind == PGEE_STEP_PRECOMPILED)
      TRY(charsmap_open(c, m));
  }
  return PGEE_OK;
}

void step_list_free(step_list *s) {
  for (int64_t i = 0; i < s->count; i++)
    pattern_free(s->list[i].pattern);
  mem_free(s->list);
}
