/* split.h: the parts that a normalized text is cut into: words, and added tokens. */
#ifndef PERIGEE_SPLIT_H
#define PERIGEE_SPLIT_H
#include "engine/base/array.h"

typedef struct split {
  int32_t begin, end; /* bytes of the text */
  int32_t id;         /* of an added token; -1: a word, which the model cuts into pieces */
} split;

typedef ARRAY(split) split_list;

/* Appends a split, unless it is empty. */
static inline int split_put(split_list *s, int64_t begin, int64_t end, int32_t id) {
  return begin < end ? ARRAY_PUSH(s, (split){(int32_t)begin, (int32_t)end, id}) : PGEE_OK;
}

#endif
