/* array.h: the growing array of the engine.
 *
 *   ARRAY(int32_t) ids = {0};
 *   TRY(ARRAY_PUSH(&ids, 7));
 *   for (int64_t i = 0; i < ids.count; i++)
 *     use(ids.list[i]);
 *   ARRAY_FREE(&ids);
 *
 * An array that is all zeros is empty. A failure (PGEE_MEMORY) leaves the array as it was. */
#ifndef PERIGEE_ARRAY_H
#define PERIGEE_ARRAY_H
#include <stdint.h>
#include <string.h>

#include "memory.h"
#include "status.h"

#define ARRAY(type)          \
  struct {                   \
    type *list;              \
    int64_t count, capacity; \
  }

/* Makes room for `more` items behind the array's last one; `count` stays. New items are zeros. Pointers into the array become
 * invalid. */
#define ARRAY_RESERVE(a, more)          \
  ((a)->count + (more) <= (a)->capacity \
       ? PGEE_OK                        \
       : array_grow(&(a)->list, &(a)->capacity, (a)->count + (more), (int64_t)sizeof *(a)->list))

/* Appends one item. */
#define ARRAY_PUSH(a, ...) (ARRAY_RESERVE(a, 1) ? PGEE_MEMORY : ((a)->list[(a)->count++] = (__VA_ARGS__), PGEE_OK))

#define ARRAY_FREE(a) (mem_free((a)->list), (a)->list = NULL, (a)->count = (a)->capacity = 0, (void)0)

/* The smallest block that an array allocates. */
enum { ARRAY_FIRST_BYTES = 2048 };

/* Makes room for `wanted` items in all. `list` is the address of the pointer to the items, whatever their type is. The capacity
 * at least doubles, so that n pushes cost a time proportional to n. */
static inline int array_grow(void *list, int64_t *capacity, int64_t wanted, int64_t item_bytes) {
  void *items;
  int64_t room = 2 * *capacity > wanted ? 2 * *capacity : wanted, bytes;
  if (wanted <= *capacity)
    return PGEE_OK;
  if (room < ARRAY_FIRST_BYTES / item_bytes)
    room = ARRAY_FIRST_BYTES / item_bytes;
  memcpy(&items, list, sizeof items);
  items = mem_resize(items, __builtin_mul_overflow(room, item_bytes, &bytes) ? -1 : bytes);
  if (!items)
    return PGEE_MEMORY;
  memcpy(list, &items, sizeof items);
  *capacity = room;
  return PGEE_OK;
}

#endif
