/* sink.c: the offsets of tokens whose text begins or ends with white space. See sink.h. */
#include "sink.h"

#include "character.h"
#include "tokenizer.h"

#include "unicode.h"

static int is_blank(uint32_t c) { return c == character_of_byte(' ') || unicode(c)->flags & UNICODE_WHITE; }

void sink_trim(sink *s, int32_t *begin, int32_t *end, const char *token, int64_t bytes) {
  int64_t leading = 0, trailing = 0, at = *end;
  uint32_t c;
  for (int64_t i = 0, size; i < bytes; i += size, leading++) {
    size = utf8_decode(token + i, bytes - i, &c);
    if (!is_blank(c))
      break;
  }
  for (int64_t i = bytes, size; i > 0; i -= size, trailing++) {
    size = utf8_before(token, i, &c);
    if (!is_blank(c))
      break;
  }
  if (leading == 1 && s->t->options->add_prefix_space && (s->count == s->first || *begin == 0))
    leading = 0;
  for (; leading > 0 && *begin < *end; leading--)
    *begin += utf8_decode(s->text + *begin, s->bytes - *begin, &c);
  for (; trailing > 0 && at > 0; trailing--)
    at -= utf8_before(s->text, at, &c);
  if (trailing == 0)
    *end = (int32_t)(at > *begin ? at : *begin);
}
