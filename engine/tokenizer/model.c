/* model.c: memory that a model uses during one call of encode. See model.h. */
#include "model.h"

#include "engine/base/memory.h"
#include "engine/base/status.h"

void model_scratch_free(model_scratch *s) {
  mem_free(s->block);
  *s = (model_scratch){0};
}

void *model_scratch_room(model_scratch *s, int64_t bytes) {
  if (bytes <= s->bytes)
    return s->block;
  int64_t room = bytes > 2 * s->bytes ? bytes : 2 * s->bytes;
  void *block = mem_new(room);
  if (!block)
    return NULL;
  mem_free(s->block);
  s->block = block;
  s->bytes = room;
  return block;
}
