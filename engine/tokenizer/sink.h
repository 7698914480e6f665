/* sink.h: where the tokens of one text are written. */
#ifndef PERIGEE_SINK_H
#define PERIGEE_SINK_H
#include <stdint.h>

#include "engine/perigee.h"

/* Every token is counted, but only the first `limit` tokens are written. */
typedef struct sink {
  const pgee_tokenizer *t;
  int32_t *ids, *offsets, *words; /* offsets and words may be NULL */
  int64_t limit, count;
  int64_t first;    /* the first token that is kept: not 0 if the text is cut off at its beginning */
  int32_t word;     /* index of the next token's word */
  int trim;         /* 1: offsets leave out white space at both ends of a token, see sink_trim */
  int in_words;     /* 1: the caller gave words, so `word` stays until the given word ends */
  const char *text; /* the text and its bytes, for sink_trim */
  int64_t bytes;
} sink;

/* What byte-level post-processors do to offsets: white space that the token's own text begins or ends with is left out. A space
 * that was only put before the text (add_prefix_space) is not in the offsets anyway. `token`: the token's text. */
void sink_trim(sink *s, int32_t *begin, int32_t *end, const char *token, int64_t bytes);

static inline void sink_put(sink *s, int32_t id, int32_t begin, int32_t end) {
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

#endif
